"""A site on which everything that decides who may be chosen happens again and again; seeded, day by day.

Every morning arms are paused, resumed, retired, brought back, merged, parted and put on probation, and now and then a
policy changes; through the day the site decides; in the evening sessions earn.
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
# Shares of decisions: for a harness, with every arm offered, overridden, retried; of arms offered: without work.
FOR_HARNESS, ALL_OFFERED, OVERRIDDEN, RETRIED, WITHOUT_WORK = 0.4, 0.4, 0.05, 0.05, 0.1
# Shares of sessions: never finished, rewarded. This arm's are run by that one on every other day.
UNFINISHED, REWARDED, SUBSTITUTE = 0.15, 0.15, ("infra", "code")
# What a reason against an arm is recognised by, without its numbers and names.
REASONS = (
    "paused",
    "retired on",
    "no work available",
    "not in the supply given",
    "consumption sessions used today",
    "sessions used today",
    "chosen only for low-stakes work",
    "substituted",
)


@dataclass(kw_only=True)
class Scene:
    """`selections` are the draws to be tested, `counts` the events by name, `broken` the broken rules in words."""

    seed: int
    selections: list[Selection] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = np.random.default_rng(self.seed)
        for name in PAIRS:
            arms.add("harness", name, by=BY)
        for name in ("infra-2", "chores"):
            arms.add("category", name, by=BY)
        # One agent makes all decisions, and many of their sessions never finish.
        self.put_policy("category", {"consumption_per_agent": 10, "probation_per_agent": 3, "open_decisions": None})
        self.put_policy("harness", {"open_decisions": None})
        arms_by_bandit = {name: sorted(arm_names(name)) for name in ("category", "harness")}
        # What callers have work for is one of a few sets, as their queues would have it.
        self.supplies = {
            bandit: [self.dice.choice(names, len(names) // 2, replace=False).tolist() for _ in range(OFFERS)]
            for bandit, names in arms_by_bandit.items()
        }

    def run(self, decisions: int) -> None:
        for first in range(0, decisions, A_DAY):
            number = first // A_DAY
            self.change_arms(number)
            morning = datetime.combine(START + timedelta(days=number), time(8), tzinfo=UTC)
            least = {name: policy_of(Bandit.objects.get(name=name)).least_chance for name in ("category", "harness")}
            finished: list[tuple[Selection, str]] = []
            for i in range(first, min(first + A_DAY, decisions)):
                row = self.decide(f"{self.seed}-{i}", morning + timedelta(minutes=5 * (i - first)), least)
                if row is not None and self.dice.random() >= UNFINISHED:
                    finished.append((row, self.finish(row)))
            for row, arm in finished:
                if self.dice.random() < REWARDED:
                    self.reward(row, arm)

    def change_arms(self, number: int) -> None:
        """What people do to arms and policies before the day's decisions."""
        by_name = {arm.name: arm for arm in Arm.objects.filter(bandit__name__in=("category", "harness"))}
        for name in self.dice.choice(sorted(by_name), 6, replace=False):
            arm = by_name[str(name)]
            if arm.merged_into_id is not None:
                continue
            if arm.paused:
                arms.resume(arm, by=BY)
            elif arm.retired_at:
                arms.bring_back(arm, by=BY)
            elif arm.probation:
                arms.end_probation(arm, by=BY)
            else:
                actions = (arms.pause, arms.retire, arms.put_on_probation, arms.put_on_probation)
                actions[self.dice.integers(4)](arm, by=BY)
        source, target = by_name["infra-2"], by_name["infra"]
        if number % 4 == 1 and source.merged_into_id is None:
            merging.merge(source, target, by=BY)
            self.counts["merged"] += 1
        elif number % 4 == 3 and source.merged_into_id is not None:
            merging.unmerge(source, by=BY)
        if number % 7 == 5:
            numbers = {
                "half_life_days": float(self.dice.integers(10, 60)),
                "exploration": (0.03, 0.1, None)[self.dice.integers(3)],
                "sharpness": float(self.dice.uniform(1, 2)),
                "probation_sessions": 60,
            }
            self.put_policy(("category", "harness")[number % 2], numbers)

    def put_policy(self, bandit: str, numbers: dict[str, float | None]) -> None:
        version = version_of(Bandit.objects.get(name=bandit)).version + 1
        policies.set_policy(bandit, numbers, version=version, by=BY)

    def decide(self, decision_id: str, now: datetime, least: Mapping[str, Callable[[int], float]]) -> Selection | None:
        """One decision, checked as it is made; None where nothing was eligible."""
        dice = self.dice
        bandit = "harness" if dice.random() < FOR_HARNESS else "category"
        names = sorted(arm_names(bandit))
        supply = None
        if dice.random() >= ALL_OFFERED:
            supply = dict.fromkeys(self.supplies[bandit][dice.integers(OFFERS)], 1)
            if dice.random() < WITHOUT_WORK:
                supply[min(supply)] = 0
        override = str(dice.choice(names)) if dice.random() < OVERRIDDEN else None
        context = str(dice.choice(["code", "triage", ""])) if bandit == "harness" else ""
        request = {"bandit": bandit, "decision_id": decision_id, "agent": "bob", "now": now}
        try:
            row = select(**request, supply=supply, override=override, context=context)
        except NothingEligible:
            self.counts["nothing eligible"] += 1
            return None
        if dice.random() < RETRIED:
            self.counts["retried"] += 1
            if select(**request, supply=None, override=names[0]) != row:
                self.broken.append(f"{decision_id}: another row for the same decision")
        self.check(row, least[bandit])
        if row.override is None:
            self.selections.append(row)
        return row

    def check(self, row: Selection, least_chance: Callable[[int], float]) -> None:
        """What holds for every row by itself; `least_chance` is the policy's promise for a number of eligible arms."""
        chances = logged_chances(row)
        reasons = [why for why in row.eligible.values() if isinstance(why, str)]
        for reason in REASONS:
            self.counts[reason] += any(reason in why for why in reasons)
        self.counts["with a context"] += bool(row.context)
        self.counts["with a factor"] += any(each["factor"] != 1 for each in row.explanation["arms"].values())
        self.counts["overridden"] += row.override is not None
        if chances and abs(sum(chances.values()) - 1) > 1e-9:
            self.broken.append(f"{row.decision_id}: the chances add up to {sum(chances.values())}")
        # Half of all draws follow the posterior, whatever the policy promises.
        least = min(least_chance(len(chances)), 0.5 / len(chances)) if chances else 0.0
        if chances and min(chances.values()) < least - 1e-12:
            self.broken.append(f"{row.decision_id}: {min(chances.values())}, below {least}")
        if row.propensity != (1.0 if row.override is not None else chances[row.arm.name]):
            self.broken.append(f"{row.decision_id}: a propensity of {row.propensity}")
        if row.override is not None and row.override["drawn"] not in {*chances, None}:
            self.broken.append(f"{row.decision_id}: {row.override['drawn']} would have been drawn, not eligible")
        if Arm.objects.filter(bandit=row.bandit, name__in=chances).exclude(merged_into=None).exists():
            self.broken.append(f"{row.decision_id}: a merged arm was eligible")

    def finish(self, row: Selection) -> str:
        """End the decision's session; returns the arm that ran in it."""
        arm, substitute = SUBSTITUTE
        executed = substitute if row.arm.name == arm and row.created.day % 2 else row.arm.name
        complete(row, observation=f"o-{row.decision_id}", executed_arm=executed, now=row.created)
        return Arm.objects.resolve(row.bandit.name, executed).name

    def reward(self, row: Selection, arm: str) -> None:
        value = float(np.clip(WORTH.get(arm, 0.5) + self.dice.normal(0, 0.15), 0, 1))
        with transaction.atomic():
            ledger.set_credits(
                {row.bandit.name: {arm: Credit(value=value, grader=GraderKey(source="judge", agent="bob"))}},
                observation=f"o-{row.decision_id}",
                effective_day=row.created.date(),
                settlement=BY,
                policy_version=BY,
                provisional=False,
            )


def arm_names(bandit: str) -> list[str]:
    return list(Arm.objects.filter(bandit__name=bandit).values_list("name", flat=True))


def logged_chances(row: Selection) -> dict[str, float]:
    """The logged chances of the arms that were eligible."""
    return {name: chance for name, chance in row.eligible.items() if not isinstance(chance, str)}
