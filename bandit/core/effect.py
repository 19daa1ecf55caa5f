"""What an arm's presence does to a session's reward, of two kinds that are never mixed.

*Causal*: presence was drawn, with a known chance. By intention to treat: every session counts in the group that it was
drawn for, whatever it then fetched, so that the groups differ by the draw alone; who has it in fact may differ by
anything. The estimate, its interval and the e-value are those of `bandit.core.betting`, good at every look.
*Observational*: presence came as it came, often because a session was in trouble: the difference says what went
together, not what helped. It has no verdict. The caller gives residuals, reward − category mean + global mean.

    difference = m₁ − m₀        m = Σw·y/Σw        v = n/(n − 1)·Σw²(y − m)²/(Σw)²
    with (v₁ + v₀)² / (v₁²/(n₁ − 1) + v₀²/(n₀ − 1)) degrees of freedom    (Welch 1947)

What may be said is decided here. "Helps" and "harmful" need an e-value that counts among all lessons
(`betting.bar`), "negligible" an interval within ±.05, and each as many rewards missing in both groups but for chance.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws, UnscoredShares, bar
from bandit.core.estimate import Estimate, about, estimate, signed, weighted_mean
from bandit.core.table import Floats, Ints

Named = TypeVar("Named", bound=Hashable)


class StudyDesign(StrEnum):
    CAUSAL = "causal"
    OBSERVATIONAL = "observational"
    CANNOT_TELL = "cannot tell"


# Sessions on the smaller side of the draws that a causal figure needs.
LEAST_CAUSAL = 15
# Rows and days without which any difference is one afternoon's.
LEAST_ROWS, LEAST_DAYS = 5, 3
# An effect that is worth finding; what is surely less than this, either way, is negligible.
WORTH = 0.05
# A stretch is at least so many firings; its difference beyond this is somebody's to look at, whatever the whole says.
FIRINGS, STRIKING = 50, 0.15
# The recent days; where these surely have less than this share of the whole's effect, the past is no verdict any more.
RECENT_DAYS, AGREES = 28, 0.5
# Like outcomes have no variance; this keeps their interval finite.
TINY = 1e-12
# What each kind of difference is worth.
MEANT = {
    StudyDesign.CAUSAL: "Causal, from a drawn holdout",
    StudyDesign.OBSERVATIONAL: "Observational, what went together and not what caused it",
}


class EffectVerdict(StrEnum):
    HELPS = "helps"
    HARMFUL = "harmful"
    NEGLIGIBLE = "negligible"
    OPEN = "open"
    INSUFFICIENT = "insufficient"

    @property
    def decides(self) -> bool:
        """Whether it says something of the effect, so that holding the arm out has served its purpose."""
        return self not in {EffectVerdict.OPEN, EffectVerdict.INSUFFICIENT}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparisonGroup:
    """The sessions with an arm, or those without it, as columns."""

    value: Floats
    weight: Floats
    day: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials:
    """Sessions as columns, all (n,): whether the arm was `present`, the `outcome`, the `day` as an ordinal.

    `weight` is above 0, one for each unless given. Raises ValueError for others.
    """

    present: NDArray[np.bool_]
    outcome: Floats
    day: Ints
    weight: Floats = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        if self.weight.shape == (1,):
            object.__setattr__(self, "weight", np.full(self.present.shape, self.weight[0]))
        shapes = {column.shape for column in (self.present, self.outcome, self.day, self.weight)}
        if len(shapes) > 1 or self.present.ndim != 1:
            raise ValueError(f"expected columns of one length; got shapes {sorted(shapes)}")
        if not np.isfinite(self.outcome).all():
            raise ValueError("an outcome is a finite number; leave out what has none")

    @classmethod
    def drawn(cls, draws: Draws) -> "Trials":
        """The draws that have an outcome, as they were drawn, each with the inverse of its chance."""
        kept = draws.only(draws.scored)
        weight = 1 / np.where(kept.taken, kept.chance, 1 - kept.chance)
        return cls(present=kept.taken, outcome=kept.outcome, day=kept.day, weight=weight)

    def only(self, kept: NDArray[np.bool_] | Ints) -> "Trials":
        """Those that are `kept` (n,), or those at these places."""
        return Trials(
            present=self.present[kept], outcome=self.outcome[kept], day=self.day[kept], weight=self.weight[kept]
        )

    def groups(self) -> tuple[ComparisonGroup, ComparisonGroup]:
        """With the arm, and without it."""
        with_it, without = (
            ComparisonGroup(value=self.outcome[rows], weight=self.weight[rows], day=self.day[rows])
            for rows in (self.present, ~self.present)
        )
        return with_it, without


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One stretch of `firings` in a row: the difference over its days, first to last (ordinals)."""

    first: int
    last: int
    firings: int
    difference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentEffect:
    """With the arm less without it. `n` sessions with it, by the draw or in fact, on `days` days, and `without`.

    `difference` in units of reward is None where `kind` is "cannot tell". `windows` are those of at least 50 firings;
    `striking`: one of them is beyond ±.15 and wants looking at, whatever the verdict. `sentence` says all that may be
    said. Of draws alone: the e-value is the `evidence` that there is an effect, 1 for none either way; `unscored` the
    shares of draws without a reward; `more` about how many more sessions would decide an effect of .05, None where
    nothing is drawn any more.
    """

    kind: StudyDesign
    verdict: EffectVerdict
    n: int
    without: int
    days: int
    difference: Estimate | None
    windows: tuple[Window, ...]
    sentence: str
    evidence: float | None = None
    unscored: UnscoredShares | None = None
    more: int | None = None

    @property
    def striking(self) -> bool:
        return any(abs(window.difference) > STRIKING for window in self.windows)


def causal(draws: Draws, *, least: float, chance: float, bets: Bets | None = None) -> TreatmentEffect:
    """The effect of being drawn for an arm; "cannot tell" under 15 sessions with a reward in the smaller group.

    `least` is the e-value from which it may be called something (`betting.bar`), `chance` that of the next draw. `bets`
    are those on these draws, where they were placed already.
    """
    bets = bets or Bets.on(draws)
    verdict, why = verdict_on(draws, least=least, bets=bets)
    is_told = verdict is not EffectVerdict.INSUFFICIENT
    found = replace(
        _found(StudyDesign.CAUSAL, verdict, Trials.drawn(draws), bets.effect() if is_told else None),
        evidence=bets.evidence,
        unscored=draws.unscored(),
        more=bets.sessions_needed(WORTH, chance=chance, bar=least) if 0 < chance < 1 else None,
    )
    if verdict is EffectVerdict.OPEN and not why:
        why = f"there are sessions enough for an effect of {WORTH:.2f}; a smaller one takes more"
        if found.more is None:
            why = "nothing is held out by chance any more, so that no session will decide it"
        elif found.more:
            why = f"about {about(found.more)} more sessions would decide an effect of {WORTH:.2f}"
    return replace(found, sentence=_sentence(found, "by the draw", why))


def verdicts(drawn: Mapping[Named, Draws]) -> dict[Named, EffectVerdict]:
    """The word on each of several arms, by its draws."""
    placed = {name: Bets.on(draws) for name, draws in drawn.items()}
    least = bar(bets.evidence for bets in placed.values())
    return {name: verdict_on(draws, least=least, bets=placed[name])[0] for name, draws in drawn.items()}


def verdict_on(draws: Draws, *, least: float, bets: Bets | None = None) -> tuple[EffectVerdict, str]:
    """The word that these draws allow, and why it is no stronger; "" where more draws are all that it lacks. `bets` as
    in `causal`.
    """
    if lacking := _lacking(Trials.drawn(draws), LEAST_CAUSAL):
        return EffectVerdict.INSUFFICIENT, lacking
    bets, unscored = bets or Bets.on(draws), draws.unscored()
    if unscored.differ:
        shares = f"{100 * unscored.taken:.0f} % of those with it and {100 * unscored.held_out:.0f} % of those without"
        return EffectVerdict.OPEN, f"{shares} have no reward, which is more than chance: what is missing may differ too"
    if unscored.are_chosen:
        return EffectVerdict.OPEN, f"{100 * unscored.lost:.0f} % of its draws led to no session: they may be picked"
    if bets.evidence >= least:
        recent = Bets.on(draws.only(draws.day > draws.day.max() - RECENT_DAYS))
        half = AGREES * bets.mean
        if len(recent.x) and (recent.mean - half) * bets.mean < 0 and recent.excludes(half):
            return EffectVerdict.OPEN, f"the last {RECENT_DAYS} days do not bear it out"
        return (EffectVerdict.HELPS if bets.mean > 0 else EffectVerdict.HARMFUL), ""
    if bets.excludes(WORTH) and bets.excludes(-WORTH):
        return EffectVerdict.NEGLIGIBLE, f"surely less than {WORTH:.2f} either way"
    return EffectVerdict.OPEN, ""


def sessions_to_decide(*, chance: float, least: float) -> int | None:
    """About how many draws with this chance a new arm takes until an effect of .05 is called, as in `causal`.

    None where nothing is drawn.
    """
    return Bets.on(Draws.none()).sessions_needed(WORTH, chance=chance, bar=least) if 0 < chance < 1 else None


def per_protocol(draws: Draws) -> Estimate | None:
    """The difference among the draws that were heeded, with the inverse of their chances; None under 15 in a group.

    What was held out and had it all the same is left out, so that the groups differ by whatever made it fetch it, too:
    this stands beside a verdict, and is none.
    """
    trials = Trials.drawn(draws.only(draws.heeded))
    return None if _lacking(trials, LEAST_CAUSAL) else _difference(trials)


def observational(observed: Trials) -> TreatmentEffect:
    """What went together with a presence that came as it came; "cannot tell" under 5 sessions with it or without.

    It has no verdict, however far apart the groups are.
    """
    lacking = _lacking(observed, LEAST_ROWS)
    verdict = EffectVerdict.INSUFFICIENT if lacking else EffectVerdict.OPEN
    found = _found(StudyDesign.OBSERVATIONAL, verdict, observed, None if lacking else _difference(observed))
    return replace(found, sentence=_sentence(found, "as it came", lacking))


def _found(kind: StudyDesign, verdict: EffectVerdict, trials: Trials, told: Estimate | None) -> TreatmentEffect:
    with_it, without = trials.groups()
    return TreatmentEffect(
        kind=kind if told else StudyDesign.CANNOT_TELL,
        verdict=verdict,
        n=len(with_it.value),
        without=len(without.value),
        days=len(np.unique(with_it.day)),
        difference=told,
        windows=tuple(_windows(trials)) if told else (),
        sentence="",
    )


def _lacking(trials: Trials, least: int) -> str:
    """What is missing for any difference at all; "" for nothing."""
    for group, name in zip(trials.groups(), ("with", "without"), strict=True):
        rows, days = len(group.value), len(np.unique(group.day))
        if rows < least or days < LEAST_DAYS:
            return f"{rows} sessions {name} it on {days} days, where {least} on {LEAST_DAYS} are needed"
    return ""


def _difference(trials: Trials) -> Estimate:
    """With less without, and its interval."""
    groups = trials.groups()
    (m1, v1), (m0, v0) = (weighted_mean(group.value, group.weight) for group in groups)
    n1, n0 = (len(group.value) for group in groups)
    variance = max(v1 + v0, TINY)
    freedom = max(variance**2 / max(v1**2 / (n1 - 1) + v0**2 / (n0 - 1), TINY**2), 1.0)
    return estimate(m1 - m0, variance, freedom, least=-math.inf, most=math.inf)


def _windows(trials: Trials) -> Iterator[Window]:
    """Whole days in a row until they hold 50 firings, again and again; days left over belong to the last window.

    Days of sessions with the arm alone have no difference, and no window.
    """
    days, firings = np.unique(trials.day[trials.present], return_counts=True)
    by_day = np.argsort(trials.day, kind="stable")
    sorted_days = trials.day[by_day]
    total, first, seen, held = int(firings.sum()), int(trials.day.min()), 0, 0
    for day, count in zip(days.tolist(), firings.tolist(), strict=True):
        seen, held = seen + count, held + count
        if held >= FIRINGS and (total - seen >= FIRINGS or day == days[-1]):
            last = int(trials.day.max()) if seen == total else day
            # In the order in which they came, so that windows add up as the whole would.
            start, end = np.searchsorted(sorted_days, (first, last + 1))
            at = np.sort(by_day[start:end])
            present, weight = trials.present[at], trials.weight[at]
            if not present.all():
                worth = trials.outcome[at] * weight
                means = [float(worth[rows].sum() / weight[rows].sum()) for rows in (present, ~present)]
                yield Window(first=first, last=last, firings=int(present.sum()), difference=means[0] - means[1])
            first, held = day + 1, 0


def _sentence(found: TreatmentEffect, how: str, why: str) -> str:
    if found.difference is None:
        return f"Cannot tell: insufficient, {why}."
    word = "no verdict" if found.verdict is EffectVerdict.OPEN else found.verdict
    it = found.difference
    numbers = f"{signed(it.mean)} (90 % interval {signed(it.low)} to {signed(it.high)})"
    base = f"over {found.n} sessions with it {how}, on {found.days} days, and {found.without} without"
    said = f"{MEANT[found.kind]}: {word}, {numbers} {base}" + (f"; {why}." if why else ".")
    worst = max(found.windows, key=lambda window: abs(window.difference), default=None)
    if worst is None or not found.striking:
        return said
    days = f"{date.fromordinal(worst.first)} to {date.fromordinal(worst.last)}"
    return f"{said} To be looked at: {signed(worst.difference)} over {worst.firings} firings from {days}."
