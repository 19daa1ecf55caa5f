"""A site on which everything that decides who may be chosen happens again and again; seeded, day by day.

To be imported once the site is set up. Every morning arms are paused, resumed, retired, brought back, merged, parted
and put on probation, and now and then a policy changes; through the day it decides; in the evening sessions earn.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
from django.db import transaction

from bandit import arms, ledger, merging, policies
from bandit.ledger import Credit, GraderKey
from bandit.models import Arm, Bandit, Selection
from bandit.reading import policy_of, version_of
from bandit.selection import NothingEligible, complete, select

START, A_DAY = date(2026, 1, 5), 100
BY = "scene"
OFFERS = 3
# What a session of an arm is worth; of others .5. Reading is boosted by its rewards, or punished.
WORTH = {"code": 0.65, "news": 0.75, "social": 0.1, "claude-code/opus": 0.7, "codex/opus": 0.6}
PAIRS = ("claude-code/opus", "claude-code/haiku", "codex/opus", "codex/haiku")
# Of decisions: for a harness, with every arm offered, insisted on, asked again; of arms offered: without work.
FOR_HARNESS, ALL_OFFERED, INSISTED, RETRIED, WITHOUT_WORK = 0.4, 0.4, 0.05, 0.05, 0.1
# Of sessions: never finished, rewarded. This arm's are run by that one on every other day.
UNFINISHED, REWARDED, SUBSTITUTE = 0.15, 0.15, ("infra", "code")
# What a reason against an arm is told by, without its numbers and names.
KINDS = (
    "paused",
    "retired on",
    "no work available",
    "not in the supply given",
    "consumption sessions used today",
    "sessions used today",
    "tried in low-stakes work only",
    "substituted",
)


@dataclass(kw_only=True)
class Scene:
    """`drawn` are the rows to be tested; `seen` counts what happened, by its name; `broken` says what must not be."""

    seed: int
    drawn: list[Selection] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = np.random.default_rng(self.seed)
        for name in PAIRS:
            arms.add("harness", name, by=BY)
        for name in ("infra-2", "chores"):
            arms.add("category", name, by=BY)
        # One agent asks for everything, and much of it comes to nothing.
        self.put("category", {"consumption_per_agent": 10, "probation_per_agent": 3, "open_decisions": None})
        self.put("harness", {"open_decisions": None})
        every = {name: sorted(bandit_arms(name)) for name in ("category", "harness")}
        # What callers have work for is one of a few sets, as their queues would have it.
        self.supplies = {
            bandit: [self.dice.choice(names, len(names) // 2, replace=False).tolist() for _ in range(OFFERS)]
            for bandit, names in every.items()
        }

    def run(self, decisions: int) -> None:
        for first in range(0, decisions, A_DAY):
            number = first // A_DAY
            self.morning(number)
            noon = datetime.combine(START + timedelta(days=number), time(8), tzinfo=UTC)
            least = {name: promised(Bandit.objects.get(name=name)) for name in ("category", "harness")}
            ran: list[tuple[Selection, str]] = []
            for i in range(first, min(first + A_DAY, decisions)):
                row = self.decide(f"{self.seed}-{i}", noon + timedelta(minutes=5 * (i - first)), least)
                if row is not None and self.dice.random() >= UNFINISHED:
                    ran.append((row, self.finish(row)))
            for row, arm in ran:
                if self.dice.random() < REWARDED:
                    self.reward(row, arm)

    def morning(self, number: int) -> None:
        """What people do to arms and policies before the day's decisions."""
        every = {arm.name: arm for arm in Arm.objects.filter(bandit__name__in=("category", "harness"))}
        some = self.dice.choice(sorted(every), 6, replace=False)
        for name in some:
            arm = every[str(name)]
            if arm.merged_into_id is not None:
                continue
            if arm.paused:
                arms.resume(arm, by=BY)
            elif arm.retired_at:
                arms.bring_back(arm, by=BY)
            elif arm.probation:
                arms.end_probation(arm, by=BY)
            else:
                (arms.pause, arms.retire, arms.put_on_probation, arms.put_on_probation)[self.dice.integers(4)](
                    arm, by=BY
                )
        one, into = every["infra-2"], every["infra"]
        if number % 4 == 1 and one.merged_into_id is None:
            merging.merge(one, into, by=BY)
            self.seen["merged"] += 1
        elif number % 4 == 3 and one.merged_into_id is not None:  # noqa: PLR2004 - two days later
            merging.unmerge(one, by=BY)
        if number % 7 == 5:  # noqa: PLR2004 - once a week
            numbers = {
                "half_life_days": float(self.dice.integers(10, 60)),
                "exploration": (0.03, 0.1, None)[self.dice.integers(3)],
                "sharpness": float(self.dice.uniform(1, 2)),
                "probation_sessions": 60,
            }
            self.put(("category", "harness")[number % 2], numbers)

    def put(self, bandit: str, numbers: dict[str, float | None]) -> None:
        version = version_of(Bandit.objects.get(name=bandit)).version + 1
        policies.put_in_force(bandit, numbers, version=version, by=BY)

    def decide(self, decision_id: str, now: datetime, least: Mapping[str, Callable[[int], float]]) -> Selection | None:
        """One decision, checked as it is made; None where nothing was eligible."""
        dice = self.dice
        bandit = "harness" if dice.random() < FOR_HARNESS else "category"
        names = sorted(bandit_arms(bandit))
        supply = None
        if dice.random() >= ALL_OFFERED:
            supply = dict.fromkeys(self.supplies[bandit][dice.integers(OFFERS)], 1)
            if dice.random() < WITHOUT_WORK:
                supply[min(supply)] = 0
        override = str(dice.choice(names)) if dice.random() < INSISTED else None
        context = str(dice.choice(["code", "triage", ""])) if bandit == "harness" else ""
        asked = {"bandit": bandit, "decision_id": decision_id, "agent": "bob", "now": now}
        try:
            row = select(**asked, supply=supply, override=override, context=context)
        except NothingEligible:
            self.seen["nothing eligible"] += 1
            return None
        if dice.random() < RETRIED:
            self.seen["asked again"] += 1
            if select(**asked, supply=None, override=names[0]) != row:
                self.broken.append(f"{decision_id}: another row when asked again")
        self.check(row, least[bandit])
        if row.override is None:
            self.drawn.append(row)
        return row

    def check(self, row: Selection, promise: Callable[[int], float]) -> None:
        """What holds for every row by itself."""
        odds = odds_of(row)
        reasons = [why for why in row.eligible.values() if isinstance(why, str)]
        for kind in KINDS:
            self.seen[kind] += any(kind in why for why in reasons)
        self.seen["with a context"] += bool(row.context)
        self.seen["with a factor"] += any(each["factor"] != 1 for each in row.explanation["arms"].values())
        self.seen["insisted on"] += row.override is not None
        if odds and abs(sum(odds.values()) - 1) > 1e-9:  # noqa: PLR2004 - rounding
            self.broken.append(f"{row.decision_id}: the odds add up to {sum(odds.values())}")
        # Half of all draws are left for what is known, whatever the policy promises.
        least = min(promise(len(odds)), 0.5 / len(odds)) if odds else 0.0
        if odds and min(odds.values()) < least - 1e-12:
            self.broken.append(f"{row.decision_id}: {min(odds.values())}, below {least}")
        if row.propensity != (1.0 if row.override is not None else odds[row.arm.name]):
            self.broken.append(f"{row.decision_id}: a propensity of {row.propensity}")
        if row.override is not None and row.override["drawn"] not in {*odds, None}:
            self.broken.append(f"{row.decision_id}: {row.override['drawn']} would have been drawn, not eligible")
        if Arm.objects.filter(bandit=row.bandit, name__in=odds).exclude(merged_into=None).exists():
            self.broken.append(f"{row.decision_id}: a merged arm was eligible")

    def finish(self, row: Selection) -> str:
        """End the decision's session, and say which arm ran in it."""
        chosen, by = SUBSTITUTE
        ran = by if row.arm.name == chosen and row.created.day % 2 else row.arm.name
        complete(row, observation=f"o-{row.decision_id}", executed_arm=ran, now=row.created)
        return Arm.objects.resolve(row.bandit.name, ran).name

    def reward(self, row: Selection, arm: str) -> None:
        value = float(np.clip(WORTH.get(arm, 0.5) + self.dice.normal(0, 0.15), 0, 1))
        with transaction.atomic():
            ledger.set_reward(
                bandit=row.bandit.name,
                observation=f"o-{row.decision_id}",
                credits={arm: Credit(value=value, grader=GraderKey(source="judge", agent="bob"))},
                effective_day=row.created.date(),
                settlement=BY,
                policy_version=BY,
                provisional=False,
            )


def promised(bandit: Bandit) -> Callable[[int], float]:
    """The least chance that the policy in force gives each of so many eligible arms, as its page says it."""
    return policy_of(bandit).least_chance


def bandit_arms(bandit: str) -> list[str]:
    return list(Arm.objects.filter(bandit__name=bandit).values_list("name", flat=True))


def odds_of(row: Selection) -> dict[str, float]:
    """The logged chances of the arms that were eligible."""
    return {name: odd for name, odd in row.eligible.items() if not isinstance(odd, str)}
