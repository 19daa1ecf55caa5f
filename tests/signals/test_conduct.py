"""What a log shows of how a session went about its work: repeats, empty results, a dead start."""

import pytest

from grading.formats.events import Role
from tests.transcript import Transcript

pytestmark = pytest.mark.pure


def repeats(*calls: tuple[str, str]) -> tuple[int, int]:
    """(repeats, calls that could be) of shell commands with their results."""
    log = Transcript()
    for command, text in calls:
        log.run(command, text)
    return log.signals.repeats, log.signals.repeatable


def test_the_same_call_with_the_same_result_is_a_repeat():
    assert repeats(("cat a.py", "x = 1"), ("ls", "a.py"), ("cat a.py", "x = 1")) == (1, 3)


def test_other_commands_through_one_tool_are_no_repeats():
    """I10, ordinary use of a tool counted as retries: impossible. Other commands through one tool are no repeats, nor
    is a second try that has another result.
    """
    assert repeats(*((f"ls {number}", "x") for number in range(121)), ("./run", "no"), ("./run", "yes"))[0] == 0


def test_another_result_is_no_repeat():
    assert repeats(("cat a.log", "1"), ("cat a.log", "2")) == (0, 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("cat  a.py", "cat a.py # once more"),
        ("grep x /tmp/tmp.Ab3dE5fG", "grep x /tmp/tmp.Zz9yX8wV"),
        ("grep 2026-04-01T10:00:00Z a.log", "grep 2026-04-01T10:05:09Z a.log"),
        ("cat 0d9c1f6e-3b1a-4b57-9f39-0a4f3b6f7a11.txt", "cat 7a1b2c3d-0000-4b57-9f39-0a4f3b6f7a11.txt"),
    ],
)
def test_comments_spaces_and_names_of_the_moment_make_no_other_call(first: str, second: str):
    assert repeats((first, "x"), (second, "x")) == (1, 2)


def test_times_in_a_result_make_no_other_result():
    assert repeats(("make lint", "clean in 0.21s"), ("make lint", "clean in 0.24s")) == (1, 2)


@pytest.mark.parametrize(
    "between",
    [
        "echo y > b.txt",
        "git commit -m Done",
        "rm b.txt",
        "python build.py",
        "sed -i s/a/b/ b.txt",
        "find . -delete",
        "mysql -e 'DELETE FROM a'",
    ],
)
def test_after_something_may_have_changed_the_same_call_is_no_repeat(between: str):
    assert repeats(("cat a.py", "x"), (between, ""), ("cat a.py", "x"))[0] == 0


@pytest.mark.parametrize(
    "between",
    ["grep x b.py | sort", "git -C /w log --oneline", "sed -n 1,9p a.py", "mysql -e 'SELECT 1'", "ls 2>/dev/null"],
)
def test_what_only_reads_changes_nothing(between: str):
    assert repeats(("cat a.py", "x"), (between, "y"), ("cat a.py", "x"))[0] == 1


def test_what_failed_changed_nothing():
    log = Transcript().run("cat a", "x").run("rm b", "no such file", failed=True).run("cat a", "x")
    assert log.signals.repeats == 1


def test_the_same_edit_that_fails_again_is_a_repeat():
    log = Transcript().edit("a.py", "x", "y", failed=True).edit("a.py", "x", "y", failed=True)
    assert log.signals.repeats == 1


def test_a_tool_that_we_do_not_know_may_change_things():
    log = Transcript().run("cat a", "x").tool("mcp__db__insert", "other", "ok", row=1).run("cat a", "x")
    assert log.signals.repeats == 0


def test_a_person_who_spoke_in_between_may_have_changed_things():
    log = Transcript().run("cat a", "x").says("Now look again", Role.USER).run("cat a", "x")
    assert log.signals.repeats == 0


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "git status",
        "git -C /w status --short",
        "gh run list",
        "gh pr checks 7",
        "ps aux",
        "sleep 30; cat a.log",
    ],
)
def test_who_waits_asks_again_on_purpose(command: str):
    assert repeats((command, "the same"), (command, "the same"))[0] == 0


def test_what_a_call_says_of_itself_does_not_make_it_another():
    log = Transcript()
    for words in ("Find the file", "Look for the file again"):
        log.tool("Grep", "search", "a.py", pattern="x", description=words)
    assert log.signals.repeats == 1


def test_without_a_call_nothing_could_be_repeated():
    assert Transcript().says("Hello").signals.repeatable == 0


def printed(command: str, text: str = "", **result) -> tuple[int, int]:
    signals = Transcript().run(command, text, **result).signals
    return signals.empty_results, signals.must_print


@pytest.mark.parametrize(
    "command", ["cat a.py", "cd /w && git log", "git status", "find . | wc -l", "cat a.py; true", "pwd"]
)
def test_some_commands_cannot_help_printing(command: str):
    assert printed(command) == (1, 1)
    assert printed(command, "something") == (0, 1)


@pytest.mark.parametrize(
    "words", ["No output", "(no output)", "Ran command: `cat a`\n\nNo output", "(Bash completed with no output)"]
)
def test_harnesses_have_words_for_nothing(words: str):
    assert printed("cat a", words) == (1, 1)


@pytest.mark.parametrize(
    "command",
    [
        "grep x a.py",
        "ls empty",
        "find . -name x",
        "cat a.py | grep x",
        "cat a.py > b.py",
        "grep x a | head -n 5",
        "true || cat a.py",
        "x=$(cat a.py)",
        "for f in *.x; do cat $f; done",
        "git log --since=yesterday",
        "git log main..HEAD",
        "git status --short",
        "cat /dev/null",
        "mysql -e 'SELECT 1'",
    ],
)
def test_others_may_rightly_print_nothing(command: str):
    assert printed(command) == (0, 0)


def test_a_failure_is_not_held_against_a_session_twice():
    assert printed("cat a.py", failed=True) == (0, 0)


@pytest.mark.parametrize(
    ("worked", "dead"),
    [
        ([], False),
        ([None, None], False),
        ([False], True),
        ([False, None, False], True),
        ([False, False, False, True], True),
        ([False, False, True], False),
        ([True, False, False, False], False),
    ],
)
def test_a_start_is_dead_where_none_of_the_first_three_calls_worked(worked: list, dead: bool):  # noqa: FBT001
    log = Transcript()
    for number, ok in enumerate(worked):
        log.run(f"./step {number}", "x", failed=None if ok is None else not ok)
    assert log.signals.dead_start is dead


def test_what_is_remembered_is_bounded():
    log = Transcript()
    for number in range(5_000):
        log.run(f"cat {number}", "x")
    log.run("cat 0", "x")
    assert log.signals.repeats == 0
    assert log.signals.repeatable == 5_001


def test_hostile_texts_cost_no_more_than_their_length():
    log = Transcript()
    for piece in ("2026-04-01T", "tmp", "1.1", "no output ", "a\n \t", "0d9c1f6e-3b1a-"):
        log.run("cat a", piece * 100_000)
    assert log.signals.must_print == 6
