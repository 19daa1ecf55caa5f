"""The figures of one lesson, from columns of its sessions and draws. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws
from bandit.core.effect import StudyDesign, TreatmentEffect, Trials, causal, observational, per_protocol
from bandit.core.estimate import Estimate
from bandit.core.table import Flags, Floats, Ints

# With fewer sessions than this there is no match rate.
MIN_MATCH_RATE_SESSIONS = 20
# A lesson that matches more often than this describes the work rather than a moment in it.
BROAD_MATCH_RATE = 0.30
# Names of lessons that are given when something has gone wrong already.
TROUBLE = re.compile(
    r"\b(debug|error|exception|fail|fix|recover|rescue|retr[yi]|stuck|timeout|trouble)\w*", re.IGNORECASE
)
# A category with fewer sessions than this on either side is too small for a conclusion.
MIN_CATEGORY_SESSIONS = 20
NO_CONTEXTS = np.zeros(0, dtype=np.str_)


@dataclass(frozen=True, slots=True, kw_only=True)
class InCategory:
    """The effect in one category alone; `enough`: there are enough sessions for it to mean anything."""

    category: str
    effect: TreatmentEffect

    @property
    def enough(self) -> bool:
        return self.effect.difference is not None and min(self.effect.n, self.effect.without) >= MIN_CATEGORY_SESSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonFigures:
    """The figures of a lesson.

    `matched` counts its sessions, `taken` those that had it, `without_reward` those without a reward, and
    `drawn` its draws; `unheeded` sessions had it although they were drawn to be held out. `match_rate` is the share of
    its agents' sessions that it matched since it first did, None under 20 sessions. `rewards` of its sessions are in
    the ledger and count as `credit`, each by its salience. `per_protocol` (the difference among heeded draws) and
    `categories` are computed only for the lesson's own page; categories have the kind of effect that the whole has.
    """

    matched: int
    taken: int
    without_reward: int
    drawn: int
    unheeded: int
    match_rate: float | None
    causal: TreatmentEffect
    observational: TreatmentEffect
    per_protocol: Estimate | None
    rewards: int
    credit: float
    categories: tuple[InCategory, ...] = ()

    @property
    def smaller_group(self) -> int:
        """Sessions on the smaller side of its draws, of which a causal figure needs 15."""
        return min(self.causal.n, self.causal.without)

    @property
    def effect(self) -> TreatmentEffect:
        """The causal effect if it is known, else the observational one if it is known or nothing was drawn; else the
        causal one, which says what the draws still lack.
        """
        if self.causal.kind is StudyDesign.CAUSAL:
            return self.causal
        if self.observational.kind is StudyDesign.OBSERVATIONAL or not self.drawn:
            return self.observational
        return self.causal

    @property
    def striking(self) -> bool:
        """Whether a window of either kind should be looked at, whatever the whole says."""
        return self.causal.striking or self.observational.striking

    def cautions(self, name: str) -> list[str]:
        """Why the differences of a lesson of this name may mislead, as sentences: up to two about the observational
        difference, then one about that of its draws.
        """
        sentences = []
        if self.match_rate is not None and self.match_rate > BROAD_MATCH_RATE:
            share, limit = f"{100 * self.match_rate:.0f} %", f"{100 * BROAD_MATCH_RATE:.0f} %"
            sentences.append(
                f"This lesson matches {share} of sessions (over {limit}), so its observational effect may only "
                "reflect the kind of work."
            )
        if word := TROUBLE.search(name.replace("-", " ")):
            sentences.append(
                f"The name contains “{word[0]}”. A lesson that is given after something went wrong looks worse than "
                "it is."
            )
        if self.unheeded:
            sentences.append(
                f"{self.unheeded} × this lesson was given although it was withheld. These sessions count as "
                "withheld, so the real effect may be larger."
            )
        return sentences


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LessonSample:
    """The sessions of agents that report their lessons, as columns (n,).

    `agent` is a primary key, `day` an ordinal, `context` the category's name ("" without a reward), and `outcome` the
    residual of the live reward, NaN if there is none.
    """

    agent: Ints
    day: Ints
    context: NDArray[np.str_]
    outcome: Floats

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[int, int, str, float]]) -> Self:
        """The sample with these (agent, day, context, outcome)."""
        return cls(
            agent=np.array([row[0] for row in rows], dtype=np.int64),
            day=np.array([row[1] for row in rows], dtype=np.int64),
            context=np.array([row[2] for row in rows], dtype=np.str_),
            outcome=np.array([row[3] for row in rows], dtype=np.float64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lesson:
    """One lesson: the sessions that it matched, as columns (m,), and all of its draws.

    `at` is each session's index in the `sample`, `taken` whether it had the lesson. `context` (k,) is the category of
    each draw's session. `bar` is the least e-value for a verdict, `next_chance` the chance that the next draw takes the
    lesson while it is undecided. `rewards` and `credit` as in `LessonFigures`. `bets` are those on the draws, if known.
    """

    sample: LessonSample
    at: Ints
    taken: Flags
    draws: Draws
    context: NDArray[np.str_]
    bar: float
    next_chance: float
    rewards: int
    credit: float
    bets: Bets | None = None

    @classmethod
    def without_sessions(cls, bar: float) -> Self:
        return cls(
            sample=LessonSample.from_rows([]),
            at=np.zeros(0, dtype=np.int64),
            taken=np.zeros(0, dtype=bool),
            draws=Draws.none(),
            context=NO_CONTEXTS,
            bar=bar,
            next_chance=0.0,
            rewards=0,
            credit=0.0,
        )

    def figures(self, *, closely: bool = False) -> LessonFigures:
        """Compute the figures; `closely`: with the effect in each category and among heeded draws."""
        sample = self.sample
        is_rewarded = np.isfinite(sample.outcome)
        # The sessions of the agents that the lesson matched for, since it first did; none if it never did.
        first_day = sample.day[self.at].min(initial=np.iinfo(np.int64).max)
        in_scope = np.isin(sample.agent, sample.agent[self.at]) & (sample.day >= first_day)
        had_lesson = np.zeros(len(sample.outcome), dtype=bool)
        had_lesson[self.at[self.taken]] = True
        in_its_categories = np.isin(sample.context, sample.context[self.at])
        observed = np.flatnonzero(in_scope & in_its_categories & is_rewarded)
        trials = Trials(present=had_lesson[observed], outcome=sample.outcome[observed], day=sample.day[observed])
        matched, scope = len(self.at), int(in_scope.sum())
        figures = LessonFigures(
            matched=matched,
            taken=int(self.taken.sum()),
            without_reward=matched - int(is_rewarded[self.at].sum()),
            drawn=len(self.draws.taken),
            unheeded=int((~self.draws.heeded).sum()),
            match_rate=matched / scope if scope >= MIN_MATCH_RATE_SESSIONS else None,
            # Each session counts in the group that it was drawn for, whether it heeded that or not.
            causal=causal(self.draws, least=self.bar, chance=self.next_chance, bets=self.bets),
            # All sessions in scope, however they came to have the lesson or not.
            observational=observational(trials),
            per_protocol=per_protocol(self.draws) if closely else None,
            rewards=self.rewards,
            credit=self.credit,
        )
        if not closely:
            return figures
        effects: dict[str, TreatmentEffect] = {}
        if figures.effect.kind is StudyDesign.CAUSAL:
            for name in sorted(set(self.context[self.draws.scored].tolist())):
                draws = self.draws.select(self.context == name)
                effects[name] = causal(draws, least=self.bar, chance=self.next_chance)
        else:
            contexts = sample.context[observed]
            for name in sorted(set(contexts.tolist())):
                effects[name] = observational(trials.select(contexts == name))
        categories = tuple(InCategory(category=name, effect=effect) for name, effect in effects.items())
        return replace(figures, categories=categories)
