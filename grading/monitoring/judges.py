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
    """The family of a model by its name: "us.anthropic.claude-sonnet-5-5" is claude, "openai/o4-mini" gpt. If none is
    recognised, the name's first word; empty for an empty name.
    """
    name = model.lower()
    if _OPENAI.search(name):
        return "gpt"
    if recognised := next((each for each in FAMILIES if each in name), None):
        return recognised
    word = _WORD.search(name.rpartition("/")[2])
    return "" if word is None else word[0]


FAILED = (AttemptOutcome.DEFERRED, AttemptOutcome.REFUSED, AttemptOutcome.INVALID)
# Failures of the judge itself. Quota and key have a row of their own, and a per-minute limit is no failure.
TROUBLE = (
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

# Failed calls of one judge: {"model", "reason", "n": how many, "since": the first of them}.
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


# A judge fails if this many calls failed within the hour, or of its last ten within a day.
FAILURE_WINDOW, MIN_FAILURES = dt.timedelta(hours=1), 3
LAST_CALLS, MIN_FAILED_OF_LAST, LAST_CALLS_WITHIN = 10, 2, dt.timedelta(days=1)
# Enough of the latest calls to contain ten of a judge that is seldom called.
CALLS_READ = 200
# A judge that is out and was not called for this long may have the wrong key.
NOT_CALLED_FOR = dt.timedelta(days=3)
# The end of that alarm's subject: it opens even if the outage was acknowledged.
NOT_CALLED = ", not called"


def _sessions_of_outage(about: str, now: dt.datetime) -> Sequence[int]:
    """The keys of the sessions settled since the outage began that wait for its judge, in order of time.

    `about` is the subject of the outage's alarm: a quota, or a judge's role.
    """
    about = about.removesuffix(NOT_CALLED)
    outages = [(quota.model, quota.changed_at) for quota in Quota.objects.out() if about_quota(quota) == about]
    if not outages:
        failed = next((rows for judge, rows in _failing_calls(now).items() if about_judge(judge) == about), ())
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
    out = list(Quota.objects.out().order_by("pk"))
    for quota in out:
        if quota.state != QuotaState.PAUSED or quota.changed_at <= now - dt.timedelta(days=1):
            reason = Reason(quota.reason)
            state = f"{quota.model} is {quota.state_label}{_until(quota)}, since {stamp(quota.changed_at)}."
            why = f"{reason.words}." if reason.words else ""
            effect = WAITING if quota.model == settings.JUDGE_MODEL else WAITING_BESIDE
            parts = (state, why, quota.detail, TODO.get(reason, TRY_AGAIN), effect)
            yield Finding(about=about_quota(quota), detail=" ".join(filter(None, parts)))
        yield from _find_not_called(quota, now)
    for judge, failed in sorted(_failing_calls(now).items()):
        models = {row["model"] for row in failed}
        if models & {quota.model for quota in out}:
            continue
        reasons: Counter[str] = Counter()
        for row in failed:
            reasons[row["reason"]] += row["n"]
        counts = ", ".join(f"{n} × {Reason(reason).words.lower()}" for reason, n in reasons.most_common())
        since = stamp(min(row["since"] for row in failed))
        todo = TODO.get(Reason(reasons.most_common(1)[0][0]), TRY_AGAIN)
        detail = f"{', '.join(sorted(models))} ({about_judge(judge)}) has been failing since {since}: {counts}. {todo}"
        yield Finding(about=about_judge(judge), detail=detail)


def _until(quota: Quota) -> str:
    """Until when a quota is out, to follow its state in a sentence."""
    if quota.state == QuotaState.PAUSED:
        return " until somebody resumes it"
    if quota.until is None:
        return " until it is fixed"
    conjunction = ", next call" if quota.state == QuotaState.MISCONFIGURED else " until"
    return f"{conjunction} {stamp(quota.until)}"


def _find_not_called(quota: Quota, now: dt.datetime) -> Iterable[Finding]:
    """A finding if a quota has been out for days without a call: is it the quota of the key that is paid for?"""
    since = now - NOT_CALLED_FOR
    called = JudgeAttempt.objects.filter(model=quota.model, started_at__gt=since)
    if quota.state == QuotaState.PAUSED or quota.changed_at > since or called.exists():
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
    """The failed calls of each failing judge, by its role."""
    return {**_failing_lately(now), **_failing_within_window(now)}


def _failing_within_window(now: dt.datetime) -> dict[str, list[Failures]]:
    """The judges with MIN_FAILURES failed calls or more in the window, of jobs that aren't done, with these calls."""
    rows = (
        JudgeAttempt.objects.filter(outcome__in=FAILED, finished_at__gt=now - FAILURE_WINDOW, reason__in=TROUBLE)
        .exclude(job__state=JobState.DONE)
        .order_by()
        .values("judge", "model", "reason")
        .annotate(n=Count("pk"), since=Min("finished_at"))
    )
    by_judge = _by_judge(rows)
    return {judge: failed for judge, failed in by_judge.items() if sum(row["n"] for row in failed) >= MIN_FAILURES}


def _failing_lately(now: dt.datetime) -> dict[str, list[Failures]]:
    """The judges whose latest calls fail, each with the failed calls.

    A judge fails if MIN_FAILED_OF_LAST of its LAST_CALLS calls failed; or if its last call timed out, its job is not
    done, and no call was answered after that call began.
    """
    answered = JudgeAttempt.objects.filter(Q(outcome=AttemptOutcome.GRADED) | Q(reason__in=TROUBLE))
    columns = ("judge", "model", "reason", "started_at", "http_status", "job__state")
    latest = answered.order_by("-pk").values(*columns, n=Value(1), since=F("finished_at"))
    recent = [row for row in latest[:CALLS_READ] if row["since"] > now - LAST_CALLS_WITHIN]
    failing = {}
    for judge, calls in _by_judge(recent).items():
        failed = [call for call in calls[:LAST_CALLS] if call["reason"]]
        last = max(calls, key=lambda call: call["since"])
        is_answered = any(call["http_status"] and call["since"] > last["started_at"] for call in calls)
        if len(calls) >= LAST_CALLS and len(failed) >= MIN_FAILED_OF_LAST:
            failing[judge] = failed
        elif last["reason"] == Reason.TIMEOUT and last["job__state"] != JobState.DONE and not is_answered:
            failing[judge] = [last]
    return failing


def _by_judge(rows: Iterable[Failures]) -> dict[str, list[Failures]]:
    """The rows grouped by the role of the judge."""
    by_judge: dict[str, list[Failures]] = defaultdict(list)
    for row in rows:
        by_judge[row["judge"]].append(row)
    return by_judge


UNKNOWN_ANSWERS_WINDOW = dt.timedelta(days=7)


def _unknown_answers(now: dt.datetime) -> QuerySet[JudgeAttempt]:
    """The calls with an unknown answer whose session still has no verdict."""
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
    again = Grade.objects.chain().verdicts().filter(yours(), replicate__gt=0, created_at__gt=now - REPEATS_WINDOW)
    wasted = again.filter(session__in=calls.order_by().values("job__session"))
    rows = list(wasted.order_by("pk").values_list("session__external_id", "cost_usd", "session"))
    if rows:
        cost = sum(cost or 0 for _id, cost, _session in rows)
        names = ", ".join(sorted({name for name, _cost, _session in rows})[:5])
        yield Finding(
            sessions=tuple(dict.fromkeys(session for _id, _cost, session in rows)),
            detail=f"{len(rows)} of the last day’s verdicts repeated existing verdicts, at a cost of ${cost:.4f}: "
            f"{names}. Find out what requested them: a run, a script or a schedule.",
        )


WINDOW = dt.timedelta(days=14)
IDENTITY = ("model", "route", "rubric", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """A grader and its verdicts of the window: their number, mean, standard deviation and number of distinct values."""

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


def verdicts(now: dt.datetime) -> GradeQuerySet:
    """The judges' first readings of the sessions that ended in the window."""
    return Grade.objects.verdicts().first_readings().filter(yours(), session__ended_at__gt=now - WINDOW)


def instruments(now: dt.datetime) -> list[Instrument]:
    """The graders whose verdicts entered the chain, the one in use first. One query."""
    rows = (
        verdicts(now)
        .chain()
        .order_by()
        .values(*IDENTITY)
        .annotate(n=Count("pk"), mean=Avg("value"), sd=StdDev("value"))
        .annotate(values=Count("value", distinct=True), latest=Max("pk"))
    )
    return sorted((Instrument(**row) for row in rows), key=lambda each: -each.latest)


MAX_SHARE_OF_FAMILY, MIN_OF_FAMILIES = 0.8, 50
# How much higher a judge may grade its own family, and the fewest sessions of that family and of others.
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
    rows = verdicts(now).order_by().values_list("model", "session__model").annotate(n=Count("pk"), s=Sum("value"))
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
    if count >= MIN_OF_FAMILIES:
        name, most = by_family.most_common(1)[0]
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
        own, others = sums[model, True] / n_own, sums[model, False] / n_others
        if own - others > MAX_FAVOUR:
            yield Finding(
                about=model,
                detail=f"{model} gives sessions of its own family {own:.2f} on average ({n_own}), and others "
                f"{others:.2f} ({n_others}). Its own family may be better, or the judge may favour it. Compare "
                "with grades from another family or from people for the same sessions.",
            )


def _sessions_of(instrument: Instrument, now: dt.datetime) -> tuple[int, ...]:
    """The sessions of the window that the grader gave a verdict on, in order of time."""
    identity = {name: getattr(instrument, name) for name in IDENTITY}
    rows = verdicts(now).chain().filter(**identity).order_by("session__ended_at", "session")
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
    for each in instruments(now):
        if each.n >= MIN_VERDICTS_OF_JUDGE and (each.values < MIN_DISTINCT_GRADES or each.sd < MIN_SD):
            yield Finding(
                about=str(each)[:150],
                detail=f"{each}: {each.n} verdicts in 14 days have only {each.values} distinct values and a standard "
                f"deviation of {each.sd:.3f}. They can’t tell arms apart. Try a stronger model or a rubric with "
                "more bands.",
                sessions=_sessions_of(each, now),
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
    enough = [each for each in instruments(now) if each.n >= MIN_VERDICTS_OF_EACH]
    kinds = dict(Rubric.objects.filter(sha256__in={each.rubric for each in enough}).values_list("sha256", "kind"))
    reported: set[str] = set()
    # The grader in use comes first, so that a judge's finding is about its latest change.
    for new, old in itertools.combinations(enough, 2):
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
    """A grader: the model, its address, the rubric, and the version of the digest."""

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
    """The grader in use, and the number of sessions that it and a person, blind, have graded (counted up to ENOUGH).

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


def compared() -> GradeQuerySet:
    """Verdicts on sessions of the random check that a person graded blind, once their turn in it has come."""
    blind = ReviewAnswer.objects.blind().drawn()
    return Grade.objects.verdicts().first_readings().filter(session__in=blind.values("session"))


def in_use() -> CalibrationStatus | None:
    """The grader that gave the latest verdict for the chain; None before the first verdict. Two queries."""
    verdicts = Grade.objects.verdicts().first_readings()
    identity = verdicts.chain().filter(yours()).order_by("-pk").values(*IDENTITY).first()
    if identity is None:
        return None
    same_grader = verdicts.filter(session=OuterRef("session"), **identity)
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
    counts = compared().order_by().values_list(*IDENTITY).annotate(n=Count("session", distinct=True))
    blind = {tuple(identity): n for *identity, n in counts}
    for each in instruments(now):
        n = blind.get((each.model, each.route, each.rubric, each.version), 0)
        if n < ENOUGH:
            yield Finding(
                about=str(each)[:150],
                detail=f"{each} is not calibrated: it has {n} of {ENOUGH} blind grades, so nobody knows how far its "
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
    for which in Canary:
        runs = _runs_since_acknowledged(which)
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
                sessions = _sessions_graded_since(which, usual_days)
        first, last = runs[0], runs[-1]
        if first.trajectory != last.trajectory:
            before, now = ("no grade" if run.trajectory is None else number(run.trajectory) for run in (first, last))
            changes.append(f"its trajectory grade was {before} on {first.day:%-d %b} and is {now} on {last.day:%-d %b}")
        if changes:
            detail = (
                f"The known {which} session has a different grade: {'; '.join(changes)}. {_what_changed(first, last)}"
            )
            yield Finding(about=which, detail=detail, sessions=sessions)


def _runs_since_acknowledged(which: Canary) -> Sequence[CanaryRun]:
    """The runs in order, from the day of the last acknowledged change on; all if there is none."""
    runs = CanaryRun.objects.filter(canary=which).order_by("day")
    alarms = Alarm.objects.filter(rule=canary_changed.id, about=which, acknowledged_at__isnull=False)
    acknowledged = alarms.order_by("-pk").first()
    if acknowledged is not None:
        runs = runs.filter(day__gte=timezone.localdate(acknowledged.opened_at))
    return list(runs)


def _sessions_graded_since(which: Canary, days: Sequence[dt.date]) -> tuple[int, ...]:
    """The sessions that the judge has graded since it judged the canary on the last of these days."""
    calls = JudgeKeyTest.objects.filter(canary__canary=which, canary__day__in=days, finished_at__isnull=False)
    last = calls.order_by("canary__day").last()
    if last is None:
        return ()
    graded = Grade.objects.verdicts().chain().filter(yours(), created_at__gt=last.finished_at)
    return tuple(graded.order_by("session__ended_at").values_list("session", flat=True).distinct())


def _what_changed(first: CanaryRun, last: CanaryRun) -> str:
    """What differs between two runs, as a sentence."""
    changed = [cause for column, cause in CAUSES.items() if getattr(first, column) != getattr(last, column)]
    if not changed:
        return "Nothing on this site has changed since; the provider may have changed the model."
    return f"Changed since {first.day:%-d %b}: {', '.join(changed)}."
