"""Alarm rules about arms whose sessions leave nothing to grade."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef
from django.db.models.functions import Coalesce

from grading.days import midnight, start_of_day
from grading.models import Alarm, Flag, JudgeJob, Session
from grading.models.judging import Purpose
from grading.monitoring.rule import SOMETIMES, Finding, Rule, RuleOfSessions, Severity, stamp
from grading.monitoring.streaks import ObservedSession, SessionEnding, Streak, find
from grading.vocabulary import Outcome, Source

WINDOW_DAYS = 28
ALL_ARMS = "all arms"
# Rarer than this is not counted out.
RAREST = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceCase:
    """Sessions that a person should say something of: of one `arm`, or of ALL_ARMS; their keys, and why, in words."""

    arm: str
    sessions: tuple[int, ...]
    detail: str


class SilentFailure(RuleOfSessions):
    """A14. Where failures leave no trace and successes do, an arm looks good by what is missing."""

    id = "A14"
    title = "An arm’s sessions leave nothing to grade"
    means = (
        "Opens when one arm of the category bandit has a run of sessions that could not be graded, or that "
        "infrastructure ended, too long for chance given the other arms and its own past (p < .001 over all arms’ "
        f"sessions of {WINDOW_DAYS} days); or when infrastructure ends its sessions more often than the others’ "
        "(Fisher’s exact test, p < .001 for any arm). Sessions waiting for the judge don’t count. An outage that "
        "hits several arms at once is one alarm."
    )
    todo = (
        "Look at the sessions and decide: infrastructure (they stay without a reward), really bad (grade each), "
        "or pause the arm."
    )
    every = dt.timedelta(hours=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        return [Finding(about=case.arm, detail=case.detail, sessions=case.sessions) for case in cases(now)]


def cases(now: dt.datetime) -> list[SilenceCase]:
    """What holds at `now`, at most one case an arm: two queries. What has an open alarm holds a little longer."""
    rows = {key: (seen, ended_at) for seen, key, ended_at in _sessions(now)}
    opened = Alarm.objects.filter(rule=SilentFailure.id, resolved_at=None).values_list("about", flat=True)
    ended = {key: ended_at for key, (_, ended_at) in rows.items()}
    return cases_of([seen for seen, _ in rows.values()], ended, opened)


def cases_of(
    sessions: Sequence[ObservedSession], ended: Mapping[int, dt.datetime], opened: Iterable[str]
) -> list[SilenceCase]:
    """The cases in these sessions, in order of time, which ended then, by key; `opened`: what has an open alarm."""
    found = find(sessions, {None if about == ALL_ARMS else about for about in opened})
    words: dict[str, list[str]] = {}
    keys: dict[str, dict[int, None]] = {}
    for streak in found.streaks:
        words.setdefault(streak.arm or ALL_ARMS, []).append(_streak(streak, ended))
        keys.setdefault(streak.arm or ALL_ARMS, {}).update((each.key, None) for each in streak.sessions)
    for excess in found.excesses:
        words.setdefault(excess.arm, []).append(
            f"Infrastructure ended {len(excess.died)} of its {excess.n} sessions of {WINDOW_DAYS} days, and "
            f"{excess.others_died} of {excess.others} of the other arms: that happens by chance once in "
            f"{_rounded(round(1 / excess.p)):,} times."
        )
        keys.setdefault(excess.arm, {}).update((each.key, None) for each in excess.died)
    return [SilenceCase(arm=arm, sessions=tuple(keys[arm]), detail=" ".join(said)) for arm, said in words.items()]


def _sessions(now: dt.datetime) -> Iterable[tuple[ObservedSession, int, dt.datetime]]:
    """The settled sessions of the window, in order of time: of arms that are in use, and that nobody excluded."""
    since = midnight(start_of_day(now).date() - dt.timedelta(days=WINDOW_DAYS - 1))
    waiting = JudgeJob.objects.open().filter(purpose=Purpose.VERDICT, session=OuterRef("pk"))
    rows = (
        Session.objects.yours()
        .filter(ended_at__gte=since, ended_at__lte=now)
        .exclude(category=None)
        .annotate(
            arm=Coalesce("category__merged_into__name", "category__name"),
            is_out=Coalesce("category__merged_into__paused", "category__paused"),
            waits=Exists(waiting),
        )
        .filter(waits=False, is_out=False, settlement__isnull=False)
        .order_by("ended_at", "pk")
    )
    names = ("pk", "arm", "ended_at", "outcome", "reward_source", "reward_value")
    for key, arm, ended_at, outcome, source, value in rows.values_list(*names):
        if source == Source.FLOOR:
            ending = SessionEnding.UNSCORED
        elif value is not None:
            ending = SessionEnding.GRADED
        elif source == "" and outcome == Outcome.INFRASTRUCTURE:
            ending = SessionEnding.INFRASTRUCTURE
        else:  # a person excluded it, or the agent refused: somebody has said what it was
            continue
        yield ObservedSession(key=key, arm=arm, ending=ending), key, ended_at


def _streak(streak: Streak, ended: Mapping[int, dt.datetime]) -> str:
    n = len(streak.sessions)
    died = sum(each.ending is SessionEnding.INFRASTRUCTURE for each in streak.sessions)
    parts = [f"{n - died} could not be graded" * (n > died), f"{died} ended by infrastructure" * (died > 0)]
    first, last = (stamp(ended[streak.sessions[at].key]) for at in (0, -1))
    said = f"{n} sessions in a row from {first} to {last}: {' and '.join(filter(None, parts))}"
    often = round(1 / streak.chance)
    once = f"once in {_rounded(often):,} runs" if often < RAREST else "less than once in a billion runs"
    if streak.others is None:
        arms = Counter(each.arm for each in streak.sessions)
        said += f", of {len(arms)} arms (most of them of {arms.most_common(1)[0][0]})"
        return f"{said}. At the bandit's rate of {_percent(streak.usual)} before, that happens {once}."
    return (
        f"{said}. At the other arms' rate of {_percent(streak.others)}, {_percent(streak.usual)} with its own before, "
        f"that happens {once}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _rounded(often: int) -> int:
    """To two digits, as people say it."""
    return int(float(f"{often:.2g}"))


class UnheardArm(Rule):
    """A36. Sessions that leave nothing to grade by may be the arm's worst, and nobody has looked at any."""

    id = "A36"
    title = "Nobody has graded an arm’s silent sessions"
    means = (
        "Opens when five or more sessions of an arm left nothing to grade by in the last 28 days, and neither a judge "
        "nor a person has graded any such session of it in that time. Checked every night; each arm at most once in "
        "28 days, when five of these sessions are drawn at random and flagged. Verdicts requested within the last day "
        "are waited for."
    )
    todo = "Grade the five in the review queue: they stand for all the others."
    severity = Severity.ADVISORY
    every = SOMETIMES
    page = "admin:review"

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - a flag has no window
        arm = Coalesce("session__category__merged_into__name", "session__category__name")
        rows = Flag.objects.open().filter(rule=self.id).order_by().values(arm=arm).annotate(n=Count("pk"))
        for row in rows.order_by("arm"):
            waits = "session waits" if row["n"] == 1 else "sessions wait"
            yield Finding(
                about=row["arm"] or "",
                detail=f"{row['n']} {waits} for review, drawn at random to stand for all sessions of {row['arm']} that "
                f"left nothing to grade by. None of them had been graded. {self.todo}",
            )
