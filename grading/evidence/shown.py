"""The events in a session's logs that are its own, and what was carried over from which other session."""

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
    """What of a session's log other sessions own, the session that it is part of, and whether there are several logs of
    which none contains the others (`is_torn`).
    """

    carried: list[Carried]
    part_of: Session | None
    is_torn: bool


def shares(session: Session) -> LogShares:
    """The `LogShares` of a session."""
    return LogShares(carried=carried(session), part_of=links.part_of(session), is_torn=logs.is_torn(session))


def carried(session: Session) -> list[Carried]:
    """What of the session's log was carried over from other sessions, most records first."""
    log = store.log_of(session)
    if log is None or not log.carried:
        return []
    owners = Session.objects.select_related("agent").in_bulk([int(key) for key in log.carried])
    parts = [
        Carried(session=owners[int(key)], records=count, total=log.total)
        for key, count in log.carried.items()
        if int(key) in owners
    ]
    return sorted(parts, key=lambda each: (-each.records, each.session.pk))


def of_other_agents(session: Session) -> list[str]:
    """Descriptions of the session's claims and log records that sessions of other agents own."""
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
    rows = store.logs(session)
    for part in links.parts(session):
        rows += store.logs(part.session)
    return rows


def events(session: Session) -> Iterator[Event] | None:
    """The session's own events in order, as a one-shot iterator; None if it has no usable log.

    Records that another session owns are left out. The events of its subagents' logs follow, marked as beside the main
    thread, each record once, with the numbers going on.
    """
    read = reader(session)
    return None if read is None else read()


def reader(session: Session) -> Callable[[], Iterator[Event]] | None:
    """A function that reads the session's `events` from its files, without the database, each time it is called."""
    rows = files(session)
    return partial(own_events, own_logs(rows), foreign_records(session)) if rows else None


def own_logs(rows: list[Evidence]) -> list[OwnLog]:
    """The input of `own_events` for these files."""
    return [
        OwnLog(open=partial(store.open, row), filename=row.filename, ids=lambda row=row: records.load(row).ids)  # type: ignore[misc]
        for row in rows
    ]


def foreign_records(session: Session) -> frozenset[int]:
    """The records in the session's logs that other sessions own."""
    log = store.log_of(session)
    return frozenset(copies.foreign_records(session)) if log is not None and log.carried else frozenset()
