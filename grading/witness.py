"""Who vouches for what a grade rests on. Pure."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Self


class Witness(StrEnum):
    """Who saw it: the graded agent alone, a hook on its machine, nobody has said, whoever ran it, or the site itself.

    In the order of their strength; what nobody has said counts as seen by a hook.
    """

    CLAIMED = "claimed"
    UNKNOWN = "unknown"
    HOOK = "hook"
    OBSERVED = "observed"
    VERIFIED = "verified"

    @classmethod
    def of(cls, said: object) -> Self:
        """The witness that a grade's evidence names; unknown for none, and for a word that is not one of these."""
        return cls(said) if isinstance(said, str) and said in set(cls) else cls("unknown")

    @property
    def words(self) -> str:
        """Who it is, for a screen: "seen by …"."""
        return {
            Witness.CLAIMED: "the agent’s own word",
            Witness.UNKNOWN: "nobody has said",
            Witness.HOOK: "the hook on its machine",
            Witness.OBSERVED: "its runner",
            Witness.VERIFIED: "this site",
        }[self]

    @property
    def is_runner(self) -> bool:
        """Whether it saw the agent from outside, so that the agent cannot speak for it."""
        return self.strength >= Witness.OBSERVED.strength

    @property
    def binds(self) -> bool:
        """Whether its first word on a session binds it. A token from before scopes keeps the rights that it had."""
        return self in {Witness.CLAIMED, Witness.HOOK}

    @property
    def alone(self) -> "Witness":
        """What it amounts to where no log bears it out: a hook runs as the agent's user, who can write its files."""
        return Witness.CLAIMED if self is Witness.HOOK else self

    @property
    def strength(self) -> int:
        """From 0, the word of the graded, to 3."""
        return {Witness.CLAIMED: 0, Witness.UNKNOWN: 1, Witness.HOOK: 1, Witness.OBSERVED: 2, Witness.VERIFIED: 3}[self]


def weakest(witnesses: Iterable[Witness]) -> Witness:
    """What a grade that rests on all of these is vouched for by; unknown where there is none.

    >>> weakest([Witness.VERIFIED, Witness.CLAIMED, Witness.HOOK]), weakest([Witness.HOOK, Witness.UNKNOWN])
    (<Witness.CLAIMED: 'claimed'>, <Witness.UNKNOWN: 'unknown'>)
    """
    return min(witnesses, key=lambda witness: (witness.strength, witness is Witness.HOOK), default=Witness.UNKNOWN)
