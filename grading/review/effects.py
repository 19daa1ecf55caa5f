"""The effects of one act of a person: every number that depends on the session, measured before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from bandit.core.moves import ArmMove
from bandit.reading import posterior_of
from grading.models import Flag, Session, Settlement
from grading.monitoring.alarms import open_alarms
from grading.reward import rewards


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What depends on a session, at one moment.

    `arms` are all arms of the bandits that learn from it, by (bandit, arm) as (mean, expected number of the next 100
    choices); `own` are those that the session ran, and `evidence` has their (sessions, observations). `flags` are the
    rules of its open flags, `alarms` the texts of all open alarms by (rule, about).
    """

    reward: Settlement | None
    own: frozenset[tuple[str, str]]
    arms: Mapping[tuple[str, str], tuple[float, float]]
    evidence: Mapping[tuple[str, str], tuple[int, float]]
    flags: frozenset[str]
    alarms: Mapping[tuple[str, str], str]


def measure(session: Session, before: Measured | None = None) -> Measured:
    """Measure a session now. `before` is an earlier measurement whose `own` arms are reused: no act on a grade changes
    them.
    """
    now = timezone.now()
    learners = () if before else rewards.learners(session)
    own = before.own if before else frozenset((each.bandit, each.arm.name) for each in learners)
    outlooks = {bandit: posterior_of(bandit, now) for bandit in sorted({bandit for bandit, _arm in own})}
    arms = {
        (bandit, name): (arm.mean, outlook.next_100(name))
        for bandit, outlook in outlooks.items()
        for name, arm in outlook.arms.items()
    }
    believed = {(bandit, arm): outlooks[bandit].arms[arm] for bandit, arm in own}
    evidence = {key: (arm.sessions, arm.observations) for key, arm in believed.items()}
    flags = Flag.objects.open().filter(session=session).values_list("rule", flat=True)
    alarms = {(alarm.rule, alarm.about): alarm.detail for alarm in open_alarms()}
    reward = rewards.live(session)
    return Measured(reward=reward, own=own, arms=arms, evidence=evidence, flags=frozenset(flags), alarms=alarms)


def changes(before: Measured, after: Measured) -> dict[str, Any]:
    """The differences as JSON, unrounded. `bandits` has the arms that the session ran, `others` those that moved with
    them, because the arms of a bandit share its mean and its choices. The text of an alarm that is not open is None.
    """
    others = [key for key in before.arms if key not in before.own and before.arms[key] != after.arms[key]]
    alarm_keys = sorted(set(before.alarms) | set(after.alarms))
    alarms = []
    for rule, about in alarm_keys:
        text_before = before.alarms.get((rule, about))
        text_after = after.alarms.get((rule, about))
        if text_before != text_after:
            alarms.append({"rule": rule, "about": about, "before": text_before, "after": text_after})
    own = []
    for key in sorted(before.own):
        (_, observations_before), (sessions, observations_after) = before.evidence[key], after.evidence[key]
        evidence = {
            "sessions": sessions,
            "observations_before": observations_before,
            "observations_after": observations_after,
        }
        own.append(_arm(key, before, after) | evidence)
    source = "" if before.reward is None else before.reward.source
    return {
        "bandits": own,
        "others": [_arm(key, before, after) for key in others],
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
    """The arms that the session ran, from the JSON of `changes`; empty if it has none."""
    return [ArmMove(**each, touched=True) for each in effects.get("bandits", ())]


def _arm(key: tuple[str, str], before: Measured, after: Measured) -> dict[str, Any]:
    (mean, share), (mean_after, share_after) = before.arms[key], after.arms[key]
    return {
        "bandit": key[0],
        "arm": key[1],
        "mean_before": mean,
        "mean_after": mean_after,
        "share_before": share,
        "share_after": share_after,
    }
