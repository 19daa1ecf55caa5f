"""Rules that find what is wrong with a bandit from its own numbers, with advice in sentences.

Thresholds come from published incidents or their alarms; each rule is one function of the facts. No rule judges an
arm's work: each finds where the numbers are no longer informative.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bandit.core.change import JudgeShift
from bandit.core.estimate import signed
from bandit.core.posterior import ArmPosterior

# Arms with fewer rewards than this aren't compared by their means.
MIN_REWARDS = 50
# Flat: this share of at least MIN_FLAT_ARMS such arms within a band of this width. Two arms may be alike by chance.
FLAT_SHARE, FLAT_BAND, MIN_FLAT_ARMS = 0.8, 0.02, 3
# Frozen: not even one reward of 0 or 1 moves the mean by this much.
MIN_JUMP = 0.002
# Decisions for an arm since its last finished session: advice above the first, stronger advice above the second.
MAX_UNFINISHED, MANY_UNFINISHED = 5, 10
# Fallback-heavy: more than this share of the evidence, given this many rewards.
MAX_FALLBACK_SHARE, MIN_FALLBACK_REWARDS = 0.3, 5
# Over-optimistic: the posterior mean is this far above the mean of the same rewards. Below it is mere caution.
MAX_OPTIMISM = 0.15
# Not learning: this many decisions and no reward.
MIN_DECISIONS = 10
# Uncalibrated: fewer blind human grades than this.
MIN_PAIRS = 20
# How many arms a sentence names.
MAX_NAMED_ARMS = 3


class AdviceKind(StrEnum):
    FLAT = "flat"
    FROZEN = "frozen"
    UNFINISHED = "unfinished"
    NOT_LEARNING = "not learning"
    FALLBACK = "fallback-heavy"
    OPTIMISTIC = "over-optimistic"
    SUPPLY = "supply-bound"
    UNCALIBRATED = "uncalibrated"
    JUDGE_MOVED = "judge moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts:
    """One arm. `live`: it can be chosen.

    `mean` is the posterior's and `observed_mean` (None without rewards) the weighted mean of the same rewards, both in
    [0, 1]. `evidence` and `fallback` are pseudo-observations, in all and from fallback sources. `jump` is the most that
    one reward of 0 or 1 moves the mean, `chance` in [0, 1] that of being chosen. `decisions` counts all that chose it,
    `unfinished` those since a session of it last finished, `unsupplied` the latest decisions that excluded it for lack
    of work, 0 unless most did.
    """

    name: str
    live: bool = True
    rewards: int = 0
    mean: float = 0.5
    observed_mean: float | None = None
    evidence: float = 0.0
    fallback: float = 0.0
    jump: float = 1.0
    chance: float = 0.0
    decisions: int = 0
    unfinished: int = 0
    unsupplied: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BanditFacts:
    """A bandit. `ArmFacts.unsupplied` is counted over the latest `decisions` ones.

    `pairs` counts the blind human grades of sessions that a machine graded too, None for a bandit that isn't calibrated
    by them. `shifts` are those of judges.
    """

    arms: Sequence[ArmFacts]
    decisions: int = 0
    pairs: int | None = None
    shifts: Sequence[JudgeShift] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One finding about `arms` (empty: the whole bandit): an observation, and the action to take."""

    kind: AdviceKind
    observation: str
    action: str
    arms: tuple[str, ...] = ()


def advise(facts: BanditFacts) -> list[Advice]:
    """The advice of each rule that finds something, in the order of RULES."""
    return [advice for rule in RULES if (advice := rule(facts)) is not None]


def jump(arm: ArmPosterior, evidence_scale: float) -> float:
    """How far one more reward, a 0 or a 1 that counts in full, moves the mean of Beta(α, β): e·|r − mean|/(α + β + e).

    The larger of the two, in [0, 1]. What the reward does to the long-run mean comes on top.
    """
    return evidence_scale * max(arm.mean, 1 - arm.mean) / (arm.alpha + arm.beta + evidence_scale)


def flat(facts: BanditFacts) -> Advice | None:
    """Most arms have about the same mean. The band is put at each mean in turn, to find the one with the most arms."""
    means = sorted(arm.mean for arm in facts.arms if arm.rewards >= MIN_REWARDS)
    bands = [[mean for mean in means if low <= mean <= low + FLAT_BAND] for low in means]
    alike = max(bands, key=len, default=[])
    if len(means) < MIN_FLAT_ARMS or len(alike) < FLAT_SHARE * len(means):
        return None
    band = f"{FLAT_BAND:.2f}".removeprefix("0")
    return Advice(
        kind=AdviceKind.FLAT,
        observation=f"{len(alike)} of {len(means)} arms with {MIN_REWARDS} rewards and more lie within {band} of "
        f"each other, from {_format_mean(alike[0])} to {_format_mean(alike[-1])}: whichever is chosen, about the same "
        "is expected.",
        action="See whether the grades tell sessions apart at all, and what levels them.",
    )


def frozen(facts: BanditFacts) -> Advice | None:
    """Choosable arms whose mean no single reward moves visibly."""
    arms = [arm for arm in facts.arms if arm.live and arm.jump < MIN_JUMP]
    if not arms:
        return None
    largest = max(arm.jump for arm in arms)
    return Advice(
        kind=AdviceKind.FROZEN,
        arms=_names(arms),
        observation=f"One reward, a 0 or a 1, moves {_list_arms(arms)} by {largest:.4f} at most: no grade is "
        "felt any more.",
        action="Shorten the half-life, or cap how much evidence one arm may hold.",
    )


def unfinished(facts: BanditFacts) -> Advice | None:
    """Arms that were chosen many times since a session of theirs last finished."""
    arms = [arm for arm in facts.arms if arm.unfinished > MAX_UNFINISHED]
    if not arms:
        return None
    worst = max(arm.unfinished for arm in arms)
    verdict = "choosing it teaches nothing" if worst > MANY_UNFINISHED else "that is a lot to be still running"
    counts = _list_arms(arms, lambda arm: f"chosen {arm.unfinished} times")
    return Advice(
        kind=AdviceKind.UNFINISHED,
        arms=_names(arms),
        observation=f"{counts} since a session of it last came to an end: {verdict}.",
        action="See why those runs ended before a session was sent, or ran as something else.",
    )


def not_learning(facts: BanditFacts) -> Advice | None:
    """Arms without a reward despite many decisions, unless `unfinished` gives its stronger advice on them."""
    arms = [
        arm
        for arm in facts.arms
        if arm.decisions >= MIN_DECISIONS and not arm.rewards and arm.unfinished <= MANY_UNFINISHED
    ]
    if not arms:
        return None
    counts = _list_arms(arms, lambda arm: f"chosen {arm.decisions} times")
    return Advice(
        kind=AdviceKind.NOT_LEARNING,
        arms=_names(arms),
        observation=f"{counts}, and not one reward came of it.",
        action="See whether its sessions come in under this name, and what their grades were.",
    )


def fallback_heavy(facts: BanditFacts) -> Advice | None:
    """Arms with a large share of evidence from fallbacks, that is, not from judges or people."""
    arms = [
        arm
        for arm in facts.arms
        if arm.rewards >= MIN_FALLBACK_REWARDS and arm.fallback > MAX_FALLBACK_SHARE * arm.evidence > 0
    ]
    if not arms:
        return None
    shares = _list_arms(arms, lambda arm: f"{100 * arm.fallback / arm.evidence:.0f} %")
    return Advice(
        kind=AdviceKind.FALLBACK,
        arms=_names(arms),
        observation=f"Fallback grades are {shares} of the evidence; up to {100 * MAX_FALLBACK_SHARE:g} % is usual.",
        action="Have those sessions judged, or review some of them.",
    )


def over_optimistic(facts: BanditFacts) -> Advice | None:
    """Arms whose posterior mean is far above the mean of their rewards."""
    arms = [
        arm
        for arm in facts.arms
        if arm.rewards >= MIN_REWARDS and arm.observed_mean is not None and arm.mean - arm.observed_mean > MAX_OPTIMISM
    ]
    if not arms:
        return None
    compared = _list_arms(arms, lambda arm: f"{_format_mean(arm.mean)} against {_format_mean(arm.observed_mean)}")
    return Advice(
        kind=AdviceKind.OPTIMISTIC,
        arms=_names(arms),
        observation=f"Believed above its own record: {compared} over the very rewards it read.",
        action="Look at its latest rewards: either it got better lately, or a few of them are wrong.",
    )


def supply_bound(facts: BanditFacts) -> Advice | None:
    """Arms that lacked work, among those with at least the chance of an equal share; for others it hardly matters."""
    equal_chance = 1 / max(sum(arm.live for arm in facts.arms), 1)
    arms = [arm for arm in facts.arms if arm.unsupplied and arm.chance >= equal_chance]
    if not arms:
        return None
    missed = _list_arms(arms, lambda arm: f"{arm.unsupplied} of {facts.decisions}")
    return Advice(
        kind=AdviceKind.SUPPLY,
        arms=_names(arms),
        observation=f"Would be chosen often, but had no work in {missed} decisions.",
        action="Find it work: no weight and no boost makes any.",
    )


def uncalibrated(facts: BanditFacts) -> Advice | None:
    """A bandit with rewards, but few sessions that a person graded blind, to compare machines with."""
    if facts.pairs is None or facts.pairs >= MIN_PAIRS or not any(arm.rewards for arm in facts.arms):
        return None
    return Advice(
        kind=AdviceKind.UNCALIBRATED,
        observation=f"People graded {_with_noun(facts.pairs, 'session')} of the random slice blind; from {MIN_PAIRS} "
        "on they say how far the machines are off.",
        action="Review the random slice, ten a week.",
    )


def judge_moved(facts: BanditFacts) -> Advice | None:
    """The latest shift of a judge, if there is any."""
    last = max(facts.shifts, key=lambda shift: shift.day, default=None)
    if last is None:
        return None
    return Advice(
        kind=AdviceKind.JUDGE_MOVED,
        observation=f"On {last.day:%-d %B %Y} what one judge gives moved by {signed(last.shift)}, of {last.arm} as of "
        "the others: that is the judge, so no arm's past was left out for it.",
        action="See whether its model changed behind the same name, and re-grade what it gave since.",
    )


RULES: tuple[Callable[[BanditFacts], Advice | None], ...] = (
    unfinished,
    not_learning,
    flat,
    frozen,
    over_optimistic,
    fallback_heavy,
    supply_bound,
    uncalibrated,
    judge_moved,
)


def _names(arms: Iterable[ArmFacts]) -> tuple[str, ...]:
    return tuple(arm.name for arm in arms)


def _list_arms(arms: Sequence[ArmFacts], describe: Callable[[ArmFacts], str] | None = None) -> str:
    """The arms with their descriptions, as text: "news 3 rewards, social 1 reward and 2 more"."""
    items = [f"{arm.name} {describe(arm)}" if describe else arm.name for arm in arms[:MAX_NAMED_ARMS]]
    if len(arms) > MAX_NAMED_ARMS:
        items.append(f"{len(arms) - MAX_NAMED_ARMS} more")
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _with_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _format_mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0")
