"""Which artifacts say what another one of the last 30 days had said before, so that a text counts once on a site.

Of two near copies the earlier has it. Among one agent's sessions that is the one that ended first (then the one whose
id comes first), whatever the order in which they arrive; between agents, whose word on times is not taken, the one that
the site received first. An artifact that is itself a near copy is still an earlier one to those after it: so whether an
artifact counts depends on pairs only, and a change of one session is followed no further than to its own copies.
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
# Two texts of about one length that share four fifths of what they say share one of so many marks with p > .9999.
MARKS = 12
# Bounds of one look-up: rows that share a mark, and texts that are compared with one text.
MOST_ROWS = 50_000
COMPARED = 20
# A session takes its texts from so many later ones at most; a site has more copies of one text only on purpose.
MOST_LOSERS = 50
IN_A_QUERY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedSketch:
    """What an artifact of a session says, and the times that decide who said it first."""

    sketch: Sketch
    ended_at: dt.datetime
    received_at: dt.datetime


def of(session: Session) -> frozenset[DatedSketch]:
    """What the session's artifacts say, as it was kept."""
    return frozenset(_said(row) for row in session.sketches.all())


def weighed(
    session: Session,
    found: Sequence[FoundArtifact],
    received_at: dt.datetime | None,
    before: Collection[DatedSketch],
) -> tuple[list[FoundArtifact], dict[Sketch, DatedSketch]]:
    """The artifacts found in a session, those that say what another session had said before left out; and what each of
    them says.

    `received_at` is when the site received what they were found in; None: with the session. A text that the session had
    already, one of `before`, keeps the time at which it came.
    """
    first = {said.sketch: said.received_at for said in before}
    came = received_at or session.received_at
    said = {
        item.sketch: DatedSketch(
            sketch=item.sketch, ended_at=session.ended_at, received_at=first.get(item.sketch, came)
        )
        for item in found
        if item.sketch
    }
    near = _near(session, said.values(), earlier=True)
    result = []
    for item in found:
        copied = [
            row
            for row in near.get(item.sketch, ())
            if _precedes(row.session, theirs := _said(row), session, said[item.sketch])
            and is_copy(item.sketch, theirs.sketch)
        ]
        result.append(replace(item, left_out=_why(session, copied)) if copied else item)
    return result, said


def keep(session: Session, rows: Iterable[tuple[Artifact, DatedSketch]]) -> None:
    """Keep what these artifacts of the session say, so that its copies are found."""
    pairs = list(rows)
    sketches = ArtifactSketch.objects.bulk_create(
        ArtifactSketch(
            artifact=artifact,
            session=session,
            shingles=struct.pack(f">{len(said.sketch)}q", *said.sketch),
            ended_at=said.ended_at,
            received_at=said.received_at,
        )
        for artifact, said in pairs
    )
    ArtifactMark.objects.bulk_create(
        ArtifactMark(sketch=row, mark=mark)
        for row, (_artifact, said) in zip(sketches, pairs, strict=True)
        for mark in said.sketch[:MARKS]
    )


def losers(session: Session, before: Collection[DatedSketch]) -> list[Session]:
    """The other sessions that win or lose a text because this one's are no longer those of `before`."""
    changed = {*before} ^ {*of(session)}
    if not changed:
        return []
    found: dict[int, Session] = {}
    near = _near(session, changed, earlier=False)
    for said in changed:
        for row in near.get(said.sketch, ()):
            theirs = _said(row)
            if _precedes(session, said, row.session, theirs) and is_copy(theirs.sketch, said.sketch):
                found[row.session_id] = row.session
    if len(found) > MOST_LOSERS:
        logger.warning("%s has its texts from %d later sessions; graded again: %d", session, len(found), MOST_LOSERS)
    return [found[key] for key in sorted(found)[:MOST_LOSERS]]


def _precedes(one: Session, first: DatedSketch, other: Session, second: DatedSketch) -> bool:
    """Whether what `one` said is earlier than what `other` did, by at most the window."""
    if one.agent_id == other.agent_id:
        is_earlier = (first.ended_at, one.external_id) < (second.ended_at, other.external_id)
        return is_earlier and second.ended_at - first.ended_at <= WINDOW
    is_earlier = (first.received_at, one.pk) < (second.received_at, other.pk)
    return is_earlier and second.received_at - first.received_at <= WINDOW


def _why(session: Session, copied: Iterable[ArtifactSketch]) -> str:
    """Why an artifact is left out: the first of the same agent's that it copies. Another agent's are never named."""
    own = [row for row in copied if row.session.agent_id == session.agent_id]
    if not own:
        return "a near copy of what another agent's session left behind"
    first = min(own, key=lambda row: (row.ended_at, row.session.external_id, row.artifact.key))
    return f"a near copy of {first.artifact.key[:200]} of session {first.session.external_id[:100]}"


def _near(session: Session, said: Collection[DatedSketch], *, earlier: bool) -> dict[Sketch, list[ArtifactSketch]]:
    """The texts of other sessions in the window before (or after) these that share marks with each, by its sketch.

    Those that share most come first, and no more than are to be compared.
    """
    wanted: dict[int, set[Sketch]] = defaultdict(set)
    for one in said:
        for mark in one.sketch[:MARKS]:
            wanted[mark].add(one.sketch)
    if not wanted:
        return {}
    before, after = (WINDOW, dt.timedelta()) if earlier else (dt.timedelta(), WINDOW)
    ended, received = sorted(one.ended_at for one in said), sorted(one.received_at for one in said)
    own = Q(sketch__session__agent=session.agent_id)
    window = own & Q(sketch__ended_at__range=(ended[0] - before, ended[-1] + after)) | ~own & Q(
        sketch__received_at__range=(received[0] - before, received[-1] + after)
    )
    shared: dict[Sketch, Counter[int]] = defaultdict(Counter)
    for mark, key in _marked(session, list(wanted), window):
        for sketch in wanted[mark]:
            shared[sketch][key] += 1
    nearest = {
        sketch: sorted(counts, key=lambda key, counts=counts: (-counts[key], key))[:COMPARED]  # type: ignore[misc]
        for sketch, counts in shared.items()
    }
    found = sorted({key for keys in nearest.values() for key in keys})
    rows: dict[int, ArtifactSketch] = {}
    for start in range(0, len(found), IN_A_QUERY):
        some = ArtifactSketch.objects.filter(pk__in=found[start : start + IN_A_QUERY])
        rows |= {row.pk: row for row in some.select_related("session__agent", "artifact")}
    return {sketch: [rows[key] for key in keys] for sketch, keys in nearest.items()}


def _marked(session: Session, marks: Sequence[int], window: Q) -> Iterator[tuple[int, int]]:
    """Which other sketches have these marks; samples are not compared with what is real."""
    left = MOST_ROWS
    for start in range(0, len(marks), IN_A_QUERY):
        rows = ArtifactMark.objects.filter(window, mark__in=marks[start : start + IN_A_QUERY])
        rows = rows.filter(sketch__session__is_sample=session.is_sample).exclude(sketch__session=session)
        found = list(rows.values_list("mark", "sketch_id")[:left])
        yield from found
        left -= len(found)


def _said(row: ArtifactSketch) -> DatedSketch:
    packed = bytes(row.shingles)
    sketch = struct.unpack(f">{len(packed) // 8}q", packed)
    return DatedSketch(sketch=sketch, ended_at=row.ended_at, received_at=row.received_at)
