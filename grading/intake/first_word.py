"""The first word on a session is binding: what the graded agent submits about it later becomes proposals for people.

A session's description is final from its first verdict or human grade on, or an hour after the site received it.
Otherwise the graded agent could see what a session is worth and then withdraw it, change its category, or backdate it.
"""

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Min, Q
from django.utils import timezone

from bandit.models import Selection
from grading.evidence import ownership
from grading.evidence.receiving import EvidenceReading
from grading.intake import facts, fields, lessons
from grading.intake.assessment import assess, assess_with_affected
from grading.intake.facts import FactsFile
from grading.intake.fields import CLOCK_TOLERANCE, DEFAULTS, FIELDS
from grading.intake.submission import Problem, SubmittedSession
from grading.models import Agent, ApiToken, Evidence, Grade, Proposal, Session, Submission, SubmissionAddress
from grading.models.agents import TokenScope
from grading.models.sessions import CategoryOrigin
from grading.models.submissions import ProposedField
from grading.redaction import redact_json
from grading.vocabulary import JudgeChoice, Source, Status
from grading.witness import Witness

AMENDMENT_PERIOD = dt.timedelta(hours=1)
# A new session ended after its decision was made or, without one, at most this long before it was submitted.
MAX_AGE = dt.timedelta(days=7)
ADDRESS_RETENTION = dt.timedelta(days=30)
# History may be submitted this long after a token was made.
HISTORY_UPLOAD_PERIOD = dt.timedelta(days=7)
# Entries of each list of facts that a proposal shows.
MAX_LISTED_FACTS = 20
# Limits a caller that submits another value each time.
MAX_PROPOSALS_PER_FIELD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Who submits: the token, and the address that the request came from. Neither for an import on the site itself."""

    token: ApiToken | None = None
    address: str = ""

    @property
    def witness(self) -> Witness:
        return Witness.UNKNOWN if self.token is None else self.token.witness

    @property
    def origin(self) -> CategoryOrigin:
        """The origin of a submitted category: RUNNER for a runner or an import by an operator, else AGENT."""
        is_trusted = self.token is None or self.witness.is_runner
        return CategoryOrigin.RUNNER if is_trusted else CategoryOrigin.AGENT

    @property
    def scope(self) -> TokenScope:
        return TokenScope.UNSCOPED if self.token is None else TokenScope(self.token.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSubmission:
    """A submission split into what takes effect and what is only `proposed` to people, as submitted values by field.

    `is_final`: the session's description was final before this submission.
    """

    accepted: SubmittedSession
    is_final: bool = False
    proposed: Mapping[ProposedField, Mapping[str, Any]] = field(default_factory=dict)


def is_final(session: Session, now: dt.datetime) -> bool:
    """Whether the submitted description can no longer be changed without review: the amendment period is over, or a
    judge or person has graded the session.
    """
    if now - session.received_at >= AMENDMENT_PERIOD:
        return True
    verdict = Q(source=Source.JUDGE, status=Status.SCORED) | Q(source=Source.HUMAN)
    return Grade.objects.filter(verdict, session=session, parallel=False).exists()


def clamp_end(
    ended_at: dt.datetime, metadata: SubmittedSession, *, agent: str, witness: Witness, now: dt.datetime
) -> dt.datetime:
    """The end of a new session, limited for the graded agent: not before its decision (without one, at most MAX_AGE
    ago), and not later than now. The end decides on which days a reward counts and what it is compared with, so the
    agent must not choose.
    """
    if not witness.binds:
        return ended_at
    earliest = now - MAX_AGE
    if metadata.selection_id:
        # A decision that another session completed allows no earlier end.
        decision = Selection.objects.filter(
            bandit__name="category", decision_id=metadata.selection_id, completed_at__isnull=True
        )
        decided_at = decision.filter(agent__in=["", agent]).values_list("created", flat=True).first()
        if decided_at is not None:
            earliest = min(decided_at, now)
    return min(max(ended_at, earliest), now + CLOCK_TOLERANCE)


def split_new(session: Session, metadata: SubmittedSession, claimed_end: dt.datetime) -> SplitSubmission:
    """Split the first submission of a session: all of it takes effect, except that an end that `clamp_end` changed is
    proposed to people.
    """
    if session.ended_at == claimed_end:
        return SplitSubmission(accepted=metadata)
    start = metadata.started_at
    dates = {"ended_at": session.ended_at, "started_at": None if start is None else min(start, session.ended_at)}
    claimed = metadata.model_copy(update={"ended_at": claimed_end})
    return SplitSubmission(
        accepted=metadata.model_copy(update=dates),
        proposed={ProposedField.DATES: claimed.model_dump(mode="json", include={"ended_at"})},
    )


def split_later(
    session: Session, metadata: SubmittedSession, witness: Witness, now: dt.datetime, *, has_log: bool, log_grows: bool
) -> SplitSubmission:
    """Split a later submission of a session into what takes effect and what is only proposed to people.

    All of it takes effect while the description can still be changed (`is_final`), and from anybody but the graded
    agent. From the agent, each changed field becomes a proposal. Its end is never later than now, as for a new session
    (`clamp_end`). Two fields depend on the log that was submitted:

    - Dates take effect if the log is longer than the stored one (`log_grows`). With any other log (`has_log`) they are
      dropped: the stored log shows when the session ended.
    - What the session ran with is never proposed, because no reward depends on it. It takes effect if `log_grows`.
    """
    if not witness.binds:
        return SplitSubmission(accepted=metadata)
    latest = now + CLOCK_TOLERANCE
    is_ahead = metadata.ended_at is not None and metadata.ended_at > latest
    limited = metadata.model_copy(update={"ended_at": latest}) if is_ahead else metadata
    if not is_final(session, now):
        dates = metadata.model_dump(mode="json", include={"ended_at"})
        return SplitSubmission(accepted=limited, proposed={ProposedField.DATES: dates} if is_ahead else {})
    proposed: dict[ProposedField, Mapping[str, Any]] = {}
    withheld: set[str] = set() if log_grows else {"ran_with"}
    for proposed_field in dict.fromkeys(each.proposal for each in FIELDS):
        submitted = fields.submitted_names(metadata, proposed_field)
        are_dates = proposed_field is ProposedField.DATES
        if not submitted or (are_dates and log_grows):
            continue
        is_change = fields.would_change(session, metadata, proposed_field)
        if is_change or are_dates:  # ends that are each within CLOCK_TOLERANCE would add up
            withheld.update(each.name for each in FIELDS if each.proposal == proposed_field)
        if is_change and not (are_dates and has_log):
            proposed[proposed_field] = metadata.model_dump(mode="json", include=submitted)
    accepted = limited.model_copy(update={name: DEFAULTS[name] for name in withheld})
    return SplitSubmission(accepted=accepted, is_final=True, proposed=proposed)


def facts_proposal(row: Evidence, facts_file: FactsFile) -> Mapping[str, Any]:
    """A proposal of facts that came too late. They are claimed for the session once somebody adopts them."""
    checks = [f"{each.name} {'passed' if each.passed else 'failed'}" for each in facts_file.checks]
    values: dict[str, Any] = {
        "evidence": row.pk,
        "commits": [each.sha for each in facts_file.commits][:MAX_LISTED_FACTS],
        "pull_requests": list(facts_file.pull_requests)[:MAX_LISTED_FACTS],
        "checks": checks[:MAX_LISTED_FACTS],
        "exit_code": facts_file.exit_code,
    }
    return {name: value for name, value in values.items() if value not in ([], None)}


def record_submission(
    session: Session,
    speaker: Speaker,
    metadata: SubmittedSession,
    files: Iterable[Evidence],
    *,
    added: Sequence[str],
    columns_before: Mapping[str, Any],
) -> Submission:
    """Record who submitted what and which columns it changed. Returns the earlier row instead if the same token sent
    the same before, and it now adds no evidence and changes no column.

    `added`: the kinds of evidence that were new.
    """
    file_hashes = sorted(f"{row.kind} {row.sha256}" for row in files)
    body = "\n".join([metadata.model_dump_json(exclude_defaults=True), *file_hashes])
    body_sha256 = hashlib.sha256(body.encode()).hexdigest()
    after = fields.column_values(session)
    changed = sorted(name for name in after if after[name] != columns_before[name])
    if not added and not changed:
        same = Submission.objects.filter(session=session, token=speaker.token, body_sha256=body_sha256).first()
        if same is not None:
            return same
    submission = Submission.objects.create(
        session=session,
        token=speaker.token,
        scope=speaker.scope,
        witness=speaker.witness,
        body_sha256=body_sha256,
        added=list(added),
        before={name: columns_before[name] for name in changed},
        after={name: after[name] for name in changed},
    )
    if speaker.address:
        SubmissionAddress.objects.create(submission=submission, address=speaker.address)
    return submission


def store_proposals(session: Session, submission: Submission, split: SplitSubmission) -> list[Problem]:
    """Store what the submission proposes and nobody proposed before. Returns a remark on each proposal."""
    existing = [(each.field, each.value) for each in session.proposals.all()] if split.proposed else []
    new = []
    for proposed_field, value in split.proposed.items():
        count = sum(field == proposed_field for field, _value in existing)
        is_new = (proposed_field, redact_json(dict(value))) not in existing  # stored values are redacted
        if is_new and count < MAX_PROPOSALS_PER_FIELD:
            new.append(Proposal(session=session, submission=submission, field=proposed_field, value=value))
    Proposal.objects.bulk_create(new)
    expected = "a date between its decision (or a week before it was submitted) and now"
    if split.is_final:
        expected = "a description sent within an hour and before the first verdict"
    return [
        Problem(
            part=proposed_field,
            code="too_late" if split.is_final else "out_of_bounds",
            expected=expected,
            got=", ".join(f"{name} {each}" for name, each in value.items())[:200],
            todo="nothing: people see it as a proposal, which has no effect until a person or the runner adopts it",
            is_error=False,
        )
        for proposed_field, value in split.proposed.items()
    ]


def adopt_confirmed(session: Session, metadata: SubmittedSession) -> int:
    """Close as adopted the open proposals whose values a runner has now submitted itself. Returns their number."""
    submitted = metadata.model_dump(mode="json")
    adopted = [
        row.pk
        for row in session.proposals.filter(answered_at=None)
        if row.field != ProposedField.FACTS and _confirms(submitted, row)
    ]
    return Proposal.objects.filter(pk__in=adopted).update(adopted=True, answered_at=timezone.now())


def _confirms(submitted: Mapping[str, Any], proposal: Proposal) -> bool:
    if proposal.field != ProposedField.DATES:
        return all(submitted.get(name) == value for name, value in proposal.value.items())
    # The same moment may be written in different time zones.
    return all(_parse_time(submitted.get(name)) == _parse_time(value) for name, value in proposal.value.items())


def _parse_time(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text)


def answer(proposal: Proposal, by: User, *, adopt: bool) -> bool:
    """Adopt or reject a proposal, and settle the session again. Returns False if it was answered already.

    Raises ValueError if the proposed value is invalid, such as an unknown category.
    """
    with transaction.atomic():
        ownership.lock()
        session = Session.objects.select_for_update(of=("self",)).with_people().get(pk=proposal.session_id)
        open_ = Proposal.objects.filter(pk=proposal.pk, answered_at=None)
        if not open_.update(answered_at=timezone.now(), answered_by=by, adopted=adopt):
            return False
        if not adopt:
            assess(session, enqueue=False)
            return True
        new_claims = []
        if proposal.field == ProposedField.FACTS:
            row = Evidence.objects.get(pk=proposal.value["evidence"], session=session)
            new_claims = facts.store_facts(session, row, facts.read(row))
        else:
            metadata = SubmittedSession.model_validate({"session_id": session.external_id, **proposal.value})
            _changed, field_problems = fields.apply(
                session, metadata, EvidenceReading(), witness=Witness.OBSERVED, origin=CategoryOrigin.PERSON, by=by
            )
            _changed, lesson_problems = lessons.record(session, metadata)
            if errors := [problem for problem in (*field_problems, *lesson_problems) if problem.is_error]:
                raise ValueError(str(errors[0]))
        assess_with_affected(session, new_claims)
    return True


def forget_addresses(now: dt.datetime) -> int:
    """Delete the addresses of submissions after ADDRESS_RETENTION. Returns their number."""
    return SubmissionAddress.objects.filter(received_at__lte=now - ADDRESS_RETENTION).delete()[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWindow:
    """What a token may submit as history: sessions that ended before `before`, until the moment `until`.

    History are the sessions that ended before the site knew their agent. Only for them may the submitter choose when
    they ended and that no judge is asked; otherwise a graded agent could backdate a bad session or keep it from the
    judge. So history is accepted for a week after a token was made, for sessions that ended before the agent's first
    token was made, and never with a token that the agent itself has.
    """

    before: dt.datetime
    until: dt.datetime

    def allows(self, ended_at: dt.datetime, now: dt.datetime) -> bool:
        return ended_at < self.before and now <= self.until


def history_window(token: ApiToken) -> HistoryWindow | None:
    """The window of a token, or None if it may submit no history. One query."""
    if token.witness is Witness.CLAIMED:
        return None
    first = ApiToken.objects.filter(agent=token.agent_id).aggregate(first=Min("created_at"))["first"]
    return HistoryWindow(before=first, until=token.created_at + HISTORY_UPLOAD_PERIOD)


def judge_choice(
    speaker: Speaker, metadata: SubmittedSession, log: EvidenceReading | None, now: dt.datetime
) -> JudgeChoice | str:
    """The submitted choice of judging if a new session is history by both its metadata and its own log; else ""."""
    if metadata.judge is None or speaker.token is None:
        return ""
    window = history_window(speaker.token)
    ends = [moment for moment in (metadata.ended_at, log.ended_at if log else None) if moment is not None]
    if window is None or not ends or not all(window.allows(end, now) for end in ends):
        return ""
    return metadata.judge


def not_history(agent: Agent, speaker: Speaker, wanted: JudgeChoice) -> Problem:
    """The remark that a session isn't history and is treated like any other."""
    window = None if speaker.token is None else history_window(speaker.token)
    expected = "a token that is not held by the agent itself"
    if window is not None:
        expected = (
            f"a new session that ended before {window.before:%Y-%m-%d %H:%M} UTC, when the first token of {agent} was "
            f"made, sent by {window.until:%Y-%m-%d %H:%M} UTC, a week after this token was made"
        )
    return Problem(
        part="judge",
        code="not_history",
        expected=expected,
        got=repr(wanted.value),
        todo="nothing: it is taken in as any other session",
        is_error=False,
    )
