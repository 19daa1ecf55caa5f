"""One agent moves an arm otherwise than the others say (A41)."""

import datetime as dt
from collections.abc import Iterable
from math import ceil
from operator import attrgetter

from django.db.models.functions import Coalesce

from bandit.models import Bandit
from bandit.reading import effective_policy, outlook, site_day
from grading.models import Session
from grading.monitoring.apart import LEAST_OTHERS, LEAST_OWN, LEVEL, PAIR, SKILL, Apart, apart
from grading.monitoring.rule import Finding, RuleOfSessions
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
                    detail=said(found, (today - first).days, share, share_without),
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


def said(found: Apart, days: int, share: float, share_without: float) -> str:
    """What was found, with its arithmetic."""
    return (
        f"{found.n} sessions of {found.agent} in {found.arm} within {days} days came to {found.mean:.2f} on average, "
        f"{found.others} of other agents to {found.others_mean:.2f}. {found.arm} has {share:.0f} of the next 100 "
        f"decisions; without this agent’s rewards it would have {share_without:.0f}."
    )
