"""Taking in a finished session: bytes first, then one transaction for everything that follows from them.

Nothing that a session contains can stop it from being stored: what cannot be used is kept with the reason, and the
receipt says what was expected, what came and what to do.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from grading import monitoring
from grading.evidence import ownership, receiving
from grading.evidence.reading import SessionClaim
from grading.evidence.receiving import ReceivedFile
from grading.evidence.store import Readable, TooLarge
from grading.intake import describing, first_word, history, lessons
from grading.intake import facts as observed
from grading.intake.assessment import Assessed, assess_with_others
from grading.intake.facts import FactsFile
from grading.intake.first_word import Held, Speaker
from grading.intake.remarks import remarks
from grading.intake.submission import Problem, Receipt, SubmittedSession, evidence_problem, too_large
from grading.models import Agent, Artifact, Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.review import shares
from grading.reward import rewards, sources
from grading.reward.workings import Workings, with_workings
from grading.vocabulary import Reason
from grading.witness import Witness

Received = dict[EvidenceKind, ReceivedFile]


def submit(
    *,
    agent: Agent,
    metadata: SubmittedSession,
    transcript: Readable | ReceivedFile | None = None,
    journal: Readable | None = None,
    patch: Readable | None = None,
    facts: Readable | None = None,
    speaker: Speaker | None = None,
    is_sample: bool = False,
    alarms: bool = True,
) -> Receipt:
    """Store a session with what it left behind, grade it, settle it. The same again changes nothing.

    More evidence for a known session is added, and the session is graded and settled again; metadata fill what was
    blank. `speaker` is who says so; without one, the site itself, from files that an operator named. What the graded
    says of a session that is bound becomes proposals. Raises nothing for bad content: the receipt's problems name it,
    and everything storable was stored. A transcript may have been received already. `alarms`: let them look afterwards;
    else whoever calls does so.
    """
    streams = {"transcript": transcript, "journal": journal, "patch": patch, "facts": facts}
    speaker = speaker or Speaker()
    known = receiving.held(Evidence.objects.filter(session__agent=agent, session__external_id=metadata.session_id))
    received, wrong = _receive(metadata, streams, known, speaker.witness)
    seen = observed.read(received[EvidenceKind.FACTS].row) if EvidenceKind.FACTS in received else FactsFile()
    workings = Workings()
    sources.foresee(workings, receiving.expected(received.values(), known))
    receipt = with_workings(
        workings,
        lambda: take_in(
            agent=agent,
            metadata=metadata,
            received=received,
            facts=seen,
            wrong=wrong,
            workings=workings,
            speaker=speaker,
            is_sample=is_sample,
        ),
    )
    if alarms:
        monitoring.refresh_afterwards(flagged=receipt.flagged)
    return receipt


def take_in(
    *,
    agent: Agent,
    metadata: SubmittedSession,
    received: Received,
    facts: FactsFile,
    wrong: Sequence[Problem],
    workings: Workings,
    speaker: Speaker,
    is_sample: bool,
) -> Receipt:
    """Everything of an intake that others must see at once or not at all; in a transaction that may be begun anew.

    `facts` is what the file of facts says, `wrong` what is wrong with the files.
    """
    ownership.alone()
    log, facts_file = received.get(EvidenceKind.TRANSCRIPT), received.get(EvidenceKind.FACTS)
    now = timezone.now()
    said = metadata.ended_at or (log.usable.ended_at if log else None) or now
    choice = history.choice(speaker, metadata, log.reading if log else None, now)
    ended_at = said
    if not choice:
        ended_at = first_word.clamped(said, metadata, agent=agent.name, witness=speaker.witness, now=now)
    name = metadata.session_id
    session, created = _locked(agent, name, ended_at=ended_at, is_sample=is_sample, history=choice)
    if created:
        shares.draw(session)
    before = describing.columns(session)
    added = receiving.add(session, received.values())
    problems = list(wrong)
    if added.shared_with:
        detail = f"the same bytes as the log of {', '.join(added.shared_with)[:200]}"
        problems.append(evidence_problem(EvidenceKind.TRANSCRIPT, Reason.LOG_SHARED, detail))
    if metadata.judge is not None and session.history != metadata.judge:
        problems.append(history.refused(agent, speaker, metadata.judge))
    if not created and added.kinds:
        history.goes_on(session)
    held = Held(metadata=metadata)
    grows = EvidenceKind.TRANSCRIPT in added.kinds and bool(added.telling.format)
    if created and ended_at != said:
        held = first_word.redated(metadata, said, ended_at)
    elif not created and speaker.witness.binds and first_word.is_bound(session, now):
        held = first_word.hold(session, metadata, has_log=log is not None, grows=grows)
    claims = list[Artifact]()
    if facts_file is not None and held.is_bound and not grows and facts_file.row.pk is not None:
        held = held.with_facts(facts_file.row, facts)
    elif facts_file is not None:
        claims = observed.keep(session, facts_file.row, facts)
    outranks = speaker.witness.is_runner
    changed, unknown = describing.describe(
        session, held.metadata, added.telling, witness=speaker.witness, origin=speaker.origin
    )
    lessons_changed, lesson_problems = lessons.record(session, held.metadata)
    problems += [*facts.problems, *unknown, *lesson_problems]
    problems += first_word.record(
        session,
        speaker,
        metadata,
        [file.row for file in received.values()],
        added=added.kinds,
        before=before,
        held=held,
    )
    answered = first_word.adopted_by(session, metadata) if outranks else 0
    assessed = Assessed(session=session)
    if created or added.kinds or changed or lessons_changed or held.proposed or answered:
        assessed = assess_with_others(session, claims, workings, is_new=bool(added.kinds), alarms=False)
    session = assessed.session
    problems += remarks(session, facts, has_log=log is not None)
    reward = rewards.live(session)
    return Receipt(
        session=session,
        created=created,
        added=added.kinds,
        problems=tuple(problems),
        reward=reward,
        flagged=assessed.flagged,
    )


def _locked(agent: Agent, name: str, **columns: Any) -> tuple[Session, bool]:
    """The agent's session of that name, locked; and whether it was made now, with these columns."""
    session = Session.objects.for_settling().filter(agent=agent, external_id=name).first()
    if session is None:
        return Session.objects.create(agent=agent, external_id=name, **columns), True
    return session, False


def _receive(
    metadata: SubmittedSession,
    streams: Mapping[str, Readable | ReceivedFile | None],
    known: receiving.Held,
    witness: Witness,
) -> tuple[Received, list[Problem]]:
    """The files that could be kept, and what is wrong with each, outside of any transaction."""
    said = SessionClaim(session_id=metadata.session_id, started_at=metadata.started_at, ended_at=metadata.ended_at)
    received: Received = {}
    problems = []
    for name, stream in streams.items():
        if stream is None:
            continue
        kind = EvidenceKind(name)
        seen_by = Witness.CLAIMED if kind is EvidenceKind.FACTS and metadata.facts_witness else witness
        try:
            file = stream if isinstance(stream, ReceivedFile) else receiving.receive(kind, stream, said, known, seen_by)
        except TooLarge as error:
            problems.append(too_large(kind, error.limit))
            continue
        received[kind] = file
        if file.reading.problem:
            problems.append(evidence_problem(kind, file.reading.problem, file.reading.detail))
    return received, problems
