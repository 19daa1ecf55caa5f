"""Whether there is room for what comes in."""

import datetime as dt
from collections.abc import Iterable

from grading import disk
from grading.monitoring.rule import Finding, Rule

MIB = 2**20


class NoRoomLeft(Rule):
    """A43. A full disk stops intake, judging and people alike, and sometimes what would have told of it."""

    id = "A43"
    title = "The disk is nearly full; no sessions are accepted"
    means = (
        "Opens while less space is free for the state folder than FREE_SPACE_FLOOR (1 GiB, or 5 % of the disk if "
        "that is less). Sessions are then refused with an explanation; hooks keep them and send them later."
    )
    todo = "Free some space, or move the state folder to a larger disk. Sessions are accepted again automatically."
    every = dt.timedelta(minutes=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - a rule's signature
        if disk.is_short():
            yield Finding(
                detail=f"{disk.free() // MIB:,} MiB are free for the state folder; {disk.floor() // MIB:,} MiB are "
                "reserved for what is already stored. No sessions are accepted until there is more space. Nothing is "
                "lost: hooks keep what they can’t send."
            )
