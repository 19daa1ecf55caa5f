"""Alarm rules about running the site: its programs, disk and stored sums, what waits, and what uploads lack."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet

from bandit.audit import audit, doubled
from grading import disk
from grading.health import periodic
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
    Session,
)
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.models.notices import ChannelState, NoticeState
from grading.models.review import QueueEntry
from grading.models.sessions import SessionQuerySet, yours
from grading.monitoring.rule import SOMETIMES, Finding, Severity, alarm_rule, stamp
from grading.reward import state
from grading.vocabulary import NO_REWARD, Reason

# How many of the things that a rule found are named.
MAX_LISTED = 5


@alarm_rule(
    id="A33",
    title="Stored sums differ from the ledger",
    means=(
        "Opens when the nightly audit finds that a bucket of rewards isn’t exactly the sum of its ledger entries, that "
        "a session has rewarded two arms of a bandit that chooses one, or that what lists and counts show of a session "
        "disagrees with its rewards, verdicts and flags. It checks all buckets, every session that changed within two "
        "days and one in a hundred of the rest."
    ),
    todo=(
        "Find out what wrote to the database (a restored copy, a script, a manual edit), then run "
        "`manage.py rebuild --repair`: it rebuilds buckets and lists from the ledger and leaves each session its "
        "latest reward."
    ),
    every=dt.timedelta(days=1),
    nightly=True,
)
def sums_differ(now: dt.datetime) -> Iterable[Finding]:
    """A33. Buckets are the ledger's sums, and lists what was settled; whatever else wrote to them is wrong."""
    differences: Mapping[str, Sequence[object]] = {
        "Buckets that differ from the ledger": audit(),
        "Sessions that count more than once": doubled(),
        "Sessions that lists show wrongly": state.audit(now),
    }
    for words, wrong in differences.items():
        if wrong:
            yield Finding(about=words, detail=f"{words}: {len(wrong):,}. {_first(wrong)}.")


def _first(differences: Sequence[object]) -> str:
    """The first differences, and how many others there are."""
    more = len(differences) - MAX_LISTED
    return "; ".join([*map(str, differences[:MAX_LISTED]), *([f"and {more:,} more"] if more > 0 else [])])


def _sessions_with_damage(_about: str, _now: dt.datetime) -> Sequence[int]:
    damaged = list(BlobProblem.objects.damaged().values_list("pk", flat=True))
    rows = Evidence.objects.filter(sha256__in=damaged).order_by("session__ended_at", "session")
    return list(dict.fromkeys(rows.values_list("session", flat=True)))


@alarm_rule(
    id="A48",
    title="Stored evidence is damaged",
    means=(
        "Opens when stored bytes are missing or differ from what was stored. Every night a thirtieth of all "
        "evidence is read in full. Closes when the bytes are back."
    ),
    todo=(
        "Check the disk and restore the evidence folder from a backup, or send those sessions again: identical "
        "bytes replace the damaged ones."
    ),
    every=dt.timedelta(minutes=1),
    list_sessions=_sessions_with_damage,
)
def damaged_evidence(_now: dt.datetime) -> Iterable[Finding]:
    """A48. A grade can be derived again only from what it was derived from."""
    blobs = list(BlobProblem.objects.damaged().order_by("since", "pk"))
    if blobs:
        listed = _first([f"{blob.pk[:12]}… ({blob.what})" for blob in blobs])
        files = "1 stored file is" if len(blobs) == 1 else f"{len(blobs)} stored files are"
        yield Finding(
            detail=f"{files} damaged, found {stamp(blobs[0].since)}: {listed}. Grades based on them "
            "stay as they are, but can’t be derived again."
        )


MIB = 2**20


@alarm_rule(
    id="A43",
    title="The disk is nearly full; no sessions are accepted",
    means=(
        "Opens while less space is free for the state folder than FREE_SPACE_FLOOR (1 GiB, or 5 % of the disk if "
        "that is less). Sessions are then refused with an explanation; hooks keep them and send them later."
    ),
    todo="Free some space, or move the state folder to a larger disk. Sessions are accepted again automatically.",
    every=dt.timedelta(minutes=1),
)
def no_room_left(_now: dt.datetime) -> Iterable[Finding]:
    """A43. A full disk stops intake, judging and people alike, and sometimes what would have told of it."""
    if disk.is_short():
        yield Finding(
            detail=f"{disk.free() // MIB:,} MiB are free for the state folder; {disk.floor() // MIB:,} MiB are "
            "reserved for what is already stored. No sessions are accepted until there is more space. Nothing is "
            "lost: hooks keep what they can’t send."
        )


NOTHING_LOST = "Nothing is lost: sessions are still accepted, and the work waits in the database."
EFFECTS: Mapping[Component, str] = {
    Component.WEB: "Pages and the API don’t answer; hooks keep what they can’t send.",
    Component.WORKER: f"No verdicts are requested, no alarms checked, no rewards updated. {NOTHING_LOST}",
    Component.SCHEDULER: f"Scheduled jobs don’t run: lost work is not found again. {NOTHING_LOST}",
    Component.BROKER: f"Workers aren’t told what is due, so no verdicts are requested. {NOTHING_LOST}",
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
        "Opens when the web server, the worker, the scheduler or the broker has sent no heartbeat for 20 seconds, "
        "measured by whoever is watching, once it has watched for a minute without a gap."
    ),
    todo="Check that it is running (manage.py up restarts it when it fails), and what the log says about it.",
    every=dt.timedelta(minutes=1),
    is_attended=True,
)
def program_stopped(_now: dt.datetime) -> Iterable[Finding]:
    """A46. A worker that does nothing looks like one that has nothing to do. See `find_silent`."""
    return ()


def find_silent(silent: Iterable[Component]) -> Iterable[Finding]:
    """A finding for each of these programs, which send no heartbeats."""
    last_beats = dict(Heartbeat.objects.values_list("name", "beat_at"))
    for part in silent:
        beat_at = last_beats.get(part)
        since = "and has not been seen yet" if beat_at is None else f"since {stamp(beat_at)}"
        yield Finding(about=part, detail=f"{NAMES[part]} stands still {since}. {EFFECTS[part]}")


@alarm_rule(
    id="A47",
    title="A scheduled job is overdue",
    means=(
        "Opens when a job hasn’t finished successfully for three of its intervals plus a minute (26 hours for "
        "nightly jobs); not in the first minute after a start or after the machine was suspended."
    ),
    todo="Look for the job’s name in the worker’s log: it is failing, or the worker is busy with something else.",
    every=dt.timedelta(minutes=1),
    is_attended=True,
)
def missed_turns(now: dt.datetime) -> Iterable[Finding]:
    """A47. Programs that run, and a job that is not done."""
    for job in periodic.missed(now):
        why = f" Its last run failed: {job.error}" if job.error else ""
        yield Finding(about=job.name, detail=f"“{job.name}” last succeeded {stamp(job.since)}.{why}")


def standing_still(alarms: Iterable[Alarm]) -> str:
    """Which programs open alarms say stand still, in a few words; empty where none does."""
    about = {alarm.about for alarm in alarms if alarm.rule == program_stopped.id}
    names = [NAMES[part].removeprefix("The ") for part in Component if part in about]
    return f"{' and '.join(names).capitalize()} stand{'s' * (len(names) == 1)} still" if names else ""


# Earlier versions ended a job for these, though they say nothing of its session.
OURS = (
    Reason.TIMEOUT,
    Reason.NEEDS_ATTENTION,
    Reason.UNREADABLE,
    Reason.OVERLOADED,
    Reason.CONNECTION,
    Reason.RATE_LIMITED,
)
WAITING = (JobState.QUEUED, JobState.PARKED)
LATE = dt.timedelta(minutes=5)
WHY = {
    Reason.TIMEOUT: "no answer in time",
    Reason.NEEDS_ATTENTION: "an unexpected answer",
    Reason.UNREADABLE: "unreadable evidence",
}


def quarantined() -> QuerySet[JudgeJob]:
    """Jobs over whose evidence one process after the other was lost; also while they have their daily try."""
    return _parked().filter(reason=Reason.UNREADABLE)


def parked() -> QuerySet[JudgeJob]:
    """Jobs that failed again and again while others did not; also while they have their daily try."""
    return _parked().exclude(reason=Reason.UNREADABLE)


def _parked() -> QuerySet[JudgeJob]:
    return JudgeJob.objects.open().filter(yours(), parked_at__isnull=False)


def held_back() -> QuerySet[JudgeJob]:
    """Jobs that wait, though judge and quota would have them, because what failed so often is ours."""
    reasons = (Reason.NEEDS_ATTENTION, Reason.UNREADABLE, Reason.TIMEOUT)
    waiting = JudgeJob.objects.queued().filter(yours(), reason__in=reasons, parked_at=None)
    return waiting.filter(Q(attempts__gte=settings.JUDGE_MAX_ATTEMPTS) | Q(reason=Reason.UNREADABLE))


def given_up() -> QuerySet[JudgeJob]:
    """Of sessions without a verdict and without an open job, the jobs that earlier versions ended for want of an
    answer.
    """
    jobs = JudgeJob.objects.filter(yours(), state=JobState.ABANDONED, purpose=Purpose.VERDICT, reason__in=OURS)
    later = JudgeJob.objects.filter(session=OuterRef("session"), purpose=Purpose.VERDICT, pk__gt=OuterRef("pk"))
    verdicts = Grade.objects.chain().verdicts().filter(session=OuterRef("session"))
    return jobs.exclude(Exists(later)).exclude(Exists(verdicts))


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledJobs:
    """How many jobs stand still, by why; `given_up` are those that have no job any more."""

    held_back: int
    parked: int
    quarantined: int
    given_up: int

    @property
    def waiting(self) -> int:
        return self.held_back + self.parked + self.quarantined

    def __bool__(self) -> bool:
        return bool(self.waiting + self.given_up)


def counted() -> StalledJobs:
    """Four queries."""
    return StalledJobs(
        held_back=held_back().count(),
        parked=parked().count(),
        quarantined=quarantined().count(),
        given_up=given_up().count(),
    )


def unapplied(now: dt.datetime) -> QuerySet[JudgeAttempt]:
    """Answers that are on record for some minutes and of which nothing could be made."""
    answered = JudgeAttempt.objects.filter(answer__isnull=False, outcome=AttemptOutcome.RUNNING)
    return answered.filter(job__leased_until__lte=now - LATE)


@alarm_rule(
    id="A44",
    title="Verdicts are stuck",
    means=(
        "Opens while sessions wait for a verdict although judge and quota are available: their evidence can’t be "
        "read, three processes died reading it, their calls failed JUDGE_MAX_ATTEMPTS times (8 by default), or an "
        "answer could not be saved; or an earlier version gave up on them for such a reason. One alarm, with their "
        "number."
    ),
    todo="Fix what it names, then choose “Try them now” on the quota page. They are also retried automatically.",
    page="admin:quota",
    every=dt.timedelta(seconds=15),
    finds_sessions=True,
)
def stalled_verdicts(now: dt.datetime) -> Iterable[Finding]:
    """A44. Nothing is given up because of us; so what stands still because of us must be seen."""
    waiting, failed, lost = list(held_back()), list(parked()), list(given_up())
    crashing = list(quarantined().select_related("session").order_by("pk"))
    counts = Counter(job.reason for job in waiting)
    reasons = [f"{n} × {WHY[Reason(reason)]}" for reason, n in counts.most_common()]
    names = _first([job.session.external_id for job in crashing])
    others = {
        "failed while others succeeded (parked: retried daily for a week, then with the button)": len(failed),
        f"crashed whoever read its evidence three times, and is retried daily ({names})": len(crashing),
        "answered, but the answer can’t be saved (the log says why)": unapplied(now).count(),
        "given up on by an earlier version (the quota page offers to ask again)": len(lost),
    }
    reasons += [f"{n} × {words}" for words, n in others.items() if n]
    total = sum(counts.values()) + sum(others.values())
    if reasons:
        jobs = [*waiting, *failed, *crashing, *lost]
        sessions = "1 session has" if total == 1 else f"{total:,} sessions have"
        yield Finding(
            detail=f"{sessions} no verdict, for reasons outside the session: {'; '.join(reasons)}. Their rewards "
            "stay provisional; nothing is lost.",
            sessions=tuple(dict.fromkeys(sorted(job.session_id for job in jobs))),
        )


@alarm_rule(
    id="A31",
    title="Review is overdue",
    means=(
        "Opens when a session flagged by a rule has been awaiting review for longer than REVIEW_WAITS_HOURS (48 "
        "hours by default)."
    ),
    todo="Open the review queue. The first sessions move the bandit most, and each takes about ten seconds.",
    severity=Severity.ADVISORY,
    every=SOMETIMES,
    notify_externally=True,
    page="admin:review",
)
def review_waits(now: dt.datetime) -> Iterable[Finding]:
    """A31. What a rule put up and nobody looks at is a wrong reward that the bandit goes on learning from."""
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
            detail=f"{queue['late']} {wait} been awaiting review for more than "
            f"{settings.REVIEW_WAITS_HOURS:g} hours, since {stamp(queue['oldest'])}; {queue['n']} are queued. "
            f"{reviewed} Until somebody looks, their rewards stay as they are and the bandit learns from them."
        )


@alarm_rule(
    id="A32",
    title="A notice could not be delivered",
    means="Opens when the latest e-mail or webhook call was given up; closes when one gets through.",
    todo=(
        "Mend the channel on the notices page, which shows what it answered, and send a test. One from the environment "
        "is changed there, with a restart."
    ),
    severity=Severity.ADVISORY,
    every=SOMETIMES,
    page="admin:notices",
)
def notices_fail(_now: dt.datetime) -> Iterable[Finding]:
    """A32. Who is told that nobody can be told?"""
    in_use = Q(to=None) | Q(to__state=ChannelState.ON)
    done = Notice.objects.filter(in_use).exclude(state=NoticeState.QUEUED).order_by()
    last = [row["last"] for row in done.values("channel", "to").annotate(last=Max("pk"))]
    for notice in Notice.objects.filter(pk__in=last, state=NoticeState.FAILED).select_related("to"):
        yield Finding(
            about=notice.channel if notice.to is None else f"{notice.channel} {notice.to.pk}",
            detail=f"“{notice.subject}” did not arrive by {notice.by_words}, and was given up after "
            f"{notice.attempts} attempts: {notice.last_error}",
        )


USUAL = 0.05
LEVEL = 0.001


def is_missing_too_often(missing: int, n: int) -> bool:
    """Whether a field that is missing in `missing` of `n` sessions is so in more than USUAL of them, beyond chance.

    So it is where it is missing in the first three of all, in six of twenty, in fourteen of a hundred.
    """
    if missing <= USUAL * n:
        return False
    from scipy.special import betainc

    # The chance of at least `missing` of n is I(missing, n - missing + 1) at USUAL (DLMF 8.17.5).
    return float(betainc(missing, n - missing + 1, USUAL)) < LEVEL


FIELDS_WINDOW = dt.timedelta(days=7)
# Each field: when it is missing, what follows, and what to do about it.
FIELDS = {
    "category": (
        Q(category=None),
        "the category bandit learns nothing from them",
        "Add a rule under Settings, Categories; or have the runner send `category`, under a name the site knows",
    ),
    "harness": (
        Q(harness=None),
        "the harness bandit learns nothing from them, and a change in the harness can’t be seen",
        "Have the agent send `harness`, or a transcript that shows it",
    ),
    "model": (
        Q(model="", model_arm=None),
        "they can’t be used to compare models",
        "Have the agent send `model` wherever no transcript shows it",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """How many of `n` sessions of an agent and a harness (empty: unknown) lack each field, by its name."""

    agent: str
    harness: str
    n: int
    missing: Mapping[str, int]


def incomplete_sessions(about: str, now: dt.datetime) -> Sequence[int]:
    whose, _, name = about.rpartition(": ")
    rows = [row for row in _lacking(now) if whose in (row.agent, _whose(row))]
    if name not in FIELDS or not rows:
        return ()
    missing = _counted(now).filter(FIELDS[name][0], agent__name=rows[0].agent)
    if whose != rows[0].agent:
        missing = missing.filter(harness__name=rows[0].harness)
    return list(missing.order_by("ended_at", "pk").values_list("pk", flat=True))


@alarm_rule(
    id="A12",
    title="Sessions arrive without required fields",
    means=(
        f"Opens when more than {100 * USUAL:.0f} % of an agent’s sessions in seven days (overall, or with one "
        "harness) lack a category, harness or model, beyond chance (p < .001): for example the first three of "
        "all, 6 of 20, or 14 of 100. Sessions ended by infrastructure don’t count."
    ),
    todo="Have the agent send the field.",
    severity=Severity.ADVISORY,
    every=dt.timedelta(hours=1),
    list_sessions=incomplete_sessions,
)
def incomplete(now: dt.datetime) -> Iterable[Finding]:
    """A field that one harness stops sending would go unnoticed: nothing fails, there is only less to learn from."""
    return find_lacking(_lacking(now))


def find_lacking(rows: Iterable[Lacking]) -> Iterable[Finding]:
    """What is missing too often: of an agent in all, or else of its sessions with one harness."""
    agents: dict[str, list[Lacking]] = defaultdict(list)
    for row in rows:
        agents[row.agent].append(row)
    for agent, some in sorted(agents.items()):
        missing = {name: sum(row.missing[name] for row in some) for name in FIELDS}
        whole = Lacking(agent=agent, harness="", n=sum(row.n for row in some), missing=missing)
        for name in FIELDS:
            if is_missing_too_often(whole.missing[name], whole.n):
                yield _finding(whole, name)
            else:
                named = (row for row in some if row.harness)
                yield from (_finding(row, name) for row in named if is_missing_too_often(row.missing[name], row.n))


def _finding(row: Lacking, name: str) -> Finding:
    _missing, effect, todo = FIELDS[name]
    whose = _whose(row)
    return Finding(
        about=f"{whose}: {name}"[:300],
        detail=f"{row.missing[name]} of {row.n} sessions of {whose} in seven days came without a {name}: {effect}. "
        f"{todo}.",
    )


def _whose(row: Lacking) -> str:
    return f"{row.agent} with {row.harness}" if row.harness else row.agent


def _counted(now: dt.datetime) -> SessionQuerySet:
    """The window's sessions that count."""
    sessions = Session.objects.yours().filter(ended_at__gt=now - FIELDS_WINDOW, ended_at__lte=now)
    return sessions.exclude(outcome__in=NO_REWARD).exclude(log__part_of__isnull=False).order_by()


def _lacking(now: dt.datetime) -> Iterable[Lacking]:
    """Of the window's sessions: one query."""
    counts = {f"no_{name}": Count("pk", filter=missing) for name, (missing, _effect, _todo) in FIELDS.items()}
    rows: Iterable[Any] = _counted(now).values("agent__name", "harness__name").annotate(n=Count("pk"), **counts)
    for row in sorted(rows, key=lambda each: (each["agent__name"], each["harness__name"] or "")):
        missing = {name: row[f"no_{name}"] for name in FIELDS}
        harness = row["harness__name"] or ""
        yield Lacking(agent=row["agent__name"], harness=harness, n=row["n"], missing=missing)
