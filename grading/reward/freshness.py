"""Whether a verdict has read what there is to read today. Pure.

A verdict is stale only where it has not read the first transcript, a confirmed effect or a failure. Another copy of
the log, a shorter one, or another sentence in a journal makes none stale: an agent can't have itself judged again.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from grading.reward.production import Production

IDENTITY = 12
COMMIT = "commit"
# What git abbreviates a hash to: a log shows that, and the caller's facts show all of it.
SHORT_HASH = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceState:
    """What the evidence of a session shows, as far as a verdict can be stale for want of it.

    `transcript` is the hash of the log, empty without one; `effects` are hashes of the confirmed things' identities;
    `failures` how many failures were observed. `source` is a hash of all that this was found in: the same files show a
    judge the same, whatever later rules find in them.
    """

    transcript: str = ""
    effects: frozenset[str] = frozenset()
    failures: int = 0
    source: str = ""

    @classmethod
    def of(cls, production: Production, *, transcript: str, failures: int, source: str) -> Self:
        """What was shown by these things and so many failures. Files that a loop writes about itself are no effect."""
        effects = set()
        for thing in production.things:
            if not thing.is_bookkeeping:
                key = thing.key[:SHORT_HASH] if thing.kind == COMMIT else thing.key
                effects.add(_hash(f"{thing.kind}\0{key}"))
        return cls(transcript=transcript, effects=frozenset(effects), failures=failures, source=source)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Self | None:
        """What `as_dict` wrote; None for nothing, which says that it is not known."""
        return cls(**{**data, "effects": frozenset(data["effects"])}) if data else None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "transcript": self.transcript,
            "effects": sorted(self.effects),
            "failures": self.failures,
            "source": self.source,
        }

    @property
    def fingerprint(self) -> str:
        """One short hash of what makes a verdict stale: the same for evidence that shows the same."""
        return _hash("\n".join([str(bool(self.transcript)), str(self.failures), *sorted(self.effects)]))


def unread(read: EvidenceState | None, now: EvidenceState | None) -> str:
    """What a verdict that read `read` has not seen of `now`, as in "judged before …"; empty where it is fresh.

    None: what it read, or what there is, is not known, which makes no verdict stale.
    """
    if read is None or now is None or read.source == now.source:
        return ""
    if now.transcript and not read.transcript:
        return "the transcript came"
    if new := len(now.effects - read.effects):
        return "a confirmed effect came" if new == 1 else f"{new} confirmed effects came"
    return "a failure came" if now.failures > read.failures else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:IDENTITY]
