"""What may go wrong on a site, and the rule that is for it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.watched.site import ARMS, STEP, Fault, Session, log_of
from grading.monitoring.streaks import SessionEnding


def _given_up(one: Session, draw: np.random.Generator) -> Session:
    return replace(one, waits=None if draw.random() < 0.2 else one.waits)  # noqa: PLR2004


def _stuck_queue(one: Session, _draw: np.random.Generator) -> Session:
    return replace(one, waits=60.0)


def _half_blind(one: Session, _draw: np.random.Generator) -> Session:
    hit = one.harness == "harness 0" and one.trajectory is not None
    return replace(one, trajectory=max(0.02, one.trajectory - 0.3)) if hit else one


def _new_format(one: Session, _draw: np.random.Generator) -> Session:
    return replace(one, log=log_of(20, 18)) if one.harness == "harness 0" else one


def _last_log(one: Session, draw: np.random.Generator) -> Session:
    return replace(one, is_repeated=draw.random() < 0.1) if one.agent == "agent 0" else one  # noqa: PLR2004


def _stuck(one: Session, draw: np.random.Generator) -> Session:
    hit = one.mean is not None and draw.random() < 0.3  # noqa: PLR2004
    return replace(one, mean=0.75) if hit else one


def _same(value: float, one: Session, _draw: np.random.Generator) -> Session:
    mean, trajectory = (None if each is None else value for each in (one.mean, one.trajectory))
    return replace(one, mean=mean, trajectory=trajectory)


def _levelled(one: Session, draw: np.random.Generator) -> Session:
    def any_other() -> float:
        return round(float(np.clip(draw.normal(0.55, 0.2), 0, 1)) / STEP) * STEP

    mean, trajectory = (None if each is None else any_other() for each in (one.mean, one.trajectory))
    return replace(one, mean=mean, trajectory=trajectory)


def _worse(one: Session, _draw: np.random.Generator) -> Session:
    hit = one.harness == "harness 0" and one.arm == f"arm {ARMS - 1}" and one.mean is not None
    return replace(one, mean=max(0.0, one.mean - 0.25)) if hit else one


def _lacking(share: float, one: Session, draw: np.random.Generator) -> Session:
    return replace(one, lacks="category") if one.agent == "agent 0" and draw.random() < share else one


def _silent(one: Session, _draw: np.random.Generator) -> Session:
    return replace(one, ending=SessionEnding.UNSCORED, mean=None, trajectory=None) if one.arm == "arm 0" else one


FAULTS: Sequence[tuple[str, str, Fault | None]] = (
    ("A1", "a fifth of the verdicts are given up", _given_up),
    ("A1", "no verdict comes any more, and no call fails", _stuck_queue),
    ("A3", "a harness's trajectories read .3 lower", _half_blind),
    ("A4", "a harness writes a new format", _new_format),
    ("A5", "an agent takes the last log, one time in ten", _last_log),
    ("A9", "30 % of the verdicts are .75", _stuck),
    ("A9", "every reward is .5", partial(_same, 0.5)),
    ("A9", "every reward is 0", partial(_same, 0.0)),
    ("A9", "rewards say nothing of the category any more", _levelled),
    ("A10", "one cell of sixteen is .25 worse", _worse),
    ("A10", "four fifths of the better half's work moves to the weakest two", None),
    ("A12", "an agent stops sending the category", partial(_lacking, 1.0)),
    ("A12", "… in 30 % of its sessions", partial(_lacking, 0.3)),
    ("A14", "an arm leaves nothing to grade any more", _silent),
)
