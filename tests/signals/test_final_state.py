"""How a session ended: the state of the tests, and which failures count."""

import time

import pytest

from grading.formats.events import Role
from grading.signals import TestState as State
from tests.transcript import Transcript

pytestmark = pytest.mark.pure

RED, GREEN = "FAILED tests/test_a.py::test_one - assert 1 == 2\n1 failed, 3 passed in 1s", "4 passed in 1s"
TEMPORARY = "/tmp/x"  # noqa: S108 - a name in a transcript
COMMIT = "[main abc1234] Fix it\n 1 file changed, 2 insertions(+)"
BROKE = ("the last run of pytest failed",)


def changed() -> Transcript:
    """A session that changed code."""
    return Transcript().edit("src/a.py", "a", "b")


def ended(transcript: Transcript) -> tuple[State, tuple[str, ...]]:
    signals = transcript.signals
    return signals.tests_at_end, signals.failures


def test_red_tests_after_own_change_are_a_failure():
    assert ended(changed().run("pytest", RED, failed=True)) == (State.RED, BROKE)
    assert ended(changed().run("pytest | tail", RED)) == (State.RED, BROKE)


def test_red_tests_of_a_session_that_changed_nothing_are_its_finding():
    assert ended(Transcript().run("pytest", RED, failed=True)) == (State.RED, ())
    assert ended(Transcript().edit("docs/a.md", "a", "b").run("pytest", RED, failed=True)) == (State.RED, ())


def test_failures_from_before_the_change_are_not_its_own():
    before = Transcript().run("pytest", RED, failed=True).edit("src/a.py", "a", "b")
    assert ended(before.run("pytest", RED, failed=True)) == (State.RED, ())
    other = "FAILED tests/test_a.py::test_two - assert 1 == 2\n1 failed"
    before = Transcript().run("pytest", RED, failed=True).edit("src/a.py", "a", "b")
    assert ended(before.run("pytest", other, failed=True)) == (State.RED, BROKE)
    counted = Transcript().run("mix test", "5 tests, 2 failures", failed=True).edit("src/a.ex", "a", "b")
    assert ended(counted.run("mix test", "5 tests, 2 failures", failed=True)) == (State.RED, ())
    counted = Transcript().run("mix test", "5 tests, 1 failure", failed=True).edit("src/a.ex", "a", "b")
    assert ended(counted.run("mix test", "5 tests, 2 failures", failed=True))[1]


def test_later_green_run_covers_however_it_is_spelled():
    red = changed().run("make test", RED, failed=True)
    assert ended(red.run("pytest", GREEN)) == (State.GREEN, ())
    red = changed().run("pytest", RED, failed=True)
    assert ended(red.run("pytest tests/test_a.py", GREEN)) == (State.GREEN, ())
    assert ended(changed().run("pytest", "1 failed", failed=True).run("pytest tests/test_a.py", GREEN)) == (
        State.UNKNOWN,
        (),
    )


def test_green_run_elsewhere_covers_nothing():
    red = changed().run("go test ./queue/...", "--- FAIL: TestA\nFAIL\tx.org/queue\t0.1s", failed=True)
    assert ended(red.run("go test ./store/...", "ok  \tx.org/store\t0.1s")) == (
        State.RED,
        ("the last run of go test failed",),
    )
    assert ended(changed().run("pytest", RED, failed=True).run("npm run lint", "ok")) == (State.RED, BROKE)
    assert ended(changed().run("pytest", RED, failed=True).run("npm test", "Tests: 3 passed, 3 total")) == (
        State.RED,
        BROKE,
    )


def test_code_changed_after_a_red_run_leaves_the_tests_unknown():
    assert ended(changed().run("pytest", RED, failed=True).edit("src/a.py", "b", "c")) == (State.UNKNOWN, ())
    red = changed().run("pytest", RED, failed=True).edit("README.md", "b", "c").run("git commit -am x", COMMIT)
    assert ended(red) == (State.RED, BROKE)


@pytest.mark.parametrize(
    "refusal",
    [
        "E   PermissionError: [Errno 1] Operation not permitted",
        "panic: httptest: failed to listen on a port: listen tcp6 [::1]:0: bind: operation not permitted",
        "Error: getaddrinfo ENOTFOUND registry.example.org",
        "dial tcp: lookup proxy.example.org: no such host",
    ],
)
def test_what_a_sandbox_refuses_is_no_test_failure(refusal):
    text = f"{refusal}\n1 failed, 3 passed"
    assert ended(changed().run("pytest", text, failed=True)) == (State.UNKNOWN, ())
    also_real = f"{refusal}\nE   AssertionError: assert 1 == 2\n2 failed, 3 passed"
    assert ended(changed().run("pytest", also_real, failed=True)) == (State.RED, BROKE)


def test_several_runs_in_one_command_are_unknown_unless_they_can_be_told_apart():
    both = "4 passed in 1s\n1 failed, 3 passed in 1s"
    assert ended(changed().run("pytest a; pytest b", both)) == (State.UNKNOWN, ())
    assert ended(changed().run("pytest a && pytest b", "4 passed in 1s\n3 passed in 1s")) == (State.GREEN, ())
    told_apart = changed().run("echo '== a'; pytest a; echo '== b'; pytest b", "== a\n4 passed\n== b\n1 failed")
    assert ended(told_apart) == (State.RED, BROKE)
    assert ended(changed().run("ls | xargs -n1 pytest", both)) == (State.UNKNOWN, ())


def test_equal_headings_separate_runs():
    command = "echo '== tests'; go test ./...; echo '== tests'; pytest b"
    runs = changed().run(command, "== tests\n1 failed\n== tests\n4 passed")
    assert ended(runs) == (State.RED, ("the last run of go test failed",))


def test_same_tests_made_to_fail_in_the_same_command_prove_nothing():
    command = "go test ./... && echo 'now it must fail' && NEEDS=x go test ./e2e; true"
    text = "ok  \tx.org\t0.3s\nnow it must fail\n--- FAIL: TestX\nFAIL\tx.org/e2e\t0.1s"
    assert ended(changed().run(command, text)) == (State.GREEN, ())


def test_hooks_run_tests():
    committed = f"Tests  209 passed (209)\n{COMMIT}"
    assert ended(
        changed().run("npx vitest run", "Tests  2 failed", failed=True).run("git commit -am x", committed)
    ) == (
        State.GREEN,
        (),
    )
    declined = changed().run("git add -A && git commit -m x", "1 failed, 8 passed in 0.2s", failed=True)
    assert ended(declined) == (State.RED, ("the last run of the commit hook failed",))
    managed = changed().run("git commit -am x", f"┃  test ❯ 33 passing\n{COMMIT}")
    assert ended(managed) == (State.GREEN, ())
    # What another command prints is no hook's output, and a log of commits isn't either.
    assert ended(changed().run("git commit -am x && echo '5 passed'", f"{COMMIT}\n5 passed")) == (State.NONE, ())


def test_deliberately_red_tests_are_no_failure():
    only_tests = Transcript().write("test_new.py", "def test_new(): assert f()")
    red = only_tests.run("pytest", RED, failed=True)
    assert ended(red)[1] == BROKE
    assert ended(red.says("The tests have to fail until f() is there.")) == (State.RED, ())
    with_code = Transcript().write("test_new.py", "x").edit("src/a.py", "a", "b").run("pytest", RED, failed=True)
    assert ended(with_code.says("The tests have to fail for now."))[1] == BROKE


def test_scratch_runs_and_files_are_not_the_projects():
    probe = Transcript().run('cd "$(mktemp -d)" && echo x > a.test.js && npx jest', "Tests: 1 failed", failed=True)
    assert ended(probe) == (State.NONE, ())
    variable = changed().run("T=$(mktemp -d); cp probe.py $T; pytest -q $T", RED, failed=True)
    assert ended(variable) == (State.NONE, ())
    worktree = Transcript().run("git worktree list", f"{TEMPORARY}    9d1f0aa [x]")
    worktree.edit(f"{TEMPORARY}/src/a.py", "a", "b").run(f"cd {TEMPORARY} && pytest", RED, failed=True)
    assert ended(worktree) == (State.RED, BROKE)
    written = Transcript().run('cd "$(mktemp -d)" && echo x > main.go').write(f"{TEMPORARY}/main.go", "x").signals.files
    assert [change.is_scratch for change in written] == [True, True]


def test_broken_build_is_a_failure_unless_tests_pass_later():
    broken = changed().run("cargo build", "error[E0425]: cannot find function `f`", failed=True)
    assert ended(broken) == (State.NONE, ("the last build by cargo build failed",))
    assert ended(broken.run("cargo test", "test result: ok. 3 passed")) == (State.GREEN, ())
    assert ended(Transcript().run("cargo build", "error: could not compile", failed=True)) == (State.NONE, ())
    assert ended(changed().run("npx tsc", "sh: tsc: command not found", failed=True)) == (State.NONE, ())


def test_ci_is_red_if_the_awaited_run_is():
    pushed = changed().run("git push", "To github.com:o/r\n   a1b2c3d..d4c3b2a  main -> main")
    red = pushed.run("gh run watch 7 --exit-status", "X main ci · 7", failed=True, exit_code=1)
    assert ended(red)[1] == ("CI failed after its last push",)
    listed = '[{"conclusion":"","status":"in_progress"},{"conclusion":"failure","status":"completed"}]'
    pushed = changed().run("git push", "To github.com:o/r\n   a1b2c3d..d4c3b2a  main -> main")
    assert ended(pushed.run("gh run list --json conclusion,status", listed))[1] == ()


def test_rejected_push_is_a_failure_until_one_succeeds():
    rejected = changed().run("git push", " ! [rejected]        main -> main (fetch first)", failed=True)
    assert ended(rejected)[1] == ("its last push was rejected",)
    assert ended(rejected.run("git push", "To github.com:o/r\n   a1b2c3d..d4c3b2a  main -> main"))[1] == ()
    assert ended(changed().run("git push", "ssh: Could not resolve hostname x", failed=True))[1] == ()


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("Mach alles rückgängig, wir lassen es.", "git restore ."),
        ("Undo that, all of it.", "git checkout -- src/a.py"),
        ("Forget it. Throw your files away.", "git clean -fd src"),
        ("no, revert that", "git reset --hard"),
    ],
)
def test_work_is_taken_back_by_words_and_an_effect(words, command):
    taken_back = ("the user had its work taken back",)
    assert ended(changed().says(words, Role.USER).run(command))[1] == taken_back
    assert ended(changed().says(words, Role.USER))[1] == ()
    assert ended(changed().run(command))[1] == ()
    assert ended(changed().says(words, Role.USER).run(command, failed=True))[1] == ()
    assert ended(changed().says(words, Role.USER).run(command).edit("src/a.py", "a", "c"))[1] == ()


def test_work_that_is_taken_back_in_part_is_no_failure():
    two = changed().edit("src/b.py", "a", "b").says("revert b.py, the rest is fine", Role.USER)
    assert ended(two.run("git checkout -- src/b.py"))[1] == ()


def test_undone_commit_is_a_failure_if_nothing_came_after_it():
    undone = changed().run("git commit -am x", COMMIT).run("git reset --hard HEAD~1", "HEAD is now at 1234567 y")
    assert ended(undone)[1] == ("its own commit was taken back",)
    assert ended(undone.edit("src/a.py", "a", "c"))[1] == ()


def test_all_edits_or_calls_failed():
    failed = Transcript().edit("a.py", "a", "b", failed=True).edit("a.py", "a", "c", failed=True)
    assert ended(failed)[1] == ("none of its 2 edits succeeded",)
    assert ended(failed.edit("a.py", "a", "d"))[1] == ()
    calls = Transcript().run("touch a", "No space left", failed=True).run("make x", "no", failed=True)
    assert ended(calls)[1] == ()
    assert ended(calls.run("pip install x", "no", failed=True))[1] == ("all of its 3 calls failed",)
    assert ended(calls.run("ls", "a"))[1] == ()


def test_refused_and_repeated_calls_are_not_failed_calls():
    refused = "The user doesn't want to proceed with this tool use."
    signals = changed().run("make deploy", refused, failed=True).signals
    assert (signals.failed_calls, signals.rejected, signals.failures) == (0, 1, ())
    assert changed().edit("src/a.py", "a", "b", failed=True).signals.failed_calls == 0


def test_error_rate_is_unknown_if_most_results_are():
    unknown = Transcript().run("cat a", failed=True).run("make x", failed=None).run("make y", failed=None)
    assert (unknown.signals.are_results_known, unknown.signals.error_rate) == (False, 0.0)
    half = Transcript().run("cat a", failed=True).run("make x", failed=None)
    assert (half.signals.are_results_known, half.signals.error_rate) == (True, 1.0)


def test_commit_by_a_wrapper_counts_without_a_hash():
    signals = changed().run("rtk git commit -am 'Retry'", "ok ✓ 1 file changed, 1 insertion(+)").signals
    assert [(commit.hash, commit.subject) for commit in signals.commits] == [("unnamed-4", "Retry")]


def test_commits_without_a_hash_are_different_commits():
    """The events of some begin with the digits of an earlier one's: 4 and 40."""
    transcript = changed()
    for number in range(40):
        transcript.run(f"rtk git commit -am 'Retry {number}'", "ok ✓ 1 file changed, 1 insertion(+)")
    assert [commit.subject for commit in transcript.signals.commits] == [f"Retry {number}" for number in range(40)]


def test_hostile_reports_cost_little():
    """Hundreds of red runs of different tests, each with many failures."""
    transcript = changed()
    report = "\n".join(f"FAILED tests/test_{n}.py::test - x" for n in range(1_000)) + "\n1000 failed"
    for number in range(300):
        transcript.run(f"pytest a{number} b{number}", report, failed=True)
    started = time.process_time()
    assert transcript.signals.failures
    assert time.process_time() - started < 15
