"""What one act of a person changed: every dependent number, before and after, measured and not promised (I152)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from bandit.selection import posterior_of
from grading import monitoring, rewards
from grading.models import Flag, Session, Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What depends on a session: its reward, `arms` by (bandit, arm) as (mean, expected number of the next 100),
    the rules of its open flags, and what each open alarm says by (rule, about).
    """

    reward: Settlement | None
    arms: Mapping[tuple[str, str], tuple[float, float]]
    flags: frozenset[str]
    alarms: Mapping[tuple[str, str], str]


def measure(session: Session) -> Measured:
    """All of it as it is now."""
    now, arms = timezone.now(), {}
    for bandit, arm in rewards.learners(session):
        if arm is not None:
            outlook = posterior_of(bandit, now)
            arms[bandit, arm.name] = (outlook.arms[arm.name].mean, outlook.share_of_next_100(arm.name))
    flags = Flag.objects.open().filter(session=session).values_list("rule", flat=True)
    said = {(alarm.rule, alarm.about): alarm.detail for alarm in monitoring.open_alarms()}
    return Measured(reward=rewards.live(session), arms=arms, flags=frozenset(flags), alarms=said)


def changes(before: Measured, after: Measured) -> dict[str, Any]:
    """The difference as JSON, unrounded. An alarm that is not open says None; flags are named by their rules."""
    bandits = [
        {
            "bandit": bandit,
            "arm": arm,
            "mean_before": mean,
            "mean_after": after.arms[bandit, arm][0],
            "share_before": share,
            "share_after": after.arms[bandit, arm][1],
        }
        for (bandit, arm), (mean, share) in before.arms.items()
    ]
    told = sorted(set(before.alarms) | set(after.alarms))
    alarms = [
        {"rule": rule, "about": about, "before": was, "after": now}
        for rule, about in told
        if (was := before.alarms.get((rule, about))) != (now := after.alarms.get((rule, about)))
    ]
    return {
        "bandits": bandits,
        "flags_cleared": sorted(before.flags - after.flags),
        "flags_raised": sorted(after.flags - before.flags),
        "alarms": alarms,
        "reward": {"before": _value(before), "after": _value(after), "source_before": _source(before)},
    }


def _value(measured: Measured) -> float | None:
    return None if measured.reward is None else measured.reward.value


def _source(measured: Measured) -> str:
    return "" if measured.reward is None else measured.reward.source
