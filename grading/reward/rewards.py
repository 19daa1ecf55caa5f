"""Settling: the one path from grades to a reward. Corrections, late verdicts and new evidence all end here."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

from bandit import ledger
from bandit.core.table import ABSTAINED
from bandit.ledger import Credit, GraderKey, Learner
from bandit.models import Arm
from grading.models import Flag, Grade, Proposal, Session, SessionLog, Settlement, Submission
from grading.models.evidence import ArtifactKind, Origin
from grading.models.judging import OPEN_STATES, Purpose
from grading.models.submissions import ProposedField
from grading.reward import reserving, state
from grading.reward.chain import Resolution, digest, resolve, step_codes
from grading.reward.decide import ChainPolicy, GradeView, Holds, current
from grading.reward.freshness import EvidenceState, unread
from grading.reward.standing import CONTESTED
from grading.vocabulary import Outcome, Reason, Source, Status
from grading.witness import Witness
from gradingsite import telemetry

# The ledger's stratum of machines' rewards of sessions with an open flag; those of the others are in none.
FLAGGED = "flagged"
# The rules that flag what an agent claims above its verdict, and what it says afterwards.
CLAIMED_ABOVE, LATE_WORD = OWN_WORDS = ("A39", "A42")
# The shift and the slope of a source that is compared with the others by its grades as they are.
AS_IT_STANDS = (0.0, 1.0)
# The bandits in which a session that lost its arm may have a reward to take back.
ALWAYS = ("category", "harness")
# A session that ended before midnight may be handed in after it.
LATE_BY = dt.timedelta(hours=6)


def policy() -> ChainPolicy:
    """The chain policy in force; its version changes with any of its numbers."""
    weights = settings.EVIDENCE_WEIGHTS
    numbers = ",".join(f"{source}={weights[source]:g}" for source in sorted(weights))
    floor = f"floor={settings.FLOOR:g}/{settings.FLOOR_THRESHOLD:g}"
    scale = {source: line for source, line in settings.CHAIN_SCALE.items() if line != AS_IT_STANDS}
    compared = "".join(f" {source}→{shift:g}+{slope:g}r" for source, (shift, slope) in sorted(scale.items()))
    return ChainPolicy(
        version=f"chain/{settings.CHAIN_VERSION} {floor} veto={settings.VETO_CAP:g} {numbers}{compared}",
        floor=settings.FLOOR,
        threshold=settings.FLOOR_THRESHOLD,
        veto_cap=settings.VETO_CAP,
        weights=weights,
        scale=scale,
    )


def views(grades: Iterable[Grade]) -> list[GradeView]:
    """All grade rows of a session as the pure chain sees them: a verdict is stale by what the latest trajectory saw."""
    grades = list(grades)
    now = shown(grades)
    return [
        GradeView(
            id=grade.pk,
            source=Source(grade.source),
            status=Status(grade.status),
            value=grade.value,
            reason=Reason(grade.reason),
            detail=grade.detail,
            withdraws=grade.withdraws_id,
            stands=grade.evidence.get("stands"),
            view=view_of(grade),
            stale=unread(EvidenceState.from_dict(grade.evidence.get("read")), now)
            if grade.source == Source.JUDGE and grade.value is not None
            else "",
            witness=witness_of(grade),
            sample_of=grade.sample_of_id,
        )
        for grade in grades
    ]


def holding(session: Session) -> Holds:
    """The grade that holds for each source."""
    return current(views(chain_of(session)))


def chain_of(session: Session) -> list[Grade]:
    """The session's grades that the chain reads."""
    return [grade for grade in session.grades.all() if not grade.parallel]


def verdict_of(session: Session) -> tuple[Grade | None, str]:
    """The judge's latest first reading; and the fingerprint of the evidence that the verdict which holds has not read,
    empty where it is fresh or there is none.
    """
    return verdict_and_unread(chain_of(session))


def verdict_and_unread(grades: list[Grade]) -> tuple[Grade | None, str]:
    """As `verdict_of`, from the session's grades that the chain reads."""
    judge, now = current(views(grades)).get(Source.JUDGE), shown(grades)
    unread = now.fingerprint if judge is not None and judge.stale and now is not None else ""
    return verdict_among(grades), unread


def view_of(grade: Grade) -> str:
    """What of the session a grade has seen; empty where it does not say."""
    return str(grade.evidence.get("view", ""))


def witness_of(grade: Grade) -> Witness:
    """Who vouches for what a grade rests on."""
    return Witness.of(grade.evidence.get("witness"))


def shown(grades: Iterable[Grade]) -> EvidenceState | None:
    """What a session's evidence shows today, as its latest trajectory grade has it; None where that is not known."""
    seen = [grade for grade in grades if grade.source == Source.TRAJECTORY]
    latest = max(seen, key=lambda grade: grade.pk, default=None)
    return None if latest is None else EvidenceState.from_dict(latest.evidence.get("shown"))


def vetoes(session: Session) -> list[str]:
    """The mandatory checks that the caller saw fail, by name."""
    failed = session.artifacts.filter(origin=Origin.FACTS, kind=ArtifactKind.CHECK_FAILED)
    return list(failed.order_by("key").values_list("key", flat=True))


def learners(session: Session) -> tuple[Learner, ...]:
    """The arms that learn from a session: `arms_of`, where it is the site's own.

    From a sample none does, unless an earlier version of this program let it into the ledger: there it is as exact as
    any other session, and it leaves when somebody removes the samples, not by an upgrade.
    """
    if session.is_sample and not ledger.history(session.observation).exists():
        return ()
    return arms_of(session)


def arms_of(session: Session) -> tuple[Learner, ...]:
    """The arms that ran in a session, as far as they are known."""
    category = None if session.category is None else session.category.current
    context = "" if category is None else category.name
    found = [] if category is None else [Learner(bandit="category", arm=category)]
    if (engine := engine_of(session)) is not None:
        found.append(Learner(bandit="harness", arm=engine, context=context))
    lessons: dict[Arm, Learner] = {}
    for row in session.lessons.all():
        if row.taken:
            salience = 100 if row.salience is None else round(100 * row.salience)
            arm = row.arm.current
            lessons.setdefault(arm, Learner(bandit="lesson", arm=arm, context=context, salience=salience))
    return (*found, *lessons.values())


def engine_of(session: Session) -> Arm | None:
    """The arm of harness and model together; the harness alone where the model has no name yet."""
    if session.harness is None or session.model_arm is None:
        return session.harness and session.harness.current
    harness = session.harness.current
    name = f"{harness.name}/{session.model_arm.current.name}"
    both = Arm.objects.filter(bandit=harness.bandit_id, name=name).select_related("merged_into").first()
    return harness if both is None else both.current


def name_engine(session: Session) -> None:
    """See that the session's harness and model together are an arm: both are names that people gave.

    A new one begins on probation.
    """
    if session.harness is not None and session.model_arm is not None:
        harness, model = session.harness.current, session.model_arm.current
        made = {"title": f"{harness} × {model}", "probation": True}
        Arm.objects.get_or_create(bandit_id=harness.bandit_id, name=f"{harness.name}/{model.name}", defaults=made)


def settle(session: Session, *, renew: bool = False) -> Settlement:
    """Resolve the session's grades; append a settlement and move the bandits where the result differs.

    Runs in a transaction of its own or the caller's, with the session locked. Settling twice records once. To be called
    wherever a grade, a failed check or an open flag of the session came or went. With `renew` a reward from before the
    ledger's keys said as much as they do is given anew under its full key, where else it stays as it is.
    """
    with transaction.atomic(savepoint=False):
        return settle_locked(Session.objects.for_settling().get(pk=session.pk), renew=renew)


def settle_locked(session: Session, *, renew: bool = False) -> Settlement:
    """`settle` a session that the caller's transaction has locked, and whose columns, log and state are as they are."""
    prefetch_related_objects([session], "lessons__arm__merged_into")
    grades, flags = chain_of(session), _open_flags(session)
    resolution = _resolved(session, grades)
    log: SessionLog | None = getattr(session, "log", None)
    parent = None if log is None else log.part_of
    if parent is not None and resolution.source is not Source.HUMAN:
        # No reward for a subagent's session: the one that started it has its work.
        resolution = replace(
            resolution,
            value=None,
            source=None,
            final=True,
            weight=0.0,
            sentence=f"A subagent of session {parent.external_id}, which has its work and the reward.",
            reason=Reason.CARRIED,
            grade=None,
            basis=digest(resolution.basis, parent.pk),
        )
    if not session.is_sample:
        name_engine(session)
    settlement = _append(session, resolution)
    credit = _credit(session, settlement, resolution.standing, grades, is_flagged=is_doubted(flags))
    _record(session, settlement, credit, renew=renew)
    state.write(session, settlement, verdict_among(grades), len(flags))
    return settlement


def _resolved(session: Session, grades: list[Grade]) -> Resolution:
    """What these grades of the session come to."""
    coming = {job.purpose for job in session.judge_jobs.all() if job.state in OPEN_STATES}
    return resolve(
        views(grades),
        policy(),
        judge_open=Purpose.VERDICT in coming,
        reading_open=Purpose.SAMPLE in coming,
        outcome=Outcome(session.outcome),
        outcome_reason=session.outcome_reason,
        vetoes=vetoes(session),
    )


def _open_flags(session: Session) -> list[str]:
    return [flag.rule for flag in session.flags.all() if flag.cleared_at is None]


def would_teach(session: Session) -> tuple[tuple[Learner, ...], Credit | None]:
    """The arms that ran and what the bandits would be told of them, were the session no sample: nothing is recorded.
    The credit is None where they would be told nothing.
    """
    settlement, grades = live(session), chain_of(session)
    if settlement is None:
        return (), None
    standing = _resolved(session, grades).standing
    return arms_of(session), _credit(session, settlement, standing, grades, is_flagged=is_doubted(_open_flags(session)))


def live(session: Session) -> Settlement | None:
    """The settlement that holds, or None for a session that was never settled."""
    return Settlement.objects.filter(session=session).order_by("-revision").first()


def verdict_among(grades: Iterable[Grade]) -> Grade | None:
    """The judge's latest first reading among these."""
    read = (row for row in grades if row.source == Source.JUDGE and row.status == Status.SCORED and row.sample == 1)
    return max(read, key=lambda row: row.pk, default=None)


def credited_day(session: Session) -> dt.date:
    """The day of the bandits on which the session's reward counts: see `credited_days`."""
    return credited_days([session])[session.pk]


def credited_days(sessions: Iterable[Session]) -> dict[int, dt.date]:
    """The day of the bandits on which each session's reward counts, by key: that on which it ended.

    Where whoever is graded has dated it, not before the day on which the site received it, or six hours earlier: what
    one agent can move is limited by day, and who chose the days would have a week's limits in an hour. A date that was
    adopted holds. At most two queries.
    """
    found, early = {}, {}
    for session in sessions:
        found[session.pk] = timezone.localdate(session.ended_at)
        earliest = timezone.localdate(session.received_at - LATE_BY)
        if found[session.pk] < earliest:
            early[session.pk] = earliest
    if not early:
        return found
    said = Submission.objects.filter(session__in=early).order_by("-pk").values_list("session", "witness")
    first = dict(said)  # the earliest of each session is the last to be set
    adopted = Proposal.objects.filter(session__in=early, field=ProposedField.DATES, adopted=True)
    dated = set(adopted.values_list("session", flat=True))
    bound = {key: day for key, day in early.items() if key in first and Witness(first[key]).binds and key not in dated}
    return found | bound


def _append(session: Session, resolution: Resolution) -> Settlement:
    held = live(session)
    settlement = Settlement(
        session=session,
        revision=1 if held is None else held.revision + 1,
        value=resolution.value,
        source=resolution.source or "",
        final=resolution.final,
        weight=resolution.weight,
        reason=resolution.reason,
        sentence=resolution.sentence,
        steps=resolution.steps_json(),
        grade_id=resolution.grade,
        policy_id=ledger.policy_text_id(policy().version),
        basis=resolution.basis,
    )
    if held is not None and _is_same(held, settlement, resolution):
        return held
    settlement.save(force_insert=True)
    if not session.is_sample:
        label = settlement.source or settlement.reason
        publish = partial(telemetry.evaluated, session=session.external_id, name="reward", label=label)
        transaction.on_commit(partial(publish, value=settlement.value, why=settlement.sentence))
    return settlement


def _is_same(stored: Settlement, new: Settlement, resolution: Resolution) -> bool:
    """Whether `new` differs from the stored settlement in its words alone: a reworded explanation settles nothing."""
    names = ("value", "source", "final", "weight", "reason", "grade_id", "policy_id")
    if any(getattr(stored, name) != getattr(new, name) for name in names):
        return False
    if step_codes(stored.steps) != step_codes(new.steps):
        return False
    if stored.basis is None:  # of an earlier version: it may say that nobody has asked for a verdict
        return not (resolution.judge_open and new.reason in {Reason.DECLINED, Reason.NOT_CONFIGURED})
    return stored.basis == new.basis


def _record(session: Session, settlement: Settlement, credit: Credit | None, *, renew: bool) -> None:
    """Make the session's live ledger entries say what the settlement says: at most one a bandit (L4)."""
    ledger.set_rewards(
        learners(session),
        credit,
        always=ALWAYS,
        observation=session.observation,
        effective_day=credited_day(session),
        settlement=f"settlement:{settlement.pk}",
        policy_version=policy().version,
        provisional=not settlement.final,
        renew=renew,
    )
    if credit is not None and credit.grader.source == ABSTAINED and not session.is_sample:
        reserving.draw(session)


def _credit(
    session: Session, settlement: Settlement, standing: str, grades: list[Grade], *, is_flagged: bool
) -> Credit | None:
    """What the bandits are told: nothing where there is no reward, or where its source carries no evidence; where
    no source could grade the session, that it is so.

    A machine's reward of a session that stands flagged is in a stratum of its own: it is likely to be off by more. One
    that counts nothing while it is contested is told all the same, and how far it is: what it counts is read from that.
    """
    if settlement.value is None:
        return None
    said = GraderKey(
        source=settlement.source, witness=Witness.UNKNOWN.value, standing=standing, agent=session.agent.name
    )
    if settlement.weight == 0 and not standing.startswith(CONTESTED):
        if settlement.source != Source.FLOOR:
            return None
        # That nobody could grade the session, and why: what the trajectory says, which looks at every one. It is kept
        # so that silence can be read at what such sessions were worth where somebody judged them; it has no value and
        # no weight, and a grade that comes takes its place.
        version, reason = abstained(grades)
        silent = replace(said, source=ABSTAINED, version=version, view=reason)
        return Credit(value=0.0, grader=silent, cost_usd=session.cost_usd)
    stratum = FLAGGED if is_flagged and settlement.source != Source.HUMAN else ""
    grade = next((grade for grade in grades if grade.pk == settlement.grade_id), None)
    said = replace(said, stratum=stratum)
    if grade is not None:
        said = replace(
            said,
            model=grade.model,
            route=grade.route,
            rubric=grade.rubric,
            witness=witness_of(grade).value,
            version=grade.version,
            view=view_of(grade),
        )
    return Credit(value=settlement.value, grader=said, cost_usd=session.cost_usd)


def abstained(grades: Iterable[Grade]) -> tuple[str, str]:
    """By which version, and why, nobody could grade a session with these grades, as the ledger's keys say it."""
    rows = {grade.pk: grade for grade in grades}
    holds = current(views(rows.values())).get(Source.TRAJECTORY)
    if holds is None:
        return "", Reason.NO_EVIDENCE.value
    return rows[holds.id].version, rows[holds.id].reason or Reason.NO_EVIDENCE.value


def is_flagged(session: Session) -> bool:
    """Whether a rule's or a person's flag on the session waits for somebody, and speaks against a machine's word."""
    return is_doubted(Flag.objects.open().filter(session=session).values_list("rule", flat=True))


def is_doubted(flags: Iterable[str]) -> bool:
    """Whether one of these rules' open flags speaks against what a machine says of a session. One that repeats what the
    agent says of itself does not: it would choose its own stratum by it.
    """
    return any(rule not in OWN_WORDS for rule in flags)
