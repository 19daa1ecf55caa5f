"""What sessions are worth by what can be seen of them: the numbers of the trajectory grade."""

from dataclasses import asdict, replace

import pytest

from grading.reward import trajectory
from grading.reward.production import UNITS, Production, Thing, collect
from grading.reward.trajectory_formula import WEIGHTS, Weights, score
from grading.signals import Commit, Effect, EffectKind, Signals
from grading.signals import TestState as State
from grading.signals.changes import FileChange
from grading.signals.facts import ObservedFacts
from tests import golden

pytestmark = pytest.mark.pure

VERSION = "trajectory/3"
AT = "grading/reward/trajectory.py"


def commits(count: int, *paths: str) -> tuple[Commit, ...]:
    return tuple(Commit(hash=f"{n:07x}", branch="main", subject="x", at=n, paths=paths) for n in range(count))


def files(count: int) -> tuple[FileChange, ...]:
    return tuple(FileChange(path=f"src/{n}.py", at=n) for n in range(count))


def effect(kind: EffectKind, count: int = 1) -> tuple[Effect, ...]:
    return tuple(Effect(kind=kind, key=str(n), at=n) for n in range(count))


GREEN = {"tests_at_end": State.GREEN}
RED = {"tests_at_end": State.RED, "broke_tests": True, "failures": ("the last run of pytest failed",)}
TAKEN_BACK = {"undone": ("abc1234",), "failures": ("its own commit was taken back",)}
SESSION = Signals(tool_calls={"shell": 40}, results=40, known_results=40, assistant_turns=9, user_turns=1)
CI = ObservedFacts(failed_checks=("ci",))
NOTHING, CUT = "nothing_observable", "infrastructure"
ONE, TWO = {"commits": commits(1)}, {"commits": commits(2)}
LOOKED = {"reads": 3, "concluded": True}
TABLE = [
    # what the log shows, what the caller says, whether the category is one of looking: grade or reason, units, view
    ({}, ObservedFacts(), False, NOTHING, 0.0, None),
    (ONE, ObservedFacts(), False, 0.555661, 1.0, "full"),
    (TWO, ObservedFacts(), False, 0.587192, 1.584963, "full"),
    ({"commits": commits(9)}, ObservedFacts(), False, 0.641059, 3.321928, "full"),
    ({**ONE, "truncated": True}, ObservedFacts(), False, 0.555661, 1.0, "part"),
    ({**ONE, "unreadable_calls": 1}, ObservedFacts(), False, 0.555661, 1.0, "part"),
    ({"commits": commits(1, "journal/today.md")}, ObservedFacts(), False, NOTHING, 0.1, None),
    ({"files": files(1)}, ObservedFacts(), False, 0.503555, 0.3, "full"),
    ({"files": files(7)}, ObservedFacts(), False, 0.549286, 0.9, "full"),
    ({"effects": effect(EffectKind.PR_OPENED)}, ObservedFacts(), False, 0.567494, 1.2, "full"),
    ({"effects": effect(EffectKind.PR_MERGED)}, ObservedFacts(), False, 0.583165, 1.5, "full"),
    ({"effects": effect(EffectKind.COMMENT, 3)}, ObservedFacts(), False, 0.51216, 0.4, "full"),
    (
        {**TWO, "effects": effect(EffectKind.PUSH), **GREEN},
        ObservedFacts(),
        False,
        0.851719,
        1.684963,
        "full",
    ),
    (
        {"commits": commits(9), **GREEN, "concluded": True},
        ObservedFacts(),
        False,
        0.901059,
        3.321928,
        "full",
    ),
    ({**TWO, **RED}, ObservedFacts(), False, 0.3, 1.584963, "full"),
    ({**ONE, **RED}, ObservedFacts(), False, 0.295661, 1.0, "full"),
    ({**TWO, "tests_at_end": State.RED}, ObservedFacts(), False, 0.587192, 1.584963, "full"),
    ({**TWO, "tests_at_end": State.UNKNOWN}, ObservedFacts(), False, 0.587192, 1.584963, "full"),
    ({**TWO, **TAKEN_BACK}, ObservedFacts(), False, 0.3, 1.584963, "full"),
    ({**ONE, "failed_calls": 10}, ObservedFacts(), False, 0.514411, 1.0, "full"),
    ({**ONE, "failed_calls": 40}, ObservedFacts(), False, 0.390661, 1.0, "full"),
    ({**ONE, "failed_calls": 20, "known_results": 20}, ObservedFacts(), False, 0.390661, 1.0, "full"),
    ({**ONE, "failed_calls": 19, "known_results": 19}, ObservedFacts(), False, 0.555661, 1.0, "full"),
    ({**ONE, "user_turns": 0}, ObservedFacts(), False, 0.555661, 1.0, "full"),
    ({**ONE, "user_turns": 2}, ObservedFacts(), False, 0.530661, 1.0, "full"),
    ({**ONE, "user_turns": 5}, ObservedFacts(), False, 0.493161, 1.0, "full"),
    ({**ONE, "user_turns": 41}, ObservedFacts(), False, 0.442025, 1.0, "full"),
    ({**ONE, "dead_start": True}, ObservedFacts(), False, 0.445661, 1.0, "full"),
    ({**ONE, "must_print": 8, "empty_results": 2}, ObservedFacts(), False, 0.543161, 1.0, "full"),
    ({**ONE, "repeatable": 8, "repeats": 2}, ObservedFacts(), False, 0.536911, 1.0, "full"),
    ({**ONE, "rejected": 2}, ObservedFacts(), False, 0.555661, 1.0, "full"),
    (ONE, CI, False, 0.3, 1.0, "full"),
    # A failure and nothing brought about.
    (RED, ObservedFacts(), False, 0.075, 0.0, "failed"),
    ({**RED, "failed_calls": 40, "dead_start": True}, ObservedFacts(), False, 0.02, 0.0, "failed"),
    ({}, CI, False, 0.2, 0.0, "failed"),
    (TAKEN_BACK, ObservedFacts(), False, 0.2, 0.0, "failed"),
    ({"rejected": 1, "failed_calls": 30}, ObservedFacts(), False, NOTHING, 0.0, None),
    # Looking is the work.
    (LOOKED, ObservedFacts(), True, 0.35, 0.0, "looked"),
    (LOOKED, ObservedFacts(), False, NOTHING, 0.0, None),
    ({**LOOKED, "failed_calls": 9}, ObservedFacts(), True, 0.35, 0.0, "looked"),
    ({**LOOKED, "failed_calls": 10}, ObservedFacts(), True, NOTHING, 0.0, None),
    ({**LOOKED, "reads": 2}, ObservedFacts(), True, NOTHING, 0.0, None),
    ({**LOOKED, "concluded": False}, ObservedFacts(), True, NOTHING, 0.0, None),
    ({**LOOKED, **ONE}, ObservedFacts(), True, 0.555661, 1.0, "full"),
    (
        {**LOOKED, "effects": effect(EffectKind.COMMENT), "dead_start": True, "user_turns": 80},
        ObservedFacts(),
        True,
        0.35,
        0.2,
        "full",
    ),
    (
        {**LOOKED, "effects": effect(EffectKind.COMMENT), "dead_start": True, "user_turns": 80, **TAKEN_BACK},
        ObservedFacts(),
        True,
        0.265532,
        0.2,
        "full",
    ),
    # Cut by its infrastructure.
    ({**ONE, "cut": "quota"}, ObservedFacts(), False, CUT, 1.0, None),
    ({**ONE, "cut": "quota", "concluded": True}, ObservedFacts(), False, 0.555661, 1.0, "full"),
    # Without a log that can be used.
    (None, ObservedFacts(), False, "no_transcript", 0.0, None),
    (None, ObservedFacts(commits=("a" * 40,)), False, 0.320661, 1.0, "facts"),
    (
        None,
        ObservedFacts(commits=("a" * 40, "b" * 40), pull_requests=("https://github.com/o/r/pull/1",)),
        False,
        0.394066,
        2.784963,
        "facts",
    ),
    (None, ObservedFacts(commits=("a" * 40,), failed_checks=("ci",)), False, 0.3, 1.0, "facts"),
    (None, CI, False, 0.1, 0.0, "failed"),
    ({"shell_calls": 3, "bare_shell_calls": 3}, ObservedFacts(), False, "format_blind", 0.0, None),
]
KINDS = [
    # kind: commit-equivalents of one, two and nine of it
    ("commit", 1.0, 1.584963, 3.321928),
    ("pr_merged", 1.5, 2.377444, 4.982892),
    ("pr_opened", 1.2, 1.901955, 3.986314),
    ("ci_fixed", 0.8, 1.26797, 2.657542),
    ("issue_closed", 0.4, 0.633985, 1.328771),
    ("pr_closed", 0.4, 0.633985, 1.328771),
    ("pr_reviewed", 0.4, 0.633985, 1.328771),
    ("issue_opened", 0.3, 0.475489, 0.996578),
    ("tests_fixed", 0.3, 0.475489, 0.996578),
    ("comment", 0.2, 0.316993, 0.664386),
    ("push", 0.1, 0.158496, 0.332193),
    ("file", 0.3, 0.475489, 0.996578),
    ("bookkeeping_commit", 0.1, 0.158496, 0.332193),
    ("bookkeeping_file", 0.03, 0.047549, 0.099658),
]
SUMS = [
    # signals and work: sum
    ({}, 0.335),
    ({"units": 0.5, "did_something": True}, 0.520346),
    ({"units": 2.0, "did_something": True}, 0.604585),
    ({"units": 8.0, "did_something": True}, 0.676245),
    ({"units": 8.0, "did_something": True, "tests_at_end": State.GREEN, "user_turns": 1, "known_results": 9}, 0.936245),
    ({"broke_tests": True, "dead_start": True, "known_results": 3, "failed_calls": 3, "user_turns": 90}, 0.02),
    ({"broke_tests": True}, 0.075),
    ({"known_results": 7, "failed_calls": 2}, 0.287857),
    ({"known_results": 2, "failed_calls": 3}, 0.17),
    ({"must_print": 7, "empty_results": 2}, 0.320714),
    ({"repeatable": 7, "repeats": 2}, 0.313571),
    ({"user_turns": 3}, 0.293333),
    ({"user_turns": 9}, 0.251667),
]


def test_the_version():
    golden.hold_version(trajectory.VERSION, VERSION, at=AT)


@pytest.mark.parametrize(("shown", "facts", "looking", "expected", "units", "view"), TABLE)
def test_the_grade(shown, facts, looking, expected, units, view):
    signals = None if shown is None else replace(SESSION, **shown)
    production = collect(signals, facts=facts)
    seen = trajectory.TrajectoryInput(signals=signals, production=production, facts=facts, looking=looking)
    found = trajectory.grade(seen)
    assert found.version == VERSION
    said = (
        found.reason.value if found.value is None else found.value,
        found.evidence["units"],
        found.evidence.get("view"),
    )
    golden.hold(said, (expected, units, view), version=VERSION, at=AT)


@pytest.mark.parametrize(("kind", "one", "two", "nine"), KINDS)
def test_what_a_kind_of_work_is_worth(kind, one, two, nine):
    found = [
        round(Production(things=tuple(Thing(kind=kind, key=str(n), seen_in=("facts",)) for n in range(count))).units, 6)
        for count in (1, 2, 9)
    ]
    golden.hold(found, [one, two, nine], version=VERSION, at=AT)


def test_every_kind_of_work_is_in_the_table():
    assert {row[0] for row in KINDS} == set(UNITS)


@pytest.mark.parametrize(("observed", "expected"), SUMS)
def test_the_sum(observed, expected):
    work = {name: observed.get(name, 0) for name in ("units", "did_something")}
    signals = Signals(**{name: count for name, count in observed.items() if name not in work})
    golden.hold(round(score(signals, **work).value, 6), expected, version=VERSION, at=AT)


@pytest.mark.parametrize(("units", "did_something", "expected"), [(0.0, False, 0.1), (3.0, True, 0.399258)])
def test_the_sum_without_a_log(units, did_something, expected):
    found = score(None, units=units, did_something=did_something).value
    golden.hold(round(found, 6), expected, version=VERSION, at=AT)


def test_the_weights():
    expected = {
        "base": 0.10,
        "tests": 0.26,
        "units": 0.205,
        "did_something": 0.14,
        "few_turns": 0.125,
        "got_going": 0.11,
        "errors": -0.165,
        "empty_results": -0.05,
        "repeats": -0.075,
    }
    assert Weights() == WEIGHTS
    golden.hold(asdict(WEIGHTS), expected, version=VERSION, at=AT)
