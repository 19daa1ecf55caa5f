"""Confirmed work and nothing else: I07, I17, I32, I47, and "effort is not success"."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.core import trajectory
from grading.core.changes import FileChange
from grading.core.signals import Commit, Effect, EffectKind, Signals
from grading.core.signals import TestRun as Run
from grading.core.vocabulary import Reason, Status
from tests.core.transcript import Transcript

FLOOR = 0.1
SESSION = Signals(tool_calls={"shell": 10}, results=10, known_results=10, assistant_turns=3)


def commits(count: int, *paths: str) -> tuple[Commit, ...]:
    return tuple(Commit(hash=f"{n:07x}", branch="main", subject="x", at=n, paths=paths) for n in range(count))


def effects(*kinds: EffectKind) -> tuple[Effect, ...]:
    return tuple(Effect(kind=kind, key=str(n), at=n) for n, kind in enumerate(kinds))


def value(signals: Signals, **options) -> float:
    return trajectory.grade(signals, **options).value


counts = st.integers(0, 30)
sessions = st.builds(
    lambda calls, known, failed, retries, commit, files, kinds, runs: Signals(
        tool_calls={"shell": calls},
        known_results=known,
        failed_calls=min(failed, known),
        retries=min(retries, calls),
        commits=commits(commit),
        effects=effects(*kinds),
        files=tuple(FileChange(path=f"src/{n}.py", at=n) for n in range(files)),
        test_runs=tuple(Run(runner="pytest", passed=passed, at=n) for n, passed in enumerate(runs)),
        assistant_turns=1,
    ),
    st.integers(0, 200),
    counts,
    counts,
    counts,
    counts,
    counts,
    st.lists(st.sampled_from(EffectKind), max_size=12),
    st.lists(st.booleans(), max_size=4),
)


@given(sessions)
def test_one_more_confirmed_effect_never_lowers(signals):
    before = value(signals)
    assert 0 <= before <= 0.95
    for kind in EffectKind:
        assert value(replace(signals, effects=(*signals.effects, Effect(kind=kind, key="new", at=99)))) >= before
    more = Commit(hash="fffffff", branch="main", subject="x", at=99)
    assert value(replace(signals, commits=(*signals.commits, more))) >= before
    assert value(replace(signals, files=(*signals.files, FileChange(path="new.py", at=99)))) >= before


@given(sessions)
def test_one_more_error_or_retry_never_raises(signals):
    failed = replace(signals, failed_calls=signals.failed_calls + 1, known_results=signals.known_results + 1)
    assert value(failed) <= value(signals)
    if signals.calls > signals.retries:
        assert value(replace(signals, retries=signals.retries + 1)) <= value(signals)
    red = replace(signals, test_runs=(*signals.test_runs, Run(runner="pytest", passed=False, at=99)))
    assert value(red) <= value(signals)


@given(sessions, st.integers(2, 50))
def test_effort_alone_changes_nothing(signals, times):
    """The same work at the same rates with many times the calls, tokens and turns is worth the same."""
    longer = replace(
        signals,
        tool_calls={"shell": signals.calls * times},
        known_results=signals.known_results * times,
        failed_calls=signals.failed_calls * times,
        retries=signals.retries * times,
        assistant_turns=signals.assistant_turns * times,
        duration=1e6,
    )
    assert value(longer) == pytest.approx(value(signals), abs=1e-6)


def test_a_complete_session_without_effect_is_low_with_confidence_and_not_the_floor():
    result = trajectory.grade(SESSION)
    assert result.status is Status.SCORED
    assert 0.05 <= result.value <= 0.15
    assert result.value != FLOOR


def test_more_work_is_worth_more_by_kind():
    ladder = [
        value(SESSION),
        value(replace(SESSION, files=(FileChange(path="a.py", at=1),))),
        value(replace(SESSION, commits=commits(1))),
        value(replace(SESSION, effects=effects(EffectKind.PR_OPENED))),
        value(replace(SESSION, effects=effects(EffectKind.PR_MERGED))),
        value(replace(SESSION, commits=commits(1), effects=effects(EffectKind.PUSH, EffectKind.PR_OPENED))),
    ]
    assert ladder == sorted(ladder)
    assert ladder[1] > 0.15
    assert 0.35 < ladder[2] < 0.5
    assert 0.6 < ladder[-1] < 0.8


@pytest.mark.parametrize("kind", list(EffectKind))
def test_no_commit_is_no_floor_where_anything_else_was_done(kind):
    """I07: a session that reviews, closes or fixes has done something."""
    assert value(replace(SESSION, effects=effects(kind))) > FLOOR


def test_the_tenth_commit_adds_less_than_the_first():
    values = [value(replace(SESSION, commits=commits(count))) for count in (0, 1, 9, 10)]
    assert values[1] - values[0] > 5 * (values[3] - values[2])


def test_bookkeeping_alone_is_little():
    """I32: commits of a loop's own diary are no work, whatever their subject says."""
    diary = value(replace(SESSION, commits=commits(10, "journal/2026/today.md", "/home/x/state/queue.md")))
    assert diary < value(replace(SESSION, commits=commits(1, "src/a.py", "journal/today.md")))
    assert diary < 0.25
    assert value(replace(SESSION, files=(FileChange(path="/tmp/out.txt", at=1),))) < 0.12  # noqa: S108 (a path as data)


def test_every_harness_is_graded_alike():
    """The same work through other tools gets the same grade."""
    line = "[main abc1234] x\n 1 file changed"
    claude = Transcript().write("a.py", "x").run("git commit -am x", line)
    codex = Transcript().tool(
        "apply_patch", "edit", "Success", input="*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"
    )
    codex.call("c", "exec_command", "shell", command="bash -lc 'git commit -am x'").result("c", "Output:\n" + line)
    gptme = Transcript().tool("save", "write", "Saved to a.py", path="a.py", content="x")
    gptme.call("s", "shell", "shell", command="git commit -am x").result(
        "s", "Ran command\n```stdout\n" + line, failed=None
    )
    assert len({value(transcript.signals) for transcript in (claude, codex, gptme)}) == 1


def test_the_evidence_is_the_sum():
    signals = replace(SESSION, commits=commits(3), effects=effects(EffectKind.PUSH), failed_calls=5, retries=1)
    result = trajectory.grade(signals)
    evidence = result.evidence
    assert sum(term["adds"] for term in evidence["terms"]) == pytest.approx(evidence["units"])
    assert result.value == pytest.approx(evidence["before_penalties"] - evidence["penalty"], abs=2e-6)
    assert (evidence["error_rate"], evidence["retry_rate"]) == (0.5, 0.1)


def test_a_stub_is_unscored_with_the_callers_reason():
    result = trajectory.grade(SESSION, stub=Reason.LOG_TOO_SMALL)
    assert (result.value, result.reason) == (None, Reason.LOG_TOO_SMALL)


def test_no_turn_at_all_is_a_stub_or_an_infrastructure_death():
    assert trajectory.grade(Signals(user_turns=1)).reason is Reason.STUB_NO_TOOL_CALLS
    assert trajectory.grade(Transcript().api_error("quota").signals).reason is Reason.INFRASTRUCTURE
    assert trajectory.grade(Transcript().says("hello").api_error("quota").signals).status is Status.SCORED


@pytest.mark.parametrize(
    ("signals", "restraint", "expected"),
    [
        (SESSION, True, 0.35),
        (replace(SESSION, failed_calls=1), True, 0.34),
        (replace(SESSION, failed_calls=5), True, 0.03),
        (SESSION, False, 0.08),
        (Signals(assistant_turns=1), True, 0.08),
    ],
)
def test_finding_nothing_to_do_is_an_outcome_where_the_category_says_so(signals, restraint, expected):
    """I47: looked, no trouble, nothing to change."""
    assert value(signals, restraint=restraint) == pytest.approx(expected)
