"""Settles sessions: the one path from grades to a reward. Corrections, late verdicts and new evidence all end here."""

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
from grading.reward.decide import ChainPolicy, CurrentGrades, GradeView, current, decide
from grading.reward.freshness import EvidenceState, unread
from grading.reward.standing import CLAIMED, CONTESTED, FEW_SAMPLES, PLAIN, standing_weight
from grading.vocabulary import Outcome, Reason, Source, Status
from grading.witness import Witness
from gradingsite import telemetry

# The ledger's stratum of machines' rewards of sessions with an open flag. Other rewards have no stratum.
FLAGGED = "flagged"
# The alarm rules that flag what an agent claims above its verdict, and what it claims later.
CLAIMED_ABOVE, LATE_WORD = "A39", "A42"
# The shift and the slope of a source whose grades are compared unchanged.
UNSCALED = (0.0, 1.0)
# The bandits in which a session that lost its arm may have a reward to reverse.
REVERSIBLE_BANDITS = ("category", "harness")
# A session that ended before midnight may be submitted this long after it and still count for the day before.
SUBMISSION_DELAY = dt.timedelta(hours=6)


def policy() -> ChainPolicy:
    """The site's chain policy. Its version contains all of its numbers."""
    weights = settings.EVIDENCE_WEIGHTS
    numbers = ",".join(f"{source}={weights[source]:g}" for source in sorted(weights))
    floor = f"floor={settings.FLOOR:g}/{settings.FLOOR_THRESHOLD:g}"
    scale = {source: line for source, line in settings.CHAIN_SCALE.items() if line != UNSCALED}
    scales = "".join(f" {source}→{shift:g}+{slope:g}r" for source, (shift, slope) in sorted(scale.items()))
    return ChainPolicy(
        version=f"chain/{settings.CHAIN_VERSION} {floor} veto={settings.VETO_CAP:g} {numbers}{scales}",
        floor=settings.FLOOR,
        threshold=settings.FLOOR_THRESHOLD,
        veto_cap=settings.VETO_CAP,
        weights=weights,
        scale=scale,
    )


def views(grades: Iterable[Grade]) -> list[GradeView]:
    """A session's grades in the form that `decide` reads.

    A verdict's `stale` says which evidence of the latest trajectory grade the judge has not read.
    """
    grades = list(grades)
    evidence_now = latest_evidence(grades)
    grade_views = []
    for grade in grades:
        stale = ""
        if grade.source == Source.JUDGE and grade.value is not None:
            stale = unread(EvidenceState.from_dict(grade.evidence.get("read")), evidence_now)
        view = GradeView(
            id=grade.pk,
            source=Source(grade.source),
            status=Status(grade.status),
            value=grade.value,
            reason=Reason(grade.reason),
            detail=grade.detail,
            withdraws=grade.withdraws_id,
            stands=grade.evidence.get("stands"),
            view=view_of(grade),
            stale=stale,
            witness=witness_of(grade),
            sample_of=grade.sample_of_id,
            has_few_samples=grade.evidence.get("few_samples") is True,
        )
        grade_views.append(view)
    return grade_views


def current_grades(session: Session) -> CurrentGrades:
    """The current grade of each source."""
    return current(views(chain_of(session)))


def chain_of(session: Session) -> list[Grade]:
    """The session's grades without those of parallel trials, which never count for its reward."""
    return [grade for grade in session.grades.all() if not grade.parallel]


def verdict_and_unread(grades: list[Grade]) -> tuple[Grade | None, str]:
    """The judge's latest first reading among a session's `chain_of` grades; and the fingerprint of today's evidence if
    the current verdict has not read all of it, else "".
    """
    judge = current(views(grades)).get(Source.JUDGE)
    evidence_now = latest_evidence(grades)
    unread_evidence = ""
    if judge is not None and judge.stale and evidence_now is not None:
        unread_evidence = evidence_now.fingerprint
    return first_reading(grades), unread_evidence


def view_of(grade: Grade) -> str:
    """Which view of the session a grade rests on (`EvidenceView`); empty if it does not say."""
    return str(grade.evidence.get("view", ""))


def witness_of(grade: Grade) -> Witness:
    """The witness of the evidence that a grade rests on."""
    return Witness.parse(grade.evidence.get("witness"))


def standing_weight_of(grade: Grade) -> float:
    """How much a rule's grade would count if it decided, relative to a plain one of its source, in [0, 1]."""
    if witness_of(grade) is Witness.CLAIMED:
        return standing_weight(CLAIMED)
    return standing_weight(FEW_SAMPLES if grade.evidence.get("few_samples") is True else PLAIN)


def latest_evidence(grades: Iterable[Grade]) -> EvidenceState | None:
    """The state of a session's evidence when its trajectory was last graded; None if it never was."""
    trajectories = [grade for grade in grades if grade.source == Source.TRAJECTORY]
    latest = max(trajectories, key=lambda grade: grade.pk, default=None)
    return None if latest is None else EvidenceState.from_dict(latest.evidence.get("shown"))


def vetoes(session: Session) -> list[str]:
    """The names of the mandatory checks that the session's caller reported as failed, in order."""
    failed = session.artifacts.filter(origin=Origin.FACTS, kind=ArtifactKind.CHECK_FAILED)
    return list(failed.order_by("key").values_list("key", flat=True))


def learners(session: Session) -> tuple[Learner, ...]:
    """The arms that learn from a session; none for a sample.

    Earlier versions recorded samples in the ledger. These stay there, and are corrected like any other session, until
    a person removes the samples: an upgrade must not change a posterior.
    """
    if session.is_sample and not ledger.history(session.observation).exists():
        return ()
    return arms_of(session)


def arms_of(session: Session) -> tuple[Learner, ...]:
    """The arms that ran in a session: its category, its harness with its model, and each lesson that it was given.

    A lesson counts by its salience in percent, 100 if that is not known. Lessons that were merged count once, as the
    first of them did. The context is the session's own category, also while that is merged into another: the baseline
    follows merges when it is read, and their undo.
    """
    category = session.category
    context = "" if category is None else category.name
    arms = [] if category is None else [Learner(bandit="category", arm=category.current)]
    if (engine := engine_of(session)) is not None:
        arms.append(Learner(bandit="harness", arm=engine, context=context))
    lessons: dict[Arm, Learner] = {}
    for row in session.lessons.all():
        if row.taken:
            salience = 100 if row.salience is None else round(100 * row.salience)
            arm = row.arm.current
            lessons.setdefault(arm, Learner(bandit="lesson", arm=arm, context=context, salience=salience))
    return (*arms, *lessons.values())


def engine_of(session: Session) -> Arm | None:
    """The arm of the harness with its model; the harness's own arm if the model is not known."""
    if session.harness is None:
        return None
    harness = session.harness.current
    if session.model_arm is None:
        return harness
    name = f"{harness.name}/{session.model_arm.current.name}"
    arm = Arm.objects.filter(bandit=harness.bandit_id, name=name).select_related("merged_into").first()
    return harness if arm is None else arm.current


def ensure_engine_arm(session: Session) -> None:
    """Create the arm for the session's harness with its model, if there is none yet; it starts on probation."""
    if session.harness is not None and session.model_arm is not None:
        harness, model = session.harness.current, session.model_arm.current
        defaults = {"title": f"{harness} × {model}", "probation": True}
        Arm.objects.get_or_create(bandit_id=harness.bandit_id, name=f"{harness.name}/{model.name}", defaults=defaults)


def settle(session: Session, *, renew: bool = False) -> Settlement:
    """Resolve the session's grades. If the result differs from the last, append a settlement and update the bandits.

    Runs in the caller's transaction or its own, with the session locked. Settling twice records once. Call it after
    every change of the session's grades, failed checks or open flags. With `renew`, a ledger entry of an earlier
    version of the site, whose key has fewer parts than today's, is replaced by one with the full key.
    """
    with transaction.atomic(savepoint=False):
        return settle_locked(Session.objects.for_settling().get(pk=session.pk), renew=renew)


def settle_locked(session: Session, *, renew: bool = False) -> Settlement:
    """`settle` a session that the caller's transaction locked and then loaded, with its `log`."""
    prefetch_related_objects([session], "lessons__arm__merged_into")
    grades, flags = chain_of(session), _open_flags(session)
    resolution = _resolve(session, grades)
    log: SessionLog | None = getattr(session, "log", None)
    parent = None if log is None else log.part_of
    if parent is not None and resolution.source is not Source.HUMAN:
        # A subagent's work counts for the session that started it.
        resolution = replace(
            resolution,
            value=None,
            source="",
            final=True,
            weight=0.0,
            sentence=f"This is a subagent of session {parent.external_id}, which is credited with its work and reward.",
            reason=Reason.CARRIED,
            grade_id=None,
            basis=digest(resolution.basis, parent.pk),
        )
    if not session.is_sample:
        ensure_engine_arm(session)
    settlement = _append_settlement(session, resolution)
    credit = _credit(session, settlement, resolution.standing, grades, is_flagged=is_doubted(flags))
    # The credit becomes the only live reward in each bandit; without one, those that the session has are reversed.
    ledger.set_rewards(
        learners(session),
        credit,
        always=REVERSIBLE_BANDITS,
        observation=session.observation,
        effective_day=credited_day(session),
        settlement=f"settlement:{settlement.pk}",
        policy_version=policy().version,
        provisional=not settlement.final,
        renew=renew,
    )
    if credit is not None and credit.grader.source == ABSTAINED and not session.is_sample:
        reserving.draw(session)
    state.write(session, settlement, first_reading(grades), len(flags))
    return settlement


def _resolve(session: Session, grades: list[Grade]) -> Resolution:
    """Resolve these grades of the session by the site's policy."""
    open_purposes = {job.purpose for job in session.judge_jobs.all() if job.state in OPEN_STATES}
    decision = decide(
        views(grades),
        policy(),
        judge_open=Purpose.VERDICT in open_purposes,
        reading_open=Purpose.SAMPLE in open_purposes,
        outcome=Outcome(session.outcome),
        outcome_reason=session.outcome_reason,
        vetoes=vetoes(session),
    )
    return resolve(decision)


def _open_flags(session: Session) -> list[str]:
    return [flag.rule for flag in session.flags.all() if flag.cleared_at is None]


def preview_credit(session: Session) -> tuple[tuple[Learner, ...], Credit | None]:
    """The arms that ran in a sample, and the credit that they would get if it were a session of the site's own.

    Writes nothing. The credit is None if the bandits would learn nothing.
    """
    settlement, grades = live(session), chain_of(session)
    if settlement is None:
        return (), None
    standing = _resolve(session, grades).standing
    return arms_of(session), _credit(session, settlement, standing, grades, is_flagged=is_doubted(_open_flags(session)))


def live(session: Session) -> Settlement | None:
    """The session's current settlement; None if it was never settled."""
    return Settlement.objects.filter(session=session).order_by("-revision").first()


def graded_value(settlement: Settlement | None) -> float | None:
    """The reward of a settlement in [0, 1]; None without one. The floor is no grade."""
    return None if settlement is None or settlement.source == Source.FLOOR else settlement.value


def first_reading(grades: Iterable[Grade]) -> Grade | None:
    """The judge's latest first reading among these grades."""
    readings = (row for row in grades if row.source == Source.JUDGE and row.status == Status.SCORED and row.sample == 1)
    return max(readings, key=lambda row: row.pk, default=None)


def credited_day(session: Session) -> dt.date:
    """The day on which the session's reward counts in the bandits: see `credited_days`."""
    return credited_days([session])[session.pk]


def credited_days(sessions: Iterable[Session]) -> dict[int, dt.date]:
    """The day on which each session's reward counts in the bandits, by primary key: the day on which it ended.

    If the graded agent or its hook submitted the session first (`Witness.binds`), it counts no earlier than on the day
    that it was six hours before the site received it: an agent's influence is limited by day, and one that chose the
    days could use a week's limits in an hour. A date that a person or the runner adopted counts as it is. At most two
    queries.
    """
    days, earliest_days = {}, {}
    for session in sessions:
        days[session.pk] = timezone.localdate(session.ended_at)
        earliest = timezone.localdate(session.received_at - SUBMISSION_DELAY)
        if days[session.pk] < earliest:
            earliest_days[session.pk] = earliest
    if not earliest_days:
        return days
    submissions = Submission.objects.filter(session__in=earliest_days).order_by("-pk").values_list("session", "witness")
    # The latest submission comes first, so that the first one of a session is the last to be set and stays.
    bound = {session_id for session_id, witness in dict(submissions).items() if Witness(witness).binds}
    adopted = Proposal.objects.filter(session__in=bound, field=ProposedField.DATES, adopted=True)
    bound -= set(adopted.values_list("session", flat=True))
    return days | {session_id: earliest_days[session_id] for session_id in bound}


def _append_settlement(session: Session, resolution: Resolution) -> Settlement:
    """Store the resolution as the session's next settlement; return the current one if it says the same."""
    last = live(session)
    settlement = Settlement(
        session=session,
        revision=1 if last is None else last.revision + 1,
        policy_id=ledger.policy_text_id(policy().version),
        **resolution.columns(),
    )
    if last is not None and _is_same(last, settlement, resolution):
        return last
    settlement.save(force_insert=True)
    if not session.is_sample:
        label = settlement.source or settlement.reason
        publish = partial(telemetry.evaluated, session=session.external_id, name="reward", label=label)
        transaction.on_commit(partial(publish, value=settlement.value, why=settlement.sentence))
    return settlement


def _is_same(stored: Settlement, new: Settlement, resolution: Resolution) -> bool:
    """Whether `new` differs from the stored settlement at most in its wording: a new wording appends nothing."""
    names = ("value", "source", "final", "weight", "reason", "grade_id", "policy_id")
    if any(getattr(stored, name) != getattr(new, name) for name in names):
        return False
    if step_codes(stored.steps) != step_codes(new.steps):
        return False
    # A row of an earlier version has no basis. It is replaced only if its sentence may wrongly say that no verdict was
    # requested.
    if stored.basis is None:
        return not (resolution.judge_open and new.reason in {Reason.DECLINED, Reason.NOT_CONFIGURED})
    return stored.basis == new.basis


def _credit(
    session: Session, settlement: Settlement, standing: str, grades: list[Grade], *, is_flagged: bool
) -> Credit | None:
    """The credit that the bandits record for the settlement; None without a reward, or if its source has no weight.

    A session that no source could grade is recorded as an abstention. A machine's reward of a session with open flags
    is recorded in a stratum of its own, since its error is likely to be larger. A contested reward is recorded although
    it has no weight yet: its standing says how far apart the grades are, and its weight is derived from that.
    """
    if settlement.value is None:
        return None
    key = GraderKey(
        source=settlement.source, witness=Witness.UNKNOWN.value, standing=standing, agent=session.agent.name
    )
    if settlement.weight == 0 and not standing.startswith(CONTESTED):
        if settlement.source != Source.FLOOR:
            return None
        # An abstention, with the trajectory's reason: it has no weight, and the first grade replaces it. It is recorded
        # so that such sessions can be valued at what similar ones were worth when they were judged.
        version, reason = abstention_key(grades)
        abstention = replace(key, source=ABSTAINED, version=version, view=reason)
        return Credit(value=0.0, grader=abstention, cost_usd=session.cost_usd)
    stratum = FLAGGED if is_flagged and settlement.source != Source.HUMAN else ""
    grade = next((grade for grade in grades if grade.pk == settlement.grade_id), None)
    key = replace(key, stratum=stratum)
    if grade is not None:
        key = replace(
            key,
            model=grade.model,
            route=grade.route,
            rubric=grade.rubric,
            witness=witness_of(grade).value,
            version=grade.version,
            view=view_of(grade),
        )
    return Credit(value=settlement.value, grader=key, cost_usd=session.cost_usd)


def abstention_key(grades: Iterable[Grade]) -> tuple[str, str]:
    """The version and the reason of the trajectory's abstention, for a ledger key; ("", NO_EVIDENCE) without one."""
    rows = {grade.pk: grade for grade in grades}
    trajectory = current(views(rows.values())).get(Source.TRAJECTORY)
    if trajectory is None:
        return "", Reason.NO_EVIDENCE.value
    row = rows[trajectory.id]
    return row.version, row.reason or Reason.NO_EVIDENCE.value


def is_flagged(session: Session) -> bool:
    """Whether the session has an open flag that casts doubt on a machine's grade."""
    return is_doubted(Flag.objects.open().filter(session=session).values_list("rule", flat=True))


def is_doubted(flags: Iterable[str]) -> bool:
    """Whether a flag of one of these rules casts doubt on a machine's grade.

    Flags on the agent's own claims do not, or an agent could choose the stratum of its rewards.
    """
    return any(rule not in {CLAIMED_ABOVE, LATE_WORD} for rule in flags)
