"""The effects of one act of a person on a session: what depends on the session, measured before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils import timezone

from bandit.core.moves import ArmMove
from bandit.reading import posterior_of
from grading.models import Flag, Session, Settlement
from grading.monitoring.alarms import open_alarms
from grading.reward import rewards


class ArmKey(NamedTuple):
    """The names of a bandit and of one of its arms."""

    bandit: str
    arm: str


class ArmFigures(NamedTuple):
    """An arm's mean, and the expected number of the bandit's next 100 choices that go to the arm."""

    mean: float
    share: float


class ArmEvidence(NamedTuple):
    """How many sessions an arm has learned from, and the observations that they count as."""

    sessions: int
    observations: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What depends on a session, at one moment.

    `ran` are the arms that the session ran, with their `evidence`. `arms` are all arms of the same bandits. `flags` are
    the rules of the session's open flags. `alarms` are the texts of all open alarms, by (rule, about).
    """

    reward: Settlement | None
    ran: frozenset[ArmKey]
    arms: Mapping[ArmKey, ArmFigures]
    evidence: Mapping[ArmKey, ArmEvidence]
    flags: frozenset[str]
    alarms: Mapping[tuple[str, str], str]


def measure(session: Session, before: Measured | None = None) -> Measured:
    """What depends on a session now.

    To measure again after an act, pass the first measurement as `before`: the arms that the session ran are taken from
    it, since an act on a grade does not change them.
    """
    now = timezone.now()
    if before:
        ran = before.ran
    else:
        ran = frozenset(ArmKey(learner.bandit, learner.arm.name) for learner in rewards.learners(session))
    outlooks = {bandit: posterior_of(bandit, now) for bandit in sorted({key.bandit for key in ran})}
    arms = {
        ArmKey(bandit, name): ArmFigures(arm.mean, outlook.next_100(name))
        for bandit, outlook in outlooks.items()
        for name, arm in outlook.arms.items()
    }
    evidence = {}
    for key in ran:
        arm = outlooks[key.bandit].arms[key.arm]
        evidence[key] = ArmEvidence(arm.sessions, arm.observations)
    flags = Flag.objects.open().filter(session=session).values_list("rule", flat=True)
    alarms = {(alarm.rule, alarm.about): alarm.detail for alarm in open_alarms()}
    reward = rewards.live(session)
    return Measured(reward=reward, ran=ran, arms=arms, evidence=evidence, flags=frozenset(flags), alarms=alarms)


def changes_as_json(before: Measured, after: Measured) -> dict[str, Any]:
    """The differences as JSON. Means are unrounded; shares of the next 100 are as pages show them (`next_100`).

    `bandits` has the arms that the session ran. `others` has the arms that moved with them, because the arms of a
    bandit share its mean and its choices. The text of an alarm that is not open is None.
    """
    others = [key for key in before.arms if key not in before.ran and before.arms[key] != after.arms[key]]
    alarm_keys = sorted(set(before.alarms) | set(after.alarms))
    alarms = []
    for rule, about in alarm_keys:
        text_before = before.alarms.get((rule, about))
        text_after = after.alarms.get((rule, about))
        if text_before != text_after:
            alarms.append({"rule": rule, "about": about, "before": text_before, "after": text_after})
    ran = []
    for key in sorted(before.ran):
        evidence = {
            "sessions": after.evidence[key].sessions,
            "observations_before": before.evidence[key].observations,
            "observations_after": after.evidence[key].observations,
        }
        ran.append(_arm_changes(key, before, after) | evidence)
    source = "" if before.reward is None else before.reward.source
    return {
        "bandits": ran,
        "others": [_arm_changes(key, before, after) for key in others],
        "flags_cleared": sorted(before.flags - after.flags),
        "flags_raised": sorted(after.flags - before.flags),
        "alarms": alarms,
        "reward": {
            "before": rewards.graded_value(before.reward),
            "after": rewards.graded_value(after.reward),
            "source_before": source,
        },
    }


def moves_of(effects: Mapping[str, Any]) -> list[ArmMove]:
    """The moves of the arms that the session ran, from the JSON of `changes_as_json`; empty if it ran none."""
    return [ArmMove(**arm, touched=True) for arm in effects.get("bandits", ())]


def _arm_changes(key: ArmKey, before: Measured, after: Measured) -> dict[str, Any]:
    return {
        "bandit": key.bandit,
        "arm": key.arm,
        "mean_before": before.arms[key].mean,
        "mean_after": after.arms[key].mean,
        "share_before": before.arms[key].share,
        "share_after": after.arms[key].share,
    }
