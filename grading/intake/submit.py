"""Taking in a finished session: bytes first, then one transaction for everything that follows from them.

Nothing that a session contains can stop it from being stored: what cannot be used is kept with the reason, and the
receipt says what was expected, what came and what to do.
"""

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from grading.evidence import ownership, receiving
from grading.evidence.reading import SessionClaim
from grading.evidence.receiving import ReceivedFile
from grading.evidence.store import Readable, TooLarge
from grading.intake import describing, lessons
from grading.intake import facts as observed
from grading.intake.assessment import assess
from grading.intake.facts import FactsFile
from grading.intake.remarks import remarks
from grading.intake.submission import Problem, Receipt, SubmittedSession, evidence_problem, too_large
from grading.models import Agent, Artifact, Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.vocabulary import Reason

Received = dict[EvidenceKind, ReceivedFile]


def submit(
    *,
    agent: Agent,
    metadata: SubmittedSession,
    transcript: Readable | None = None,
    journal: Readable | None = None,
    patch: Readable | None = None,
    facts: Readable | None = None,
    is_sample: bool = False,
) -> Receipt:
    """Store a session with what it left behind, grade it, settle it. The same again changes nothing.

    More evidence for a known session is added, and the session is graded and settled again; metadata fill what was
    blank. Raises nothing for bad content: the receipt's problems name it, and everything storable was stored.
    """
    streams = {"transcript": transcript, "journal": journal, "patch": patch, "facts": facts}
    received, problems = _receive(agent, metadata, streams)
    log = received.get(EvidenceKind.TRANSCRIPT)
    with transaction.atomic():
        ownership.alone()
        ended_at = metadata.ended_at or (log.usable.ended_at if log else None) or timezone.now()
        session, created = Session.objects.get_or_create(
            agent=agent, external_id=metadata.session_id, defaults={"ended_at": ended_at, "is_sample": is_sample}
        )
        if not created:
            session = Session.objects.select_for_update(of=("self",)).with_people().get(pk=session.pk)
        added = receiving.add(session, received.values())
        if added.shared_with:
            detail = f"the same bytes as the log of {', '.join(added.shared_with)[:200]}"
            problems.append(evidence_problem(EvidenceKind.TRANSCRIPT, Reason.LOG_SHARED, detail))
        seen, claims = FactsFile(), list[Artifact]()
        if EvidenceKind.FACTS in received:
            row = received[EvidenceKind.FACTS].row
            seen = observed.read(row)
            claims = observed.keep(session, row, seen)
        changed, unknown = describing.describe(session, metadata, added.telling)
        lessons_changed, lesson_problems = lessons.record(session, metadata)
        problems += [*seen.problems, *unknown, *lesson_problems]
        if created or added.kinds or changed or lessons_changed:
            moved = ownership.update([session], claims) - {session.pk}
            others = ownership.locked(moved)
            copies = assess(session, {} if log is None else log.signals)
            for other in others:
                assess(other)
            for copy in copies:
                if copy.pk not in moved:
                    assess(copy)
        problems += remarks(session, seen, has_log=log is not None)
    return Receipt(session=session, created=created, added=added.kinds, problems=tuple(problems))


def _receive(
    agent: Agent, metadata: SubmittedSession, streams: Mapping[str, Readable | None]
) -> tuple[Received, list[Problem]]:
    """The files that could be kept, and what is wrong with each, outside of any transaction."""
    said = SessionClaim(session_id=metadata.session_id, started_at=metadata.started_at, ended_at=metadata.ended_at)
    known = receiving.held(Evidence.objects.filter(session__agent=agent, session__external_id=metadata.session_id))
    received: Received = {}
    problems = []
    for name, stream in streams.items():
        if stream is None:
            continue
        kind = EvidenceKind(name)
        try:
            received[kind] = file = receiving.receive(kind, stream, said, known)
        except TooLarge as error:
            problems.append(too_large(kind, error.limit))
            continue
        if file.reading.problem:
            problems.append(evidence_problem(kind, file.reading.problem, file.reading.detail))
    return received, problems
