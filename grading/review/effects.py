"""What one act of a person changed: every dependent number, before and after, measured and not promised."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from bandit.core.moves import ArmMove
from bandit.reading import posterior_of
from grading import monitoring
from grading.models import Flag, Session, Settlement
from grading.reward import rewards


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What depends on a session: its reward, every arm of the bandits that learn from it, by (bandit, arm) as (mean,
    expected number of the next 100), `own` naming those that ran; what these rest on, as (sessions, observations); the
    rules of its open flags, and what each open alarm says by (rule, about).
    """

    reward: Settlement | None
    own: frozenset[tuple[str, str]]
    arms: Mapping[tuple[str, str], tuple[float, float]]
    evidence: Mapping[tuple[str, str], tuple[int, float]]
    flags: frozenset[str]
    alarms: Mapping[tuple[str, str], str]


def measure(session: Session, before: Measured | None = None) -> Measured:
    """All of it as it is now. No act of a person on a grade changes who learns from it: `before` knows that already."""
    now = timezone.now()
    learners = () if before else rewards.learners(session)
    own = before.own if before else frozenset((each.bandit, each.arm.name) for each in learners)
    outlooks = {bandit: posterior_of(bandit, now) for bandit in sorted({bandit for bandit, _arm in own})}
    arms = {
        (bandit, name): (arm.mean, outlook.share_of_next_100(name))
        for bandit, outlook in outlooks.items()
        for name, arm in outlook.arms.items()
    }
    believed = {(bandit, arm): outlooks[bandit].arms[arm] for bandit, arm in own}
    evidence = {key: (arm.sessions, arm.observations) for key, arm in believed.items()}
    flags = Flag.objects.open().filter(session=session).values_list("rule", flat=True)
    alarms = {(alarm.rule, alarm.about): alarm.detail for alarm in monitoring.open_alarms()}
    reward = rewards.live(session)
    return Measured(reward=reward, own=own, arms=arms, evidence=evidence, flags=frozenset(flags), alarms=alarms)


def changes(before: Measured, after: Measured) -> dict[str, Any]:
    """The difference as JSON, unrounded: `bandits` the arms that ran, `others` those that moved with them (a bandit's
    arms share its mean, and its choices). An alarm that is not open says None; flags are named by their rules.
    """
    others = [key for key in before.arms if key not in before.own and before.arms[key] != after.arms[key]]
    alarm_keys = sorted(set(before.alarms) | set(after.alarms))
    alarms = [
        {"rule": rule, "about": about, "before": was, "after": now}
        for rule, about in alarm_keys
        if (was := before.alarms.get((rule, about))) != (now := after.alarms.get((rule, about)))
    ]
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
    """The arms that ran, back from such JSON; none where it says nothing."""
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
