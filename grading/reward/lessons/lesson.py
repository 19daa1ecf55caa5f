"""One lesson among the sessions that might have had it; pure, from columns."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws
from bandit.core.effect import StudyDesign, TreatmentEffect, Trials, causal, observational, per_protocol
from bandit.core.estimate import Estimate
from bandit.core.table import Floats, Ints
from bandit.eligibility import out_of_use
from bandit.models import Arm

# A lesson that matches more often than this describes the work rather than a moment in it.
OFTEN, OFTEN_FROM = 0.30, 20
# Names of lessons that are given when something has gone wrong already.
TROUBLE = re.compile(
    r"\b(debug|error|exception|fail|fix|recover|rescue|retr[yi]|stuck|timeout|trouble)\w*", re.IGNORECASE
)
# Fewer sessions than this on either side say nothing of one category.
LEAST_IN_CATEGORY = 20

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
    def place(self) -> Mapping[int, int]:
        """Where each session is in the columns."""
        return {pk: at for at, pk in enumerate(self.session.tolist())}

    @cached_property
    def rewarded(self) -> Mask:
        found: Mask = np.isfinite(self.outcome)
        return found

    def residual(self, session: int) -> float | None:
        """What is left of a session's reward; None for none, or for a session that is not in the sample."""
        at = self.place.get(session)
        return None if at is None or not self.rewarded[at] else float(self.outcome[at])


@dataclass(frozen=True, slots=True, kw_only=True)
class InCategory:
    """The effect in one category alone; `enough` says whether it means anything there."""

    category: str
    effect: TreatmentEffect

    @property
    def enough(self) -> bool:
        return self.effect.difference is not None and min(self.effect.n, self.effect.without) >= LEAST_IN_CATEGORY


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
    def left_out(self) -> str:
        """Why the lesson is not offered: what this names is in no draw and in no figure over lessons."""
        return out_of_use(self.arm)

    @property
    def matched(self) -> int:
        return len(self.at)

    @property
    def given(self) -> int:
        return int(self.taken.sum())

    @property
    def without_reward(self) -> int:
        return self.matched - int(self.sample.rewarded[self.at].sum())

    @property
    def smaller_group(self) -> int:
        """Sessions on the smaller side of its draws, of which a causal figure needs 15."""
        return min(self.causal.n, self.causal.without)

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
    def effect(self) -> TreatmentEffect:
        """The causal effect where there is one, else the observational one, else what the draws still lack."""
        if self.causal.kind is StudyDesign.CAUSAL:
            return self.causal
        told = self.observational.kind is StudyDesign.OBSERVATIONAL
        return self.observational if told or not len(self.draws.taken) else self.causal

    @property
    def striking(self) -> bool:
        """Whether a window of either kind is for somebody to look at, whatever the whole says."""
        return self.causal.striking or self.observational.striking

    @property
    def match_rate(self) -> float | None:
        """The share of its agents' sessions that it matched since it first did; None under 20 sessions."""
        since = int(self._around.sum())
        return self.matched / since if since >= OFTEN_FROM else None

    @property
    def cautions(self) -> list[str]:
        """Why a difference without a draw may mislead, in words."""
        found, rate, times = [], self.match_rate, self.unheeded
        if rate is not None and rate > OFTEN:
            found.append(
                f"Matches {100 * rate:.0f} % of sessions, over {100 * OFTEN:.0f} %: that tells what the work was like."
            )
        if word := TROUBLE.search(f"{self.arm.name} {self.arm.title}".replace("-", " ")):
            found.append(
                f"“{word[0]}” in its name: given when something went wrong already, it looks worse than it is."
            )
        if times:
            found.append(
                f"Given {times} × although held out: these count as held out, so the effect of having it may be more."
            )
        return found

    def by_category(self) -> list[InCategory]:
        """The effect in each category, of the kind that counts for the whole, by the category's name."""
        if self.effect.kind is StudyDesign.CAUSAL:
            return [
                InCategory(
                    category=name,
                    effect=causal(self.draws.only(self.context == name), least=self.bar, chance=self.next_chance),
                )
                for name in sorted(set(self.context[self.draws.scored].tolist()))
            ]
        at, trials = self._observed
        contexts = self.sample.context[at]
        names = sorted(set(contexts.tolist()))
        return [InCategory(category=name, effect=observational(trials.only(contexts == name))) for name in names]

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
