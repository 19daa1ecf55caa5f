"""The sessions of tests/data/final_states, whose end is known: how the product grades them."""

import json
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

from benchmarks import scratch
from grading import formats
from grading.reward import trajectory
from grading.reward.production import collect
from grading.signals import Signals, extract
from grading.signals.facts import ObservedFacts

FOLDER = scratch.ROOT / "tests" / "data" / "final_states"
# Grades below this are low.
LOW = 0.35
# Kinds of work in which finding nothing to do is a right outcome.
LOOKING = frozenset({"research", "review", "triage"})


@dataclass(frozen=True)
class FinalSession:
    """One labelled session; SOURCES.md beside the data says what each field of `label` means."""

    label: dict[str, Any]

    @cached_property
    def signals(self) -> Signals:
        return extract(formats.read(BytesIO((FOLDER / self.label["log"]).read_bytes())))

    @cached_property
    def grade(self) -> float | None:
        """The trajectory grade, None if it has none."""
        inputs = trajectory.TrajectoryInput(
            signals=self.signals,
            production=collect(self.signals),
            facts=ObservedFacts(),
            looking=self.label["kind"] in LOOKING,
        )
        return trajectory.grade(inputs).value

    @property
    def is_low(self) -> bool:
        return self.grade is not None and self.grade < LOW

    @property
    def is_failure(self) -> bool:
        return bool(self.label["label"] == "low")

    @property
    def is_state_right(self) -> bool:
        """Whether the state of its tests at the end is the labelled one."""
        return bool(self.signals.tests_at_end == self.label["tests_at_end"])


def load_sessions() -> list[FinalSession]:
    """All labelled sessions, those held out too."""
    return [FinalSession(json.loads(line)) for line in (FOLDER / "labels.jsonl").read_text().splitlines()]


def figures(sessions: list[FinalSession]) -> dict[str, float]:
    """How many grades are low without a failure, and the shares of failures found and of states that are right."""
    failures = [each for each in sessions if each.is_failure]
    return {
        "false_lows": sum(each.is_low and not each.is_failure for each in sessions),
        "true_lows": round(sum(each.is_low for each in failures) / len(failures), 3),
        "graded": round(sum(each.grade is not None for each in sessions) / len(sessions), 3),
        "tests_at_end": round(sum(each.is_state_right for each in sessions) / len(sessions), 3),
    }
