"""What is wrong with a bandit, read from its own numbers: what is seen, and what to do about it, in sentences.

Every threshold is a published incident's or its alarm's; each rule is one function of the facts. Nothing here judges an
arm's work: it says where the numbers stopped telling.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from bandit.core.change import JudgeShift
from bandit.core.estimate import signed
from bandit.core.posterior import Posterior, fold
from bandit.core.table import MICRO, RewardRow, RewardRows

# Arms with fewer rewards are not compared by their means.
ENOUGH = 50
# Flat: this share of such arms within a band so narrow. Two arms are alike by chance; three are not.
FLAT_SHARE, BAND, FEWEST = 0.8, 0.02, 3
# Frozen: not even one reward of 0 or 1 moves the mean by so much.
STIRS = 0.002
# Starved: less than this share of the leader's rewards once that has so many, and too few to know it to be worse.
STARVED_SHARE, LEADS, KNOWN = 0.05, 100, 12
# Decisions for an arm since it last finished: worth a word, then worth a worry.
WAITED, WAITED_LONG = 5, 10
# Fallback: more than this share of the evidence, of at least so many rewards.
FALLBACK_SHARE, FALLBACK_REWARDS = 0.3, 5
# Over-optimistic: the mean so far above the record of the same rewards. The other way is caution.
OPTIMISM = 0.15
# Drained: pseudo-observations left of 50 rewards and more.
DRAINED = 5.0
# Decisions without any reward.
UNLEARNT = 10
# People's blind grades without which nothing is known of the machines.
CALIBRATED = 20
NAMED = 3


class AdviceKind(StrEnum):
    FLAT = "flat"
    FROZEN = "frozen"
    STARVED = "starved"
    UNFINISHED = "unfinished"
    NOT_LEARNING = "not learning"
    FALLBACK = "fallback-heavy"
    OPTIMISTIC = "over-optimistic"
    DRAINED = "drained"
    SUPPLY = "supply-bound"
    UNCALIBRATED = "uncalibrated"
    JUDGE_MOVED = "judge moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts:
    """One arm. `live`: it can be chosen; `tried`: it is on probation, so few sessions are meant.

    `mean` and `record` (None without rewards) are in [0, 1]: the posterior's mean, and the plain mean of the very
    rewards it read, each by its source's weight. `evidence` and `fallback` are pseudo-observations, in all and from
    fallback sources. `jump`: how far one reward of 0 or 1 moves the mean at most. `chance` in [0, 1] of being chosen.
    `decisions` chose it ever, `unfinished` of them since it last ran to an end; `unsupplied` of the latest left it out
    for want of work, 0 where that is not most of them.
    """

    name: str
    live: bool = True
    tried: bool = False
    rewards: int = 0
    mean: float = 0.5
    record: float | None = None
    evidence: float = 0.0
    fallback: float = 0.0
    jump: float = 1.0
    chance: float = 0.0
    decisions: int = 0
    unfinished: int = 0
    unsupplied: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BanditFacts:
    """`decisions`: how many of the latest were looked at for supply. `pairs`: people's blind grades of sessions that a
    machine graded too, None where that is not this bandit's to say. `shifts` of judges, of which no arm broke.
    """

    arms: Sequence[ArmFacts]
    decisions: int = 0
    pairs: int | None = None
    shifts: Sequence[JudgeShift] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One finding about `arms` (empty: the whole bandit): what is `seen`, and what to `do`."""

    kind: AdviceKind
    seen: str
    do: str
    arms: tuple[str, ...] = ()


def advise(facts: BanditFacts) -> list[Advice]:
    """Everything that the rules find, in the order of the rules; empty where nothing is wrong."""
    return [found for rule in RULES if (found := rule(facts)) is not None]


def jumps(rows: Iterable[RewardRow], posterior: Posterior) -> dict[str, float]:
    """How far one more reward, a 0 or a 1 of today with full weight, would move each arm's mean at most; in [0, 1].

    From the fold itself, caps and prices included: a reward of the day moves its own arm alone, so that one fold tells
    of all arms at once, and that nothing else follows from it: breaks, drift and the caps of agents are what they
    were. `rows` are those that `posterior` was folded from.
    """
    held, policy, known = RewardRows.of(rows), posterior.policy, (posterior.caps, posterior.changes)
    source = max(policy.weights, key=lambda name: (policy.weights[name], name), default="")
    before = posterior.alpha / (posterior.alpha + posterior.beta)
    most = np.zeros(len(before))
    for value in (0, MICRO):
        more = [
            RewardRow(arm=name, source=source, day=posterior.day, n=1, s=value, q=value * value)
            for name in posterior.names
        ]
        after = fold(held.plus(more), arms=posterior.names, policy=policy, today=posterior.day, known=known)
        most = np.maximum(most, np.abs(after.alpha / (after.alpha + after.beta) - before))
    return dict(zip(posterior.names, most.tolist(), strict=True))


def flat(facts: BanditFacts) -> Advice | None:
    means = sorted(arm.mean for arm in facts.arms if arm.rewards >= ENOUGH)
    groups = [[mean for mean in means if low <= mean <= low + BAND] for low in means]
    alike = max(groups, key=len, default=[])
    if len(means) < FEWEST or len(alike) < FLAT_SHARE * len(means):
        return None
    band = f"{BAND:.2f}".removeprefix("0")
    return Advice(
        kind=AdviceKind.FLAT,
        seen=f"{len(alike)} of {len(means)} arms with {ENOUGH} rewards and more lie within {band} of each "
        f"other, from {_mean(alike[0])} to {_mean(alike[-1])}: whichever is chosen, about the same is expected.",
        do="See whether the grades tell sessions apart at all, and what levels them.",
    )


def frozen(facts: BanditFacts) -> Advice | None:
    found = [arm for arm in facts.arms if arm.live and arm.jump < STIRS]
    if not found:
        return None
    most = max(arm.jump for arm in found)
    return Advice(
        kind=AdviceKind.FROZEN,
        arms=_names(found),
        seen=f"One reward, a 0 or a 1, moves {_listed(found)} by {most:.4f} at most: no grade is felt any more.",
        do="Shorten the half-life, or cap how much evidence one arm may hold.",
    )


def starved(facts: BanditFacts) -> Advice | None:
    leader = max(facts.arms, key=lambda arm: arm.rewards, default=None)
    if leader is None or leader.rewards < LEADS:
        return None
    few = min(STARVED_SHARE * leader.rewards, KNOWN)
    found = [arm for arm in facts.arms if arm.live and not arm.tried and arm.rewards < few]
    if not found:
        return None
    return Advice(
        kind=AdviceKind.STARVED,
        arms=_names(found),
        seen=f"{_listed(found, lambda arm: _count(arm.rewards, 'reward'))}, where {leader.name} has {leader.rewards}: "
        f"under {100 * STARVED_SHARE:g} %. A winner was found before the others were tried.",
        do="Raise the exploration, see that there is work for it, or retire it.",
    )


def unfinished(facts: BanditFacts) -> Advice | None:
    found = [arm for arm in facts.arms if arm.unfinished > WAITED]
    if not found:
        return None
    worst = max(arm.unfinished for arm in found)
    verdict = "choosing it teaches nothing" if worst > WAITED_LONG else "that is a lot to be still running"
    return Advice(
        kind=AdviceKind.UNFINISHED,
        arms=_names(found),
        seen=f"{_listed(found, lambda arm: f'chosen {arm.unfinished} times')} since a session of it last came to an "
        f"end: {verdict}.",
        do="See why those runs ended before a session was sent, or ran as something else.",
    )


def not_learning(facts: BanditFacts) -> Advice | None:
    found = [
        arm for arm in facts.arms if arm.decisions >= UNLEARNT and not arm.rewards and arm.unfinished <= WAITED_LONG
    ]
    if not found:
        return None
    return Advice(
        kind=AdviceKind.NOT_LEARNING,
        arms=_names(found),
        seen=f"{_listed(found, lambda arm: f'chosen {arm.decisions} times')}, and not one reward came of it.",
        do="See whether its sessions come in under this name, and what their grades were.",
    )


def fallback_heavy(facts: BanditFacts) -> Advice | None:
    found = [
        arm
        for arm in facts.arms
        if arm.rewards >= FALLBACK_REWARDS and arm.fallback > FALLBACK_SHARE * arm.evidence > 0
    ]
    if not found:
        return None
    return Advice(
        kind=AdviceKind.FALLBACK,
        arms=_names(found),
        seen=f"Fallback grades are {_listed(found, lambda arm: f'{100 * arm.fallback / arm.evidence:.0f} %')} of the "
        f"evidence; up to {100 * FALLBACK_SHARE:g} % is usual.",
        do="Have those sessions judged, or review some of them.",
    )


def over_optimistic(facts: BanditFacts) -> Advice | None:
    found = [
        arm
        for arm in facts.arms
        if arm.rewards >= ENOUGH and arm.record is not None and arm.mean - arm.record > OPTIMISM
    ]
    if not found:
        return None
    compared = _listed(found, lambda arm: f"{_mean(arm.mean)} against {_mean(arm.record)}")
    return Advice(
        kind=AdviceKind.OPTIMISTIC,
        arms=_names(found),
        seen=f"Believed above its own record: {compared} over the very rewards it read.",
        do="Look at its latest rewards: either it got better lately, or a few of them are wrong.",
    )


def drained(facts: BanditFacts) -> Advice | None:
    found = [arm for arm in facts.arms if arm.live and arm.rewards >= ENOUGH and arm.evidence < DRAINED]
    if not found:
        return None
    return Advice(
        kind=AdviceKind.DRAINED,
        arms=_names(found),
        seen=f"Old rewards have faded: "
        f"{_listed(found, lambda arm: f'{arm.rewards} rewards have decayed to the weight of {arm.evidence:.1f}')}.",
        do="Lengthen the half-life, or give it a session now and then.",
    )


def supply_bound(facts: BanditFacts) -> Advice | None:
    equal = 1 / max(sum(arm.live for arm in facts.arms), 1)
    found = [arm for arm in facts.arms if arm.unsupplied and arm.chance >= equal]
    if not found:
        return None
    missed = _listed(found, lambda arm: f"{arm.unsupplied} of {facts.decisions}")
    return Advice(
        kind=AdviceKind.SUPPLY,
        arms=_names(found),
        seen=f"Would be chosen often, but had no work in {missed} decisions.",
        do="Find it work: no weight and no boost makes any.",
    )


def uncalibrated(facts: BanditFacts) -> Advice | None:
    if facts.pairs is None or facts.pairs >= CALIBRATED or not any(arm.rewards for arm in facts.arms):
        return None
    return Advice(
        kind=AdviceKind.UNCALIBRATED,
        seen=f"People graded {_count(facts.pairs, 'session')} of the random slice blind; from {CALIBRATED} on they say "
        "how far the machines are off.",
        do="Review the random slice, ten a week.",
    )


def judge_moved(facts: BanditFacts) -> Advice | None:
    last = max(facts.shifts, key=lambda shift: shift.day, default=None)
    if last is None:
        return None
    return Advice(
        kind=AdviceKind.JUDGE_MOVED,
        seen=f"On {last.day:%-d %B %Y} what one judge gives moved by {signed(last.shift)}, of {last.arm} as of the "
        "others: that is the judge, so no arm's past was left out for it.",
        do="See whether its model changed behind the same name, and re-grade what it gave since.",
    )


RULES: tuple[Callable[[BanditFacts], Advice | None], ...] = (
    unfinished,
    not_learning,
    flat,
    frozen,
    over_optimistic,
    fallback_heavy,
    starved,
    drained,
    supply_bound,
    uncalibrated,
    judge_moved,
)


def _names(arms: Iterable[ArmFacts]) -> tuple[str, ...]:
    return tuple(arm.name for arm in arms)


def _listed(arms: Sequence[ArmFacts], say: Callable[[ArmFacts], str] | None = None) -> str:
    """Each arm with what is said of it: "news 3 rewards, social 1 reward and 2 more"."""
    words = [f"{arm.name} {say(arm)}" if say else arm.name for arm in arms[:NAMED]]
    if len(arms) > NAMED:
        words.append(f"{len(arms) - NAMED} more")
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0")
