"""Alarm rules about agents that tilt a bandit: by their rewards, or by the decisions that they drop."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from math import ceil
from operator import attrgetter

from django.db.models.functions import Coalesce

from bandit.eligibility import DRAWN
from bandit.models import Bandit, BanditKind, Selection
from bandit.reading import effective_policy, outlook, site_day
from bandit.selection import OPEN_FOR
from grading.models import Session
from grading.monitoring.apart import LEAST_OTHERS, LEAST_OWN, LEVEL, PAIR, SKILL, Apart, apart
from grading.monitoring.picking import ONE_IN, DrawnDecision, Picking, picking
from grading.monitoring.rule import Finding, Rule, RuleOfSessions
from grading.reward.rewards import credited_days
from grading.vocabulary import Source

BANDIT = "category"
MACHINES = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)
# A smaller part of the next hundred decisions is no news.
LEAST_SHARE = 1


class LoneAgent(RuleOfSessions):
    """Who would have an arm chosen, or dropped, needs only to make its own sessions of it look so."""

    id = "A41"
    title = "One agent’s rewards for an arm differ from everyone else’s"
    means = (
        f"Opens when one agent’s machine rewards move a category’s share of the next 100 decisions by {LEAST_SHARE} or "
        "more, and differ from the other agents’ there by more than chance (t test over one half-life of the bandit’s "
        f"policy, p < {LEVEL:g} over everything compared), from its {LEAST_OWN} and their {LEAST_OTHERS} sessions on. "
        f"Good and bad days are allowed for, and so is skill, which usually differs by up to {2 * SKILL:g}. Where no "
        "other agent works there is nothing to compare. Of two agents, the one with the higher rewards is named."
    )
    todo = (
        "Open a few of its sessions next to another agent’s. Is the work really different, or only what the agent "
        "says about it? An operator can change the cap on agents and its tokens."
    )
    every = dt.timedelta(hours=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        today, held = site_day(now), effective_policy(Bandit.objects.named(BANDIT))
        rows, policy = held.rows(today), held.policy_on(today)
        first = dt.date.fromordinal(max(1, today.toordinal() - ceil(policy.half_life)))
        machines = rows.mask(lambda kind: kind.source in MACHINES)
        agents = rows.map_kinds(attrgetter("agent"), object)
        remembered = rows.select(machines & (rows.day > first.toordinal()))
        if len({kind.agent for kind in remembered.kinds} - {""}) < PAIR:
            return  # before SciPy is loaded for what the bandit believes
        reading, current = held.outlook(today)
        changes = reading.posterior.changes
        for found in apart(remembered, 0.0 if changes is None else changes.day_variance):
            rest = rows.select(~(machines & (agents == found.agent)))
            without = outlook(held.bandit, policy, rest, today)
            share, share_without = (each.share_of_next_100(found.arm) for each in (current, without))
            lift = share - share_without
            if abs(lift) >= LEAST_SHARE and (lift > 0) == (found.mean > found.others_mean):
                yield Finding(
                    about=f"{found.agent}: {found.arm}",
                    detail=describe_difference(found, (today - first).days, share, share_without),
                    sessions=sessions_of(found, first, now),
                )


def sessions_of(found: Apart, first: dt.date, now: dt.datetime) -> tuple[int, ...]:
    """The keys of the agent's sessions of the arm that a machine graded and that count after the day `first`, in order
    of time. Three queries.
    """
    rows = (
        Session.objects.yours()
        # None counts on a day after the one on which the site received it.
        .filter(agent__name=found.agent, received_at__gt=now - (site_day(now) - first) - dt.timedelta(days=1))
        .annotate(
            arm=Coalesce("category__merged_into__name", "category__name"),
        )
        .filter(arm=found.arm, reward_source__in=MACHINES, reward_value__isnull=False)
        .order_by("ended_at", "pk")
        .only("ended_at", "received_at")
    )
    sessions = list(rows)
    days = credited_days(sessions)
    return tuple(each.pk for each in sessions if days[each.pk] > first)


def describe_difference(found: Apart, days: int, share: float, share_without: float) -> str:
    """What was found, with its arithmetic."""
    return (
        f"{found.n} sessions of {found.agent} in {found.arm} within {days} days came to {found.mean:.2f} on average, "
        f"{found.others} of other agents to {found.others_mean:.2f}. {found.arm} has {share:.0f} of the next 100 "
        f"decisions; without this agent’s rewards it would have {share_without:.0f}."
    )


WINDOW = dt.timedelta(days=28)
# So many decisions are read, the latest.
READ = 5000


class UnusedDecisions(Rule):
    """Who asks until the draw suits, or whose sessions of an arm die unseen, chooses instead of the bandit."""

    id = "A13"
    title = "An agent uses some of its decisions and drops others"
    means = (
        f"Opens when the decisions an agent received in the last {WINDOW.days} days but hadn’t used after "
        f"{OPEN_FOR // dt.timedelta(hours=1)} hours are not for a random mix of arms. If agents drop decisions "
        f"regardless of arm, the chance that any of them is named within such a window is at most 1 in {ONE_IN:,}, "
        "however often it is checked. Arms that somebody insisted on don’t count."
    )
    todo = (
        "Check whether that arm’s sessions die before they are sent; if not, the agent drops what it doesn’t "
        "like. Its decisions are listed on the bandit’s page."
    )
    every = dt.timedelta(hours=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        by_agent = decisions(now)
        for (bandit, agent), own in sorted(by_agent.items()):
            found = picking(own)
            if found is not None and found.money >= ONE_IN * len(by_agent):
                yield Finding(about=f"{agent}: {bandit}", detail=describe_picking(agent, bandit, found, own))


def decisions(now: dt.datetime) -> dict[tuple[str, str], list[DrawnDecision]]:
    """The drawn decisions of the window by bandit and agent, but for those that have not had their day."""
    # Also those that were used at once have their day: else the arms whose sessions are short would seem to be liked.
    made = {"created__gt": now - WINDOW, "created__lte": now - OPEN_FOR}
    rows = Selection.objects.filter(DRAWN, bandit__kind=BanditKind.CHOICE, **made)
    columns = (
        rows.exclude(agent="")
        .order_by("-created", "-pk")
        .values_list("bandit__name", "agent", "arm__name", "eligible", "completed_at")
    )
    found: dict[tuple[str, str], list[DrawnDecision]] = defaultdict(list)
    for bandit, agent, arm, eligible, completed_at in columns[:READ].iterator():
        odds = {name: odd for name, odd in eligible.items() if not isinstance(odd, str)}
        found[bandit, agent].append(DrawnDecision(arm=arm, odds=odds, used=completed_at is not None))
    return dict(found)


def describe_picking(agent: str, bandit: str, found: Picking, own: list[DrawnDecision]) -> str:
    """What was found, with its arithmetic."""
    dropped = sum(not each.used for each in own)
    which = "led to a session" if found.kept else "were dropped"
    return (
        f"{agent} asked the bandit {bandit} {len(own)} times in {WINDOW.days} days; {dropped} of the decisions came to "
        f"nothing. Of the {found.n} that {which} {found.seen} were for {found.arm}; its chances say "
        f"{found.expected:.1f}. Either sessions of some arms die before they are sent, or the agent uses only the "
        "decisions that suit it."
    )
