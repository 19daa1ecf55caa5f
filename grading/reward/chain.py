"""A decision as it is stored: the reward with its explanation, and what tells it from another. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from grading.reward import explain
from grading.reward.decide import Decision
from grading.reward.explain import ChainStep
from grading.reward.standing import PLAIN
from grading.vocabulary import Reason, Source

STEP_CODES = ("source", "state", "join", "value", "reason", "provisional", "grade")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The reward of a session.

    `value` in [0, 1], or None for "no reward"; `source` is the source that decides, None for an infrastructure outcome;
    `weight` in [0, 1]; `reason` says why it is provisional, excluded or without a reward; `grade` is the deciding row's
    id; `standing` as in the ledger's keys (`standing.py`). `basis` is a digest of what else the sentence depends on:
    what may still come, the failed checks, the outcome. `judge_open`: a verdict may still come.
    """

    value: float | None
    source: Source | None
    final: bool
    weight: float
    steps: tuple[ChainStep, ...]
    sentence: str
    reason: Reason = Reason.NONE
    grade: int | None = None
    standing: str = PLAIN
    basis: str = ""
    judge_open: bool = False

    def steps_json(self) -> list[dict[str, Any]]:
        return [asdict(step) for step in self.steps]


def step_codes(steps: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """The steps without their texts, to compare new steps with those of a stored settlement."""
    return [[step[name] for name in STEP_CODES] for step in steps]


def digest(*values: object) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of these values as JSON."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def resolve(decision: Decision) -> Resolution:
    """The reward that this decision gives, explained."""
    return Resolution(
        value=decision.value,
        source=decision.decider,
        final=decision.is_final,
        weight=decision.weight,
        steps=explain.steps(decision),
        sentence=explain.sentence(decision),
        reason=decision.reason,
        grade=None if decision.grade is None else decision.grade.id,
        standing=decision.standing,
        judge_open=decision.judge_open,
        basis=digest(
            decision.judge_open,
            decision.reading_open,
            list(decision.vetoes),
            decision.outcome,
            decision.outcome_reason,
            decision.standing,
        ),
    )
