"""Whether a verdict was based on all evidence that there is today. Pure.

A verdict is stale only if it was given without the first transcript, a confirmed effect or a failure. Another or a
shorter copy of the log, or another sentence in a journal, makes no verdict stale: otherwise an agent could have its
session judged again.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct, convert, to_builtins

from grading.reward.production import Production

HASH_LENGTH = 12
COMMIT = "commit"
# The length to which git abbreviates a commit's hash. A log shows the short hash, the caller's facts the whole one.
SHORT_HASH = 7


class EvidenceState(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the evidence of a session shows, as far as it can make a verdict stale.

    `transcript` is the hash of the log, empty without one; `effects` are hashes of the confirmed things' identities;
    `failures` is the number of observed failures. `source` is a hash of all files and facts that this comes from: the
    same files show a judge the same, whatever later rules find in them.
    """

    transcript: str = ""
    effects: frozenset[str] = frozenset()
    failures: int = 0
    source: str = ""

    @classmethod
    def from_production(cls, production: Production, *, transcript: str, failures: int, source: str) -> Self:
        """The state with the effects of this production; bookkeeping has no effect."""
        effects = set()
        for thing in production.things:
            if not thing.is_bookkeeping:
                key = thing.key[:SHORT_HASH] if thing.kind == COMMIT else thing.key
                effects.add(_hash(f"{thing.kind}\0{key}"))
        return cls(transcript=transcript, effects=frozenset(effects), failures=failures, source=source)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Self | None:
        """The state that `as_dict` wrote; None (not known) for no data."""
        return convert(data, cls) if data else None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        state: dict[str, Any] = to_builtins(self, order="deterministic")
        return state

    @property
    def fingerprint(self) -> str:
        """A short hash of all that can make a verdict stale: equal for evidence that shows the same."""
        return _hash("\n".join([str(bool(self.transcript)), str(self.failures), *sorted(self.effects)]))


def unread(read: EvidenceState | None, now: EvidenceState | None) -> str:
    """What evidence `now` has that a verdict on `read` hasn't seen, as text after "judged before"; empty for none.

    The verdict counts as fresh if either state is None (not known), or if both come from the same files and facts.
    """
    if read is None or now is None or read.source == now.source:
        return ""
    if now.transcript and not read.transcript:
        return "the transcript came"
    if new := len(now.effects - read.effects):
        return "a confirmed effect came" if new == 1 else f"{new} confirmed effects came"
    return "a failure came" if now.failures > read.failures else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]
