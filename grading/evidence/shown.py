"""What a session's logs show of its own: its events, and what was carried over from where."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from grading.evidence import claims, copies, links, logs, records, store
from grading.formats.events import Event
from grading.formats.own import OwnLog, own_events
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
    held = store.log_of(session)
    if held is None or not held.carried:
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
    read = reader(session)
    return None if read is None else read()


def reader(session: Session) -> Callable[[], Iterator[Event]] | None:
    """What reads the `events` of a session from its files alone, whenever it is called."""
    rows = files(session)
    return partial(own_events, own_logs(rows), foreign_to(session)) if rows else None


def own_logs(rows: list[Evidence]) -> list[OwnLog]:
    """These files as `own_events` reads them."""
    return [
        OwnLog(open=partial(store.open, row), filename=row.filename, ids=lambda row=row: records.of(row).ids)  # type: ignore[misc]
        for row in rows
    ]


def foreign_to(session: Session) -> frozenset[int]:
    """The records in its logs that belong to other sessions."""
    held = store.log_of(session)
    return frozenset(copies.foreign_records(session)) if held is not None and held.carried else frozenset()
