"""Where arms broke, in words: since when, by which rewards, and what people said of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from bandit.models import Arm, BreakDecision
from grading.screens.bandit.travel import Belief
from grading.screens.charts import thousandths

# An arm is steady if a day's step of its level, as a standard deviation in reward, is less than STEADY. With 60 rewards
# this was found of 96 % of simulated arms that did not move, and of none that moved by .02 a day. Arms with fewer are
# not described.
STEADY, LEAST_REWARDS = 0.01, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBreak:
    """A break of an arm before `day`, in force where `counts`, and what may be done about it."""

    day: date
    sentence: str
    counts: bool
    may_keep: bool


def of_arms(belief: Belief, arms: Mapping[str, Arm]) -> dict[str, ArmBreak]:
    """The breaks of the arms that have one, or had one that a person took back; by the arms' names."""
    changes = belief.outlook.posterior.changes
    if changes is None:
        return {}
    found: dict[str, ArmBreak] = {}
    kept: dict[tuple[str, date], BreakDecision] = {}
    for said in belief.held.break_decisions:
        kept[said.arm.name, said.day] = said
        # The latest word on an arm, where that is that nothing broke.
        found.pop(said.arm.name, None)
        if not said.kept:
            words = (
                f"A break on {said.day:%-d %B %Y} was taken back by {said.by}{_because(said)}: what it earned before "
                "counts."
            )
            found[said.arm.name] = ArmBreak(day=said.day, sentence=words, counts=False, may_keep=True)
    for name, each in changes.breaks.items():
        day, by = f"{each.day:%-d %B %Y}", kept.get((name, each.day))
        if each.is_confirmed and by is not None:
            words = f"What it earned before {day} no longer counts: {by.by} confirmed that break{_because(by)}."
        else:
            before, after = (thousandths(mean or 0) for mean in (each.before, each.after))
            words = (
                f"Since {day} it has changed: the mean of its {each.n_before} rewards before was {before}, that "
                f"of the {each.n_after} since is {after}. What it earned before no longer counts."
            )
        found[name] = ArmBreak(day=each.day, sentence=words, counts=True, may_keep=not each.is_confirmed)
    return {name: each for name, each in found.items() if name in arms}


def _because(said: BreakDecision) -> str:
    return f" ({said.note})" if said.note else ""


def stability(belief: Belief) -> dict[str, str]:
    """Whether each arm's level is steady, or by how much it moves a day: a standard deviation in reward."""
    posterior = belief.outlook.posterior
    if posterior.changes is None:
        return {}
    coin = posterior.mean * (1 - posterior.mean)
    steps = (posterior.changes.drift * coin / posterior.evidence_scale) ** 0.5
    return {
        name: "steady" if step < STEADY else f"moves by about {thousandths(step)} a day"
        for name, step in zip(posterior.names, steps.tolist(), strict=True)
        if belief.rewarded(name) >= LEAST_REWARDS
    }
