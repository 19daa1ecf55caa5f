"""Subagents' sessions, which are part of the session that started them: that one has their work and their reward."""

from collections.abc import Iterable

from grading.evidence import store
from grading.models import Session, SessionLog

MAX_DEPTH = 8
MAX_PARTS = 500


def part_of(session: Session) -> Session | None:
    """The session that has this one's work and reward, or None if it has its own."""
    log = store.log_of(session)
    return None if log is None else log.part_of


def parts(session: Session) -> Iterable[SessionLog]:
    """The logs of the session's subagents, in an order that doesn't depend on when they arrived."""
    if not session.parts.all():
        return []
    rows = session.parts.select_related("session")
    return rows.order_by("session__ended_at", "session__external_id")


def relink(session: Session, own: SessionLog | None) -> set[int]:
    """Update the root of the session and of all sessions that it started, directly or indirectly.

    `own` is the session's own log. Returns the keys of the sessions that this changes.
    """
    started: dict[int, SessionLog] = {}
    names = [session.external_id]
    for _depth in range(MAX_DEPTH):
        # Filters by the ids alone, which have an index: few sessions have one id, and an agent has many sessions.
        named = SessionLog.objects.filter(parent__in=names).exclude(parent="").prefetch_related("session")
        rows = [row for row in named.order_by("pk") if row.session.agent_id == session.agent_id]
        new = [row for row in rows[:MAX_PARTS] if row.pk not in started and row.pk != session.pk]
        if not new:
            break
        started |= {row.pk: row for row in new}
        names = [row.session.external_id for row in new]
    touched: set[int] = set()
    for log in [*filter(None, [own]), *list(started.values())[:MAX_PARTS]]:
        root = _root(session.agent_id, log)
        if log.part_of_id != root:
            touched |= {log.session_id, *filter(None, [log.part_of_id, root])}
            if root is not None:
                SessionLog.objects.get_or_create(session_id=root)
            log.part_of_id = root
            log.save(update_fields=["part_of"])
    return touched


def _root(agent: int, log: SessionLog) -> int | None:
    """The key of the topmost session that the log's session is part of.

    None if it has no parent, the parent isn't stored, or sessions claim to have started each other.
    """
    visited = {log.session_id}
    root, parent = None, log.parent
    for _depth in range(MAX_DEPTH):
        if not parent:
            return root
        session = Session.objects.filter(agent=agent, external_id=parent).select_related("log").first()
        if session is None:
            return root
        if session.pk in visited:
            return None
        visited.add(session.pk)
        root = session.pk
        parent = session.log.parent if hasattr(session, "log") else ""
    return root
