"""Sessions that both a machine and people graded, as pairs to which the offsets of a calibration are fitted.

Only people's blind grades in the random slice are used: flagged sessions are not typical, and people who see a grade
are biased by it. A pair's weight is 1/probability of being drawn. People take the slice's sessions in order of stratum
and age, which doesn't depend on the machine's error.
"""

from collections import defaultdict
from statistics import fmean
from typing import Any

from bandit.core.calibration import FallbackCalibration
from bandit.core.machine_human import MachineHumanPair
from bandit.models import Bandit
from grading.models import ReviewAnswer, Settlement
from grading.vocabulary import Source

# The session's column that names the arm of each bandit that learns from sessions.
ARMS = {"category": "session__category__name", "harness": "session__harness__name"}
REWARD_FIELDS = ("source", "value", "weight")


def human_pairs(bandit: Bandit, fallbacks: FallbackCalibration | None) -> list[MachineHumanPair]:
    """One pair for each session of the random slice with a machine's and a blind grade, in order of the first answers.

    The machine's grade is the reward that the first person's answer refers to or, if that isn't a machine's, the last
    one that is, calibrated by `fallbacks`; rewards without weight don't count. The human grade is the mean of the blind
    grades. Two queries; none for a bandit that doesn't learn from sessions.
    """
    if bandit.name not in ARMS:
        return []
    values: dict[int, list[float]] = defaultdict(list)
    first: dict[int, tuple[str, str, float]] = {}
    rewards: dict[int, list[Any]] = {}
    arm_column, shown_reward = ARMS[bandit.name], [f"settlement__{name}" for name in REWARD_FIELDS]
    answers = ReviewAnswer.objects.blind().exclude(**{arm_column: None}).order_by("pk")
    for session, value, arm, stratum, probability, *reward in answers.values_list(
        "session", "blind_value", arm_column, "stratum", "slice_probability", *shown_reward
    ):
        values[session].append(value)
        if session not in first:
            first[session], rewards[session] = (arm, stratum, probability), reward
    # If the first answer doesn't refer to a machine's reward, the last one of the session counts.
    others = [session for session, reward in rewards.items() if not _is_machines(*reward)]
    settlements = Settlement.objects.filter(session__in=others).order_by("session", "revision")
    for session, *reward in settlements.values_list("session", *REWARD_FIELDS):
        if _is_machines(*reward):
            rewards[session] = reward
    kinds = {} if fallbacks is None else fallbacks.by_kind
    pairs = []
    for session, (arm, stratum, probability) in first.items():
        source, value, weight = rewards[session]
        if not _is_machines(source, value, weight):
            continue
        kind = kinds.get((source, ""))
        pair = MachineHumanPair(
            arm=arm,
            source=source,
            stratum=stratum,
            machine=value if kind is None else kind.read(value),
            human=fmean(values[session]),
            probability=probability,
        )
        pairs.append(pair)
    return pairs


def _is_machines(source: str | None, value: float | None, weight: float | None) -> bool:
    """Whether a reward was given by a machine, and has weight."""
    return source != Source.HUMAN and value is not None and bool(weight)
