"""Which of a session's logs count, and a summary of them."""

from grading.evidence import owner_rule, records, store
from grading.evidence.records import MAX_ANCHORS, Records
from grading.models import Evidence, RecordAnchor, Session, SessionLog


def update_summary(
    session: Session, before: SessionLog | None
) -> tuple[SessionLog | None, list[tuple[Evidence, Records]], bool]:
    """Choose the session's logs that count and store their summary. `before` is the stored summary, if there is one.

    Returns the summary, the chosen logs with their records, and whether the choice differs from the stored one.
    """
    chosen, parent = _choose(session)
    if before is None and not chosen:
        return None, [], False
    log = before or SessionLog(session=session)
    files = [row.sha256 for row, _records in chosen]
    # Without a receipt the summary is new, or its session had no log yet and was only the parent of subagents.
    if log.receipt and (log.files, log.parent) == (files, parent):
        return log, chosen, False
    log.files, log.parent = files, parent
    chosen_records = [each for _row, each in chosen]
    log.size = len(chosen_records[0].ids) if chosen_records else 0
    # `ownership.update` corrects this if another session has some of the records or is part of this one.
    log.total = len({record for each in chosen_records for record in each.ids})
    log.resumed = any(each.resumed for each in chosen_records)
    if not log.receipt:
        log.receipt = min((row.pk for row, _records in chosen), default=0)
    log.save(force_insert=before is None)
    old_anchors = set() if before is None else {row.record for row in session.anchors.all()}
    _replace_anchors(session, old_anchors, anchors_of(chosen))
    return log, chosen, True


def _replace_anchors(session: Session, old: set[int], new: set[int]) -> None:
    if old - new:
        session.anchors.filter(record__in=old - new).delete()
    if new - old:
        RecordAnchor.objects.bulk_create(RecordAnchor(session=session, record=record) for record in sorted(new - old))


def anchors_of(chosen: list[tuple[Evidence, Records]]) -> set[int]:
    """The records by which copies of these logs are found."""
    return set(sorted({anchor for _row, each in chosen for anchor in each.anchors})[:MAX_ANCHORS])


def is_main_log(session: Session, row: Evidence) -> bool:
    """Whether this log describes the session as a whole: it is the first that counts, and no subagent's log."""
    chosen, _parent = _choose(session)
    return bool(chosen) and chosen[0][0].pk == row.pk and parent_of(row) != session.external_id


def is_torn(session: Session) -> bool:
    """Whether the session has several logs of its own of which none contains the others."""
    own = [row for row in store.readable_logs(session) if not parent_of(row) and not store.is_shared(row)]
    ids = {row.sha256: frozenset(records.load(row).ids) for row in own} if len(own) > 1 else {}
    return len(owner_rule.maximal_logs(ids)) > 1


def _choose(session: Session) -> tuple[list[tuple[Evidence, Records]], str]:
    """The logs that count with their records, the session's own first; and the id of its parent session, or "".

    Of its own logs the one that contains the others counts, or else the one with most records; of its subagents' logs
    all that no other contains. Logs whose records have no ids can't be compared: of those the latest counts. A session
    has a parent if all of its logs are those of a subagent that another session started.
    """
    rows = {row.sha256: row for row in store.readable_logs(session) if not store.is_shared(row)}
    own = [sha256 for sha256, row in rows.items() if not parent_of(row)]
    subagents = [sha256 for sha256 in rows if sha256 not in own]
    loaded = {sha256: records.load(row) for sha256, row in rows.items()}
    names = [*_maximal(own, loaded)[:1], *_maximal(subagents, loaded)]
    parent = "" if own else min((parent_of(rows[sha256]) for sha256 in subagents), default="")
    chosen = [(rows[sha256], loaded[sha256]) for sha256 in names]
    return chosen, "" if parent == session.external_id else parent


def _maximal(names: list[str], loaded: dict[str, Records]) -> list[str]:
    """The hashes of the logs that no other contains, or the first (latest) if none has records with ids."""
    if len(names) <= 1:
        return names
    ids = {name: frozenset(loaded[name].ids) for name in names}
    return owner_rule.maximal_logs(ids) if any(ids.values()) else names[:1]


def parent_of(row: Evidence) -> str:
    """The id of the session that started this log's session as a subagent; empty if it is no subagent's log."""
    if not row.report.get("is_subagent"):
        return ""
    return str(row.report.get("parent_id") or "")[:200]
