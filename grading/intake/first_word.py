"""The first word binds: what the graded says of a session later is put before people, and changes nothing by itself.

A session is bound from its first verdict or human grade on, or an hour after the site received it. Else whoever is
graded could see what a session is worth and then take it out, move it to another category, or date it away.
"""

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from bandit.models import Selection
from bandit.names import canonical
from grading.evidence import ownership
from grading.evidence.reading import EvidenceReading
from grading.intake import describing, facts, lessons
from grading.intake.assessment import assess, assess_with_affected
from grading.intake.facts import FactsFile
from grading.intake.submission import Problem, SubmittedSession
from grading.models import ApiToken, Evidence, Grade, Proposal, Session, Submission, SubmissionAddress
from grading.models.agents import TokenScope
from grading.models.sessions import CategoryOrigin
from grading.models.submissions import ProposedField
from grading.redaction import redact_json
from grading.vocabulary import Source, Status
from grading.witness import Witness

BLANKS_MAY_BE_FILLED = dt.timedelta(hours=1)
# A session ended after its decision was made, or at most a week before it came; the clocks of two machines differ.
OLDEST, CLOCKS_DIFFER = dt.timedelta(days=7), dt.timedelta(minutes=5)
ADDRESSES_KEPT = dt.timedelta(days=30)
SHOWN = 20
# Of each kind so many proposals are kept for a session: who says another thing each time fills no table.
MOST_OF_A_KIND = 5
# What each proposal is made of, as a submission names it.
PARTS: Mapping[ProposedField, tuple[str, ...]] = {
    ProposedField.OUTCOME: ("outcome", "outcome_reason"),
    ProposedField.CATEGORY: ("category",),
    ProposedField.TITLE: ("title",),
    ProposedField.DATES: ("started_at", "ended_at"),
    ProposedField.ENGINE: ("harness", "model"),
    ProposedField.RUN: ("exit_code", "cost_usd"),
    ProposedField.SELECTION: ("selection_id",),
    ProposedField.LESSONS: ("lessons", "lessons_decision_id"),
}
BLANKS: dict[str, Any] = {name: field.default for name, field in SubmittedSession.model_fields.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Who submits: the token, and the address that it came from. Neither for an import at the site itself."""

    token: ApiToken | None = None
    address: str = ""

    @property
    def witness(self) -> Witness:
        return Witness.UNKNOWN if self.token is None else self.token.witness

    @property
    def origin(self) -> CategoryOrigin:
        """Whose word on a session's category it is: its runner's or the site's own operator's, or the agent's."""
        is_trusted = self.token is None or self.witness.is_runner
        return CategoryOrigin.RUNNER if is_trusted else CategoryOrigin.AGENT

    @property
    def scope(self) -> TokenScope:
        return TokenScope.UNSCOPED if self.token is None else TokenScope(self.token.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSubmission:
    """What of a submission takes effect, and what is `proposed` to people instead: by field, as a submission would name
    it. `is_bound`: the session was bound already.
    """

    accepted: SubmittedSession
    is_bound: bool = False
    proposed: Mapping[ProposedField, Mapping[str, Any]] = field(default_factory=dict)

    def with_facts(self, row: Evidence, facts_file: FactsFile) -> "SplitSubmission":
        """With facts that came too late: kept as evidence, and claimed for the session once they are adopted."""
        checks = [f"{each.name} {'passed' if each.passed else 'failed'}" for each in facts_file.checks]
        values: dict[str, Any] = {
            "evidence": row.pk,
            "commits": [each.sha for each in facts_file.commits][:SHOWN],
            "pull_requests": list(facts_file.pull_requests)[:SHOWN],
            "checks": checks[:SHOWN],
            "exit_code": facts_file.exit_code,
        }
        proposal = {name: value for name, value in values.items() if value not in ([], None)}
        return replace(self, proposed={**self.proposed, ProposedField.FACTS: proposal})


def is_bound(session: Session, now: dt.datetime) -> bool:
    """Whether the first word on a session has become the last that holds by itself."""
    if now - session.received_at >= BLANKS_MAY_BE_FILLED:
        return True
    verdict = Q(source=Source.JUDGE, status=Status.SCORED) | Q(source=Source.HUMAN)
    return Grade.objects.filter(verdict, session=session, parallel=False).exists()


def clamped(
    ended_at: dt.datetime, metadata: SubmittedSession, *, agent: str, witness: Witness, now: dt.datetime
) -> dt.datetime:
    """When a new session may have ended, by the word of the graded: after its decision, or in the last week, until now.

    A date decides in which days a reward counts, and what it is compared with; so it is not theirs to choose.
    """
    if not witness.binds:
        return ended_at
    earliest = now - OLDEST
    if metadata.selection_id:
        # One that another session closed is no excuse for a second.
        drawn = Selection.objects.filter(
            bandit__name="category", decision_id=metadata.selection_id, completed_at__isnull=True
        )
        made = drawn.filter(agent__in=["", agent]).values_list("created", flat=True).first()
        earliest = earliest if made is None else min(made, now)
    return min(max(ended_at, earliest), now + CLOCKS_DIFFER)


def split_new(session: Session, metadata: SubmittedSession, claimed_end: dt.datetime) -> SplitSubmission:
    """The first word on a new session: all of it takes effect but an end out of bounds, which is proposed to people."""
    if session.ended_at == claimed_end:
        return SplitSubmission(accepted=metadata)
    start = metadata.started_at
    dates = {"ended_at": session.ended_at, "started_at": None if start is None else min(start, session.ended_at)}
    return SplitSubmission(
        accepted=metadata.model_copy(update=dates),
        proposed={ProposedField.DATES: {"ended_at": claimed_end.isoformat()}},
    )


def split_later(
    session: Session, metadata: SubmittedSession, witness: Witness, now: dt.datetime, *, has_log: bool, log_grows: bool
) -> SplitSubmission:
    """A later word on a session: where it is bound and the graded agent speaks, what is news becomes proposals.

    `has_log`: the submission came with a log; `log_grows`: with one that goes on, which may end later. The same log
    again is no offence, and its dates say nothing new.
    """
    if not witness.binds or not is_bound(session, now):
        return SplitSubmission(accepted=metadata)
    proposed: dict[ProposedField, Mapping[str, Any]] = {}
    withheld: set[str] = set()
    for part, names in PARTS.items():
        submitted = {name for name in names if getattr(metadata, name) != BLANKS[name]}
        if not submitted or (part is ProposedField.DATES and log_grows) or not _is_news(session, part, metadata):
            continue
        withheld.update(names)
        if part is not ProposedField.DATES or not has_log:
            proposed[part] = metadata.model_dump(mode="json", include=submitted)
    accepted = metadata.model_copy(update={name: BLANKS[name] for name in withheld})
    return SplitSubmission(accepted=accepted, is_bound=True, proposed=proposed)


def _is_news(session: Session, part: ProposedField, metadata: SubmittedSession) -> bool:
    """Whether this part of a submission would change a bound session."""
    match part:
        case ProposedField.OUTCOME:
            return metadata.outcome != session.outcome_claimed
        case ProposedField.CATEGORY:
            known = {session.category_claimed, "" if session.category is None else session.category.name}
            return canonical(metadata.category or "") not in set(map(canonical, known))
        case ProposedField.TITLE:
            return not session.title
        case ProposedField.DATES:
            starts = [moment for moment in (session.started_at, metadata.started_at) if moment]
            later = metadata.ended_at is not None and metadata.ended_at > session.ended_at + CLOCKS_DIFFER
            return later or (bool(starts) and min(starts) != session.started_at)
        case ProposedField.ENGINE:
            return bool((metadata.harness and session.harness is None) or (metadata.model and not session.model))
        case ProposedField.RUN:
            may_cost = session.cost_usd is None or describing.is_cost_from_log(session)
            return (metadata.exit_code is not None and session.exit_code is None) or (
                metadata.cost_usd not in (None, session.cost_usd) and may_cost
            )
        case ProposedField.SELECTION:
            return session.selection is None
        case _:
            recorded = {row.arm.name for row in session.lessons.select_related("arm")}
            drawn = session.lessons.filter(assignment__decision_id=metadata.lessons_decision_id or "").exists()
            named = {canonical(each.name) for each in metadata.lessons}
            return not named <= recorded or bool(metadata.lessons_decision_id and not drawn)


def record(
    session: Session,
    speaker: Speaker,
    metadata: SubmittedSession,
    files: Iterable[Evidence],
    *,
    added: Iterable[str],
    before: Mapping[str, Any],
    split: SplitSubmission,
) -> list[Problem]:
    """Record who submitted what, once, and the proposals for people. Returns the remarks for the receipt.

    `before`: the session's columns before the submission.
    """
    parts = sorted(f"{row.kind} {row.sha256}" for row in files)
    body = hashlib.sha256("\n".join([metadata.model_dump_json(exclude_defaults=True), *parts]).encode()).hexdigest()
    added = list(added)
    same = Submission.objects.filter(session=session, token=speaker.token, body_sha256=body)
    row = None if added else same.first()
    if row is None:
        now = describing.columns(session)
        changed = sorted(name for name in now if now[name] != before.get(name))
        row = Submission.objects.create(
            session=session,
            token=speaker.token,
            scope=speaker.scope,
            witness=speaker.witness,
            body_sha256=body,
            added=added,
            before={name: before.get(name) for name in changed},
            after={name: now[name] for name in changed},
        )
        if speaker.address:
            SubmissionAddress.objects.create(submission=row, address=speaker.address)
    known = [(each.field, each.value) for each in session.proposals.all()] if split.proposed else []
    new = [
        Proposal(session=session, submission=row, field=part, value=value)
        for part, value in split.proposed.items()
        if (part, redact_json(dict(value))) not in known and sum(field == part for field, _ in known) < MOST_OF_A_KIND
    ]
    Proposal.objects.bulk_create(new)
    expected = "a date between its decision, or a week before it came, and now"
    if split.is_bound:
        expected = "what is said of a session in its first hour, before its first verdict"
    return [
        Problem(
            part=part,
            code="too_late" if split.is_bound else "out_of_bounds",
            expected=expected,
            got=", ".join(f"{name} {each}" for name, each in value.items())[:200],
            todo="nothing: it is shown to people, and changes nothing until one of them or the runner adopts it",
            is_error=False,
        )
        for part, value in split.proposed.items()
    ]


def adopted_by(session: Session, metadata: SubmittedSession) -> int:
    """Close the proposals that a runner has now submitted itself, as adopted. Returns how many."""
    submitted = metadata.model_dump(mode="json")
    adopted = [
        row.pk
        for row in session.proposals.filter(answered_at=None)
        if row.field != ProposedField.FACTS and all(submitted.get(name) == value for name, value in row.value.items())
    ]
    return Proposal.objects.filter(pk__in=adopted).update(adopted=True, answered_at=timezone.now())


def answer(proposal: Proposal, by: User, *, adopt: bool) -> bool:
    """Let a proposal hold, or turn it down; False where somebody answered it before. The session is settled again.

    Raises ValueError where what was proposed cannot be, such as a category that nobody knows.
    """
    with transaction.atomic():
        ownership.alone()
        session = Session.objects.select_for_update(of=("self",)).with_people().get(pk=proposal.session_id)
        open_ = Proposal.objects.filter(pk=proposal.pk, answered_at=None)
        if not open_.update(answered_at=timezone.now(), answered_by=by, adopted=adopt):
            return False
        if not adopt:
            assess(session, ask=False)
            return True
        new_claims = []
        if proposal.field == ProposedField.FACTS:
            row = Evidence.objects.get(pk=proposal.value["evidence"], session=session)
            new_claims = facts.keep(session, row, facts.read(row))
        else:
            said = SubmittedSession.model_validate({"session_id": session.external_id, **proposal.value})
            _changed, wrong = describing.describe(
                session, said, EvidenceReading(), witness=Witness.OBSERVED, origin=CategoryOrigin.PERSON, by=by
            )
            _, more = lessons.record(session, said)
            if refused := [each for each in (*wrong, *more) if each.is_error]:
                raise ValueError(str(refused[0]))
        assess_with_affected(session, new_claims)
    return True


def forget_addresses(now: dt.datetime) -> int:
    """Delete the addresses of submissions that are older than 30 days; how many."""
    return SubmissionAddress.objects.filter(received_at__lte=now - ADDRESSES_KEPT).delete()[0]
