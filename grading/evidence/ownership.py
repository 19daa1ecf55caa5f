"""One owner for each thing: which of a session's logs count, whose records they hold, whose a commit is.

alone ─► update (logs ─► links ─► claims, records) ─► the sessions to grade again

The rule itself is `grading.evidence.owner_rule`; what follows from it is kept beside the sessions, derived again
whenever evidence comes or goes, and never depends on the order in which one agent's evidence came.
"""

from grading.evidence.claims import claim, foreign
from grading.evidence.links import part_of, parts
from grading.evidence.locking import alone, locked
from grading.evidence.logs import tells
from grading.evidence.shown import Carried, carried, events, files, of_other_agents, reader, shares
from grading.evidence.updating import give_up, relatives, update

__all__ = [
    "Carried",
    "alone",
    "carried",
    "claim",
    "events",
    "files",
    "foreign",
    "give_up",
    "locked",
    "of_other_agents",
    "part_of",
    "parts",
    "reader",
    "relatives",
    "shares",
    "tells",
    "update",
]
