"""Which of a session's logs count, and what they hold together."""

from grading.evidence import owner_rule, records, store
from grading.evidence.records import MAX_ANCHORS, Records
from grading.models import Evidence, RecordAnchor, Session, SessionLog


def read(session: Session) -> tuple[SessionLog | None, list[tuple[Evidence, Records]], bool]:
    """Choose the session's logs that count and store their summary. Returns that, the logs, and whether others count
    than before.
    """
    chosen, parent = _choose(session)
    before = SessionLog.objects.filter(session=session).first()
    if before is None and not chosen:
        return None, [], False
    log = before or SessionLog(session=session)
    files = [row.sha256 for row, _records in chosen]
    if log.receipt and (log.files, log.parent) == (files, parent):
        return log, chosen, False
    log.files, log.parent = files, parent
    log.size = len(chosen[0][1].ids) if chosen else 0
    log.resumed = any(found.resumed for _row, found in chosen)
    log.receipt = log.receipt or min((row.pk for row, _records in chosen), default=0)
    # As it is while no other session has some of the records, and none is part of this one.
    log.total = len({record for _row, found in chosen for record in found.ids})
    log.save(force_insert=before is None)
    anchors = set(sorted({anchor for _row, found in chosen for anchor in found.anchors})[:MAX_ANCHORS])
    stored = set() if before is None else {row.record for row in session.anchors.all()}
    if stored - anchors:
        session.anchors.filter(record__in=stored - anchors).delete()
    if anchors - stored:
        RecordAnchor.objects.bulk_create(
            RecordAnchor(session=session, record=record) for record in sorted(anchors - stored)
        )
    return log, chosen, True


def tells(session: Session, row: Evidence) -> bool:
    """Whether a log of the session tells of it as a whole: it counts first, and is no subagent's of this session."""
    chosen, _parent = _choose(session)
    return bool(chosen) and chosen[0][0].pk == row.pk and parent_of(row) != session.external_id


def is_torn(session: Session) -> bool:
    """Whether the session has several logs of its own of which none contains the others."""
    own = [row for row in store.readable_logs(session) if not parent_of(row) and not store.is_shared(row)]
    held = {row.sha256: frozenset(records.of(row).ids) for row in own} if len(own) > 1 else {}
    return len(owner_rule.contained(held)) > 1


def _choose(session: Session) -> tuple[list[tuple[Evidence, Records]], str]:
    """The logs that count, the session's own first; and the name of its parent, where all are those of a subagent.

    Of its own logs the one that contains the others, or else has most records; of its subagents' all that no other
    contains. Logs whose records have no ids can't be compared: of those the latest counts.
    """
    rows = {row.sha256: row for row in store.readable_logs(session) if not store.is_shared(row)}
    found = {sha256: records.of(row) for sha256, row in rows.items()} if len(rows) > 1 else {}
    own = [sha256 for sha256, row in rows.items() if not parent_of(row)]
    subagents = [sha256 for sha256 in rows if sha256 not in own]
    kept = [*_whole(own, found)[:1], *_whole(subagents, found)]
    parent = "" if own else min((parent_of(rows[sha256]) for sha256 in subagents), default="")
    chosen = [(rows[sha256], found.get(sha256) or records.of(rows[sha256])) for sha256 in kept]
    return chosen, "" if parent == session.external_id else parent


def _whole(names: list[str], found: dict[str, Records]) -> list[str]:
    if len(names) < 2:  # noqa: PLR2004 - nothing to compare
        return names
    held = {name: frozenset(found[name].ids) for name in names}
    return owner_rule.contained(held) if any(held.values()) else names[:1]


def parent_of(row: Evidence) -> str:
    """The id of the session that started the one whose log this is; empty where it is no subagent's."""
    if not row.report.get("is_subagent"):
        return ""
    return str(row.report.get("parent_id") or "")[:200]
