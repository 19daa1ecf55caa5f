"""What a session's logs show of its own: its events, and what was carried over from where."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from grading import formats
from grading.evidence import claims, copies, links, logs, records, store
from grading.formats.events import Boundary, Event
from grading.models import Evidence, Session, SessionLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """How many of a session's `total` records belong to another session, which has them in its own log."""

    session: Session
    records: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogShares:
    """Whose a session's log is: what of it was carried over, the session whose part it is, and whether it came in parts
    of which none contains the others.
    """

    carried: list[Carried]
    part_of: Session | None
    is_torn: bool


def shares(session: Session) -> LogShares:
    """Whose the session's log is."""
    return LogShares(carried=carried(session), part_of=links.part_of(session), is_torn=logs.is_torn(session))


def carried(session: Session) -> list[Carried]:
    """What of the session's log was carried over from others, most first."""
    held = SessionLog.objects.filter(session=session).first()
    if held is None:
        return []
    owners = Session.objects.select_related("agent").in_bulk([int(key) for key in held.carried])
    found = [
        Carried(session=owners[int(key)], records=count, total=held.total)
        for key, count in held.carried.items()
        if int(key) in owners
    ]
    return sorted(found, key=lambda each: (-each.records, each.session.pk))


def of_other_agents(session: Session) -> list[str]:
    """What the session claims or has in its log that sessions of other agents had before, in words."""
    claimed = [
        f"{row.get_kind_display()} {row.key}: session {row.owned_by.external_id} of {row.owned_by.agent}"
        for row in claims.contended(session)
        if row.owned_by is not None
    ]
    return claimed + [
        f"{each.records:,} of {each.total:,} records: session {each.session.external_id} of {each.session.agent}"
        for each in carried(session)
        if each.session.agent_id != session.agent_id
    ]


def is_copy(log: SessionLog) -> bool:
    """Whether everything in a session's logs belongs to other sessions."""
    return bool(0 < log.total <= sum(log.carried.values()))


def files(session: Session) -> list[Evidence]:
    """The logs that the session is graded by: its own, then those of its subagents."""
    found = store.logs(session)
    for part in links.parts(session):
        found += store.logs(part.session)
    return found


def events(session: Session) -> Iterator[Event] | None:
    """What the session itself did, in order, iterable once; None where it has no log that may be used.

    Left out are the records that belong to another session's log. The events of its subagents' logs follow, as events
    beside the main thread, each record once; they are numbered on.
    """
    rows = files(session)
    if not rows:
        return None
    held = SessionLog.objects.filter(session=session).first()
    foreign = frozenset(copies.foreign_records(session)) if held is not None and held.carried else frozenset()
    return _events(rows, foreign)


def _events(rows: list[Evidence], foreign: frozenset[int]) -> Iterator[Event]:
    seen, last = set(foreign), 0
    for place, row in enumerate(rows):
        first = last
        with store.open(row) as stream:
            for event in formats.read(stream, row.filename):
                last = first + event.number
                if event.record and records.hash_of(event.record) in seen:
                    continue
                if place == 0:
                    yield event
                elif not (isinstance(event, Boundary) and event.kind == "session_change"):
                    yield replace(event, number=last, sidechain=True)
        if place < len(rows) - 1:
            seen.update(records.of(row).ids)
