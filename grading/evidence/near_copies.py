"""Near copies: artifacts whose text another artifact of the last 30 days had before. A text counts once on a site.

Of two near copies the earlier one counts. Among one agent's sessions that is the one that ended first (then the one
whose id sorts first), whatever their order of arrival; between agents, whose stated times aren't trusted, the one that
the site received first. A near copy still precedes later ones. So whether an artifact counts depends on pairs only, and
a change of one session affects no more than its own copies.
"""

import datetime as dt
import logging
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from grading.models import Artifact, ArtifactMark, ArtifactSketch, Session
from grading.signals.artifacts import FoundArtifact
from grading.signals.substance import Sketch, is_copy

logger = logging.getLogger(__name__)

WINDOW = dt.timedelta(days=30)
# Copies are found by their marks: the first shingles of a sketch. Two texts of similar length that share four fifths
# of their shingles share one of 12 marks with p > .9999.
MARKS = 12
# Limits of one lookup: rows that share a mark, and texts that are compared with one text.
MAX_MARK_ROWS = 50_000
MAX_COMPARED = 20
# Sessions that are graded again after one changed. Only an attack has more copies of one text.
MAX_AFFECTED = 50
QUERY_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedSketch:
    """The sketch of an artifact's text, and the times that decide which session had it first."""

    sketch: Sketch
    ended_at: dt.datetime
    received_at: dt.datetime


def stored_sketches(session: Session) -> frozenset[DatedSketch]:
    """The stored sketches of the session's artifacts."""
    return frozenset(_dated_sketch(row) for row in session.sketches.all())


def mark_copies(
    session: Session,
    artifacts: Sequence[FoundArtifact],
    received_at: dt.datetime | None,
    before: Collection[DatedSketch],
) -> tuple[list[FoundArtifact], dict[Sketch, DatedSketch]]:
    """Mark the artifacts of a session that are near copies as left out.

    Returns all artifacts, and the dated sketch of each that has one. `received_at` is when the site received the
    evidence that the artifacts are in; None: with the session. Sketches in `before` keep their `received_at`.
    """
    first_received = {each.sketch: each.received_at for each in before}
    dated: dict[Sketch, DatedSketch] = {}
    for item in artifacts:
        if item.sketch:
            received = first_received.get(item.sketch, received_at or session.received_at)
            dated[item.sketch] = DatedSketch(sketch=item.sketch, ended_at=session.ended_at, received_at=received)
    candidates = _similar(session, dated.values(), earlier=True)
    result = []
    for item in artifacts:
        originals = []
        for row in candidates.get(item.sketch, ()):
            other = _dated_sketch(row)
            if _precedes(row.session, other, session, dated[item.sketch]) and is_copy(item.sketch, other.sketch):
                originals.append(row)
        result.append(replace(item, left_out=_describe_copy(session, originals)) if originals else item)
    return result, dated


def store_sketches(session: Session, rows: Iterable[tuple[Artifact, DatedSketch]]) -> None:
    """Store the sketches of these artifacts of the session, so that their copies are found."""
    pairs = list(rows)
    sketches = ArtifactSketch.objects.bulk_create(
        ArtifactSketch(
            artifact=artifact,
            session=session,
            shingles=struct.pack(f">{len(dated.sketch)}q", *dated.sketch),
            ended_at=dated.ended_at,
            received_at=dated.received_at,
        )
        for artifact, dated in pairs
    )
    ArtifactMark.objects.bulk_create(
        ArtifactMark(sketch=row, mark=mark)
        for row, (_artifact, dated) in zip(sketches, pairs, strict=True)
        for mark in dated.sketch[:MARKS]
    )


def affected_sessions(session: Session, before: Collection[DatedSketch]) -> list[Session]:
    """The other sessions with a later near copy of a text that this session gained or lost: they must be graded again.

    `before` are the session's earlier sketches.
    """
    changed = {*before} ^ {*stored_sketches(session)}
    if not changed:
        return []
    affected: dict[int, Session] = {}
    candidates = _similar(session, changed, earlier=False)
    for own in changed:
        for row in candidates.get(own.sketch, ()):
            other = _dated_sketch(row)
            if _precedes(session, own, row.session, other) and is_copy(other.sketch, own.sketch):
                affected[row.session_id] = row.session
    if len(affected) > MAX_AFFECTED:
        logger.warning(
            "%s has its texts from %d later sessions; graded again: %d", session, len(affected), MAX_AFFECTED
        )
    return [affected[key] for key in sorted(affected)[:MAX_AFFECTED]]


def _precedes(one: Session, first: DatedSketch, other: Session, second: DatedSketch) -> bool:
    """Whether the text `first` of session `one` is earlier than `second` of `other`, by at most WINDOW."""
    if one.agent_id == other.agent_id:
        is_earlier = (first.ended_at, one.external_id) < (second.ended_at, other.external_id)
        return is_earlier and second.ended_at - first.ended_at <= WINDOW
    is_earlier = (first.received_at, one.pk) < (second.received_at, other.pk)
    return is_earlier and second.received_at - first.received_at <= WINDOW


def _describe_copy(session: Session, originals: Iterable[ArtifactSketch]) -> str:
    """Why an artifact of the session is left out, with the earliest of these originals if it is of the same agent.

    Other agents' sessions are never named.
    """
    own = [row for row in originals if row.session.agent_id == session.agent_id]
    if not own:
        return "a near copy of what another agent's session left behind"
    first = min(own, key=lambda row: (row.ended_at, row.session.external_id, row.artifact.key))
    return f"a near copy of {first.artifact.key[:200]} of session {first.session.external_id[:100]}"


def _similar(session: Session, own: Collection[DatedSketch], *, earlier: bool) -> dict[Sketch, list[ArtifactSketch]]:
    """For each of these sketches, the stored sketches of other sessions that share a mark with it, as near copies do.

    They are from at most WINDOW before (`earlier`) or after any of `own`. At most MAX_COMPARED for each, those that
    share most marks first.
    """
    by_mark: dict[int, set[Sketch]] = defaultdict(set)
    for each in own:
        for mark in each.sketch[:MARKS]:
            by_mark[mark].add(each.sketch)
    if not by_mark:
        return {}
    before, after = (WINDOW, dt.timedelta()) if earlier else (dt.timedelta(), WINDOW)
    ended = [each.ended_at for each in own]
    received = [each.received_at for each in own]
    ended_near = Q(sketch__ended_at__range=(min(ended) - before, max(ended) + after))
    received_near = Q(sketch__received_at__range=(min(received) - before, max(received) + after))
    same_agent = Q(sketch__session__agent=session.agent_id)
    window = same_agent & ended_near | ~same_agent & received_near
    shared_marks: dict[Sketch, Counter[int]] = defaultdict(Counter)  # the number of shared marks, by the other's key
    for mark, key in _rows_with_marks(session, list(by_mark), window):
        for sketch in by_mark[mark]:
            shared_marks[sketch][key] += 1
    nearest: dict[Sketch, list[int]] = {}
    for sketch, counts in shared_marks.items():
        most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        nearest[sketch] = [key for key, _count in most_first[:MAX_COMPARED]]
    all_keys = sorted({key for keys in nearest.values() for key in keys})
    rows: dict[int, ArtifactSketch] = {}
    for start in range(0, len(all_keys), QUERY_BATCH):
        batch = ArtifactSketch.objects.filter(pk__in=all_keys[start : start + QUERY_BATCH])
        rows |= {row.pk: row for row in batch.select_related("session__agent", "artifact")}
    return {sketch: [rows[key] for key in keys] for sketch, keys in nearest.items()}


def _rows_with_marks(session: Session, marks: Sequence[int], window: Q) -> Iterator[tuple[int, int]]:
    """Pairs of a mark and the key of another session's sketch with it, at most MAX_MARK_ROWS.

    `window` is a condition on ArtifactMark. Samples are compared with samples only.
    """
    remaining = MAX_MARK_ROWS
    for start in range(0, len(marks), QUERY_BATCH):
        rows = ArtifactMark.objects.filter(window, mark__in=marks[start : start + QUERY_BATCH])
        rows = rows.filter(sketch__session__is_sample=session.is_sample).exclude(sketch__session=session)
        batch = list(rows.values_list("mark", "sketch_id")[:remaining])
        yield from batch
        remaining -= len(batch)


def _dated_sketch(row: ArtifactSketch) -> DatedSketch:
    packed = bytes(row.shingles)
    sketch = struct.unpack(f">{len(packed) // 8}q", packed)
    return DatedSketch(sketch=sketch, ended_at=row.ended_at, received_at=row.received_at)
