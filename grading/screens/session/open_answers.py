"""What each of a few grades by a person would do, for a session whose grade is open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bandit.core.moves import ArmMove
from grading.models import Session
from grading.review import promises
from grading.reward.decide import CurrentGrades, contests, value_of
from grading.vocabulary import Source

# The grades that are shown, unless a grade that is at issue is within NEAR. Each costs a fold of the bandit, which is
# 20 ms at 200,000 sessions, so the desk, which computes more than the session's page, shows two.
GRADES = (0.2, 0.5, 0.8)
DESK_GRADES = (0.2, 0.8)
NEAR = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAnswer:
    """A grade in [0, 1] that a person could give, and its effect as `move`; `name` says whose grade it is now, if it is
    anybody's.
    """

    value: float
    name: str
    move: ArmMove


def at_issue(grades: CurrentGrades, *, hides: bool = False) -> dict[float, str]:
    """The grades that a person decides between, and whose they are: a verdict that is stale or contested, and the
    artifacts that contest it. With `hides`, none: the verdict must not show.
    """
    judge = grades.get(Source.JUDGE)
    if hides or judge is None or judge.value is None:
        return {}
    if contests(grades):
        return {judge.value: "the judge’s", value_of(grades, Source.CONSUMPTION) or 0.0: "the artifacts’"}
    return {judge.value: "the stale verdict’s"} if judge.stale else {}


def open_answers(session: Session, named: Mapping[float, str], grades: Sequence[float] = GRADES) -> list[OpenAnswer]:
    """The grades of `named`, and those of `grades` that aren't close to them, with their effects: at most three. Empty
    if no arm learns from the session.
    """
    others = [grade for grade in grades if all(round(abs(grade - each), 2) > NEAR for each in named)]
    values = sorted({*named, *others})
    moves = promises.answer_moves(session, values)
    return [
        OpenAnswer(value=value, name=named.get(value, ""), move=move)
        for value, move in zip(values, moves, strict=bool(moves))
    ]
