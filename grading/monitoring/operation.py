"""Alarm rules about running the site: programs, disk, stored sums, rules, queues, and what uploads lack."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet

from bandit.audit import audit, doubled
from grading.health import periodic, pulse
from grading.health.liveness import Component
from grading.models import (
    Alarm,
    BlobProblem,
    Evidence,
    Grade,
    Heartbeat,
    JudgeAttempt,
    JudgeJob,
    Notice,
    ReviewAnswer,
    ReviewItem,
    RuleRun,
    Session,
)
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.models.notices import ChannelState, NoticeState
from grading.models.review import QueueEntry
from grading.models.sessions import SessionQuerySet, yours
from grading.monitoring.rule import RULES, SOMETIMES, Finding, Severity, alarm_rule, stamp
from grading.reward import state
from grading.vocabulary import NO_REWARD, Reason
from gradingsite.state import START, site_command

# How many things a finding lists.
MAX_LISTED = 5


@alarm_rule(
    id="A33",
    title="Stored sums differ from the ledger",
    means=(
        "Opens when the nightly audit finds that a bucket of rewards isn’t exactly the sum of its ledger entries, "
        "that a session has rewarded two arms of a bandit that chooses only one, or that lists show a session "
        "differently from its rewards, verdicts and flags. The audit checks all buckets, every session that changed "
        "within two days, and one in a hundred of the other sessions."
    ),
    todo=(
        "Find out what wrote to the database (a restored copy, a script, a manual edit), then run "
        f"`{site_command('rebuild --repair')}`. It rebuilds buckets and lists from the ledger and keeps each session’s "
        "latest reward."
    ),
    every=dt.timedelta(days=1),
    nightly=True,
)
def sums_differ(now: dt.datetime) -> Iterable[Finding]:
    """A33. Buckets must equal the ledger's sums, and lists must show what was settled."""
    problems: Mapping[str, Sequence[object]] = {
        "Buckets that differ from the ledger": audit(),
        "Sessions that count more than once": doubled(),
        "Sessions that lists show incorrectly": state.audit(now),
    }
    for about, items in problems.items():
        if items:
            yield Finding(about=about, detail=f"{about}: {len(items):,}. {_list_first(items)}.")


def _list_first(items: Sequence[object]) -> str:
    """The first MAX_LISTED items as text, and how many others there are."""
    texts = [str(item) for item in items[:MAX_LISTED]]
    if len(items) > MAX_LISTED:
        texts.append(f"and {len(items) - MAX_LISTED:,} more")
    return "; ".join(texts)


@alarm_rule(
    id="A48",
    title="Stored evidence is damaged",
    means=(
        "Opens when stored evidence is missing or has changed. One thirtieth of all evidence is read in full every "
        "night. Closes when the evidence is restored."
    ),
    todo=(
        "Check the disk and restore the evidence folder from a backup, or send these sessions again. Identical "
        "files replace the damaged ones."
    ),
    every=dt.timedelta(minutes=1),
)
def damaged_evidence(_now: dt.datetime) -> Iterable[Finding]:
    """A48. A grade can be derived again only from the evidence that it was derived from."""
    blobs = list(BlobProblem.objects.damaged().order_by("since", "pk"))
    if blobs:
        listed = _list_first([f"{blob.pk[:12]}… ({blob.what})" for blob in blobs])
        files = "1 stored file is" if len(blobs) == 1 else f"{len(blobs)} stored files are"
        rows = Evidence.objects.filter(sha256__in=[blob.pk for blob in blobs]).order_by("session__ended_at", "session")
        yield Finding(
            detail=f"{files} damaged, found {stamp(blobs[0].since)}: {listed}. Grades based on these files stay as "
            "they are, but can’t be computed again.",
            sessions=tuple(dict.fromkeys(rows.values_list("session", flat=True))),
        )


MIB = 2**20


@alarm_rule(
    id="A43",
    title="The disk is nearly full; no sessions are accepted",
    means=(
        "Opens while a host’s state folder has less free space than FREE_SPACE_FLOOR (1 GiB, or 5 % of the disk if "
        "that is less). That host then refuses sessions with an explanation. Hooks keep the sessions and send them "
        "later."
    ),
    todo=(
        "Free some space, or move the state folder to a larger disk. The host then accepts sessions again "
        "automatically."
    ),
    every=dt.timedelta(minutes=1),
)
def no_room_left(now: dt.datetime) -> Iterable[Finding]:
    """A43. A full disk stops intake, judging and reviews, and sometimes the alarm about it."""
    for host, (free, floor) in pulse.disks(now).items():
        if free < floor:
            whose, where = (f" of {host}", " there") if host else ("", "")
            yield Finding(
                about=host,
                detail=f"The state folder{whose} has {free // MIB:,} MiB of free space, but {floor // MIB:,} MiB are "
                f"reserved for sessions that are already stored. No sessions are accepted{where} until there is "
                "more space. Nothing is lost: hooks keep sessions that they can’t send.",
            )


NOTHING_LOST = "Nothing is lost: sessions are still accepted, and jobs wait in the database."
EFFECTS: Mapping[Component, str] = {
    Component.WEB: "Pages and the API don’t answer. Hooks keep sessions that they can’t send.",
    Component.WORKER: f"No verdicts are requested, no alarm rules run and no rewards are updated. {NOTHING_LOST}",
    Component.SCHEDULER: f"Scheduled jobs don’t run, so lost jobs are not retried. {NOTHING_LOST}",
    Component.BROKER: f"Workers receive no jobs, so no verdicts are requested. {NOTHING_LOST}",
}
NAMES: Mapping[Component, str] = {
    Component.WEB: "The web server",
    Component.WORKER: "The worker",
    Component.SCHEDULER: "The scheduler",
    Component.BROKER: "The broker",
}


@alarm_rule(
    id="A46",
    title="A part of the site has stopped responding",
    means=(
        "Opens when the web server, the worker, the scheduler or the broker has sent no heartbeat for 20 seconds. "
        "The program that watches it must have run for a minute without a gap."
    ),
    todo=f"Check that this program is running ({START} restarts it if it fails), and look for errors in its log.",
    every=dt.timedelta(minutes=1),
    is_attended=True,
)
def program_stopped(_now: dt.datetime) -> Iterable[Finding]:
    """A46. A stopped worker looks like an idle one. The findings are those of `find_stopped_programs`."""
    return ()


def find_stopped_programs(silent: Collection[str]) -> Iterable[Finding]:
    """A finding for each part in `silent`: a part's name if it is silent on all hosts, "part@host" for one host.

    A part that is silent on all hosts has no further findings for single hosts.
    """
    rows = Heartbeat.objects.exclude(beat_at=None).order_by("beat_at").values_list("name", "host", "beat_at")
    last_beats: dict[str, dt.datetime | None] = {}  # by "part" and by "part@host"
    for name, host, beat_at in rows:
        last_beats[name] = last_beats[f"{name}@{host}"] = beat_at
    for about in silent:
        name, _at, host = about.partition("@")
        part = Component(name)
        beat_at = last_beats.get(about)
        since = "yet" if beat_at is None else f"since {stamp(beat_at)}"
        if not host:
            yield Finding(about=about, detail=f"{NAMES[part]} has not responded {since}. {EFFECTS[part]}")
        elif name not in silent:
            detail = f"{NAMES[part]} on {host} has not responded {since}. Other hosts still work."
            yield Finding(about=about, detail=detail)


@alarm_rule(
    id="A47",
    title="A scheduled job is overdue",
    means=(
        "Opens when a job hasn’t succeeded for three of its intervals plus a minute (26 hours for nightly jobs). "
        "Doesn’t open in the first minute after a start or after the machine was suspended."
    ),
    todo="Look for the job’s name in the worker’s log. The job is failing, or the worker is busy with other jobs.",
    every=dt.timedelta(minutes=1),
    is_attended=True,
)
def missed_turns(now: dt.datetime) -> Iterable[Finding]:
    """A47. All programs may run while a job fails."""
    for job in periodic.missed(now):
        why = f" Its last run failed: {job.error}" if job.error else ""
        where = f" on {job.host}" if job.host else ""
        yield Finding(about=job.key, detail=f"“{job.name}” last succeeded{where} {stamp(job.ended_at)}.{why}")


GRACE = dt.timedelta(minutes=10)


@alarm_rule(
    id="A29",
    title="A rule has stopped running",
    means="Opens when a scheduled rule has missed two of its runs plus ten minutes.",
)
def silent_rule(now: dt.datetime) -> Iterable[Finding]:
    """A29. Without its rules, a broken site looks like a healthy one."""
    for run in RuleRun.objects.order_by("rule"):
        rule = RULES.get(run.rule)
        if rule is not None and rule.every is not None and run.ran_at < now - 2 * rule.every - GRACE:
            yield Finding(
                about=rule.title,
                detail=f"“{rule.title}” last ran {stamp(run.ran_at)}. The sweep is not running, or the rule fails. "
                "Check that worker and scheduler are running, and read the log.",
            )


def describe_stopped(alarms: Iterable[Alarm]) -> str:
    """Which programs don't respond according to these open alarms, as a short text; empty if all respond."""
    stopped = {alarm.about for alarm in alarms if alarm.rule == program_stopped.id}
    names = [NAMES[part].removeprefix("The ") for part in Component if part in stopped]
    verb = "is" if len(names) == 1 else "are"
    return f"{' and '.join(names).capitalize()} {verb} not responding" if names else ""


# Reasons outside the session for which earlier versions gave up a job.
OUTSIDE_REASONS = (
    Reason.TIMEOUT,
    Reason.NEEDS_ATTENTION,
    Reason.UNREADABLE,
    Reason.OVERLOADED,
    Reason.CONNECTION,
    Reason.RATE_LIMITED,
)
WAITING_STATES = (JobState.QUEUED, JobState.PARKED)
UNAPPLIED_AFTER = dt.timedelta(minutes=5)
WAITING_REASONS = {
    Reason.TIMEOUT: "no answer in time",
    Reason.NEEDS_ATTENTION: "an unexpected answer",
    Reason.UNREADABLE: "unreadable evidence",
}


def quarantined() -> QuerySet[JudgeJob]:
    """Jobs whose evidence crashed one process after the other. Included while they are retried each day."""
    return _parked().filter(reason=Reason.UNREADABLE)


def parked() -> QuerySet[JudgeJob]:
    """Jobs that failed repeatedly while others succeeded. Included while they are retried each day."""
    return _parked().exclude(reason=Reason.UNREADABLE)


def _parked() -> QuerySet[JudgeJob]:
    return JudgeJob.objects.open().filter(yours(), parked_at__isnull=False)


def held_back() -> QuerySet[JudgeJob]:
    """Jobs that wait although judge and quota are available, because their calls or evidence failed too often."""
    reasons = (Reason.NEEDS_ATTENTION, Reason.UNREADABLE, Reason.TIMEOUT)
    waiting = JudgeJob.objects.queued().filter(yours(), reason__in=reasons, parked_at=None)
    return waiting.filter(Q(attempts__gte=settings.JUDGE_MAX_ATTEMPTS) | Q(reason=Reason.UNREADABLE))


def given_up() -> QuerySet[JudgeJob]:
    """Jobs that earlier versions gave up for lack of an answer, of sessions without a verdict or a later job."""
    jobs = JudgeJob.objects.filter(
        yours(), state=JobState.ABANDONED, purpose=Purpose.VERDICT, reason__in=OUTSIDE_REASONS
    )
    later = JudgeJob.objects.filter(session=OuterRef("session"), purpose=Purpose.VERDICT, pk__gt=OuterRef("pk"))
    verdicts = Grade.objects.chain().verdicts().filter(session=OuterRef("session"))
    return jobs.exclude(Exists(later)).exclude(Exists(verdicts))


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledJobs:
    """How many jobs are stalled, by reason. All are open except the `given_up` ones."""

    held_back: int
    parked: int
    quarantined: int
    given_up: int

    @property
    def waiting(self) -> int:
        return self.held_back + self.parked + self.quarantined

    def __bool__(self) -> bool:
        return bool(self.waiting + self.given_up)


def count_stalled_jobs() -> StalledJobs:
    """The numbers of stalled jobs of the site's own sessions. Four queries."""
    return StalledJobs(
        held_back=held_back().count(),
        parked=parked().count(),
        quarantined=quarantined().count(),
        given_up=given_up().count(),
    )


def unapplied(now: dt.datetime) -> QuerySet[JudgeAttempt]:
    """Calls whose answer was stored some minutes ago but could not be applied."""
    answered = JudgeAttempt.objects.filter(answer__isnull=False, outcome=AttemptOutcome.RUNNING)
    return answered.filter(job__leased_until__lte=now - UNAPPLIED_AFTER)


@alarm_rule(
    id="A44",
    title="Verdicts are stuck",
    means=(
        "Opens while sessions wait for a verdict although judge and quota are available. Possible reasons: the "
        "evidence can’t be read, three processes crashed while reading it, the calls failed JUDGE_MAX_ATTEMPTS "
        "times (8 by default), an answer could not be saved, or an earlier version of gradingsite gave up on the "
        "session."
    ),
    todo=(
        "Fix the causes that the alarm names, then choose “Try … now” on the quota page. The sessions are also "
        "retried automatically."
    ),
    page="admin:quota",
    every=dt.timedelta(seconds=15),
)
def stalled_verdicts(now: dt.datetime) -> Iterable[Finding]:
    """A44. No job is given up for a fault of the site, so jobs that are stalled by one need an alarm."""
    jobs_held_back = list(held_back())
    jobs_parked = list(parked())
    jobs_given_up = list(given_up())
    jobs_quarantined = list(quarantined().select_related("session").order_by("pk"))
    counts = Counter(job.reason for job in jobs_held_back)
    reasons = [f"{n} × {WAITING_REASONS[Reason(reason)]}" for reason, n in counts.most_common()]
    names = _list_first([job.session.external_id for job in jobs_quarantined])
    other_counts = {
        "failed while others succeeded (parked: retried daily for a week, then with the button)": len(jobs_parked),
        f"crashed the evidence reader three times, and is retried daily ({names})": len(jobs_quarantined),
        "answered, but the answer can’t be saved (the log says why)": unapplied(now).count(),
        "given up by an earlier version (the quota page offers to judge it again)": len(jobs_given_up),
    }
    reasons += [f"{n} × {reason}" for reason, n in other_counts.items() if n]
    total = sum(counts.values()) + sum(other_counts.values())
    if reasons:
        jobs = [*jobs_held_back, *jobs_parked, *jobs_quarantined, *jobs_given_up]
        sessions = "1 session has" if total == 1 else f"{total:,} sessions have"
        yield Finding(
            detail=f"{sessions} no verdict, for reasons outside the session: {'; '.join(reasons)}. These rewards stay "
            "provisional. Nothing is lost.",
            sessions=tuple(dict.fromkeys(sorted(job.session_id for job in jobs))),
        )


@alarm_rule(
    id="A31",
    title="Review is overdue",
    means=(
        "Opens when a session flagged by a rule has been awaiting review for longer than REVIEW_WAITS_HOURS (48 "
        "hours by default)."
    ),
    todo=(
        "Open the review queue and grade from the top. The first sessions change the bandit most, and each takes "
        "about ten seconds."
    ),
    severity=Severity.ADVISORY,
    every=SOMETIMES,
    notify_externally=True,
    page="admin:review",
)
def review_waits(now: dt.datetime) -> Iterable[Finding]:
    """A31. Until somebody reviews a flagged session, the bandit learns from a reward that may be wrong."""
    late = Q(entered_as=QueueEntry.RULE, entered_at__lte=now - dt.timedelta(hours=settings.REVIEW_WAITS_HOURS))
    queue = (
        ReviewItem.objects.open()
        .filter(yours())
        .aggregate(late=Count("pk", filter=late), oldest=Min("entered_at", filter=late), n=Count("pk"))
    )
    if queue["late"]:
        wait = "session has" if queue["late"] == 1 else "sessions have"
        answers = ReviewAnswer.objects.filter(yours()).order_by("-created_at")
        last = answers.values_list("created_at", flat=True).first()
        reviewed = f"The last review was on {stamp(last)}." if last else "Nothing has been reviewed yet."
        yield Finding(
            detail=f"{queue['late']} {wait} been awaiting review for more than {settings.REVIEW_WAITS_HOURS:g} hours, "
            f"the oldest since {stamp(queue['oldest'])}. {queue['n']} are in the queue. {reviewed} Until "
            "somebody reviews them, their rewards stay as they are and the bandit learns from them."
        )


@alarm_rule(
    id="A32",
    title="A notice could not be delivered",
    means="Opens when the latest e-mail or webhook call failed after all retries. Closes when a notice is delivered.",
    todo=(
        "The notices page shows the channel’s answer. Correct the channel there and send a test. To change a "
        "channel from the environment, change the environment and restart."
    ),
    severity=Severity.ADVISORY,
    every=SOMETIMES,
    page="admin:notices",
)
def notices_fail(_now: dt.datetime) -> Iterable[Finding]:
    """A32. A notice that fails can't announce itself."""
    in_use = Q(to=None) | Q(to__state=ChannelState.ON)
    finished = Notice.objects.filter(in_use).exclude(state=NoticeState.QUEUED).order_by()
    last_of_channels = [row["last"] for row in finished.values("channel", "to").annotate(last=Max("pk"))]
    for notice in Notice.objects.filter(pk__in=last_of_channels, state=NoticeState.FAILED).select_related("to"):
        yield Finding(
            about=notice.channel if notice.to is None else f"{notice.channel} {notice.to.pk}",
            detail=f"“{notice.subject}” could not be delivered by {notice.by_words} in {notice.attempts} attempts: "
            f"{notice.last_error}",
        )


# The share of sessions that usually lack a field, and the p-value below which a larger share isn't due to chance.
USUAL_SHARE, LEVEL = 0.05, 0.001


def is_missing_too_often(missing: int, n: int) -> bool:
    """Whether the share `missing` / `n` of sessions is above USUAL_SHARE by more than chance.

    True, for example, for the first three sessions of all, 6 of 20, or 14 of 100.
    """
    if missing <= USUAL_SHARE * n:
        return False
    from scipy.special import betainc

    # The chance of at least `missing` of n is I(missing, n - missing + 1) at USUAL_SHARE (DLMF 8.17.5).
    return float(betainc(missing, n - missing + 1, USUAL_SHARE)) < LEVEL


FIELDS_WINDOW = dt.timedelta(days=7)


class ExpectedField(NamedTuple):
    """A field that each session should have: which sessions lack it, what follows from that, and what to do."""

    missing: Q
    effect: str
    todo: str


FIELDS = {
    "category": ExpectedField(
        Q(category=None),
        "the category bandit learns nothing from them",
        "Add a rule under Settings, Category rules, or have the runner send `category` with a name that the site knows",
    ),
    "harness": ExpectedField(
        Q(harness=None),
        "the harness bandit learns nothing from them, and changes of the harness go unnoticed",
        "Have the agent send `harness`, or a transcript that shows it",
    ),
    "model": ExpectedField(
        Q(model="", model_arm=None),
        "they can’t be used to compare models",
        "Have the agent send `model` if no transcript shows it",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFields:
    """Of `n` sessions of an agent and a harness (empty: unknown), how many lack each field, by its name (`missing`)."""

    agent: str
    harness: str
    n: int
    missing: Mapping[str, int]

    @property
    def whose(self) -> str:
        return f"{self.agent} with {self.harness}" if self.harness else self.agent


def _incomplete_sessions(about: str, now: dt.datetime) -> Sequence[int]:
    """The sessions behind an alarm of `incomplete`, whose subject is "AGENT: FIELD" or "AGENT with HARNESS: FIELD"."""
    whose, _, name = about.rpartition(": ")
    rows = [row for row in _count_missing_fields(now) if whose in (row.agent, row.whose)]
    if name not in FIELDS or not rows:
        return ()
    sessions = _expected_complete(now).filter(FIELDS[name].missing, agent__name=rows[0].agent)
    if whose != rows[0].agent:
        sessions = sessions.filter(harness__name=rows[0].harness)
    return list(sessions.order_by("ended_at", "pk").values_list("pk", flat=True))


@alarm_rule(
    id="A12",
    title="Sessions arrive without required fields",
    means=(
        f"Opens when more than {100 * USUAL_SHARE:.0f} % of an agent’s sessions in seven days (overall, or with one "
        "harness) lack a category, harness or model, by more than chance (p < .001). Examples: the first three of "
        "all, 6 of 20, or 14 of 100. Sessions ended by infrastructure don’t count."
    ),
    todo="Have the agent send the missing field.",
    severity=Severity.ADVISORY,
    every=dt.timedelta(hours=1),
    list_sessions=_incomplete_sessions,
)
def incomplete(now: dt.datetime) -> Iterable[Finding]:
    """If a harness stops sending a field, nothing fails, but there is less to learn from."""
    return find_missing_fields(_count_missing_fields(now))


def find_missing_fields(rows: Iterable[MissingFields]) -> Iterable[Finding]:
    """A finding for each field that is missing too often: in all sessions of an agent, or in those with one harness."""
    agents: dict[str, list[MissingFields]] = defaultdict(list)
    for row in rows:
        agents[row.agent].append(row)
    for agent, by_harness in sorted(agents.items()):
        missing = {name: sum(row.missing[name] for row in by_harness) for name in FIELDS}
        whole = MissingFields(agent=agent, harness="", n=sum(row.n for row in by_harness), missing=missing)
        for name, field in FIELDS.items():
            is_general = is_missing_too_often(whole.missing[name], whole.n)
            candidates = [whole] if is_general else [row for row in by_harness if row.harness]
            for row in candidates:
                if is_missing_too_often(row.missing[name], row.n):
                    yield Finding(
                        about=f"{row.whose}: {name}"[:300],
                        detail=f"{row.missing[name]} of {row.n} sessions of {row.whose} in seven days came without a "
                        f"{name}: {field.effect}. {field.todo}.",
                    )


def _expected_complete(now: dt.datetime) -> SessionQuerySet:
    """The window's sessions that should have every field."""
    sessions = Session.objects.yours().filter(ended_at__gt=now - FIELDS_WINDOW, ended_at__lte=now)
    return sessions.exclude(outcome__in=NO_REWARD).exclude(log__part_of__isnull=False).order_by()


def _count_missing_fields(now: dt.datetime) -> Iterable[MissingFields]:
    """How often each field is missing in the window's sessions, for each agent and harness. One query."""
    counts = {f"no_{name}": Count("pk", filter=field.missing) for name, field in FIELDS.items()}
    rows: Any = _expected_complete(now).values("agent__name", "harness__name").annotate(n=Count("pk"), **counts)
    for row in sorted(rows, key=lambda row: (row["agent__name"], row["harness__name"] or "")):
        missing = {name: row[f"no_{name}"] for name in FIELDS}
        yield MissingFields(agent=row["agent__name"], harness=row["harness__name"] or "", n=row["n"], missing=missing)
