"""One agent moves an arm otherwise than the others say (A41)."""

import datetime as dt
from collections.abc import Iterable

from django.db.models.functions import Coalesce

from grading.models import Session
from grading.models.sessions import reward_columns
from grading.monitoring.apart import LEAST_DIFFERENCE, LEAST_OTHERS, LEAST_OWN, LEVEL, AgentReward, Apart, apart
from grading.monitoring.rule import Finding, RuleOfSessions
from grading.vocabulary import Source

WINDOW = dt.timedelta(days=14)
MACHINES = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)


class LoneAgent(RuleOfSessions):
    """Who would have an arm chosen, or dropped, needs only to make its own sessions of it look so."""

    id = "A41"
    title = "One agent’s rewards for an arm differ from everyone else’s"
    means = (
        f"Opens when the machine rewards of one agent’s sessions in a category ({LEAST_OWN} or more in "
        f"{WINDOW.days} days) are {LEAST_DIFFERENCE:g} or more above or below those of all other agents there "
        f"({LEAST_OTHERS} or more), beyond how much they differ in other categories (t test, p < {LEVEL:g} over "
        "everything compared). With a single agent there is nothing to compare."
    )
    todo = (
        "Open a few of its sessions next to another agent’s. Is the work really different, or only what the agent "
        "says about it? An operator can change the cap on agents and its tokens."
    )
    every = dt.timedelta(hours=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        for found in apart(rewards(now)):
            sessions = tuple(each.key for each in found.own)
            yield Finding(about=f"{found.agent}: {found.arm}", detail=said(found), sessions=sessions)


def rewards(now: dt.datetime) -> list[AgentReward]:
    """The machines' rewards of the window, in order of time: one query."""
    columns = reward_columns()
    rows = (
        Session.objects.yours()
        .filter(ended_at__gt=now - WINDOW, ended_at__lte=now)
        .exclude(category=None)
        .annotate(
            arm=Coalesce("category__merged_into__name", "category__name"),
            reward_value=columns["reward_value"],
            reward_source=columns["reward_source"],
        )
        .filter(reward_source__in=MACHINES, reward_value__isnull=False)
        .order_by("ended_at", "pk")
    )
    return [
        AgentReward(key=key, arm=arm, agent=agent, value=value)
        for key, arm, agent, value in rows.values_list("pk", "arm", "agent__name", "reward_value")
    ]


def said(found: Apart) -> str:
    """What was found, with its arithmetic."""
    usual = f", and {found.agent} is {found.elsewhere:+.2f} from them elsewhere" if found.elsewhere else ""
    return (
        f"{len(found.own)} sessions of {found.agent} in {found.arm} within {WINDOW.days} days came to "
        f"{found.mean:.2f} on average, {found.others} of other agents to {found.others_mean:.2f}{usual}."
    )
