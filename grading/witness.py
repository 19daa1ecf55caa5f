"""Witnesses: who vouches for a piece of evidence. Pure."""

from collections.abc import Iterable
from typing import Self

from grading.vocabulary import LabelledEnum


class Witness(LabelledEnum):
    """CLAIMED by the graded agent itself, reported by a HOOK on its machine, OBSERVED by its runner, or VERIFIED by the
    site. UNKNOWN counts like a hook.
    """

    CLAIMED = "claimed", "the agent’s own word"
    UNKNOWN = "unknown", "nobody has said"
    HOOK = "hook", "the hook on its machine"
    OBSERVED = "observed", "its runner"
    VERIFIED = "verified", "this site"

    @classmethod
    def parse(cls, value: object) -> Self:
        """The witness with this value, as in a grade's evidence. UNKNOWN if there is none."""
        return cls(value) if isinstance(value, str) and value in set(cls) else cls("unknown")

    @property
    def is_runner(self) -> bool:
        """Whether it observes the agent from outside, so that the agent can't impersonate it."""
        return self.strength >= Witness.OBSERVED.strength

    @property
    def binds(self) -> bool:
        """Whether its initial description of a session is final for it. UNKNOWN keeps the rights of older tokens."""
        return self in {Witness.CLAIMED, Witness.HOOK}

    @property
    def alone(self) -> "Witness":
        """The witness without a log to confirm it: a hook counts as CLAIMED, because the agent can change its files."""
        return Witness.CLAIMED if self is Witness.HOOK else self

    @property
    def strength(self) -> int:
        """From 0 (the graded agent) to 3."""
        return {Witness.CLAIMED: 0, Witness.UNKNOWN: 1, Witness.HOOK: 1, Witness.OBSERVED: 2, Witness.VERIFIED: 3}[self]


def weakest(witnesses: Iterable[Witness]) -> Witness:
    """The witness of a grade that rests on all of these: the weakest one. UNKNOWN if there are none.

    >>> weakest([Witness.VERIFIED, Witness.CLAIMED, Witness.HOOK]), weakest([Witness.HOOK, Witness.UNKNOWN])
    (<Witness.CLAIMED: 'claimed'>, <Witness.UNKNOWN: 'unknown'>)
    """
    return min(witnesses, key=lambda witness: (witness.strength, witness is Witness.HOOK), default=Witness.UNKNOWN)
