"""Other bandit libraries, as their documentation has one use them: choose one of K arms, learn one reward.

They need the packages of `requirements-rivals.txt`; one that is not installed is left out, and said to be.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

# What each does and does not do, so that its times can be read: all three hold their state in this process alone.
WORDS = {
    "mabwiser": "MABWiser: one Thompson sample an arm. Rewards of 0 or 1 (or a threshold); none undone or decayed.",
    "river": "River: one Thompson sample an arm. A reward counts as 0 or 1; a Beta can be reverted, a policy not.",
    "vowpalwabbit": "Vowpal Wabbit: epsilon-greedy by regression on costs. Fractional rewards; none is taken back.",
}


class Rival(Protocol):
    def select(self) -> object: ...

    def update(self) -> object: ...


class MABWiser:
    def __init__(self, names: Sequence[str]) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        self.mab, self.arm = MAB(list(names), LearningPolicy.ThompsonSampling(), seed=1), names[0]
        self.mab.fit([self.arm, names[1]], [1, 0])

    def select(self) -> object:
        return self.mab.predict()

    def update(self) -> object:
        return self.mab.partial_fit([self.arm], [1])


class River:
    def __init__(self, names: Sequence[str]) -> None:
        from river import bandit, proba

        self.policy, self.names = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=1), list(names)

    def select(self) -> object:
        return self.policy.pull(self.names)

    def update(self) -> object:
        return self.policy.update(self.names[0], True)  # noqa: FBT003 - River's own way


class VowpalWabbit:
    def __init__(self, names: Sequence[str]) -> None:
        import vowpalwabbit

        options = f"--cb_explore {len(names)} --epsilon 0.1 --quiet --random_seed 1"
        self.workspace = vowpalwabbit.Workspace(options)

    def select(self) -> object:
        return self.workspace.predict("| now")

    def update(self) -> object:
        return self.workspace.learn("1:0.3:0.2 | now")


MAKERS = {"mabwiser": MABWiser, "river": River, "vowpalwabbit": VowpalWabbit}


def installed() -> list[str]:
    return [name for name in MAKERS if find_spec(name)]
