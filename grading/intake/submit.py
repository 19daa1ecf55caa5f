"""Taking in a finished session: its files are stored first, then one transaction does everything else.

Nothing that a session contains can stop it from being stored: unusable content is stored with the reason, and the
receipt says what was expected, what came and what to do.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.utils import timezone

from grading.busy import retry_on_deadlock
from grading.evidence import logs, material, ownership, receiving, session_facts
from grading.evidence.receiving import ReceivedFile, SessionClaim, StoredEvidence
from grading.evidence.store import Readable, TooLarge
from grading.intake import facts, fields, first_word, lessons
from grading.intake.assessment import assess_with_affected
from grading.intake.facts import FactsFile
from grading.intake.first_word import Speaker
from grading.intake.submission import Problem, Receipt, SubmittedSession, evidence_problem, too_large
from grading.models import Agent, Artifact, Evidence, Session
from grading.models.evidence import LINKS, EvidenceKind, Origin
from grading.models.facts import FactSource
from grading.models.submissions import ProposedField
from grading.monitoring.watch import refresh_afterwards
from grading.redaction import redact
from grading.review import shares
from grading.reward import rewards
from grading.reward.sources import ParsedFiles, parse_files
from grading.vocabulary import NO_REWARD, Reason
from grading.witness import Witness

# Artifacts that don't count and are listed one by one.
MAX_LISTED = 10


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
        refresh_afterwards(flagged=receipt.flagged)
    return receipt


def receive_files(
    agent: Agent,
    metadata: SubmittedSession,
    streams: Mapping[EvidenceKind, Readable | ReceivedFile | None],
    witness: Witness,
) -> ReceivedFiles:
    """Store and parse the files, outside of any transaction."""
    stored_evidence: StoredEvidence = {}
    if not all(isinstance(stream, ReceivedFile | None) for stream in streams.values()):
        evidence = Evidence.objects.filter(session__agent=agent, session__external_id=metadata.session_id)
        stored_evidence = receiving.strongest_by_hash(evidence)
    claim = SessionClaim(session_id=metadata.session_id, started_at=metadata.started_at, ended_at=metadata.ended_at)
    by_kind: dict[EvidenceKind, ReceivedFile] = {}
    problems = []
    for kind, stream in streams.items():
        if stream is None:
            continue
        # Facts that were looked up later count as the agent's own word.
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
    columns_before = fields.column_values(session)
    stored = {} if created else receiving.strongest_by_hash(session.evidence.all())
    added = receiving.add(session, received.by_kind.values(), stored)
    problems = list(received.problems)
    if added.shared_with:
        detail = f"the same bytes as the log of {', '.join(added.shared_with)[:200]}"
        problems.append(evidence_problem(EvidenceKind.TRANSCRIPT, Reason.LOG_SHARED, detail))
    if metadata.judge is not None and session.history != metadata.judge:
        problems.append(first_word.not_history(agent, speaker, metadata.judge))
    if added.kinds and not created and session.history:
        session.history = ""  # with new evidence it is judged like any other
        session.save(update_fields=["history"])

    log_grows = EvidenceKind.TRANSCRIPT in added.kinds and bool(added.main_log.format)
    if created:
        split = first_word.split_new(session, metadata, claimed_end(metadata, log, now))
    else:
        split = first_word.split_later(
            session, metadata, speaker.witness, now, has_log=log is not None, log_grows=log_grows
        )
    new_claims: Sequence[Artifact] = ()
    facts_file = received.by_kind.get(EvidenceKind.FACTS)
    if facts_file is not None:
        is_new_file = facts_file.row.pk is not None
        if not split.is_final or log_grows:
            new_claims = facts.store_facts(session, facts_file.row, received.facts)
        elif is_new_file:
            # Otherwise the graded agent could improve its reward after seeing it.
            proposal = first_word.facts_proposal(facts_file.row, received.facts)
            split = replace(split, proposed={**split.proposed, ProposedField.FACTS: proposal})

    fields_changed, field_problems = fields.apply(
        session, split.accepted, added.main_log, witness=speaker.witness, origin=speaker.origin
    )
    if split.accepted.ran_with is not None:
        statement = split.accepted.ran_with.model_dump(exclude_unset=True, exclude={"source"})
        is_hook = split.accepted.ran_with.source == "hook" and speaker.witness is not Witness.CLAIMED
        session_facts.store_statement(session, FactSource.HOOK if is_hook else FactSource.CALLER, statement)
    lessons_changed, lesson_problems = lessons.record(session, split.accepted)
    problems += [*received.facts.problems, *field_problems, *lesson_problems]
    rows = [file.row for file in received.by_kind.values()]
    submission = first_word.record_submission(
        session, speaker, metadata, rows, added=added.kinds, columns_before=columns_before
    )
    problems += first_word.store_proposals(session, submission, split)
    adopted = first_word.adopt_confirmed(session, metadata) if speaker.witness.is_runner else 0

    assessed = None
    if created or added.kinds or fields_changed or lessons_changed or split.proposed or adopted:
        assessed = assess_with_affected(session, new_claims, received.parsed, is_new=bool(added.kinds), alarms=False)
    problems += remarks(session, received.facts, has_log=log is not None)
    session.refresh_from_db()  # drops the rows that grading loaded
    reward = rewards.live(session) if assessed is None else assessed.settlement
    return Receipt(
        session=session,
        created=created,
        added=added.kinds,
        problems=tuple(problems),
        reward=reward,
        flagged=assessed is not None and assessed.flagged,
    )


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
    judge_choice = first_word.judge_choice(speaker, metadata, log.reading if log else None, now)
    if not judge_choice:
        ended_at = first_word.clamp_end(ended_at, metadata, agent=agent.name, witness=speaker.witness, now=now)
    session = Session.objects.create(
        agent=agent, external_id=metadata.session_id, ended_at=ended_at, is_sample=is_sample, history=judge_choice
    )
    shares.draw(session)  # for the random slice and for further opinions of judges
    return session, True


def claimed_end(metadata: SubmittedSession, log: ReceivedFile | None, now: dt.datetime) -> dt.datetime:
    """When the session ended: according to its metadata, else its log, else now."""
    return metadata.ended_at or (log.usable.ended_at if log else None) or now


def remarks(session: Session, facts: FactsFile, *, has_log: bool) -> Iterator[Problem]:
    """Remarks on what of the submission belongs to another session or doesn't count. They name sessions of the same
    agent, never those of others.
    """
    if session.category is None and not session.category_claimed and session.outcome not in NO_REWARD:
        yield _remark(
            "no_category",
            part="category",
            expected="a category: from the runner, the decision that it answers to, a rule of the site, or the agent",
            got="none",
            todo="nothing, if a person sets it; else send `category`, or have an operator add a rule for such sessions",
        )
    keys = [*(fact.sha for fact in facts.commits), *facts.pull_requests]
    if keys:
        claims = session.artifacts.filter(origin=Origin.FACTS, kind__in=LINKS, key__in=keys).exclude(owned_by=None)
        for row in claims.exclude(owned_by=session).select_related("owned_by"):
            assert row.owned_by is not None  # noqa: S101 - the query's own condition
            yield _remark(
                "owned_by_another_session",
                part=f"facts.{row.kind}",
                expected="a commit or pull request that no other session claimed",
                got=f"{row.key}, which belongs to {_named(row.owned_by, session)}",
                todo="nothing, if that session made it; else have a person look at both",
            )
    left_out = list(session.artifacts.exclude(left_out=""))
    rest = len(left_out) - MAX_LISTED
    for place, row in enumerate(left_out[:MAX_LISTED], start=1):
        more = f" ({rest:,} more are on the session's page)" if place == MAX_LISTED and rest > 0 else ""
        yield _remark(
            "left_out",
            part=row.origin,
            expected=f"a {row.get_kind_display()} with text of its own",
            got=f"{redact(row.key[:200])}, left out: {row.left_out}{more}",
            todo="nothing, if there was no more to write; otherwise write more",
        )
    if not has_log:
        return
    for each in material.carried_over(session):
        whose = _named(each.session, session)
        yield _remark(
            "carried",
            expected="a log of what this session did",
            got=f"{each.records:,} of its {each.total:,} records belong to {whose}, which is credited for them",
            todo="nothing, if it was resumed, forked or copied from there; else have a person look at both",
        )
    root = ownership.part_of(session)
    if root is not None:
        yield _remark(
            "part_of_another_session",
            expected="a session of its own",
            got=f"the log of a subagent of session {root.external_id}, which has its work and its reward",
            todo="nothing",
        )
    if logs.is_torn(session):
        yield _remark(
            "log_in_parts",
            expected="a log that contains those sent before",
            got="several logs, none of which contains the others: the one with the most records counts",
            todo="send the whole log",
        )


def _named(other: Session, session: Session) -> str:
    return f"session {other.external_id}" if other.agent_id == session.agent_id else "another agent's session"


def _remark(code: str, *, part: str = EvidenceKind.TRANSCRIPT, expected: str, got: str, todo: str) -> Problem:
    return Problem(part=part, code=code, expected=expected, got=got, todo=todo, is_error=False)
