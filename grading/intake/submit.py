"""Taking in a finished session: its files are stored first, then one transaction does everything else.

Nothing that a session contains can stop it from being stored: unusable content is stored with the reason, and the
receipt says what was expected, what came and what to do.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from grading import monitoring
from grading.busy import retry_on_deadlock
from grading.evidence import ownership, receiving
from grading.evidence.reading import SessionClaim
from grading.evidence.receiving import ReceivedFile
from grading.evidence.store import Readable, TooLarge
from grading.intake import describing, facts, first_word, history, lessons
from grading.intake.assessment import assess_with_affected
from grading.intake.facts import FactsFile
from grading.intake.first_word import Speaker, SplitSubmission
from grading.intake.remarks import remarks
from grading.intake.submission import Problem, Receipt, SubmittedSession, evidence_problem, too_large
from grading.models import Agent, Artifact, Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.review import shares
from grading.reward import rewards
from grading.reward.sources import ParsedFiles, parse_files
from grading.vocabulary import Reason
from grading.witness import Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedFiles:
    """The stored files of a submission by kind, the problems found in them, the parsed file of facts, and what grading
    needs of the other files.
    """

    by_kind: Mapping[EvidenceKind, ReceivedFile]
    problems: tuple[Problem, ...]
    facts: FactsFile
    parsed: ParsedFiles

    @property
    def log(self) -> ReceivedFile | None:
        return self.by_kind.get(EvidenceKind.TRANSCRIPT)


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
    """Store a session and its evidence, grade it and settle it. Submitting the same again changes nothing.

    For a session that exists, new evidence is added, the metadata fill blank fields, and the session is graded and
    settled again. Once its description is final, later metadata from the graded agent become proposals. `speaker` is
    who submits; without one it is the site itself, from files that an operator named. Raises nothing for bad content:
    it is listed in the receipt's problems, and everything storable is stored. With `alarms` False the caller checks
    the alarms.
    """
    speaker = speaker or Speaker()
    streams = {
        EvidenceKind.TRANSCRIPT: transcript,
        EvidenceKind.JOURNAL: journal,
        EvidenceKind.PATCH: patch,
        EvidenceKind.FACTS: facts,
    }
    received = receive_files(agent, metadata, streams, speaker.witness)
    receipt = store_session(agent, metadata, received, speaker, is_sample=is_sample)
    if alarms:
        monitoring.refresh_afterwards(flagged=receipt.flagged)
    return receipt


def receive_files(
    agent: Agent,
    metadata: SubmittedSession,
    streams: Mapping[EvidenceKind, Readable | ReceivedFile | None],
    witness: Witness,
) -> ReceivedFiles:
    """Store and parse the files, outside of any transaction."""
    evidence = Evidence.objects.filter(session__agent=agent, session__external_id=metadata.session_id)
    stored_evidence = receiving.strongest_by_hash(evidence)
    claim = SessionClaim(session_id=metadata.session_id, started_at=metadata.started_at, ended_at=metadata.ended_at)
    by_kind: dict[EvidenceKind, ReceivedFile] = {}
    problems = []
    for kind, stream in streams.items():
        if stream is None:
            continue
        file_witness = Witness.CLAIMED if kind is EvidenceKind.FACTS and metadata.facts_witness else witness
        if isinstance(stream, ReceivedFile):
            file = stream
        else:
            try:
                file = receiving.receive(kind, stream, claim, stored_evidence, file_witness)
            except TooLarge as error:
                problems.append(too_large(kind, error.limit))
                continue
        by_kind[kind] = file
        if file.reading.problem:
            problems.append(evidence_problem(kind, file.reading.problem, file.reading.detail))
    facts_file = by_kind.get(EvidenceKind.FACTS)
    parsed_facts = FactsFile() if facts_file is None else facts.read(facts_file.row)
    parsed = parse_files({kind: (file.row, file.usable) for kind, file in by_kind.items()})
    return ReceivedFiles(by_kind=by_kind, problems=tuple(problems), facts=parsed_facts, parsed=parsed)


@retry_on_deadlock
@transaction.atomic
def store_session(
    agent: Agent, metadata: SubmittedSession, received: ReceivedFiles, speaker: Speaker, *, is_sample: bool
) -> Receipt:
    """Store the session, its evidence and the submission; grade and settle it and every session that it affects.

    All of it becomes visible at once, or none of it.
    """
    ownership.lock()
    now, log = timezone.now(), received.log
    session, created = find_or_create(agent, metadata, log, speaker, now, is_sample=is_sample)
    columns_before = describing.columns(session)
    added = receiving.add(session, received.by_kind.values(), is_new=created)
    problems = list(received.problems)
    if added.shared_with:
        detail = f"the same bytes as the log of {', '.join(added.shared_with)[:200]}"
        problems.append(evidence_problem(EvidenceKind.TRANSCRIPT, Reason.LOG_SHARED, detail))
    if metadata.judge is not None and session.history != metadata.judge:
        problems.append(history.not_history(agent, speaker, metadata.judge))
    if added.kinds and not created:
        history.clear_history(session)

    log_grows = EvidenceKind.TRANSCRIPT in added.kinds and bool(added.main_log.format)
    if created:
        split = first_word.split_new(session, metadata, claimed_end(metadata, log, now))
    else:
        split = first_word.split_later(
            session, metadata, speaker.witness, now, has_log=log is not None, log_grows=log_grows
        )
    split, new_claims = _store_or_propose_facts(session, received, split, log_grows=log_grows)
    fields_changed, field_problems = describing.describe(
        session, split.accepted, added.main_log, witness=speaker.witness, origin=speaker.origin
    )
    lessons_changed, lesson_problems = lessons.record(session, split.accepted)
    problems += [*received.facts.problems, *field_problems, *lesson_problems]
    rows = [file.row for file in received.by_kind.values()]
    problems += first_word.record(
        session, speaker, metadata, rows, added=added.kinds, before=columns_before, split=split
    )
    adopted = first_word.adopt_confirmed(session, metadata) if speaker.witness.is_runner else 0

    flagged = False
    if created or added.kinds or fields_changed or lessons_changed or split.proposed or adopted:
        flagged = assess_with_affected(session, new_claims, received.parsed, is_new=bool(added.kinds), alarms=False)
    problems += remarks(session, received.facts, has_log=log is not None)
    session.refresh_from_db()  # drops the rows that grading loaded
    return Receipt(
        session=session,
        created=created,
        added=added.kinds,
        problems=tuple(problems),
        reward=rewards.live(session),
        flagged=flagged,
    )


def _store_or_propose_facts(
    session: Session, received: ReceivedFiles, split: SplitSubmission, *, log_grows: bool
) -> tuple[SplitSubmission, list[Artifact]]:
    """Store the submitted facts, or add them to the proposals. Returns the split and the new claims, which are unsaved.

    Facts that come without a longer log once the description is final only become a proposal: the graded agent could
    else improve its reward after it has seen it. A row without a key is evidence that the session already had.
    """
    facts_file = received.by_kind.get(EvidenceKind.FACTS)
    if facts_file is None:
        return split, []
    if split.is_final and not log_grows and facts_file.row.pk is not None:
        return split.with_facts(facts_file.row, received.facts), []
    return split, facts.store_facts(session, facts_file.row, received.facts)


def find_or_create(
    agent: Agent,
    metadata: SubmittedSession,
    log: ReceivedFile | None,
    speaker: Speaker,
    now: dt.datetime,
    *,
    is_sample: bool,
) -> tuple[Session, bool]:
    """The agent's session of that id, locked, and whether it was created. The caller has called `ownership.lock`."""
    session = Session.objects.select_for_update().filter(agent=agent, external_id=metadata.session_id).first()
    if session is not None:
        return session, False
    ended_at = claimed_end(metadata, log, now)
    judge_choice = history.judge_choice(speaker, metadata, log.reading if log else None, now)
    if not judge_choice:
        ended_at = first_word.clamp_end(ended_at, metadata, agent=agent.name, witness=speaker.witness, now=now)
    session = Session.objects.create(
        agent=agent, external_id=metadata.session_id, ended_at=ended_at, is_sample=is_sample, history=judge_choice
    )
    shares.draw(session)
    return session, True


def claimed_end(metadata: SubmittedSession, log: ReceivedFile | None, now: dt.datetime) -> dt.datetime:
    """When the session ended: according to its metadata, else its log, else now."""
    return metadata.ended_at or (log.usable.ended_at if log else None) or now
