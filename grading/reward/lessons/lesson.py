"""One lesson among the sessions that might have had it; pure, from columns."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws
from bandit.core.effect import StudyDesign, TreatmentEffect, Trials, causal, observational, per_protocol
from bandit.core.estimate import Estimate
from bandit.core.table import Floats, Ints
from bandit.models import Arm
from grading.reward.lessons.figures import InCategory, LessonFigures

# From so many sessions on there is a share of those that a lesson matched.
OFTEN_FROM = 20

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """The sessions of the agents that tell their lessons, as columns (n,).

    `outcome` is the residual of the live reward, NaN where there is none; `day` an ordinal; the others are ids, and
    `context` the category's name.
    """

    session: Ints
    agent: Ints
    day: Ints
    context: NDArray[np.str_]
    outcome: Floats

    @cached_property
    def rewarded(self) -> Mask:
        found: Mask = np.isfinite(self.outcome)
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """One lesson: the sessions that it matched, as columns (m,), its draws, and what may be said of it.

    `at` is each session's place in the `sample`, `taken` whether it had the lesson. `draws` are all there ever were,
    each of a session of the category `context` (k,); one of them may be called something from the e-value `bar`, and
    the next is taken with the chance `next_chance` while it is not. `rewards` of its sessions are in the ledger and
    count as `credit`, each by its salience. `bets` are those on the draws, where they were placed already.
    """

    arm: Arm
    sample: Sample
    at: Ints
    taken: Mask
    draws: Draws
    context: NDArray[np.str_]
    bar: float
    next_chance: float
    rewards: int
    credit: float
    bets: Bets | None = None

    @property
    def matched(self) -> int:
        return len(self.at)

    @property
    def given(self) -> int:
        return int(self.taken.sum())

    @property
    def without_reward(self) -> int:
        return self.matched - int(self.sample.rewarded[self.at].sum())

    @cached_property
    def causal(self) -> TreatmentEffect:
        """From all its draws, each session in the group that it was drawn for."""
        return causal(self.draws, least=self.bar, chance=self.next_chance, bets=self.bets)

    @cached_property
    def per_protocol(self) -> Estimate | None:
        """The difference among the draws that were heeded: no verdict, and beside one."""
        return per_protocol(self.draws)

    @property
    def unheeded(self) -> int:
        """Sessions that were drawn to be held out, and had it all the same."""
        return int((~self.draws.heeded).sum())

    @cached_property
    def observational(self) -> TreatmentEffect:
        """From every session of its scope, with it and without, however that came about."""
        return observational(self._observed[1])

    @property
    def match_rate(self) -> float | None:
        """The share of its agents' sessions that it matched since it first did; None under 20 sessions."""
        since = int(self._around.sum())
        return self.matched / since if since >= OFTEN_FROM else None

    def figures(self, *, closely: bool = False) -> LessonFigures:
        """What may be said of it; `closely`: in each category, too."""
        found = LessonFigures(
            matched=self.matched,
            given=self.given,
            without_reward=self.without_reward,
            drawn=len(self.draws.taken),
            unheeded=self.unheeded,
            match_rate=self.match_rate,
            causal=self.causal,
            observational=self.observational,
            per_protocol=self.per_protocol if closely else None,
            rewards=self.rewards,
            credit=self.credit,
        )
        return replace(found, categories=tuple(self.by_category(found.effect.kind))) if closely else found

    def by_category(self, kind: StudyDesign) -> list[InCategory]:
        """The effect in each category, of this kind, by the category's name."""
        if kind is StudyDesign.CAUSAL:
            return [
                InCategory(
                    category=name,
                    effect=causal(self.draws.select(self.context == name), least=self.bar, chance=self.next_chance),
                )
                for name in sorted(set(self.context[self.draws.scored].tolist()))
            ]
        at, trials = self._observed
        contexts = self.sample.context[at]
        names = sorted(set(contexts.tolist()))
        return [InCategory(category=name, effect=observational(trials.select(contexts == name))) for name in names]

    @cached_property
    def _observed(self) -> tuple[Ints, Trials]:
        given = np.zeros(len(self.sample.session), dtype=bool)
        given[self.at[self.taken]] = True
        where = np.isin(self.sample.context, self.sample.context[self.at])
        at = np.flatnonzero(self._around & where & self.sample.rewarded)
        return at, Trials(present=given[at], outcome=self.sample.outcome[at], day=self.sample.day[at])

    @cached_property
    def _around(self) -> Mask:
        """The sessions of the agents that it matched for, since it first did."""
        first = self.sample.day[self.at].min(initial=np.iinfo(np.int64).max)
        found: Mask = np.isin(self.sample.agent, self.sample.agent[self.at]) & (self.sample.day >= first)
        return found
