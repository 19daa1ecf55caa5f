"""What an arm's presence does to a session's reward, of two kinds that are never mixed.

*Causal*: presence was drawn, with a known chance p, so that sessions with and without differ by that alone. Each counts
1/p with the arm and 1/(1 − p) without, which makes up for chances that differ (Horvitz and Thompson 1952; Hájek 1971).
*Observational*: presence came as it came, often because a session was in trouble: the difference says what went
together, not what helped. The caller gives residuals, reward − category mean + global mean.

    difference = m₁ − m₀        m = Σw·y/Σw        v = n/(n − 1)·Σw²(y − m)²/(Σw)²
    t = difference / √(v₁ + v₀) with (v₁ + v₀)² / (v₁²/(n₁ − 1) + v₀²/(n₀ − 1)) degrees of freedom    (Welch 1947)

What may be said is decided here: "helps" or "harmful" needs 50 firings, p < .01 and the recent window agreeing;
and only a causal effect can be a reason to retire an arm.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from bandit.core.estimate import Estimate, estimate, signed, weighted_mean
from bandit.core.table import Floats, Ints


class StudyDesign(StrEnum):
    CAUSAL = "causal"
    OBSERVATIONAL = "observational"
    CANNOT_TELL = "cannot tell"


# Sessions without the arm that a causal difference needs, and sessions with it.
LEAST_CAUSAL = 15
# Rows and days without which any difference is one afternoon's.
LEAST_ROWS, LEAST_DAYS = 5, 3
# What strong words need: firings, and a chance that nothing is there.
FIRINGS, SURE = 50, 0.01
# The recent window in days; it agrees with a difference of the same sign and at least this share of the whole's.
RECENT_DAYS, AGREES = 28, 0.5
# A window's difference beyond this is somebody's to look at, whatever the whole says.
STRIKING = 0.15
# Like outcomes have no variance; this keeps their t finite.
TINY = 1e-12
# What each kind of difference is worth.
MEANT = {
    StudyDesign.CAUSAL: "Causal, from a drawn holdout",
    StudyDesign.OBSERVATIONAL: "Observational, what went together and not what caused it",
}


class EffectVerdict(StrEnum):
    HELPS = "helps"
    HARMFUL = "harmful"
    OPEN = "open"
    INSUFFICIENT = "insufficient"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparisonGroup:
    """The sessions with an arm, or those without it, as columns."""

    value: Floats
    weight: Floats
    day: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials:
    """Sessions as columns, all (n,): whether the arm was `present`, the `outcome`, the `day` as an ordinal.

    `chance` is that of presence where it was drawn, in (0, 1); None where nobody drew. Raises ValueError for others.
    """

    present: NDArray[np.bool_]
    outcome: Floats
    day: Ints
    chance: Floats | None = None

    def __post_init__(self) -> None:
        if self.chance is not None and not ((self.chance > 0) & (self.chance < 1)).all():
            raise ValueError("a drawn presence has a chance above 0 and below 1; what was certain was not drawn")
        shapes = {column.shape for column in (self.present, self.outcome, self.day)} | {self._weights().shape}
        if len(shapes) > 1 or self.present.ndim != 1:
            raise ValueError(f"expected columns of one length; got shapes {sorted(shapes)}")
        if not np.isfinite(self.outcome).all():
            raise ValueError("an outcome is a finite number; leave out what has none")

    def _weights(self) -> Floats:
        if self.chance is None:
            return np.ones(self.present.shape)
        found: Floats = 1 / np.where(self.present, self.chance, 1 - self.chance)
        return found

    def only(self, kept: NDArray[np.bool_]) -> "Trials":
        """Those that are `kept` (n,)."""
        chance = None if self.chance is None else self.chance[kept]
        return Trials(present=self.present[kept], outcome=self.outcome[kept], day=self.day[kept], chance=chance)

    def during(self, first: int, last: int) -> "Trials":
        """Those of the days `first` to `last`."""
        return self.only((self.day >= first) & (self.day <= last))

    def groups(self) -> tuple[ComparisonGroup, ComparisonGroup]:
        """With the arm, and without it."""
        weight, present = self._weights(), self.present
        with_it, without = (
            ComparisonGroup(value=self.outcome[rows], weight=weight[rows], day=self.day[rows])
            for rows in (present, ~present)
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
    """With the arm less without it. `n` sessions with it and `without`, on `days` distinct days.

    `difference` in units of reward and `p`, its two-sided chance if nothing were there, are None where `kind` is
    "cannot tell". `windows` are those of at least 50 firings; `striking`: one of them is beyond ±.15 and wants looking
    at, whatever the verdict. `sentence` says all that may be said.
    """

    kind: StudyDesign
    verdict: EffectVerdict
    n: int
    without: int
    days: int
    difference: Estimate | None
    p: float | None
    windows: tuple[Window, ...]
    sentence: str

    @property
    def striking(self) -> bool:
        return any(abs(window.difference) > STRIKING for window in self.windows)


def effect(*, drawn: Trials, observed: Trials) -> TreatmentEffect:
    """The causal effect if the holdout suffices for one, else the observational one: `kind` says which it is.

    `drawn` has chances and `observed` none; they are never added up. Raises ValueError where that is not so.
    """
    found = causal(drawn)
    return observational(observed) if found.kind is StudyDesign.CANNOT_TELL else found


def causal(drawn: Trials) -> TreatmentEffect:
    """The effect of a presence that was drawn; "cannot tell" under 15 sessions in the smaller group.

    Raises ValueError for trials without chances.
    """
    if drawn.chance is None:
        raise ValueError("a causal effect needs trials that were drawn, with their chances; got none")
    return _measured(StudyDesign.CAUSAL, drawn, LEAST_CAUSAL)


def observational(observed: Trials) -> TreatmentEffect:
    """What went together with a presence that came as it came; "cannot tell" under 5 sessions with it or without.

    Raises ValueError for trials with chances: those have a causal effect.
    """
    if observed.chance is not None:
        raise ValueError("trials that were drawn have a causal effect; got chances for an observational one")
    return _measured(StudyDesign.OBSERVATIONAL, observed, LEAST_ROWS)


def _measured(kind: StudyDesign, trials: Trials, least: int) -> TreatmentEffect:
    with_it, without = trials.groups()
    lacking = _lacking(trials, least)
    measured = None if lacking else _difference(trials)
    verdict, why = (EffectVerdict.INSUFFICIENT, lacking) if measured is None else _verdict(trials, *measured)
    found = TreatmentEffect(
        kind=StudyDesign.CANNOT_TELL if lacking else kind,
        verdict=verdict,
        n=len(with_it.value),
        without=len(without.value),
        days=len(np.unique(with_it.day)),
        difference=measured and measured[0],
        p=measured and measured[1],
        windows=() if lacking else tuple(_windows(trials)),
        sentence="",
    )
    return replace(found, sentence=_sentence(found, why))


def _lacking(trials: Trials, least: int) -> str:
    """What is missing for any difference at all; "" for nothing."""
    for group, name in zip(trials.groups(), ("with", "without"), strict=True):
        rows, days = len(group.value), len(np.unique(group.day))
        if rows < least or days < LEAST_DAYS:
            return f"{rows} sessions {name} it on {days} days, where {least} on {LEAST_DAYS} are needed"
    return ""


def _difference(trials: Trials) -> tuple[Estimate, float]:
    """With less without, its interval, and the two-sided p."""
    groups = trials.groups()
    (m1, v1), (m0, v0) = (weighted_mean(group.value, group.weight) for group in groups)
    n1, n0 = (len(group.value) for group in groups)
    variance = max(v1 + v0, TINY)
    freedom = max(variance**2 / max(v1**2 / (n1 - 1) + v0**2 / (n0 - 1), TINY**2), 1.0)
    p = 2 * float(stdtr(freedom, -abs(m1 - m0) / variance**0.5))
    return estimate(m1 - m0, variance, freedom, least=-math.inf, most=math.inf), p


def _verdict(trials: Trials, difference: Estimate, p: float) -> tuple[EffectVerdict, str]:
    """The word that is allowed, and why it is no stronger."""
    n = int(trials.present.sum())
    if p >= SURE:
        return EffectVerdict.OPEN, f"p = {p:.2g}: it may well be chance"
    if n < FIRINGS:
        return EffectVerdict.OPEN, f"more can be said from {FIRINGS} sessions with it"
    last = int(trials.day.max())
    recent = trials.during(last - RECENT_DAYS + 1, last)
    if _lacking(recent, LEAST_ROWS) or _difference(recent)[0].mean / difference.mean < AGREES:
        return EffectVerdict.OPEN, f"the last {RECENT_DAYS} days do not bear it out"
    return (EffectVerdict.HELPS if difference.mean > 0 else EffectVerdict.HARMFUL), ""


def _windows(trials: Trials) -> Iterator[Window]:
    """Whole days in a row until they hold 50 firings, again and again; days left over belong to the last window.

    Days of sessions with the arm alone have no difference, and no window.
    """
    days, firings = np.unique(trials.day[trials.present], return_counts=True)
    total, first, seen, held = int(firings.sum()), int(trials.day.min()), 0, 0
    for day, count in zip(days.tolist(), firings.tolist(), strict=True):
        seen, held = seen + count, held + count
        if held >= FIRINGS and (total - seen >= FIRINGS or day == days[-1]):
            last = int(trials.day.max()) if seen == total else day
            with_it, without = trials.during(first, last).groups()
            if len(without.value):
                means = [float(np.average(group.value, weights=group.weight)) for group in (with_it, without)]
                yield Window(first=first, last=last, firings=len(with_it.value), difference=means[0] - means[1])
            first, held = day + 1, 0


def _sentence(found: TreatmentEffect, why: str) -> str:
    if found.difference is None:
        return f"Cannot tell: insufficient, {why}."
    word = "no verdict" if found.verdict is EffectVerdict.OPEN else found.verdict
    it = found.difference
    numbers = f"{signed(it.mean)} (90 % interval {signed(it.low)} to {signed(it.high)})"
    base = f"over {found.n} sessions with it on {found.days} days and {found.without} without"
    said = f"{MEANT[found.kind]}: {word}, {numbers} {base}" + (f"; {why}." if why else ".")
    worst = max(found.windows, key=lambda window: abs(window.difference), default=None)
    if worst is None or not found.striking:
        return said
    days = f"{date.fromordinal(worst.first)} to {date.fromordinal(worst.last)}"
    return f"{said} To be looked at: {signed(worst.difference)} over {worst.firings} firings from {days}."
