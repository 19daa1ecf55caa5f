"""Copies: artifacts whose text another artifact of the last 30 days had before. A text counts once on a site.

Of two artifacts with equal texts the earlier one counts. Among one agent's sessions that is the one that ended first
(then the one whose id sorts first), whatever their order of arrival; between agents, whose stated times aren't trusted,
the one that the site received first. A copy still precedes later ones. So whether an artifact counts depends on pairs
only, and a change of one session affects no more than its own copies.
"""

import datetime as dt
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from grading.models import Artifact, Session
from grading.signals.artifacts import FoundArtifact

logger = logging.getLogger(__name__)

WINDOW = dt.timedelta(days=30)
# Rows of one lookup.
MAX_ROWS = 5_000
# Sessions that are graded again after one changed. Only an attack has more copies of one text.
MAX_AFFECTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedText:
    """The columns of `Artifact` that say which text it has and which session had it first."""

    text_hash: int
    text_ended_at: dt.datetime
    text_received_at: dt.datetime


def stored_texts(session: Session) -> frozenset[DatedText]:
    """The stored texts of the session's artifacts."""
    texts = map(_dated_text, session.artifacts.all())
    return frozenset(text for text in texts if text is not None)


def mark_copies(
    session: Session,
    artifacts: Sequence[FoundArtifact],
    received_at: dt.datetime | None,
    before: Collection[DatedText],
) -> tuple[list[FoundArtifact], dict[int, DatedText]]:
    """Mark the artifacts of a session that are copies as left out.

    Returns all artifacts, and their dated texts by hash. `received_at` is when the site received the evidence that the
    artifacts are in; None: with the session. Texts in `before` keep the time at which they were first received.
    """
    first_received = {text.text_hash: text.text_received_at for text in before}
    texts: dict[int, DatedText] = {}
    for item in artifacts:
        if item.text_hash is not None:
            received = first_received.get(item.text_hash, received_at or session.received_at)
            texts[item.text_hash] = DatedText(
                text_hash=item.text_hash, text_ended_at=session.ended_at, text_received_at=received
            )
    originals: dict[int | None, list[Artifact]] = defaultdict(list)
    for own, other, row in _equal_texts(session, texts.values(), earlier=True):
        if _precedes(row.session, other, session, own):
            originals[own.text_hash].append(row)
    result = []
    for item in artifacts:
        rows = originals.get(item.text_hash)
        result.append(replace(item, left_out=_describe_copy(session, rows)) if rows else item)
    return result, texts


def affected_sessions(session: Session, changed: Collection[DatedText]) -> list[Session]:
    """The other sessions with a later copy of these texts, which the session gained or lost: to be graded again."""
    affected: dict[int, Session] = {}
    for own, other, row in _equal_texts(session, changed, earlier=False):
        if _precedes(session, own, row.session, other):
            affected[row.session_id] = row.session
    if len(affected) > MAX_AFFECTED:
        logger.warning(
            "%s has its texts from %d later sessions; graded again: %d", session, len(affected), MAX_AFFECTED
        )
    return [affected[key] for key in sorted(affected)[:MAX_AFFECTED]]


def _precedes(one: Session, first: DatedText, other: Session, second: DatedText) -> bool:
    """Whether the text `first` of session `one` is earlier than `second` of `other`, by at most WINDOW.

    Within an agent the ends of the sessions decide, whatever their order of arrival. Between agents, whose stated times
    aren't trusted, it is when the site received the texts.
    """
    if one.agent_id == other.agent_id:
        earlier, later = first.text_ended_at, second.text_ended_at
        is_earlier = (earlier, one.external_id) < (later, other.external_id)
    else:
        earlier, later = first.text_received_at, second.text_received_at
        is_earlier = (earlier, one.pk) < (later, other.pk)
    return is_earlier and later - earlier <= WINDOW


def _describe_copy(session: Session, originals: Iterable[Artifact]) -> str:
    """Why an artifact of the session is left out, with the earliest of these originals if it is of the same agent.

    Other agents' sessions are never named.
    """
    own = [row for row in originals if row.session.agent_id == session.agent_id]
    if not own:
        return "a copy of what another agent's session left behind"
    first = min(own, key=lambda row: (row.text_ended_at, row.session.external_id, row.key))
    return f"a copy of {first.key[:200]} of session {first.session.external_id[:100]}"


def _equal_texts(
    session: Session, texts: Collection[DatedText], *, earlier: bool
) -> Iterator[tuple[DatedText, DatedText, Artifact]]:
    """Each of these texts with each equal one of another session, and the row that has it; at most MAX_ROWS rows.

    The rows are from at most WINDOW before (`earlier`) or after any of `texts`: by the times at which sessions ended
    for those of the same agent, by the times at which the site received them for those of others, since agents report
    the former themselves. Samples are compared with samples only.
    """
    if not texts:
        return
    by_hash: dict[int, list[DatedText]] = defaultdict(list)
    for text in texts:
        by_hash[text.text_hash].append(text)
    before, after = (WINDOW, dt.timedelta()) if earlier else (dt.timedelta(), WINDOW)
    ended = [text.text_ended_at for text in texts]
    received = [text.text_received_at for text in texts]
    ended_near = Q(text_ended_at__range=(min(ended) - before, max(ended) + after))
    received_near = Q(text_received_at__range=(min(received) - before, max(received) + after))
    same_agent = Q(session__agent=session.agent_id)
    rows = Artifact.objects.filter(same_agent & ended_near | ~same_agent & received_near, text_hash__in=by_hash)
    rows = rows.filter(session__is_sample=session.is_sample).exclude(session=session)
    for row in rows.select_related("session__agent").order_by("pk")[:MAX_ROWS]:
        other = _dated_text(row)
        if other is not None:
            yield from ((own, other, row) for own in by_hash[other.text_hash])


def _dated_text(row: Artifact) -> DatedText | None:
    """The text of an artifact; None if it has none to compare."""
    if row.text_hash is None or row.text_ended_at is None or row.text_received_at is None:
        return None
    return DatedText(text_hash=row.text_hash, text_ended_at=row.text_ended_at, text_received_at=row.text_received_at)
