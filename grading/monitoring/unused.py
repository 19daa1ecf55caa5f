"""Decisions that were asked for and not used (A13)."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable

from bandit.eligibility import DRAWN
from bandit.models import BanditKind, Selection
from bandit.selection import OPEN_FOR
from grading.monitoring.picking import ONE_IN, DrawnDecision, Picking, picking
from grading.monitoring.rule import Finding, Rule

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
                yield Finding(about=f"{agent}: {bandit}", detail=said(agent, bandit, found, own))


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


def said(agent: str, bandit: str, found: Picking, own: list[DrawnDecision]) -> str:
    """What was found, with its arithmetic."""
    dropped = sum(not each.used for each in own)
    which = "led to a session" if found.kept else "were dropped"
    return (
        f"{agent} asked the bandit {bandit} {len(own)} times in {WINDOW.days} days; {dropped} of the decisions came to "
        f"nothing. Of the {found.n} that {which} {found.seen} were for {found.arm}; its chances say "
        f"{found.expected:.1f}. Either sessions of some arms die before they are sent, or the agent uses only the "
        "decisions that suit it."
    )
