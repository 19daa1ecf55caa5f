"""Alarm rules about arms: nothing to grade in their sessions, an agent that tilts them, too few rewards."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from operator import attrgetter

from django.db.models import Count, Exists, OuterRef
from django.db.models.functions import Coalesce

from bandit.eligibility import DRAWN, is_on_probation
from bandit.models import Bandit, BanditKind, Selection
from bandit.reading import effective_policy, outlook, site_day
from bandit.selection import OPEN_FOR
from grading.days import midnight, start_of_day
from grading.models import Alarm, Flag, JudgeJob, Session
from grading.models.judging import Purpose
from grading.monitoring.apart import (
    LEVEL,
    MIN_AGENTS,
    MIN_OTHERS_REWARDS,
    MIN_OWN_REWARDS,
    SKILL,
    Outlier,
    find_outliers,
)
from grading.monitoring.picking import ONE_IN, DrawnDecision, find_picking
from grading.monitoring.rule import SOMETIMES, Finding, Severity, alarm_rule, stamp
from grading.monitoring.streaks import ObservedSession, SessionEnding, Streak, find_streaks
from grading.plain import counted
from grading.reward.calibrating import UNJUDGED
from grading.reward.rewards import credited_days
from grading.vocabulary import Outcome, Source

WINDOW_DAYS = 28
ALL_ARMS = "all arms"
# From this many cases on, a text says "less than once in a billion".
RAREST = 1_000_000_000


@alarm_rule(
    id="A14",
    title="An arm’s sessions leave nothing to grade",
    means=(
        "Opens when too many sessions in a row of one category could not be graded or were ended by infrastructure. "
        "“Too many” means more than chance explains, given the other arms and the arm’s own past (p < .001 over all "
        f"arms’ sessions of {WINDOW_DAYS} days). Also opens when infrastructure ends an arm’s sessions more often "
        "than those of other arms (Fisher’s exact test, p < .001 for any arm). Sessions waiting for the judge don’t "
        "count. An outage that hits several arms at once is one alarm."
    ),
    todo=(
        "Look at the sessions and decide. If infrastructure was the cause, they stay without a reward. If the work "
        "really was bad, grade each of these sessions. You can also pause the arm."
    ),
    every=dt.timedelta(hours=1),
)
def silent_failure(now: dt.datetime) -> Iterable[Finding]:
    """A14. If failures leave no trace and successes do, an arm looks better than it is."""
    rows = list(_observed_sessions(now))
    ended_at = {session.key: moment for session, moment in rows}
    open_alarms = Alarm.objects.filter(rule=silent_failure.id, resolved_at=None).values_list("about", flat=True)
    return find_silence([session for session, _ended_at in rows], ended_at, open_alarms)


def find_silence(
    sessions: Sequence[ObservedSession], ended_at: Mapping[int, dt.datetime], open_alarms: Iterable[str]
) -> list[Finding]:
    """A finding for each arm with too many sessions without a grade, and one for ALL_ARMS.

    `sessions` are in order of time, `ended_at` is by session key. `open_alarms` are the subjects of the open alarms:
    for these, a finding needs less evidence, so that an alarm doesn't come and go.
    """
    report = find_streaks(sessions, {None if about == ALL_ARMS else about for about in open_alarms})
    sentences: dict[str, list[str]] = defaultdict(list)  # by arm
    keys: dict[str, list[int]] = defaultdict(list)  # of sessions, by arm; a session may occur twice
    for streak in report.streaks:
        about = streak.arm or ALL_ARMS
        sentences[about].append(_describe_streak(streak, ended_at))
        keys[about] += [session.key for session in streak.sessions]
    for excess in report.excesses:
        sentences[excess.arm].append(
            f"In {WINDOW_DAYS} days, infrastructure ended {len(excess.died)} of this arm’s {excess.n} sessions and "
            f"{excess.others_died} of the other arms’ {excess.others}. By chance, that happens "
            f"{_how_often(excess.p, 'times')}."
        )
        keys[excess.arm] += [session.key for session in excess.died]
    return [
        Finding(about=arm, detail=" ".join(of_arm), sessions=tuple(dict.fromkeys(keys[arm])))
        for arm, of_arm in sentences.items()
    ]


def _observed_sessions(now: dt.datetime) -> Iterable[tuple[ObservedSession, dt.datetime]]:
    """The window's settled sessions of arms in use, each with the time at which it ended, in that order.

    Sessions that a person excluded are left out.
    """
    since = midnight(start_of_day(now).date() - dt.timedelta(days=WINDOW_DAYS - 1))
    waiting = JudgeJob.objects.open().filter(purpose=Purpose.VERDICT, session=OuterRef("pk"))
    rows = (
        Session.objects.yours()
        .filter(ended_at__gte=since, ended_at__lte=now)
        .exclude(category=None)
        .annotate(
            arm=Coalesce("category__merged_into__name", "category__name"),
            is_paused=Coalesce("category__merged_into__paused", "category__paused"),
            waits=Exists(waiting),
        )
        .filter(waits=False, is_paused=False, settlement__isnull=False)
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
        else:  # a person excluded it, or the agent refused: it is known what happened
            continue
        yield ObservedSession(key=key, arm=arm, ending=ending), ended_at


def _describe_streak(streak: Streak, ended_at: Mapping[int, dt.datetime]) -> str:
    """Two sentences: how long the run of sessions was, and how rare such a run is."""
    n = len(streak.sessions)
    died = sum(session.ending is SessionEnding.INFRASTRUCTURE for session in streak.sessions)
    endings = []
    if n > died:
        endings.append(f"{n - died} could not be graded")
    if died:
        endings.append(f"{died} ended by infrastructure")
    first, last = stamp(ended_at[streak.sessions[0].key]), stamp(ended_at[streak.sessions[-1].key])
    text = f"{n} sessions in a row from {first} to {last}: {' and '.join(endings)}"
    once = _how_often(streak.chance, "runs")
    if streak.others is None:
        arms = Counter(session.arm for session in streak.sessions)
        ((most_common_arm, _count),) = arms.most_common(1)
        text += f", of {len(arms)} arms (most of them of {most_common_arm})"
        return f"{text}. At the bandit’s usual rate of {_percent(streak.usual)}, that happens {once}."
    return (
        f"{text}. The other arms’ rate is {_percent(streak.others)}, or {_percent(streak.usual)} with this arm’s "
        f"own past. At that rate, such a run happens {once}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _how_often(probability: float, cases: str) -> str:
    """How often something of this probability happens, such as "once in 1,200 runs". `cases` is the plural noun.

    The probability may be 0.
    """
    if probability * RAREST <= 1:
        return f"less than once in a billion {cases}"
    two_digits = int(float(f"{round(1 / probability):.2g}"))
    return f"once in {two_digits:,} {cases}"


@alarm_rule(
    id="A36",
    title="Nobody has graded an arm’s silent sessions",
    means=(
        "Opens when five or more sessions of an arm left nothing to grade in the last 28 days, and neither a judge "
        "nor a person has graded any of them. The rule runs every night, for each arm at most once in 28 days. It "
        "draws five of these sessions at random and flags them. It ignores sessions whose verdict was requested "
        "within the last day."
    ),
    todo="Grade these five sessions in the review queue. They represent all the others.",
    severity=Severity.ADVISORY,
    every=SOMETIMES,
    page="admin:review",
)
def unheard_arm(_now: dt.datetime) -> Iterable[Finding]:
    """A36. Sessions without a grade may be the arm's worst, and nobody has looked at any of them."""
    arm = Coalesce("session__category__merged_into__name", "session__category__name")
    rows = Flag.objects.open().filter(rule=unheard_arm.id).order_by().values(arm=arm).annotate(n=Count("pk"))
    for row in rows.order_by("arm"):
        waits = "session waits" if row["n"] == 1 else "sessions wait"
        yield Finding(
            about=row["arm"] or "",
            detail=f"{row['n']} {waits} for review, drawn at random to represent all sessions of {row['arm']} that "
            "left nothing to grade. None of these had been graded.",
        )


BANDIT = "category"
MACHINES = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)
# An agent is reported if it changes an arm's share of the next hundred decisions by at least this many.
MIN_LIFT = 1


@alarm_rule(
    id="A41",
    title="One agent’s rewards for an arm differ from everyone else’s",
    means=(
        "Opens when one agent’s machine-graded rewards change a category’s share of the next 100 decisions by "
        f"{MIN_LIFT} or more, and differ from other agents’ rewards there by more than chance (t test over one "
        f"half-life of the bandit’s policy, p < {LEVEL:g} over all comparisons). The agent needs {MIN_OWN_REWARDS} "
        f"sessions there, the others {MIN_OTHERS_REWARDS}. The test allows for good and bad days, and for skill, which "
        f"usually differs by up to {2 * SKILL:g}. An agent is compared with agents that began before it. Of two "
        "agents, the alarm names the one with the higher rewards."
    ),
    todo=(
        "Compare a few of this agent’s sessions with another agent’s. Is the work really different, or only what "
        "the agent says about it? An operator can change the cap on agents and the agent’s tokens."
    ),
    every=dt.timedelta(hours=1),
)
def lone_agent(now: dt.datetime) -> Iterable[Finding]:
    """An agent can have an arm chosen more or less often just by how its own sessions look."""
    today = site_day(now)
    effective = effective_policy(Bandit.objects.named(BANDIT))
    rows = effective.rows(today)
    policy = effective.policy_on(today)
    half_life_ago = dt.date.fromordinal(max(1, today.toordinal() - ceil(policy.half_life)))
    by_machine = rows.mask(lambda kind: kind.source in MACHINES)
    agents = rows.map_kinds(attrgetter("agent"), object)
    recent = rows.select(by_machine & (rows.day > half_life_ago.toordinal()))
    if len({kind.agent for kind in recent.kinds} - {""}) < MIN_AGENTS:
        return  # before SciPy is loaded for the posterior
    reading, current = effective.outlook(today)
    changes = reading.posterior.changes
    for outlier in find_outliers(recent, 0.0 if changes is None else changes.day_variance):
        rows_without_agent = rows.select(~(by_machine & (agents == outlier.agent)))
        without_agent = outlook(effective.bandit, policy, rows_without_agent, today)
        share = current.share_of_next_100(outlier.arm)
        share_without = without_agent.share_of_next_100(outlier.arm)
        lift = share - share_without
        is_in_same_direction = (lift > 0) == (outlier.mean > outlier.others_mean)
        if abs(lift) >= MIN_LIFT and is_in_same_direction:
            days = (today - half_life_ago).days
            yield Finding(
                about=f"{outlier.agent}: {outlier.arm}",
                detail=f"In {days} days, {outlier.n} sessions of {outlier.agent} in {outlier.arm} averaged "
                f"{outlier.mean:.2f}, and {outlier.others} of other agents {outlier.others_mean:.2f}. "
                f"{outlier.arm} gets {share:.0f} of the next 100 decisions. Without this agent’s rewards, it "
                f"would get {share_without:.0f}.",
                sessions=_sessions_of(outlier, half_life_ago, now),
            )


def _sessions_of(outlier: Outlier, after: dt.date, now: dt.datetime) -> tuple[int, ...]:
    """The keys of the machine-graded sessions of the outlier's agent and arm that are credited to a day later than
    `after`, in order of time. Three queries.
    """
    # A session is credited to the day on which the site received it, or to an earlier day.
    earliest = now - (site_day(now) - after) - dt.timedelta(days=1)
    rows = (
        Session.objects.yours()
        .filter(agent__name=outlier.agent, received_at__gt=earliest)
        .annotate(arm=Coalesce("category__merged_into__name", "category__name"))
        .filter(arm=outlier.arm, reward_source__in=MACHINES, reward_value__isnull=False)
        .order_by("ended_at", "pk")
        .only("ended_at", "received_at")
    )
    sessions = list(rows)
    days = credited_days(sessions)
    return tuple(session.pk for session in sessions if days[session.pk] > after)


WINDOW = dt.timedelta(days=28)
# How many of the latest decisions are read.
MAX_DECISIONS = 5000


@alarm_rule(
    id="A13",
    title="An agent uses some of its decisions and drops others",
    means=(
        "Opens when an agent seems to choose which decisions to use. The rule looks at decisions of the last "
        f"{WINDOW.days} days that were not used within {OPEN_FOR // dt.timedelta(hours=1)} hours, and checks "
        "whether they are a random mix of arms. If agents drop decisions regardless of the arm, the probability of "
        f"a false alarm in this time is at most 1 in {ONE_IN:,}, however often the rule runs. Arms that a caller "
        "insisted on don’t count."
    ),
    todo=(
        "Check whether that arm’s sessions fail before they are sent. If they don’t, the agent drops decisions that "
        "it doesn’t like. The bandit’s page lists its decisions."
    ),
    every=dt.timedelta(hours=1),
)
def unused_decisions(now: dt.datetime) -> Iterable[Finding]:
    """An agent that drops decisions it doesn't like, or whose sessions of an arm fail unseen, chooses instead of the
    bandit.
    """
    decisions_by_agent = _drawn_decisions(now)
    for (bandit, agent), decisions in sorted(decisions_by_agent.items()):
        bet = find_picking(decisions)
        if bet is None or bet.money < ONE_IN * len(decisions_by_agent):
            continue
        dropped = sum(not decision.used for decision in decisions)
        fate = "led to a session" if bet.is_of_used else "were dropped"
        yield Finding(
            about=f"{agent}: {bandit}",
            detail=f"{agent} requested {len(decisions)} decisions from the bandit {bandit} in {WINDOW.days} days and "
            f"did not use {dropped} of them. Of the {bet.n} that {fate}, {bet.count} were for {bet.arm}, but "
            f"{bet.expected:.1f} are expected. Either sessions of some arms fail before they are sent, or the "
            "agent uses only the decisions that it likes.",
        )


def _drawn_decisions(now: dt.datetime) -> dict[tuple[str, str], list[DrawnDecision]]:
    """The latest drawn decisions of the window by (bandit, agent), without decisions younger than OPEN_FOR."""
    # Young decisions are left out even if they have been used: otherwise agents would seem to like arms with short
    # sessions.
    rows = Selection.objects.filter(
        DRAWN, bandit__kind=BanditKind.CHOICE, created__gt=now - WINDOW, created__lte=now - OPEN_FOR
    )
    columns = (
        rows.exclude(agent="")
        .order_by("-created", "-pk")
        .values_list("bandit__name", "agent", "arm__name", "eligible", "completed_at")
    )
    by_agent: dict[tuple[str, str], list[DrawnDecision]] = defaultdict(list)
    for bandit, agent, arm, eligible, completed_at in columns[:MAX_DECISIONS].iterator():
        # `eligible` maps an arm that could not be drawn to the reason, not to a probability.
        odds = {name: odd for name, odd in eligible.items() if not isinstance(odd, str)}
        by_agent[bandit, agent].append(DrawnDecision(arm=arm, odds=odds, used=completed_at is not None))
    return by_agent


# Starved: less than this share of the leader's rewards, if the leader has enough, and too few to be known to be worse.
MIN_SHARE_OF_LEADER, MIN_LEADER_REWARDS, MAX_STARVED_REWARDS = 0.05, 100, 12
# Drained: fewer pseudo-observations than MIN_EVIDENCE from MIN_REWARDS rewards or more.
MIN_EVIDENCE, MIN_REWARDS = 5.0, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRecord:
    """An arm that can be chosen and is not on probation, with its number of `rewards`.

    `graded` of the rewards come from a judge, a person or artifacts. They now count as `evidence` pseudo-observations.
    """

    name: str
    rewards: int
    graded: int
    evidence: float


def _arm_records(now: dt.datetime) -> Iterator[tuple[Bandit, Mapping[str, int], list[ArmRecord]]]:
    """Each bandit that chooses, with the number of rewards of each of its arms, and its arms that can be chosen."""
    for bandit in Bandit.objects.that_learn().filter(kind=BanditKind.CHOICE):
        current = effective_policy(bandit)
        reading, outlook = current.outlook(site_day(now))
        arms = []
        for arm in current.arms:
            rewards = reading.rewarded.get(arm.name, 0)
            if arm.name in outlook.chances and not is_on_probation(arm, rewards, current.version):
                evidence = outlook.arms[arm.name].evidence
                graded = [of_source for of_source in evidence if of_source.source not in UNJUDGED]
                arms.append(
                    ArmRecord(
                        name=arm.name,
                        rewards=rewards,
                        graded=sum(of_source.n for of_source in graded),
                        evidence=sum(of_source.pseudo for of_source in graded),
                    )
                )
        yield bandit, reading.rewarded, arms


@alarm_rule(
    id="A51",
    title="An arm is hardly ever tried",
    means=(
        f"Opens when an arm that can be chosen has fewer than {MAX_STARVED_REWARDS} rewards and fewer than "
        f"{100 * MIN_SHARE_OF_LEADER:g} % of those of the arm with the most rewards, which must have at least "
        f"{MIN_LEADER_REWARDS}. Arms on probation don’t count."
    ),
    todo="Make sure that there is work for this arm, raise the exploration in the bandit’s policy, or retire the arm.",
    severity=Severity.ADVISORY,
    every=dt.timedelta(days=1),
    nightly=True,
)
def starved_arm(now: dt.datetime) -> Iterable[Finding]:
    """A51. An arm that leads because the others were hardly tried isn't known to be the best."""
    for bandit, rewarded, arms in _arm_records(now):
        leader = max(rewarded, key=lambda name: (rewarded[name], name), default="")
        most = rewarded.get(leader, 0)
        if most < MIN_LEADER_REWARDS:
            continue
        for arm in arms:
            if arm.rewards < min(MIN_SHARE_OF_LEADER * most, MAX_STARVED_REWARDS):
                yield Finding(
                    about=f"{bandit.name}: {arm.name}",
                    detail=f"{bandit}: {arm.name} has {counted(arm.rewards, 'reward')}, while "
                    f"{leader} has {most:,}. That is too few to tell whether it is worse.",
                )


@alarm_rule(
    id="A52",
    title="An arm’s rewards have faded",
    means=(
        f"Opens when {MIN_REWARDS} or more rewards of an arm that can be chosen have decayed to fewer than "
        f"{MIN_EVIDENCE:g} observations. Rewards from trajectory or journal alone don’t count."
    ),
    todo="Lengthen the half-life in the bandit’s policy, or run a session of this arm now and then.",
    severity=Severity.ADVISORY,
    every=dt.timedelta(days=1),
    nightly=True,
)
def drained_arm(now: dt.datetime) -> Iterable[Finding]:
    """A52. An arm whose record has faded is chosen by its prior alone."""
    for bandit, _rewarded, arms in _arm_records(now):
        for arm in arms:
            if arm.graded >= MIN_REWARDS and arm.evidence < MIN_EVIDENCE:
                yield Finding(
                    about=f"{bandit.name}: {arm.name}",
                    detail=f"{bandit}: {arm.graded:,} rewards of {arm.name} have decayed to the weight of "
                    f"{arm.evidence:.1f}.",
                )
