"""Alarm rules about the judge: whether it answers, what its calls cost, and how good it is at grading."""

import datetime as dt
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import median
from typing import Any

from django.conf import settings
from django.db.models import Avg, Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, StdDev, Sum, Value
from django.utils import timezone

from bandit.models import Bandit
from grading.models import (
    Alarm,
    CanaryRun,
    Grade,
    JudgeAttempt,
    JudgeJob,
    JudgeKeyTest,
    Quota,
    ReviewAnswer,
    Rubric,
    Session,
)
from grading.models.canary import Canary
from grading.models.grades import GradeQuerySet
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.models.sessions import yours
from grading.monitoring.rule import SOMETIMES, Finding, Severity, alarm_rule, stamp
from grading.plain import counted
from grading.reward import calibrating
from grading.reward.calibrating import MAX_AUTOMATIC_MOVE
from grading.reward.explain import number
from grading.reward.judged_pairs import read_judgements
from grading.vocabulary import Reason

# As providers and gateways spell them in a model's name.
FAMILIES = (
    "claude",
    "gemini",
    "gemma",
    "llama",
    "mistral",
    "mixtral",
    "qwen",
    "deepseek",
    "grok",
    "kimi",
    "glm",
    "gpt",
)
_OPENAI = re.compile(r"(?:^|[/.])(?:o\d|chatgpt|codex)")
_WORD = re.compile(r"[a-z]+")


def family(model: str) -> str:
    """The family of a model by its name: "us.anthropic.claude-sonnet-5-5" is claude, "openai/o4-mini" gpt.

    For an unknown family, the first word of the name; empty for an empty name.
    """
    name = model.lower()
    if _OPENAI.search(name):
        return "gpt"
    if known_family := next((candidate for candidate in FAMILIES if candidate in name), None):
        return known_family
    word = _WORD.search(name.rpartition("/")[2])
    return "" if word is None else word[0]


FAILED = (AttemptOutcome.DEFERRED, AttemptOutcome.REFUSED, AttemptOutcome.INVALID)
# Failures of the judge itself. A quota or key that is refused is a state of Quota; a per-minute limit is no failure.
JUDGE_FAILURES = (
    Reason.OVERLOADED,
    Reason.TIMEOUT,
    Reason.CONNECTION,
    Reason.REFUSED,
    Reason.UNPARSABLE_VERDICT,
)
# The effects of an outage of the first judge, and of another one.
WAITING = (
    "New rewards stay provisional. Nothing is lost: sessions wait in the queue, and their verdicts replace the "
    "provisional rewards exactly."
)
WAITING_BESIDE = "Only this judge’s verdicts wait. They decide no reward while the first judge answers."
TODO: Mapping[Reason, str] = {
    Reason.QUOTA_EXHAUSTED: "Raise the limit or add credit at the provider, then probe now on the quota page.",
    Reason.BUDGET_SPENT: "Raise the daily budget on the quota page, or wait for midnight.",
    Reason.AUTH: "Enter a key that may use this model in Settings, Judge. Or set one in the environment and restart.",
    Reason.NEEDS_ATTENTION: "Check JUDGE_MODEL and ANTHROPIC_BASE_URL, and restart.",
    Reason.PAUSED: "If judging should continue, resume it on the quota page.",
    Reason.REFUSED: "Read the replies on the quota page. The rubric or the evidence makes this model decline.",
    Reason.UNPARSABLE_VERDICT: (
        "Read the replies on the quota page. The model may be too small, or a gateway may change its answers."
    ),
}
TRY_AGAIN = "Calls are retried automatically. Check the provider’s status, or set JUDGE_FALLBACK_MODEL."

# Failed calls of one judge for one reason: {"model", "reason", "n": how many, "since": the time of the first}.
Failures = Mapping[str, Any]


def about_judge(role: str) -> str:
    """The subject of alarms about the calls of the judge in this role."""
    return f"{role} judge"


def says_judge_fails(alarms: Iterable[Alarm]) -> bool:
    """Whether one of these open alarms is about the first judge's calls, which may fail although its quota is open."""
    return any(alarm.rule == judge_out.id and alarm.about == about_judge(JudgeRole.FIRST) for alarm in alarms)


def about_quota(quota: Quota) -> str:
    """The subject of alarms about a judge's quota."""
    return f"{quota.model} {quota.key[:8]}"


# A judge fails if 3 of its calls failed within an hour, or 2 of its last 10 calls within a day.
FAILURE_WINDOW, MIN_FAILURES = dt.timedelta(hours=1), 3
LAST_CALLS, MIN_FAILED_OF_LAST, LAST_CALLS_WITHIN = 10, 2, dt.timedelta(days=1)
# Enough of the latest calls to contain ten of a judge that is seldom called.
CALLS_READ = 200
# A judge that is out and was not called for this long may have the wrong key.
NOT_CALLED_FOR = dt.timedelta(days=3)
# Ends the subject of that alarm, so that it is another alarm than the outage's, which may be acknowledged already.
NOT_CALLED = ", not called"


def _sessions_of_outage(about: str, now: dt.datetime) -> Sequence[int]:
    """The keys of the sessions settled since the outage began that wait for its judge, in order of time.

    `about` is the subject of the outage's alarm: a quota, or a judge's role.
    """
    about = about.removesuffix(NOT_CALLED)
    outages = [(quota.model, quota.changed_at) for quota in Quota.objects.out() if about_quota(quota) == about]
    if not outages:  # then it is about a judge's role
        failed = next((rows for role, rows in _failing_calls(now).items() if about_judge(role) == about), ())
        outages = [(row["model"], row["since"]) for row in failed]
    if not outages:
        return ()
    model, since = min(outages, key=itemgetter(1))
    waiting = Session.objects.yours().filter(settlement__created_at__gte=since)
    if model == settings.JUDGE_SECOND_MODEL and model != settings.JUDGE_MODEL:
        waiting = waiting.filter(pk__in=JudgeJob.objects.open().filter(purpose=Purpose.SECOND).values("session"))
    else:
        waiting = waiting.filter(reward_final=False)
    return list(waiting.order_by("ended_at", "pk").values_list("pk", flat=True))


@alarm_rule(
    id="A2",
    title="The judge is out",
    means=(
        "Opens at once when a judge’s quota is used up, its budget is spent or its key is refused. Also opens when "
        "the judge has been paused for a day, when 2 of the last 10 answered calls failed, or when a call timed out "
        "and no other call was answered in the meantime. Three failed calls within 60 minutes are enough if their "
        "sessions still wait, even if other calls succeeded. A second alarm opens if a judge that is out has not "
        "been called for three days while sessions wait, because its key may be the wrong one."
    ),
    todo="The quota page shows the provider’s answer and the time of the next call.",
    page="admin:quota",
    list_sessions=_sessions_of_outage,
)
def judge_out(now: dt.datetime) -> Iterable[Finding]:
    """A2. Each judge is checked, whatever its role. An operator's pause is reported only after a day."""
    quotas_out = list(Quota.objects.out().order_by("pk"))
    for quota in quotas_out:
        if quota.state != QuotaState.PAUSED or quota.changed_at <= now - dt.timedelta(days=1):
            reason = Reason(quota.reason)
            state = f"{quota.model} is {quota.state_label}{_until(quota)}, since {stamp(quota.changed_at)}."
            why = f"{reason.words}." if reason.words else ""
            effect = WAITING if quota.model == settings.JUDGE_MODEL else WAITING_BESIDE
            sentences = (state, why, quota.detail, TODO.get(reason, TRY_AGAIN), effect)
            yield Finding(about=about_quota(quota), detail=" ".join(filter(None, sentences)))
        yield from _find_not_called(quota, now)
    for role, failed in sorted(_failing_calls(now).items()):
        models = {row["model"] for row in failed}
        is_reported_as_out = bool(models & {quota.model for quota in quotas_out})
        if is_reported_as_out:
            continue
        reasons: Counter[str] = Counter()
        for row in failed:
            reasons[row["reason"]] += row["n"]
        counts = ", ".join(f"{n} × {Reason(reason).words.lower()}" for reason, n in reasons.most_common())
        since = stamp(min(row["since"] for row in failed))
        ((most_common_reason, _n),) = reasons.most_common(1)
        todo = TODO.get(Reason(most_common_reason), TRY_AGAIN)
        detail = f"{', '.join(sorted(models))} ({about_judge(role)}) has been failing since {since}: {counts}. {todo}"
        yield Finding(about=about_judge(role), detail=detail)


def _until(quota: Quota) -> str:
    """Words to put after a quota's state that say until when it is out, such as " until 31 Mar 09:47 UTC"."""
    if quota.state == QuotaState.PAUSED:
        return " until somebody resumes it"
    if quota.until is None:
        return " until it is fixed"
    conjunction = ", next call" if quota.state == QuotaState.MISCONFIGURED else " until"
    return f"{conjunction} {stamp(quota.until)}"


def _find_not_called(quota: Quota, now: dt.datetime) -> Iterable[Finding]:
    """A finding if a quota has been out for days without a call while sessions wait. The key may be the wrong one."""
    since = now - NOT_CALLED_FOR
    recent_calls = JudgeAttempt.objects.filter(model=quota.model, started_at__gt=since)
    if quota.state == QuotaState.PAUSED or quota.changed_at > since or recent_calls.exists():
        return
    if waiting := JudgeJob.objects.open().filter(yours()).count():
        jobs = "1 job waits" if waiting == 1 else f"{waiting} jobs wait"
        yield Finding(
            about=about_quota(quota) + NOT_CALLED,
            detail=f"{quota.model} has been {quota.state_label} since {stamp(quota.changed_at)} and hasn’t been called "
            f"for three days, while {jobs}. The key’s fingerprint is {quota.key[:8]}. Check with the provider "
            "that this is the key and the limit that you pay for. Then send a probe on the quota page.",
        )


def _failing_calls(now: dt.datetime) -> dict[str, list[Failures]]:
    """The failed calls of each failing judge, by the judge's role."""
    return {**_failing_lately(now), **_failing_within_window(now)}


def _failing_within_window(now: dt.datetime) -> dict[str, list[Failures]]:
    """By role, the failed calls in the window of jobs that aren't done: of each judge with at least MIN_FAILURES."""
    rows = (
        JudgeAttempt.objects.filter(outcome__in=FAILED, finished_at__gt=now - FAILURE_WINDOW, reason__in=JUDGE_FAILURES)
        .exclude(job__state=JobState.DONE)
        .order_by()
        .values("judge", "model", "reason")
        .annotate(n=Count("pk"), since=Min("finished_at"))
    )
    by_role = _group_by_role(rows)
    return {role: failed for role, failed in by_role.items() if sum(row["n"] for row in failed) >= MIN_FAILURES}


def _failing_lately(now: dt.datetime) -> dict[str, list[Failures]]:
    """By role, the failed calls of each judge whose latest calls fail.

    A judge fails if MIN_FAILED_OF_LAST of its last LAST_CALLS calls failed. It also fails if its last call timed out,
    the job of that call is not done, and no call was answered after that call began.
    """
    graded_or_failed = JudgeAttempt.objects.filter(Q(outcome=AttemptOutcome.GRADED) | Q(reason__in=JUDGE_FAILURES))
    columns = ("judge", "model", "reason", "started_at", "http_status", "job__state")
    latest = graded_or_failed.order_by("-pk").values(*columns, n=Value(1), since=F("finished_at"))
    recent = [row for row in latest[:CALLS_READ] if row["since"] > now - LAST_CALLS_WITHIN]
    failing = {}
    for role, calls in _group_by_role(recent).items():
        failed = [call for call in calls[:LAST_CALLS] if call["reason"]]
        last = max(calls, key=lambda call: call["since"])
        was_any_answered_since = any(call["http_status"] and call["since"] > last["started_at"] for call in calls)
        last_timed_out = last["reason"] == Reason.TIMEOUT and last["job__state"] != JobState.DONE
        if len(calls) >= LAST_CALLS and len(failed) >= MIN_FAILED_OF_LAST:
            failing[role] = failed
        elif last_timed_out and not was_any_answered_since:
            failing[role] = [last]
    return failing


def _group_by_role(rows: Iterable[Failures]) -> dict[str, list[Failures]]:
    """The rows grouped by the judge's role."""
    by_role: dict[str, list[Failures]] = defaultdict(list)
    for row in rows:
        by_role[row["judge"]].append(row)
    return by_role


UNKNOWN_ANSWERS_WINDOW = dt.timedelta(days=7)


def _unknown_answers(now: dt.datetime) -> QuerySet[JudgeAttempt]:
    """The calls within the window that got an unknown answer, and whose job still isn't done."""
    attempts = JudgeAttempt.objects.filter(outcome=AttemptOutcome.DEFERRED, reason=Reason.NEEDS_ATTENTION)
    return attempts.filter(finished_at__gt=now - UNKNOWN_ANSWERS_WINDOW).exclude(job__state=JobState.DONE)


def _about_answer(status: int | None, error: str) -> str:
    return f"{status or 'no status'} {error}"


def _sessions_without_answer(about: str, now: dt.datetime) -> Sequence[int]:
    """The keys of the sessions behind an alarm about this unknown answer (`_about_answer`), in order of time."""
    attempts = _unknown_answers(now).order_by("job__session__ended_at")
    rows = attempts.values_list("http_status", "error_type", "job__session")
    return list(dict.fromkeys(session for status, error, session in rows if _about_answer(status, error) == about))


@alarm_rule(
    id="A25",
    title="Unknown answer from the judge’s service",
    means=(
        "Opens at the first answer from a judge’s provider that the site doesn’t recognise, such as an unknown 400 "
        "error, and quotes it. Stays open for seven days, or until that session has a verdict."
    ),
    list_sessions=_sessions_without_answer,
)
def unknown_answer(now: dt.datetime) -> Iterable[Finding]:
    """A25. An answer that the table of errors lacks is neither a grade nor ignored."""
    kinds = _unknown_answers(now).order_by().values("http_status", "error_type")
    groups = list(kinds.annotate(n=Count("pk"), since=Min("finished_at"), latest=Max("pk")))
    attempts = JudgeAttempt.objects.in_bulk([group["latest"] for group in groups])
    for group in groups:
        latest = attempts[group["latest"]]
        yield Finding(
            about=_about_answer(group["http_status"], group["error_type"]),
            detail=f"{latest.model} has answered {group['n']} × since {stamp(group['since'])}: “{latest.detail}” These "
            "sessions have no verdict. If the answer points to quota, key or model, correct that. If it points "
            "to the request, report it. Then judge the sessions again.",
        )


REPEATS_WINDOW = dt.timedelta(days=1)


@alarm_rule(
    id="A15",
    title="The judge was asked twice for the same verdict",
    means=(
        "Opens at the first session of the day that the same model judged twice with the same rubric and evidence. "
        "Repeats that test the judge don’t count, and neither do the extra readings of a contested session."
    ),
    every=dt.timedelta(minutes=1),
)
def wasted_judging(now: dt.datetime) -> Iterable[Finding]:
    """A15. A repeated verdict costs money and makes the latest one noisier."""
    calls = JudgeAttempt.objects.filter(outcome=AttemptOutcome.GRADED, finished_at__gt=now - REPEATS_WINDOW)
    repeats = Grade.objects.chain().verdicts().filter(yours(), replicate__gt=0, created_at__gt=now - REPEATS_WINDOW)
    repeats = repeats.filter(session__in=calls.order_by().values("job__session"))
    rows = list(repeats.order_by("pk").values_list("session__external_id", "cost_usd", "session"))
    if rows:
        cost = sum(cost or 0 for _id, cost, _session in rows)
        names = ", ".join(sorted({name for name, _cost, _session in rows})[:5])
        yield Finding(
            sessions=tuple(dict.fromkeys(session for _id, _cost, session in rows)),
            detail=f"{len(rows)} of the last day’s verdicts repeated existing verdicts, at a cost of ${cost:.4f}: "
            f"{names}. Find out what requested them: a run, a script or a schedule.",
        )


WINDOW = dt.timedelta(days=14)
IDENTITY_COLUMNS = ("model", "route", "rubric", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderStatistics:
    """A grader and its verdicts of the window: their number, mean, standard deviation and number of distinct `values`.

    `latest` is the key of the latest of these verdicts.
    """

    model: str
    route: str
    rubric: str
    version: str
    n: int
    mean: float
    sd: float
    values: int
    latest: int

    def __str__(self) -> str:
        return f"{self.model} at {self.route or 'an unknown route'}, rubric {self.rubric[:4]}, {self.version}"


def recent_verdicts(now: dt.datetime) -> GradeQuerySet:
    """The judges' first readings of the sessions that ended in the window."""
    return Grade.objects.verdicts().first_readings().filter(yours(), session__ended_at__gt=now - WINDOW)


def statistics_of_graders(now: dt.datetime) -> list[GraderStatistics]:
    """The graders whose verdicts of the window entered the chain, the most recently used grader first. One query."""
    rows = (
        recent_verdicts(now)
        .chain()
        .order_by()
        .values(*IDENTITY_COLUMNS)
        .annotate(n=Count("pk"), mean=Avg("value"), sd=StdDev("value"))
        .annotate(values=Count("value", distinct=True), latest=Max("pk"))
    )
    return sorted((GraderStatistics(**row) for row in rows), key=lambda grader: -grader.latest)


# The largest share of the verdicts that one family may give, and the fewest verdicts with which this is checked.
MAX_SHARE_OF_FAMILY, MIN_VERDICTS = 0.8, 50
# How much higher a judge may grade its own family, and the fewest sessions of that family and of other families.
MAX_FAVOUR, MIN_OF_EACH = 0.05, 20


@alarm_rule(
    id="A16",
    title="One model family judges nearly everything",
    means=(
        "Opens when one model family gave more than 80 % of at least 50 verdicts in 14 days, or when a judge "
        "rates its own family’s sessions more than .05 above the rest (at least 20 of each)."
    ),
    severity=Severity.ADVISORY,
    every=SOMETIMES,
)
def monoculture(now: dt.datetime) -> Iterable[Finding]:
    """A16. If all judges are of one family, its bias can't be told from its calibration."""
    groups = recent_verdicts(now).order_by().values_list("model", "session__model")
    rows = groups.annotate(n=Count("pk"), s=Sum("value"))
    by_family: Counter[str] = Counter()
    # The number and the sum of each judge's verdicts on (True) its own family and (False) others.
    numbers: Counter[tuple[str, bool]] = Counter()
    sums: dict[tuple[str, bool], float] = defaultdict(float)
    for model, session_model, n, total in rows:
        by_family[family(model)] += n
        if session_model:
            is_own = family(session_model) == family(model)
            numbers[model, is_own] += n
            sums[model, is_own] += total
    count = by_family.total()
    if count >= MIN_VERDICTS:
        ((name, most),) = by_family.most_common(1)
        if most > MAX_SHARE_OF_FAMILY * count:
            yield Finding(
                about="share",
                detail=f"{most} of {count} verdicts in 14 days come from the {name} family, so a bias of this family "
                "would go unnoticed. Set JUDGE_SECOND_MODEL to a model of another family and let it judge a quarter "
                "of the sessions.",
            )
    for model in sorted({model for model, _is_own in numbers}):
        n_own, n_others = numbers[model, True], numbers[model, False]
        if min(n_own, n_others) < MIN_OF_EACH:
            continue
        mean_own, mean_others = sums[model, True] / n_own, sums[model, False] / n_others
        if mean_own - mean_others > MAX_FAVOUR:
            yield Finding(
                about=model,
                detail=f"{model} gives sessions of its own family {mean_own:.2f} on average ({n_own}), and others "
                f"{mean_others:.2f} ({n_others}). Its own family may be better, or the judge may favour it. Compare "
                "with grades from another family or from people for the same sessions.",
            )


def _sessions_of(grader: GraderStatistics, now: dt.datetime) -> tuple[int, ...]:
    """The keys of the window's sessions that the grader gave a verdict on, in order of time."""
    identity = {name: getattr(grader, name) for name in IDENTITY_COLUMNS}
    rows = recent_verdicts(now).chain().filter(**identity).order_by("session__ended_at", "session")
    return tuple(rows.values_list("session", flat=True))


MIN_VERDICTS_OF_JUDGE, MIN_DISTINCT_GRADES, MIN_SD = 50, 10, 0.05


@alarm_rule(
    id="A26",
    title="A judge can’t tell sessions apart",
    means=(
        "Opens when a judge, under one rubric, gave fewer than 10 distinct grades over at least 50 sessions in 14 "
        "days, or grades with a standard deviation below .05."
    ),
    every=SOMETIMES,
)
def indiscriminate_judge(now: dt.datetime) -> Iterable[Finding]:
    """A26. A judge that grades everything nearly the same can't tell arms apart."""
    for grader in statistics_of_graders(now):
        is_indiscriminate = grader.values < MIN_DISTINCT_GRADES or grader.sd < MIN_SD
        if grader.n >= MIN_VERDICTS_OF_JUDGE and is_indiscriminate:
            yield Finding(
                about=str(grader)[:150],
                detail=f"{grader}: {grader.n} verdicts in 14 days have only {grader.values} distinct values and a "
                f"standard deviation of {grader.sd:.3f}. They can’t tell arms apart. Try a stronger model or a rubric "
                "with more bands.",
                sessions=_sessions_of(grader, now),
            )


# The fewest verdicts of each of two graders, and how far their means may differ: in reward and in standard errors.
MIN_VERDICTS_OF_EACH, MAX_DIFFERENCE, MIN_ERRORS = 20, 0.1, 2.0


@alarm_rule(
    id="A27",
    title="Graders with different baselines are mixed",
    means=(
        "Opens when two graders’ verdicts on the same kind of work differ by .10 or more on average, and by at "
        "least two standard errors. A grader is a combination of model, route, rubric and digest. Each needs at "
        "least 20 verdicts in 14 days. The alarm lists the older grader’s sessions."
    ),
    todo="Judge the older sessions again, or compare only sessions of the same grader.",
    severity=Severity.ADVISORY,
    every=SOMETIMES,
)
def mixed_levels(now: dt.datetime) -> Iterable[Finding]:
    """A27. If graders with different levels are mixed, rewards depend on who graded."""
    graders = [grader for grader in statistics_of_graders(now) if grader.n >= MIN_VERDICTS_OF_EACH]
    rubrics = Rubric.objects.filter(sha256__in={grader.rubric for grader in graders})
    kinds = dict(rubrics.values_list("sha256", "kind"))
    reported: set[str] = set()
    # The most recently used grader comes first, so that a judge's finding is about its latest change.
    for new, old in itertools.combinations(graders, 2):
        # A rubric that the site doesn't have can be compared with itself only.
        kind, old_kind = kinds.get(new.rubric, new.rubric), kinds.get(old.rubric, old.rubric)
        if kind != old_kind:
            continue
        work = kind if new.rubric in kinds else f"rubric {new.rubric[:4]}"
        about = f"{new.model}, {work}"[:150]
        if about in reported:
            continue
        error = math.sqrt(new.sd**2 / new.n + old.sd**2 / old.n)
        if abs(new.mean - old.mean) >= max(MAX_DIFFERENCE, MIN_ERRORS * error):
            reported.add(about)
            yield Finding(
                about=about,
                detail=f"The grader changed, and so did the level of its verdicts: {old} gave {old.mean:.2f} on "
                f"average ({old.n}), {new} gives {new.mean:.2f} ({new.n}). The work itself may not have "
                "changed. Compare only sessions of the same grader, or judge the older sessions again.",
                sessions=_sessions_of(old, now),
            )


# The fewest sessions graded blind by a person that show how good a grader is.
ENOUGH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeInstrument:
    """A grader: the judge's model and address (`route`), the rubric, and the version of the digest."""

    model: str
    route: str
    rubric: str
    version: str

    def __str__(self) -> str:
        route = f"at {self.route}" if self.route else ""
        rubric = f"rubric {self.rubric[:4]}" if self.rubric else ""
        return " ".join(filter(None, (self.model, route, rubric)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationStatus:
    """The grader in use, and how many of its sessions a person has graded blind (counted up to ENOUGH).

    Only sessions of the random check count, once their turn in the random order has come.
    """

    grader: JudgeInstrument
    blind: int

    @property
    def is_calibrated(self) -> bool:
        return self.blind >= ENOUGH

    @property
    def missing(self) -> int:
        return max(ENOUGH - self.blind, 0)


def blind_compared_verdicts() -> GradeQuerySet:
    """Verdicts on sessions of the random check that a person graded blind, once their turn in it has come."""
    blind = ReviewAnswer.objects.blind().drawn()
    return Grade.objects.verdicts().first_readings().filter(session__in=blind.values("session"))


def grader_in_use() -> CalibrationStatus | None:
    """The status of the grader that gave the chain's latest verdict; None before the first verdict. Two queries."""
    first_readings = Grade.objects.verdicts().first_readings()
    identity = first_readings.chain().filter(yours()).order_by("-pk").values(*IDENTITY_COLUMNS).first()
    if identity is None:
        return None
    same_grader = first_readings.filter(session=OuterRef("session"), **identity)
    blind = ReviewAnswer.objects.blind().drawn().filter(Exists(same_grader)).order_by().values("session").distinct()
    return CalibrationStatus(blind=blind[:ENOUGH].count(), grader=JudgeInstrument(**identity))


@alarm_rule(
    id="A30",
    title="Judge not calibrated",
    means=(
        f"Opens when a judge that decided rewards in the last 14 days has fewer than {ENOUGH} blind grades to "
        "compare with. A blind grade is a person’s grade of a session from the random check, given in its random "
        "order and before seeing the judge’s grade. Judges differ by model, route, rubric and digest."
    ),
    todo="In the review queue, grade sessions from the random check without revealing the judge’s grade.",
    page="admin:review",
    severity=Severity.ADVISORY,
    every=SOMETIMES,
)
def uncalibrated(now: dt.datetime) -> Iterable[Finding]:
    """A30. A grade measures something only if it has been compared with people's grades."""
    groups = blind_compared_verdicts().order_by().values_list(*IDENTITY_COLUMNS)
    counts = groups.annotate(n=Count("session", distinct=True))
    blind_counts = {tuple(identity): n for *identity, n in counts}
    for grader in statistics_of_graders(now):
        n = blind_counts.get((grader.model, grader.route, grader.rubric, grader.version), 0)
        if n < ENOUGH:
            yield Finding(
                about=str(grader)[:150],
                detail=f"{grader} is not calibrated: it has {n} of {ENOUGH} blind grades, so nobody knows how far its "
                "grades are from people’s. Flagged sessions and those chosen for their impact aren’t a fair "
                f"sample. Grade {counted(ENOUGH - n, 'more session')} of the random check blind, in its "
                "order.",
            )


@alarm_rule(
    id="A40",
    title="A calibration needs a person’s decision",
    means=(
        "Opens at night when a bandit’s new calibration would change an arm’s mean by more than "
        f"{number(MAX_AUTOMATIC_MOVE)} from the version that a person last accepted, or when a bandit with rewards "
        "has never been calibrated."
    ),
    todo=(
        "On the calibration page, open the bandit and check what the new version would change. Then put it in force "
        "or switch calibration off."
    ),
    page="admin:calibration",
    severity=Severity.ADVISORY,
    every=dt.timedelta(days=1),
    nightly=True,
)
def waiting_calibration(now: dt.datetime) -> Iterable[Finding]:
    """A40. A calibration has no effect until it is put in force."""
    judgements = read_judgements(now)
    for bandit in Bandit.objects.that_learn():
        proposed = calibrating.proposal(bandit.name, now, judgements)
        if not proposed.waits:
            continue
        if proposed.last is None:
            detail = (
                f"{bandit}: This bandit has rewards but has never been calibrated, so every grade is used "
                "unchanged. Check what version 1 would change, then put it in force."
            )
        else:
            arm, move = proposed.largest
            detail = (
                f"{bandit}: Version {proposed.version}, based on {proposed.pairs:,} judged sessions, would change "
                f"{arm} by {number(abs(move))} from the version that a person last accepted. That is over "
                f"{number(MAX_AUTOMATIC_MOVE)}, so a person must decide. Until then, version "
                f"{proposed.last.version} stays in force."
            )
        yield Finding(about=f"{bandit.name}: waits", detail=detail)


# A verdict usually differs by less from one day to the next.
MAX_CHANGE = 0.15
# The usual grade is the median of this many runs, the first ones since a person last acknowledged a change.
BASELINE_RUNS = 7
CAUSES = {
    "model": "the model",
    "route": "the judge’s address",
    "rubric": "the rubric",
    "version": "the rules for what the judge reads and how it is scored",
    "trajectory_version": "the trajectory’s rules",
}


@alarm_rule(
    id="A50",
    title="The canary’s grade has changed",
    means=(
        "Two known logs, a good and a bad one, are judged once a day. Opens when a verdict differs by more than "
        f"{number(MAX_CHANGE)} from the usual one, or when a trajectory grade changes at all. The usual verdict is "
        f"the median of the first {BASELINE_RUNS} since somebody last acknowledged a change. Closes when the grade "
        "is back to normal, or when somebody acknowledges the alarm. The new grade then becomes the usual one."
    ),
    todo=(
        "Find out what has changed since then. If nothing on this site has changed, the provider may have changed "
        "the model."
    ),
    page="admin:calibration",
    every=SOMETIMES,
)
def canary_changed(_now: dt.datetime) -> Iterable[Finding]:
    """A50. A judge whose scale has changed grades every session differently, which no single session shows."""
    for canary in Canary:
        runs = _runs_since_acknowledged(canary)
        if not runs:
            continue
        changes: list[str] = []
        sessions: tuple[int, ...] = ()
        judged = [(run.day, run.verdict) for run in runs if run.verdict is not None]
        if len(judged) > 1:
            day, verdict = judged[-1]
            usual = median(earlier for _day, earlier in judged[:-1][:BASELINE_RUNS])
            if abs(verdict - usual) > MAX_CHANGE:
                changes.append(f"the judge gave {number(verdict)} on {day:%-d %b}, usually {number(usual)}")
                usual_days = [day for day, earlier in judged if abs(earlier - usual) <= MAX_CHANGE]
                sessions = _sessions_graded_since(canary, usual_days)
        first, last = runs[0], runs[-1]
        if first.trajectory != last.trajectory:
            before, now = ("no grade" if run.trajectory is None else number(run.trajectory) for run in (first, last))
            changes.append(f"its trajectory grade was {before} on {first.day:%-d %b} and is {now} on {last.day:%-d %b}")
        if changes:
            detail = (
                f"The known {canary} session has a different grade: {'; '.join(changes)}. {_what_changed(first, last)}"
            )
            yield Finding(about=canary, detail=detail, sessions=sessions)


def _runs_since_acknowledged(canary: Canary) -> Sequence[CanaryRun]:
    """The canary's runs in order, from the day on which the last acknowledged change was found; otherwise all."""
    runs = CanaryRun.objects.filter(canary=canary).order_by("day")
    alarms = Alarm.objects.filter(rule=canary_changed.id, about=canary, acknowledged_at__isnull=False)
    acknowledged = alarms.order_by("-pk").first()
    if acknowledged is not None:
        runs = runs.filter(day__gte=timezone.localdate(acknowledged.opened_at))
    return list(runs)


def _sessions_graded_since(canary: Canary, days: Sequence[dt.date]) -> tuple[int, ...]:
    """The keys of the sessions that the judge has graded since it judged the canary on the last of these days."""
    calls = JudgeKeyTest.objects.filter(canary__canary=canary, canary__day__in=days, finished_at__isnull=False)
    last = calls.order_by("canary__day").last()
    if last is None:
        return ()
    graded = Grade.objects.verdicts().chain().filter(yours(), created_at__gt=last.finished_at)
    return tuple(graded.order_by("session__ended_at").values_list("session", flat=True).distinct())


def _what_changed(first: CanaryRun, last: CanaryRun) -> str:
    """A sentence that names what differs between the conditions of two runs."""
    changed = [cause for column, cause in CAUSES.items() if getattr(first, column) != getattr(last, column)]
    if not changed:
        return "Nothing on this site has changed since; the provider may have changed the model."
    return f"Changed since {first.day:%-d %b}: {', '.join(changed)}."
