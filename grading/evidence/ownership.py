"""One owner for each thing: which of a session's logs count, and which session owns each record and commit.

lock ─► update (logs ─► links ─► claims, records) ─► the sessions to grade again

The rule itself is `grading.evidence.owner_rule`. Its results are stored with the sessions and updated whenever evidence
comes or goes; they never depend on the order in which one agent's evidence came.
"""

from grading.evidence.claims import claim, foreign
from grading.evidence.links import part_of, parts
from grading.evidence.locking import lock, lock_sessions
from grading.evidence.shown import Carried, carried, events, files, of_other_agents, reader, shares
from grading.evidence.updating import give_up, relatives, update

__all__ = [
    "Carried",
    "carried",
    "claim",
    "events",
    "files",
    "foreign",
    "give_up",
    "lock",
    "lock_sessions",
    "of_other_agents",
    "part_of",
    "parts",
    "reader",
    "relatives",
    "shares",
    "update",
]
