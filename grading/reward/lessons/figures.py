"""What is said of one lesson: figures, without the columns that they were taken from. Pure."""

import re
from dataclasses import dataclass

from bandit.core.effect import StudyDesign, TreatmentEffect
from bandit.core.estimate import Estimate

# A lesson that matches more often than this describes the work rather than a moment in it.
OFTEN = 0.30
# Names of lessons that are given when something has gone wrong already.
TROUBLE = re.compile(
    r"\b(debug|error|exception|fail|fix|recover|rescue|retr[yi]|stuck|timeout|trouble)\w*", re.IGNORECASE
)
# Fewer sessions than this on either side say nothing of one category.
LEAST_IN_CATEGORY = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InCategory:
    """The effect in one category alone; `enough` says whether it means anything there."""

    category: str
    effect: TreatmentEffect

    @property
    def enough(self) -> bool:
        return self.effect.difference is not None and min(self.effect.n, self.effect.without) >= LEAST_IN_CATEGORY


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonFigures:
    """How many sessions the lesson `matched`, to how many of them it was `given`, and how many are `without_reward`.

    It was `drawn` so often, and had by `unheeded` sessions that were drawn to be held out. `match_rate` is the share of
    its agents' sessions that it matched since it first did, None under 20 sessions. `rewards` of its sessions are in
    the ledger and count as `credit`, each by its salience. Only who looks closely has what is `per_protocol`, the
    difference among the draws that were heeded, and the `categories`, with the kind of effect that counts for the
    whole.
    """

    matched: int
    given: int
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
        """The causal effect where there is one, else the observational one, else what the draws still lack."""
        if self.causal.kind is StudyDesign.CAUSAL:
            return self.causal
        told = self.observational.kind is StudyDesign.OBSERVATIONAL
        return self.observational if told or not self.drawn else self.causal

    @property
    def striking(self) -> bool:
        """Whether a window of either kind is for somebody to look at, whatever the whole says."""
        return self.causal.striking or self.observational.striking

    def cautions(self, name: str) -> list[str]:
        """Why a difference without a draw may mislead, in words, for a lesson of this name."""
        found = []
        if self.match_rate is not None and self.match_rate > OFTEN:
            share, most = f"{100 * self.match_rate:.0f} %", f"{100 * OFTEN:.0f} %"
            found.append(f"Matches {share} of sessions, over {most}: that tells what the work was like.")
        if word := TROUBLE.search(name.replace("-", " ")):
            found.append(
                f"“{word[0]}” in its name: given when something went wrong already, it looks worse than it is."
            )
        if self.unheeded:
            found.append(
                f"Given {self.unheeded} × although held out: these count as held out, so the effect of having it may be"
                " more."
            )
        return found
