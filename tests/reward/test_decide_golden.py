"""What the chain makes of grades: the numbers of rewards, and what they count."""

from dataclasses import replace

import pytest

from grading.reward.chain import Resolution, resolve
from grading.reward.decide import ChainPolicy, GradeView, current, decide, fallback
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Outcome, Reason, Source, Status
from grading.witness import Witness
from tests import golden

pytestmark = pytest.mark.pure

# Of the chain; its policy adds the numbers that a site may set.
VERSION = "2"
AT = "gradingsite/settings.py (CHAIN_VERSION)"
POLICY = ChainPolicy(
    version="golden",
    floor=0.1,
    threshold=0.12,
    veto_cap=0.2,
    weights={"human": 0.9, "judge": 0.8, "consumption": 0.7, "trajectory": 0.3, "journal": 0.25, "floor": 0.05},
)
# A trajectory's .2 is taken for .5 + .8·.2 beside the others, a journal's for .1 + .5·.2.
MAPS = replace(POLICY, scale={"trajectory": (0.5, 0.8), "journal": (0.1, 0.5)})


def row(source: Source, number: int, value: float | None, **fields) -> GradeView:
    status = Status.UNSCORED if value is None else Status.SCORED
    return GradeView(id=number, source=source, status=status, value=value, **fields)


def judge(value: float | None, number: int = 10, **fields) -> GradeView:
    return row(Source.JUDGE, number, value, **fields)


def readings(*values: float, stale: str = "") -> tuple[GradeView, ...]:
    """A verdict, and further ones of the same session."""
    return tuple(
        judge(value, 10 + n, stale=stale if n == 0 else "", sample_of=10 if n else None)
        for n, value in enumerate(values)
    )


def trajectory(value: float | None, **fields) -> GradeView:
    return row(Source.TRAJECTORY, 20, value, **{"view": EvidenceView.FULL, "stands": True, **fields})


def journal(value: float) -> GradeView:
    return row(Source.JOURNAL, 30, value)


def left(value: float, witness: Witness = Witness.HOOK) -> GradeView:
    return row(Source.CONSUMPTION, 40, value, witness=witness)


def person(value: float | None, number: int = 50, **fields) -> GradeView:
    return row(Source.HUMAN, number, value, **fields)


SPENT = judge(None, reason=Reason.QUOTA_EXHAUSTED)
NOT_SAID = {"stands": None}
NO = {"stands": False}
CLAIMED = Witness.CLAIMED
OPEN = {"judge_open": True}
LOST = {"outcome": Outcome.INFRASTRUCTURE}
FINAL, UNJUDGED = (True, "plain", ""), (False, "plain", "not_configured")
QUOTA, AWAITED = (False, "plain", "quota_exhausted"), (False, "plain", "awaiting_judge")
TABLE = [
    # grades, more of the case: reward, who decides, weight, (final, standing, reason)
    ("nothing", (), {}, 0.1, "floor", 0.05, UNJUDGED),
    ("a verdict is asked for", (), OPEN, 0.1, "floor", 0.05, AWAITED),
    ("a verdict", (judge(0.62),), {}, 0.62, "judge", 0.8, FINAL),
    ("a verdict of 0", (judge(0.0), trajectory(0.6)), {}, 0.0, "judge", 0.8, FINAL),
    ("no verdict, a trajectory", (SPENT, trajectory(0.44)), {}, 0.44, "trajectory", 0.3, QUOTA),
    ("a failed judge may still answer", (trajectory(0.44),), OPEN, 0.44, "trajectory", 0.3, AWAITED),
    ("a trajectory that stands", (trajectory(0.2), journal(0.4)), {}, 0.2, "trajectory", 0.3, UNJUDGED),
    ("one that does not", (trajectory(0.2, **NO), journal(0.4)), {}, 0.4, "journal", 0.25, UNJUDGED),
    ("a lower journal", (trajectory(0.2, **NO), journal(0.19)), {}, 0.2, "trajectory", 0.3, UNJUDGED),
    ("an equal journal", (trajectory(0.2, **NO), journal(0.2)), {}, 0.2, "trajectory", 0.3, UNJUDGED),
    ("at the threshold", (trajectory(0.12, **NOT_SAID), journal(0.4)), {}, 0.4, "journal", 0.25, UNJUDGED),
    ("above it", (trajectory(0.121, **NOT_SAID), journal(0.4)), {}, 0.121, "trajectory", 0.3, UNJUDGED),
    ("an abstention", (trajectory(None), journal(0.4)), {}, 0.4, "journal", 0.25, UNJUDGED),
    ("artifacts alone", (left(0.5),), {}, 0.5, "consumption", 0.7, UNJUDGED),
    ("artifacts above a trajectory", (trajectory(0.3), left(0.9)), {}, 0.9, "consumption", 0.7, UNJUDGED),
    ("artifacts as much as it", (trajectory(0.3), left(0.3)), {}, 0.3, "trajectory", 0.3, UNJUDGED),
    ("artifacts above a verdict", (judge(0.5), left(0.7)), {}, 0.7, "consumption", 0.7, FINAL),
    ("by .3", (judge(0.5), left(0.8)), {}, 0.8, "consumption", 0.7, FINAL),
    ("by more", (judge(0.5), left(0.800001)), {}, 0.800001, "consumption", 0.665, (False, "contested/31", "")),
    ("by .37", (judge(0.43), left(0.8)), {}, 0.8, "consumption", 0.455, (False, "contested/37", "")),
    ("by .5", (judge(0.3), left(0.8)), {}, 0.8, "consumption", 0.0, (False, "contested/50", "")),
    ("two readings", (*readings(0.3, 0.7), left(0.8)), {}, 0.8, "consumption", 0.0, (False, "contested/50", "")),
    ("three that agree hold", (*readings(0.3, 0.4, 0.35), left(0.8)), {}, 0.65, "consumption", 0.7, FINAL),
    ("three .3 apart", (*readings(0.3, 0.6, 0.35), left(0.8)), {}, 0.65, "consumption", 0.7, FINAL),
    (
        "three further apart",
        (*readings(0.3, 0.600001, 0.35), left(0.8)),
        {},
        0.8,
        "consumption",
        0.175,
        (False, "contested/45", ""),
    ),
    ("three, and nothing left", readings(0.3, 0.4, 0.35), {}, 0.35, "judge", 0.8, FINAL),
    ("a fourth is not read", readings(0.3, 0.4, 0.35, 0.9), {}, 0.35, "judge", 0.8, FINAL),
    (
        "three that are stale",
        (*readings(0.3, 0.4, 0.35, stale="x"), left(0.8)),
        {},
        0.8,
        "consumption",
        0.7,
        (False, "plain", ""),
    ),
    ("a claim beside a verdict", (judge(0.3), left(0.9, CLAIMED)), {}, 0.3, "judge", 0.8, FINAL),
    (
        "a claim beside a stale one",
        (judge(0.3, stale="x"), left(0.9, CLAIMED)),
        {},
        0.3,
        "judge",
        0.3,
        (False, "stale", ""),
    ),
    ("a claim alone", (left(0.9, CLAIMED),), {}, 0.9, "consumption", 0.3, (False, "claimed", "not_configured")),
    (
        "a claim and a trajectory",
        (trajectory(0.6), left(0.9, CLAIMED)),
        {},
        0.9,
        "consumption",
        0.3,
        (False, "claimed", "not_configured"),
    ),
    ("a claim below it", (trajectory(0.6), left(0.5, CLAIMED)), {}, 0.6, "trajectory", 0.3, UNJUDGED),
    ("a stale verdict", (judge(0.7, stale="x"),), {}, 0.7, "judge", 0.3, (False, "stale", "")),
    ("read again soon", (judge(0.7, stale="x"),), OPEN, 0.7, "judge", 0.3, (False, "stale", "awaiting_judge")),
    (
        "beside something confirmed",
        (judge(0.7, stale="x"), trajectory(0.5)),
        {},
        0.5,
        "trajectory",
        0.3,
        (False, "plain", ""),
    ),
    (
        "beside a failure",
        (judge(0.7, stale="x"), trajectory(0.1, view=EvidenceView.FAILED)),
        {},
        0.7,
        "judge",
        0.3,
        (False, "stale", ""),
    ),
    ("beside an abstention", (judge(0.7, stale="x"), trajectory(None)), {}, 0.7, "judge", 0.3, (False, "stale", "")),
    (
        "artifacts beside a stale one",
        (judge(0.1, stale="x"), left(0.9)),
        {},
        0.9,
        "consumption",
        0.7,
        (False, "plain", ""),
    ),
    ("a person", (judge(0.7), person(0.2)), {}, 0.2, "human", 0.9, FINAL),
    ("a person after a claim", (left(0.9, CLAIMED), person(0.2)), {}, 0.2, "human", 0.9, FINAL),
    ("undone", (judge(0.7), person(0.2), person(None, 51, withdraws=50)), {}, 0.7, "judge", 0.8, FINAL),
    (
        "excluded",
        (judge(0.7), person(None, reason=Reason.EXCLUDED)),
        {},
        None,
        "human",
        0.0,
        (True, "plain", "excluded"),
    ),
    ("lost", (trajectory(0.4), left(0.9)), LOST, None, "", 0.0, (True, "plain", "infrastructure")),
    ("refused to start", (), {"outcome": Outcome.REFUSED}, None, "", 0.0, (True, "plain", "infrastructure")),
    ("failed", (judge(0.4),), {"outcome": Outcome.FAILED}, 0.4, "judge", 0.8, FINAL),
    ("lost, and graded by a person", (person(0.3),), LOST, 0.3, "human", 0.9, FINAL),
    ("a veto", (judge(0.7),), {"vetoes": ("ci",)}, 0.2, "judge", 0.8, FINAL),
    ("a veto on less", (judge(0.15),), {"vetoes": ("ci",)}, 0.15, "judge", 0.8, FINAL),
    ("a veto and the floor", (), {"vetoes": ("ci",)}, 0.1, "floor", 0.05, UNJUDGED),
    ("a veto and a person", (judge(0.7), person(0.8)), {"vetoes": ("ci",)}, 0.8, "human", 0.9, FINAL),
]
MAPPED = [
    # trajectory, journal, artifacts: reward, who decides
    (0.2, None, 0.66, 0.2, "trajectory"),
    (0.2, None, 0.660001, 0.660001, "consumption"),
    (0.9, None, 1.0, 0.9, "trajectory"),
    (None, 0.2, 0.2, 0.2, "journal"),
    (None, 0.2, 0.21, 0.21, "consumption"),
    (0.05, 0.5, None, 0.05, "trajectory"),
    (0.0, 0.9, None, 0.9, "journal"),
    (0.0625, 0.9, None, 0.0625, "trajectory"),
]
COMPARED = [
    # shift, slope, grade: what it is taken for
    (0.0, 1.0, 0.37, 0.37),
    (0.1, 0.5, 0.4, 0.3),
    (0.123456789, 1.0, 0.5, 0.623457),
    (-0.4, 1.0, 0.3, 0.0),
    (0.4, 2.5, 0.3, 1.0),
]


def said(result: Resolution):
    how = result.final, result.standing, result.reason.value
    return result.value, result.source, round(result.weight, 6), how


@pytest.mark.parametrize(
    ("grades", "more", "expected"), [(r[1], r[2], r[3:]) for r in TABLE], ids=[r[0] for r in TABLE]
)
def test_the_reward(grades, more, expected):
    found = resolve(decide(grades, POLICY, **{"judge_open": False, **more}))
    golden.hold(said(found), expected, version=f"chain/{VERSION}", at=AT)


@pytest.mark.parametrize(("seen", "told", "found_there", "value", "source"), MAPPED)
def test_grades_are_compared_as_the_policy_maps_them(seen, told, found_there, value, source):
    grades = [
        each
        for each in (
            None if seen is None else trajectory(seen, stands=False),
            None if told is None else journal(told),
            None if found_there is None else left(found_there),
        )
        if each is not None
    ]
    found = resolve(decide(grades, MAPS, judge_open=False))
    golden.hold((found.value, found.source), (value, source), version=f"chain/{VERSION}", at=AT)


@pytest.mark.parametrize(("shift", "slope", "grade", "expected"), COMPARED)
def test_what_a_grade_is_taken_for(shift, slope, grade, expected):
    found = replace(POLICY, scale={"journal": (shift, slope)}).compared(Source.JOURNAL, grade)
    golden.hold(found, expected, version=f"chain/{VERSION}", at=AT)


def test_the_fallback_is_what_the_chain_would_rest_on_without_a_verdict():
    assert fallback([judge(0.7), trajectory(0.3), journal(0.2)], POLICY) == trajectory(0.3)
    assert fallback([trajectory(0.3)], POLICY) == trajectory(0.3)
    assert fallback([judge(0.7), journal(0.2), left(0.9)], POLICY) == journal(0.2)
    assert fallback([judge(0.7), left(0.9)], POLICY) is None


def test_of_three_readings_the_row_in_the_middle_holds():
    held = current(readings(0.3, 0.62, 0.35, stale="the transcript came"))[Source.JUDGE]
    assert (held.id, held.value, held.sample_of) == (12, 0.35, None)
    assert (held.samples, held.spread, held.readings_agree) == ((0.3, 0.62, 0.35), 0.32, False)
    assert held.stale == "the transcript came"
