"""A low number needs evidence of failure, and effort is not success."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.reward import trajectory
from grading.reward.grade import SourceGrade
from grading.reward.production import collect
from grading.reward.trajectory import EvidenceView, TrajectoryInput
from grading.signals import Commit, Effect, EffectKind, Signals
from grading.signals import TestState as State
from grading.signals.changes import FileChange
from grading.signals.facts import ObservedFacts
from grading.vocabulary import Reason, Source, Status
from tests.transcript import Transcript

pytestmark = pytest.mark.pure

FLOOR = 0.1
SESSION = Signals(tool_calls={"shell": 10}, results=10, known_results=10, assistant_turns=3)


def commits(count: int, *paths: str) -> tuple[Commit, ...]:
    return tuple(Commit(hash=f"{n:07x}", branch="main", subject="x", at=n, paths=paths) for n in range(count))


def effects(*kinds: EffectKind) -> tuple[Effect, ...]:
    return tuple(Effect(kind=kind, key=str(n), at=n) for n, kind in enumerate(kinds))


def graded(signals: Signals | None, facts: ObservedFacts | None = None, **options) -> SourceGrade:
    facts = facts or ObservedFacts()
    production = collect(signals, facts=facts)
    return trajectory.grade(TrajectoryInput(signals=signals, production=production, facts=facts, **options))


def value(signals: Signals, **options) -> float:
    """The grade; nothing at all counts as less than any."""
    found = graded(signals, **options).value
    return 0.0 if found is None else found


RED = {"tests_at_end": State.RED, "broke_tests": True, "failures": ("the last run of pytest failed",)}
counts = st.integers(0, 30)
sessions = st.builds(
    lambda calls, known, failed, commit, files, kinds, tests: Signals(
        tool_calls={"shell": calls},
        known_results=known,
        failed_calls=min(failed, known),
        commits=commits(commit),
        effects=effects(*kinds),
        files=tuple(FileChange(path=f"src/{n}.py", at=n) for n in range(files)),
        tests_at_end=tests,
        assistant_turns=1,
    ),
    st.integers(0, 200),
    counts,
    counts,
    counts,
    counts,
    st.lists(st.sampled_from(EffectKind), max_size=12),
    st.sampled_from(State),
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
def test_one_more_error_never_raises(signals):
    failed = replace(signals, failed_calls=signals.failed_calls + 1, known_results=signals.known_results + 1)
    assert value(failed) <= value(signals)
    red = replace(signals, **RED)
    if value(signals) > 0:
        assert value(red) <= value(signals)


@given(sessions, st.integers(2, 50))
def test_effort_alone_changes_nothing(signals, times):
    """The same work at the same rates with many times the calls, tokens and turns is worth the same."""
    longer = replace(
        signals,
        tool_calls={"shell": signals.calls * times},
        known_results=signals.known_results * times,
        failed_calls=signals.failed_calls * times,
        assistant_turns=signals.assistant_turns * times,
        duration=1e6,
    )
    assert value(longer) == pytest.approx(value(signals), abs=1e-6)


def test_a_session_without_effect_or_failure_is_unscored():
    """Twelve successful calls of unknown tools, an answered question, an honest "could not be done": all alike."""
    for signals in (
        SESSION,
        replace(SESSION, opaque_calls=10, concluded=True),
        Signals(assistant_turns=1, user_turns=1, concluded=True),
        replace(SESSION, failed_calls=4),
        replace(SESSION, files=(FileChange(path="journal/2026/today.md", at=1),)),
    ):
        result = graded(signals)
        assert (result.value, result.reason) == (None, Reason.NOTHING_OBSERVABLE)
        assert result.detail


@pytest.mark.parametrize(
    ("signals", "facts", "words"),
    [
        (replace(SESSION, **RED), ObservedFacts(), "pytest failed"),
        (SESSION, ObservedFacts(failed_checks=("ci",)), "check ci failed"),
        (replace(SESSION, failures=("its own commit was taken back",)), ObservedFacts(), "taken back"),
        (None, ObservedFacts(failed_checks=("ci",)), "check ci failed"),
    ],
)
def test_an_observed_failure_without_any_effect_is_low_and_says_so(signals, facts, words):
    result = graded(signals, facts)
    assert result.value <= trajectory.MAX_FAILED
    assert result.evidence["view"] == EvidenceView.FAILED
    assert words in result.detail
    assert result.evidence["failures"]


def test_failure_limits_the_grade_of_work():
    """Nine commits and broken tests are worth no more than .3. Red tests that it did not break limit nothing."""
    work = replace(SESSION, commits=commits(9))
    broken = graded(replace(work, **RED))
    assert (broken.value, broken.evidence["view"]) == (trajectory.MAX_FAILED_WORK, EvidenceView.FULL)
    assert graded(replace(work, tests_at_end=State.RED)).value == graded(work).value


def test_refused_call_is_no_failure():
    """A user refuses calls for many reasons."""
    assert graded(replace(SESSION, rejected=3)).reason is Reason.NOTHING_OBSERVABLE
    work = replace(SESSION, commits=commits(1))
    assert graded(replace(work, rejected=3)).value == graded(work).value


def test_more_work_is_worth_more_by_kind():
    ladder = [
        value(replace(SESSION, files=(FileChange(path="a.py", at=1),))),
        value(replace(SESSION, commits=commits(1))),
        value(replace(SESSION, effects=effects(EffectKind.PR_OPENED))),
        value(replace(SESSION, effects=effects(EffectKind.PR_MERGED))),
        value(replace(SESSION, commits=commits(1), effects=effects(EffectKind.PUSH, EffectKind.PR_OPENED))),
    ]
    assert ladder == sorted(ladder)
    assert ladder[0] > 0.15
    assert 0.35 < ladder[1] < 0.65
    assert 0.6 < ladder[-1] < 0.95


@pytest.mark.parametrize("kind", list(EffectKind))
def test_no_commit_is_no_floor_where_anything_else_was_done(kind):
    """I07, the number of commits as the grade: impossible. Who reviews, closes or fixes has done something."""
    assert value(replace(SESSION, effects=effects(kind))) > FLOOR


def test_the_tenth_commit_adds_less_than_the_first():
    values = [value(replace(SESSION, commits=commits(count))) for count in (1, 2, 9, 10)]
    assert values[1] - values[0] > 3 * (values[3] - values[2])


def test_bookkeeping_is_no_work():
    """Commits of a loop's own diary, and scratch files, say neither good nor bad."""
    diary = replace(SESSION, commits=commits(10, "journal/2026/today.md", "/home/x/state/queue.md"))
    assert graded(diary).reason is Reason.NOTHING_OBSERVABLE
    assert value(replace(SESSION, commits=commits(1, "src/a.py", "journal/today.md"))) > 0.3
    scratch = replace(SESSION, files=(FileChange(path="/tmp/out.txt", at=1),))  # noqa: S108 (a path as data)
    assert graded(scratch).reason is Reason.NOTHING_OBSERVABLE


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
    signals = replace(SESSION, commits=commits(3), effects=effects(EffectKind.PUSH), failed_calls=5)
    evidence = graded(signals).evidence
    assert sum(term["adds"] for term in evidence["terms"]) == pytest.approx(evidence["units"])
    assert evidence["error_rate"] == 0.5


@pytest.mark.parametrize(
    ("signals", "reason"),
    [
        (replace(SESSION, unreadable_calls=4), Reason.FORMAT_BLIND),
        (replace(SESSION, shell_calls=3, bare_shell_calls=3), Reason.FORMAT_BLIND),
        (replace(SESSION, known_results=0), Reason.FORMAT_BLIND),
        (Signals(user_turns=1), Reason.STUB_NO_TOOL_CALLS),
    ],
)
def test_a_log_that_cannot_be_read_is_unscored_and_facts_are_graded_without_it(signals, reason):
    assert (graded(signals).value, graded(signals).reason) == (None, reason)
    result = graded(signals, ObservedFacts(commits=("a" * 40,)))
    assert (result.evidence["view"], result.evidence["log"]) == (EvidenceView.FACTS, reason)
    assert "from facts and patch alone" in result.detail


def test_a_log_that_may_not_be_used_is_unscored_with_the_callers_reason():
    result = graded(None, absent=Reason.LOG_TOO_SMALL, why="Too small: 12 bytes")
    assert (result.value, result.reason, result.detail) == (None, Reason.LOG_TOO_SMALL, "Too small: 12 bytes")


@pytest.mark.parametrize("reason", ["quota", "overloaded", "auth"])
def test_a_log_cut_by_its_infrastructure_is_unscored_whatever_it_shows(reason):
    """Else a session that was cut would count where it had effects, and vanish where it had none."""
    for signals in (replace(SESSION, cut=reason), replace(SESSION, cut=reason, commits=commits(2))):
        result = graded(signals)
        assert (result.value, result.reason) == (None, Reason.INFRASTRUCTURE)
    assert result.evidence["units"] > 1  # its work is shown all the same
    assert graded(Signals(api_errors={"quota": 3})).reason is Reason.INFRASTRUCTURE


@pytest.mark.parametrize(
    "end",
    [
        {"concluded": True},
        {"effects": effects(EffectKind.PR_MERGED)},
        {"tests_at_end": State.GREEN},
    ],
)
def test_a_session_that_had_come_to_its_end_before_is_not_cut(end):
    assert graded(replace(SESSION, cut="quota", commits=commits(1), **end)).value > 0.3


@pytest.mark.parametrize(
    ("change", "looking", "expected"),
    [
        ({}, True, 0.35),
        ({"failed_calls": 1}, True, 0.35),
        ({"failed_calls": 5}, True, None),
        ({"reads": 2}, True, None),
        ({"concluded": False}, True, None),
        ({}, False, None),
    ],
)
def test_finding_nothing_to_do_is_an_outcome_where_the_category_looks(change, looking, expected):
    result = graded(replace(SESSION, **{"reads": 5, "concluded": True, **change}), looking=looking)
    assert result.value == expected
    if expected is not None:
        assert result.evidence["view"] == EvidenceView.LOOKED


def test_one_commits_worth_of_work_or_a_failure_stands_beside_a_journal():
    assert graded(replace(SESSION, commits=commits(1))).evidence["stands"]
    assert graded(replace(SESSION, **RED)).evidence["stands"]
    assert not graded(replace(SESSION, files=(FileChange(path="a.py", at=1),))).evidence["stands"]


ALONE = ", from facts and patch alone"
DETAILS = [
    # signals, facts, what the grade says
    (None, ObservedFacts(), "No transcript was submitted"),
    (
        Signals(user_turns=1),
        ObservedFacts(),
        "The log contains neither an answer nor a tool call; the whole transcript was expected",
    ),
    (replace(SESSION, known_results=0), ObservedFacts(), "None of its 10 results says whether its call worked"),
    (
        replace(SESSION, results=1, known_results=0),
        ObservedFacts(),
        "None of its 1 result says whether its call worked",
    ),
    (
        replace(SESSION, shell_calls=3, bare_shell_calls=3),
        ObservedFacts(),
        "None of its 3 shell calls shows its command",
    ),
    (
        replace(SESSION, shell_calls=1, bare_shell_calls=1),
        ObservedFacts(),
        "None of its 1 shell call shows its command",
    ),
    (replace(SESSION, unreadable_calls=4), ObservedFacts(), "4 of its 10 calls could not be read"),
    (
        replace(SESSION, unreadable_calls=4, shell_calls=2, bare_shell_calls=1, results=0, known_results=0),
        ObservedFacts(),
        "4 of its 10 calls could not be read",
    ),
    (replace(SESSION, cut="quota"), ObservedFacts(), "An API error ended the log (quota), so its work is not graded"),
    (
        Signals(api_errors={"quota": 3, "auth": 1}),
        ObservedFacts(),
        "An API error ended the log (auth, quota), so its work is not graded",
    ),
    (SESSION, ObservedFacts(), "10 tool calls, none with a visible result"),
    (
        replace(SESSION, tool_calls={"a": 1_200}, opaque_calls=3),
        ObservedFacts(),
        ("1,200 tool calls, 3 of them of tools that the site does not know, none with a visible result"),
    ),
    (
        replace(SESSION, tool_calls={"a": 1}),
        ObservedFacts(),
        "1 tool call, none with a visible result",
    ),
    (Signals(assistant_turns=1), ObservedFacts(), "It answered without a tool call"),
    (replace(SESSION, commits=commits(2)), ObservedFacts(), "2 commits: 1.6 commit-equivalents"),
    (
        None,
        ObservedFacts(commits=("a" * 40,)),
        f"1 commit: 1.0 commit-equivalents{ALONE} (no transcript was submitted)",
    ),
    (
        Signals(assistant_turns=1),
        ObservedFacts(commits=("a" * 40,)),
        f"1 commit: 1.0 commit-equivalents{ALONE} (stub transcript: no tool calls in it; not graded from this log)",
    ),
    (
        Signals(assistant_turns=1, files=(FileChange(path="a.py", at=1),)),
        ObservedFacts(),
        (
            f"1 file changed: 0.3 commit-equivalents{ALONE} (stub transcript: no tool calls in it; "
            "not graded from this log)"
        ),
    ),
    (SESSION, ObservedFacts(failed_checks=("ci",)), "No visible result: the mandatory check ci failed"),
    (
        replace(SESSION, failures=("the last run of jest, pytest failed", "its own commits were taken back")),
        ObservedFacts(failed_checks=("ci", "lint")),
        (
            "No visible result: the mandatory check ci failed; the mandatory check lint failed; "
            "the last run of jest, pytest failed; its own commits were taken back"
        ),
    ),
]


@pytest.mark.parametrize(("signals", "facts", "words"), DETAILS)
def test_every_grade_says_what_it_rests_on(signals, facts, words):
    assert graded(signals, facts).detail == words


def test_looking_says_how_much_was_read():
    found = graded(replace(SESSION, reads=5, concluded=True), looking=True)
    assert found.detail == "Looked at 5 things, found nothing to do, and said so"


def test_a_grade_has_all_of_its_sum_as_evidence():
    signals = replace(SESSION, known_results=7, failed_calls=2, user_turns=1, commits=commits(2))
    found = graded(signals, ObservedFacts(failed_checks=("ci",)))
    rows = found.evidence.pop("weighed")
    assert [row["kind"] for row in rows][:3] == ["base", "tests", "units"]
    assert rows[6] == {"kind": "errors", "words": "2 of 7 results are failures", "factor": 0.285714, "adds": -0.047143}
    assert (found.source, found.status, found.version) == (Source.TRAJECTORY, Status.SCORED, "trajectory/3")
    assert found.evidence == {
        "view": "full",
        "log": "",
        "failures": ["the mandatory check ci failed"],
        "stands": True,
        "terms": [{"kind": "commit", "words": "commits", "count": 2, "units": 1.0, "adds": 1.584963}],
        "units": 1.584963,
        "error_rate": 0.285714,
    }


def test_an_abstention_keeps_what_the_formula_made_of_conduct():
    found = graded(replace(SESSION, known_results=7, failed_calls=2))
    assert (found.source, found.status, found.version) == (Source.TRAJECTORY, Status.UNSCORED, "trajectory/3")
    assert found.evidence == {"terms": [], "units": 0.0, "error_rate": 0.285714, "withheld": 0.287857}


def test_without_a_log_there_is_no_conduct_and_nothing_withheld():
    assert graded(None).evidence == {"terms": [], "units": 0.0}
    by_facts = graded(Signals(assistant_turns=1), ObservedFacts(commits=("a" * 40,)))
    assert "error_rate" not in by_facts.evidence
    assert by_facts.evidence["log"] == "stub_no_tool_calls"


def test_a_log_of_an_answer_alone_is_graded_unless_work_was_seen_elsewhere():
    """An answer without a call may be all there was; beside a commit it is a stub."""
    answer = Signals(assistant_turns=1)
    assert graded(answer).reason is Reason.NOTHING_OBSERVABLE
    for facts in (ObservedFacts(commits=("a" * 40,)), ObservedFacts(pull_requests=("https://github.com/o/r/pull/1",))):
        assert graded(answer, facts).evidence["view"] == EvidenceView.FACTS


def test_a_cut_log_without_any_turn_is_one_with_an_api_error():
    assert trajectory.was_cut(Signals(api_errors={"quota": 1}))
    assert not trajectory.was_cut(Signals(user_turns=1))
    assert not trajectory.was_cut(replace(SESSION, api_errors={"quota": 1}))


def test_a_session_of_which_nothing_is_said_has_no_transcript():
    nothing = TrajectoryInput(production=collect(None, facts=ObservedFacts()), facts=ObservedFacts())
    assert (nothing.signals, nothing.why, nothing.looking) == (None, "", False)
    found = trajectory.grade(nothing)
    assert (found.value, found.reason) == (None, Reason.NO_TRANSCRIPT)


def test_looking_is_no_failure():
    assert graded(replace(SESSION, reads=5, concluded=True), looking=True).evidence["failures"] == []
