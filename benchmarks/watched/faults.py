"""Faults of a site, and the rule that should find each of them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.watched.site import ARMS, STEP, Fault, WatchedSession, log_of
from grading.monitoring.streaks import SessionEnding


def give_up_verdicts(session: WatchedSession, dice: np.random.Generator) -> WatchedSession:
    return replace(session, waits=None if dice.random() < 0.2 else session.waits)  # noqa: PLR2004


def stop_verdicts(session: WatchedSession, _dice: np.random.Generator) -> WatchedSession:
    return replace(session, waits=60.0)


def lower_trajectories(session: WatchedSession, _dice: np.random.Generator) -> WatchedSession:
    is_hit = session.harness == "harness 0" and session.trajectory is not None
    return replace(session, trajectory=max(0.02, session.trajectory - 0.3)) if is_hit else session


def write_new_format(session: WatchedSession, _dice: np.random.Generator) -> WatchedSession:
    return replace(session, log=log_of(20, 18)) if session.harness == "harness 0" else session


def repeat_last_log(session: WatchedSession, dice: np.random.Generator) -> WatchedSession:
    return replace(session, is_repeated=dice.random() < 0.1) if session.agent == "agent 0" else session  # noqa: PLR2004


def repeat_one_verdict(session: WatchedSession, dice: np.random.Generator) -> WatchedSession:
    is_hit = session.mean is not None and dice.random() < 0.3  # noqa: PLR2004
    return replace(session, mean=0.75) if is_hit else session


def set_all_rewards(value: float, session: WatchedSession, _dice: np.random.Generator) -> WatchedSession:
    mean, trajectory = (None if each is None else value for each in (session.mean, session.trajectory))
    return replace(session, mean=mean, trajectory=trajectory)


def randomise_rewards(session: WatchedSession, dice: np.random.Generator) -> WatchedSession:
    def random_reward() -> float:
        return round(float(np.clip(dice.normal(0.55, 0.2), 0, 1)) / STEP) * STEP

    mean, trajectory = (None if each is None else random_reward() for each in (session.mean, session.trajectory))
    return replace(session, mean=mean, trajectory=trajectory)


def make_one_cell_worse(session: WatchedSession, _dice: np.random.Generator) -> WatchedSession:
    is_hit = session.harness == "harness 0" and session.arm == f"arm {ARMS - 1}" and session.mean is not None
    return replace(session, mean=max(0.0, session.mean - 0.25)) if is_hit else session


def omit_category(share: float, session: WatchedSession, dice: np.random.Generator) -> WatchedSession:
    return replace(session, lacks="category") if session.agent == "agent 0" and dice.random() < share else session


def silence_one_arm(session: WatchedSession, _dice: np.random.Generator) -> WatchedSession:
    return (
        replace(session, ending=SessionEnding.UNSCORED, mean=None, trajectory=None)
        if session.arm == "arm 0"
        else session
    )


FAULTS: Sequence[tuple[str, str, Fault | None]] = (
    ("A1", "a fifth of the verdicts are given up", give_up_verdicts),
    ("A1", "no verdict comes any more, and no call fails", stop_verdicts),
    ("A3", "a harness's trajectories read .3 lower", lower_trajectories),
    ("A4", "a harness writes a new format", write_new_format),
    ("A5", "an agent takes the last log, one time in ten", repeat_last_log),
    ("A9", "30 % of the verdicts are .75", repeat_one_verdict),
    ("A9", "every reward is .5", partial(set_all_rewards, 0.5)),
    ("A9", "every reward is 0", partial(set_all_rewards, 0.0)),
    ("A9", "rewards say nothing of the category any more", randomise_rewards),
    ("A10", "one cell of sixteen is .25 worse", make_one_cell_worse),
    ("A10", "four fifths of the better half's work moves to the weakest two", None),
    ("A12", "an agent stops sending the category", partial(omit_category, 1.0)),
    ("A12", "… in 30 % of its sessions", partial(omit_category, 0.3)),
    ("A14", "an arm leaves nothing to grade any more", silence_one_arm),
)
