"""Breaks of arms and the stability of their levels, as text."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from bandit.models import Arm, BreakDecision
from grading.screens.bandit.travel import BanditSnapshot
from grading.screens.charts.posteriors import thousandths

# An arm is steady if a day's step of its level, as a standard deviation in reward, is less than MAX_STEADY_STEP. With
# MIN_REWARDS that was so for 96 % of simulated arms that did not move, and for none that moved by .02 a day. Arms with
# fewer rewards are not described.
MAX_STEADY_STEP, MIN_REWARDS = 0.01, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBreak:
    """A break of an arm before `day`. It is in force if it `counts`; if it `may_keep`, a person can confirm it."""

    day: date
    sentence: str
    counts: bool
    may_keep: bool


def describe_breaks(snapshot: BanditSnapshot, arms: Mapping[str, Arm]) -> dict[str, ArmBreak]:
    """The break of each arm, by name: its current one, or else the latest one that a person took back."""
    changes = snapshot.outlook.posterior.changes
    if changes is None:
        return {}
    arm_breaks: dict[str, ArmBreak] = {}
    decisions: dict[tuple[str, date], BreakDecision] = {}
    for decision in snapshot.current.break_decisions:  # oldest first: an arm's latest decision remains
        name = decision.arm.name
        decisions[name, decision.day] = decision
        arm_breaks.pop(name, None)
        if not decision.kept:
            by = f"{decision.by}{_note(decision)}"
            sentence = f"{by} removed the break on {decision.day:%-d %B %Y}, so earlier rewards count again."
            arm_breaks[name] = ArmBreak(day=decision.day, sentence=sentence, counts=False, may_keep=True)
    for name, each in changes.breaks.items():
        day = f"{each.day:%-d %B %Y}"
        confirmation = decisions.get((name, each.day))
        if each.is_confirmed and confirmation is not None:
            by = f"{confirmation.by} confirmed this break{_note(confirmation)}"
            sentence = f"Rewards from before {day} no longer count: {by}."
        else:
            before, after = (thousandths(mean or 0) for mean in (each.before, each.after))
            sentence = (
                f"This arm changed on {day}: the mean of its {each.n_before} earlier rewards was {before}, and the "
                f"mean of its {each.n_after} later rewards is {after}. The earlier rewards no longer count."
            )
        arm_breaks[name] = ArmBreak(day=each.day, sentence=sentence, counts=True, may_keep=not each.is_confirmed)
    return {name: each for name, each in arm_breaks.items() if name in arms}


def _note(decision: BreakDecision) -> str:
    return f" ({decision.note})" if decision.note else ""


def stability(snapshot: BanditSnapshot) -> dict[str, str]:
    """Whether each arm's level is steady, or the standard deviation of its daily steps, in units of reward, as text."""
    posterior = snapshot.outlook.posterior
    if posterior.changes is None:
        return {}
    bernoulli_variance = posterior.mean * (1 - posterior.mean)
    steps = (posterior.changes.drift * bernoulli_variance / posterior.evidence_scale) ** 0.5
    return {
        name: "steady" if step < MAX_STEADY_STEP else f"changes by about {thousandths(step)} per day"
        for name, step in zip(posterior.names, steps.tolist(), strict=True)
        if snapshot.rewarded(name) >= MIN_REWARDS
    }
