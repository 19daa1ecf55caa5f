"""Arms that a bandit learns nothing about any more: too few sessions beside the leader's, or only old rewards."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bandit.eligibility import is_on_probation
from bandit.models import Bandit, BanditKind
from bandit.reading import effective_policy, site_day
from grading.monitoring.rule import Finding, Rule, Severity
from grading.reward.calibrating import UNJUDGED

# Starved: less than this share of the leader's rewards, if the leader has enough, and too few to be known to be worse.
MIN_SHARE_OF_LEADER, MIN_LEADER_REWARDS, MAX_STARVED_REWARDS = 0.05, 100, 12
# Drained: fewer pseudo-observations than MIN_EVIDENCE from MIN_REWARDS rewards or more.
MIN_EVIDENCE, MIN_REWARDS = 5.0, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRecord:
    """An arm that can be chosen and is not on probation: its number of `rewards`, how many of them are `graded` by a
    judge, a person or artifacts, and the pseudo-observations that these count for (`evidence`).
    """

    name: str
    rewards: int
    graded: int
    evidence: float


def records(now: dt.datetime) -> Iterator[tuple[Bandit, Mapping[str, int], list[ArmRecord]]]:
    """Each bandit that chooses, the rewards of all its arms by name, and its arms that can be chosen."""
    for bandit in Bandit.objects.that_learn().filter(kind=BanditKind.CHOICE):
        current = effective_policy(bandit)
        reading, outlook = current.outlook(site_day(now))
        arms = []
        for arm in current.arms:
            rewards = reading.rewarded.get(arm.name, 0)
            if arm.name in outlook.chances and not is_on_probation(arm, rewards, current.version):
                graded = [each for each in outlook.arms[arm.name].evidence if each.source not in UNJUDGED]
                arms.append(
                    ArmRecord(
                        name=arm.name,
                        rewards=rewards,
                        graded=sum(each.n for each in graded),
                        evidence=sum(each.pseudo for each in graded),
                    )
                )
        yield bandit, reading.rewarded, arms


class StarvedArm(Rule):
    """A51. A winner that was found before the others were tried."""

    id = "A51"
    title = "An arm is hardly ever tried"
    means = (
        f"Opens when an arm that can be chosen has fewer than {100 * MIN_SHARE_OF_LEADER:g} % of the rewards of the "
        f"arm with the most, which has {MIN_LEADER_REWARDS} or more, and fewer than {MAX_STARVED_REWARDS} in all. Arms "
        "on probation don’t count."
    )
    todo = "See that there is work for it, raise the exploration in the bandit’s policy, or retire it."
    severity = Severity.ADVISORY
    every = dt.timedelta(days=1)
    nightly = True

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        for bandit, rewarded, arms in records(now):
            leader = max(rewarded, key=lambda name: (rewarded[name], name), default="")
            most = rewarded.get(leader, 0)
            if most < MIN_LEADER_REWARDS:
                continue
            for arm in arms:
                if arm.rewards < min(MIN_SHARE_OF_LEADER * most, MAX_STARVED_REWARDS):
                    yield Finding(
                        about=f"{bandit.name}: {arm.name}",
                        detail=f"{bandit}: {arm.name} has {arm.rewards} reward{'s' * (arm.rewards != 1)}, where "
                        f"{leader} has {most:,}. A winner was found before it was tried.",
                    )


class DrainedArm(Rule):
    """A52. An arm whose record has faded is chosen by its prior alone."""

    id = "A52"
    title = "An arm’s rewards have faded"
    means = (
        f"Opens when {MIN_REWARDS} rewards or more of an arm that can be chosen have decayed to fewer than "
        f"{MIN_EVIDENCE:g} observations. Rewards by trajectory or journal alone don’t count."
    )
    todo = "Lengthen the half-life in the bandit’s policy, or give the arm a session now and then."
    severity = Severity.ADVISORY
    every = dt.timedelta(days=1)
    nightly = True

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        for bandit, _rewarded, arms in records(now):
            for arm in arms:
                if arm.graded >= MIN_REWARDS and arm.evidence < MIN_EVIDENCE:
                    yield Finding(
                        about=f"{bandit.name}: {arm.name}",
                        detail=f"{bandit}: {arm.graded:,} rewards of {arm.name} have decayed to the weight of "
                        f"{arm.evidence:.1f}.",
                    )
