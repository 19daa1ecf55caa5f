"""A decision as it is stored: the reward with its explanation, and what tells it from another. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from grading.reward import explain
from grading.reward.decide import Decision
from grading.reward.explain import ChainStep
from grading.reward.standing import PLAIN
from grading.vocabulary import Reason, Source

STEP_CODES = ("source", "state", "join", "value", "reason", "provisional", "grade")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The reward of a session.

    `value` in [0, 1], or None for "no reward"; `source` is the source that decides, "" for an infrastructure outcome;
    `weight` in [0, 1]; `reason` says why it is provisional, excluded or without a reward; `grade_id` is that of the
    deciding row; `standing` as in the ledger's keys (`standing.py`). `basis` is a digest of what else the sentence
    depends on: what may still come, the failed checks, the outcome. `judge_open`: a verdict may still come.
    """

    value: float | None
    source: Source | Literal[""]
    final: bool
    weight: float
    steps: list[ChainStep]
    sentence: str
    reason: Reason = Reason.NONE
    grade_id: int | None = None
    standing: str = PLAIN
    basis: str = ""
    judge_open: bool = False

    def columns(self) -> dict[str, Any]:
        """The columns of a settlement; `standing` and `judge_open` are none."""
        return {name: value for name, value in asdict(self).items() if name not in ("standing", "judge_open")}


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
        source=decision.decider or "",
        final=decision.is_final,
        weight=decision.weight,
        steps=explain.steps(decision),
        sentence=explain.sentence(decision),
        reason=decision.reason,
        grade_id=None if decision.grade is None else decision.grade.id,
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
