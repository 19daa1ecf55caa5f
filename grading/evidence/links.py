"""Subagents' sessions: part of the session that started them, which has their work and their reward."""

from collections.abc import Iterable

from grading.evidence import store
from grading.models import Session, SessionLog

MAX_DEPTH = 8
MAX_PARTS = 500


def part_of(session: Session) -> Session | None:
    """The session that has this one's work and reward, or None where it has its own."""
    held = store.log_of(session)
    return None if held is None else held.part_of


def parts(session: Session) -> Iterable[SessionLog]:
    """The logs of the session's subagents, in an order that has nothing to do with when they came."""
    if not session.parts.all():
        return []
    rows = session.parts.select_related("session")
    return rows.order_by("session__ended_at", "session__external_id")


def relink(session: Session, own: SessionLog | None) -> set[int]:
    """Find the root of the session, whose log is its `own`, and of all that it started, directly or not. Returns the
    keys of the sessions that this changes.
    """
    started: dict[int, SessionLog] = {}
    names = [session.external_id]
    for _depth in range(MAX_DEPTH):
        # By the names alone, which have an index: there are few of one name, and many sessions of one agent.
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
    """The key of the session at the top, or None for a session that nobody started, or whose parent is not here.

    Sessions that claim to have started each other are each on their own.
    """
    seen, root, parent = {log.session_id}, None, log.parent
    for _depth in range(MAX_DEPTH):
        found = (
            Session.objects.filter(agent=agent, external_id=parent).select_related("log").first() if parent else None
        )
        if found is None:
            return root
        if found.pk in seen:
            return None
        seen.add(found.pk)
        root, parent = found.pk, found.log.parent if hasattr(found, "log") else ""
    return root
