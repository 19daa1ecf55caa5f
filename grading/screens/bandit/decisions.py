"""The log of decisions: the chances of the arms, what was chosen and what ran, and how often these agree."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from bandit.eligibility import NO_WORK, NOT_OFFERED
from bandit.models import Bandit, Selection
from bandit.selection import OPEN_FOR
from grading.models import Session
from grading.plain import counted
from grading.screens.charts import bars

# The most decisions that are listed, and that are counted.
LISTED, COUNTED = 3, 100
# The number of the latest finished decisions that are compared with what ran, and the share of them that ran another
# arm from which on the page warns.
FINISHED, MIN_SUBSTITUTED_SHARE = 20, 0.25
# The most agents that are named for decisions without a session.
MAX_NAMED = 5
# What the API says about the caller's `supply`, for readers who have not read about that field.
SUPPLY_WORDS = {NOT_OFFERED: "not offered by the caller", NO_WORK: "no work, according to the caller"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """One line of the log. `session` is the one that it led to, None if there is none yet."""

    row: Selection
    session: Session | None
    left_out: list[str]
    is_unused: bool

    @property
    def is_substituted(self) -> bool:
        return is_substituted(self.row)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmShare:
    """One arm in the latest decisions: the `expected` number by its chances, how often `chosen`, how often it `ran`."""

    title: str
    expected: float
    chosen: int
    ran: int
    picture: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionLog:
    """The latest decisions: their number `counted`, and the newest of them as `lines`. `unused` describes decisions
    that led to no session, `agreement` how many sessions ran another arm than the chosen one. `is_much`: so many that
    the page warns.
    """

    lines: list[DecisionRow]
    shares: list[ArmShare]
    unused: str
    counted: Sequence[Selection]
    agreement: str
    is_much: bool

    @property
    def insisted(self) -> int:
        """How many of them were overridden by the caller."""
        return sum(row.override is not None for row in self.counted)


def log(bandit: Bandit, until: dt.datetime, titles: Mapping[str, str]) -> DecisionLog:
    """The decisions made until `until`. Two queries."""
    selections = Selection.objects.filter(bandit=bandit, created__lte=until).defer("explanation", "requested")
    latest = list(selections.select_related("arm__merged_into", "executed_arm__merged_into")[:COUNTED])
    finished = [row for row in latest if row.executed_arm_id][:FINISHED]
    differed = [row for row in finished if is_substituted(row)]
    return DecisionLog(
        lines=lines(latest[:LISTED], until),
        shares=shares(latest, titles),
        unused=unused(latest, until),
        counted=latest,
        agreement=agreement(len(finished), differed),
        is_much=len(differed) >= MIN_SUBSTITUTED_SHARE * max(len(finished), 1),
    )


def is_substituted(row: Selection) -> bool:
    """Whether another arm ran than the chosen one; arms that were merged since count as one."""
    return row.executed_arm is not None and row.executed_arm.current != row.arm.current


def is_unused(row: Selection, until: dt.datetime) -> bool:
    """Whether the decision led to no session in the time in which it was open."""
    return row.completed_at is None and row.created <= until - OPEN_FOR


def unused(rows: Sequence[Selection], until: dt.datetime) -> str:
    """Which agents' decisions led to no session, the most first, as text; empty if none."""
    decisions_by_agent = Counter(row.agent for row in rows)
    unused_by_agent = Counter(row.agent for row in rows if is_unused(row, until))
    if not unused_by_agent:
        return ""
    most = unused_by_agent.most_common(MAX_NAMED)
    agents = ", ".join(f"{agent or 'no agent'} {n} of {decisions_by_agent[agent]}" for agent, n in most)
    more = " and others" if len(unused_by_agent) > MAX_NAMED else ""
    total = unused_by_agent.total()
    return f"Of the last {len(rows)} decisions, {total} led to no session within a day ({agents}{more})."


def lines(rows: Sequence[Selection], until: dt.datetime) -> list[DecisionRow]:
    """The rows with their sessions, in one query."""
    sessions = Session.objects.by_observation(row.observation for row in rows)
    return [
        DecisionRow(
            row=row,
            session=sessions.get(row.observation),
            left_out=left_out(row.eligible),
            is_unused=is_unused(row, until),
        )
        for row in rows
    ]


def left_out(eligible: Mapping[str, Any]) -> list[str]:
    """The arms that were not eligible, grouped by reason: "news, social: not offered by the caller"."""
    arms: dict[str, list[str]] = {}
    for arm, why in sorted(eligible.items()):
        if isinstance(why, str):
            arms.setdefault(why, []).append(arm)
    return [f"{', '.join(names)}: {SUPPLY_WORDS.get(why, why)}" for why, names in arms.items()]


def shares(rows: Sequence[Selection], titles: Mapping[str, str]) -> list[ArmShare]:
    """Every arm that could have been chosen, was chosen or ran, the most expected first."""
    expected: Counter[str] = Counter()
    for row in rows:
        for name, chance in row.eligible.items():
            if not isinstance(chance, str):  # a text is the reason why the arm was not eligible
                expected[name] += chance
    chosen = Counter(row.arm.name for row in rows)
    ran = Counter(row.executed_arm.name for row in rows if row.executed_arm is not None)
    names = [name for name in {*expected, *chosen, *ran} if expected[name] or chosen[name] or ran[name]]
    most = max([*expected.values(), *chosen.values(), 1])
    arm_shares = [
        ArmShare(
            title=titles.get(name, name),
            expected=expected[name],
            chosen=chosen[name],
            ran=ran[name],
            picture=bars.tally(titles.get(name, name), chosen[name], expected[name], most),
        )
        for name in names
    ]
    return sorted(arm_shares, key=lambda share: (-share.expected, share.title))


def agreement(finished: int, differed: Sequence[Selection]) -> str:
    """How many of the finished decisions ran another arm, and which, as text."""
    if not finished:
        return "None of these sessions has ended yet."
    if not differed:
        whole = (
            "The only finished session ran" if finished == 1 else f"All of the last {finished} selected sessions ran"
        )
        return f"{whole} as chosen."
    pairs = Counter((row.arm, row.executed_arm) for row in differed)
    (chosen, ran), count = pairs.most_common(1)[0]
    most = f", {counted(count, 'time')} {ran} for {chosen}" if len(differed) > 1 else f", {ran} for {chosen}"
    sentence = (
        f"Of the last {finished} finished sessions, {len(differed)} ran a different arm than the chosen one "
        f"({100 * len(differed) / finished:.0f} %){most}."
    )
    if len(differed) < MIN_SUBSTITUTED_SHARE * finished:
        return f"{sentence} Rewards go to the arm that ran."
    least = f"{100 * MIN_SUBSTITUTED_SHARE:g} %"
    return f"{sentence} From {least} on, the choices say little about which arms ran. Rewards go to the arm that ran."
