"""Where arms broke, in words: since when, by which rewards, and what people said of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from bandit.core.change import Break
from bandit.models import Arm, BreakDecision
from grading.screens.bandit.travel import Belief
from grading.screens.charts import thousandths

# A day's step of an arm's level that is worth a word, as a standard deviation in reward; of so many rewards on.
WANDERS, TOLD_FROM = 0.005, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBreak:
    """A break of an arm before `day`, in force where `counts`, and what may be done about it."""

    day: date
    sentence: str
    counts: bool
    may_keep: bool


def of_arms(belief: Belief, arms: Mapping[str, Arm]) -> dict[str, ArmBreak]:
    """The breaks of the arms that have one, or had one that a person took back; by the arms' names. One query."""
    changes = belief.outlook.posterior.changes
    if changes is None:
        return {}
    said = BreakDecision.objects.filter(bandit=belief.bandit).select_related("arm").order_by("created_at", "pk")
    if belief.known_by is not None:
        said = said.filter(created_at__lte=belief.known_by)
    latest = {each.arm.name: each for each in said}
    found = {name: _taken_back(each) for name, each in latest.items() if not each.kept}
    by_day = {(each.arm.name, each.day): each for each in said}
    found |= {name: _in_force(each, by_day.get((name, each.day))) for name, each in changes.breaks.items()}
    return {name: each for name, each in found.items() if name in arms}


def _in_force(found: Break, said: BreakDecision | None) -> ArmBreak:
    day = f"{found.day:%-d %B %Y}"
    if said is not None and said.kept:
        words = f"What it earned before {day} counts no more: {said.by} kept that break{_because(said)}."
    else:
        before, after = (thousandths(mean or 0) for mean in (found.before, found.after))
        words = (
            f"Since {day} it is not what it was: the mean of its {found.n_before} rewards before was {before}, that of "
            f"the {found.n_after} since is {after}. What it earned before counts no more."
        )
    return ArmBreak(day=found.day, sentence=words, counts=True, may_keep=not found.kept)


def _taken_back(said: BreakDecision) -> ArmBreak:
    words = (
        f"A break on {said.day:%-d %B %Y} was taken back by {said.by}{_because(said)}: what it earned before counts."
    )
    return ArmBreak(day=said.day, sentence=words, counts=False, may_keep=True)


def _because(said: BreakDecision) -> str:
    return f" ({said.note})" if said.note else ""


def wanderings(belief: Belief) -> dict[str, float]:
    """By how much the level of an arm moves a day, as a standard deviation in reward; where that is worth a word."""
    posterior = belief.outlook.posterior
    if posterior.changes is None:
        return {}
    coin = posterior.mean * (1 - posterior.mean)
    steps = (posterior.changes.drift * coin / posterior.evidence_scale) ** 0.5
    told = zip(posterior.names, steps.tolist(), strict=True)
    return {name: step for name, step in told if step >= WANDERS and belief.rewarded(name) >= TOLD_FROM}
