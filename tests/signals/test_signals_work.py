"""Work other than commits: files, forges, checks and tests, how a session ended, and what does not count."""

import time

import pytest

from grading.formats.events import Clarity, Role
from grading.signals import EffectKind
from tests.transcript import Transcript

pytestmark = pytest.mark.pure

PR = "https://github.com/o/r/pull/12"
COMMIT = "[main abc1234] Fix it\n 1 file changed, 2 insertions(+)"
RED, GREEN = "1 failed, 3 passed in 1s", "4 passed in 1s"


def paths(transcript: Transcript) -> list[str]:
    return [change.path for change in transcript.signals.files]


def kinds(transcript: Transcript) -> list[str]:
    return [str(effect.kind) for effect in transcript.signals.effects]


@pytest.mark.parametrize(
    ("command", "text", "changed"),
    [
        ("sed -i 's/a/b/' src/a.py src/b.py", "", ["src/a.py", "src/b.py"]),
        ("sed -i '' -e 's/a/b/' a.py", "", ["a.py"]),
        ("cd x && sed -i.bak -E 's/(a)/b/g' a.py && ls", "a.py", ["a.py"]),
        ("perl -pi -e 's/a/b/' a.pl", "", ["a.pl"]),
        ("patch -p1 < fix.patch", "patching file src/a.py\npatching file src/b.py", ["src/a.py", "src/b.py"]),
        ("git apply <<'EOF'\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\nEOF", "", ["x.py"]),
        ("git apply -v fix.patch", "Applied patch src/a.py cleanly.", ["src/a.py"]),
        ("sed -n 's/a/b/p' a.py", "", []),
        ("sed -i 's/a/b/' no.py", "sed: can't read no.py: No such file or directory", []),
        ("git apply --check fix.patch", "Checking patch a.py...", []),
        ("sed -i 's/a/b/' $f", "", []),
    ],
)
def test_a_file_edited_in_place_or_by_a_patch_is_named_by_the_command_or_its_result(command, text, changed):
    assert paths(Transcript().run(command, text)) == changed


def test_a_script_changed_a_file_only_where_git_shows_it():
    script = "python3 - <<'EOF'\nfrom pathlib import Path\nPath('src/a.py').write_text('x')\nEOF"
    assert paths(Transcript().run(script)) == []
    assert paths(Transcript().run(script).run("git status --short", " M src/a.py\n M other.py")) == ["src/a.py"]
    assert paths(Transcript().run(script).run("git diff --stat", " src/a.py | 3 ++-\n 1 file changed")) == ["src/a.py"]
    assert paths(Transcript().run("git status --short", " M src/a.py").run(script)) == []
    assert paths(Transcript().run("python3 -m http.server src/a.py").run("git status --short", " M src/a.py")) == []


def test_the_same_line_appended_again_counts_once():
    assert paths(Transcript().run("echo x >> log.md").run("echo x >> log.md").run("echo y >> log.md")) == ["log.md"] * 2


@pytest.mark.parametrize(
    ("name", "text", "kind", "key"),
    [
        ("mcp__github__create_pull_request", f'{{"html_url":"{PR}","body":"see {PR}0"}}', "pr_opened", PR),
        ("mcp__github__create_pull_request", f'{{"body":"after https://github.com/o/r/pull/9","url":"{PR}"}}',
         "pr_opened", PR),
        ("mcp__github__merge_pull_request", '{"sha":"a","merged":true,"message":"Pull Request successfully merged"}',
         "pr_merged", "o/r#12"),
        ("mcp__github__create_pull_request_review", '{"id":1,"state":"APPROVED"}', "pr_reviewed", "o/r#12"),
        ("mcp__github__submit_pending_pull_request_review", "pending pull request review successfully submitted",
         "pr_reviewed", "o/r#12"),
        ("mcp__github__add_issue_comment", f'{{"id":"1","url":"{PR}#issuecomment-1"}}', "comment",
         f"{PR}#issuecomment-1"),
    ],
)  # fmt: skip
def test_a_tool_servers_effect_counts_where_its_answer_shows_it(name, text, kind, key):
    arguments = {"owner": "o", "repo": "r", "pullNumber": 12}
    (effect,) = Transcript().tool(name, "other", text, **arguments).signals.effects
    assert (str(effect.kind), effect.key) == (kind, key)


@pytest.mark.parametrize(
    ("name", "text", "failed"),
    [
        ("mcp__github__create_pull_request", '{"message":"Validation Failed"}', False),
        ("mcp__github__create_pull_request", f'{{"html_url":"{PR}"}}', True),
        ("mcp__github__merge_pull_request", '{"message":"Pull Request is not mergeable"}', False),
        ("mcp__github__merge_pull_request", '{"merged":false}', None),
        ("mcp__github__merge_pull_request", "", False),
        ("mcp__github__create_pull_request_review", "failed to submit review: 422", False),
        ("mcp__github__create_pending_pull_request_review", "pending pull request created", False),
        ("mcp__github__get_pull_request", f'{{"html_url":"{PR}","merged":true}}', False),
    ],
)
def test_a_tool_servers_refusal_is_no_effect(name, text, failed):
    transcript = Transcript().tool(name, "other", text, failed=failed, owner="o", repo="r", pullNumber=12)
    assert transcript.signals.effects == ()


@pytest.mark.parametrize(
    "text",
    [
        "X Pull request o/r#12 is not mergeable: the merge commit cannot be cleanly created.",
        "Pull request o/r#12 will be automatically merged via squash when all requirements are met",
        "! Pull request o/r#12 was already merged",
        "GraphQL: Pull Request is not mergeable (mergePullRequest)",
        "Pull request will be added to the merge queue for main when ready",
    ],
)
def test_a_merge_that_was_refused_or_put_off_is_none(text):
    assert kinds(Transcript().run("gh pr merge 12 --squash", text)) == []


def test_a_merge_whose_call_failed_only_locally_counts_once_the_forge_says_so():
    failed = "failed to run git: error: Your local changes would be overwritten\nexit=1"
    transcript = Transcript().run("gh pr merge 12 --squash 2>&1; echo exit=$?", failed)
    assert kinds(transcript) == []
    transcript.run("gh pr view 12 --json state", '{"state":"MERGED"}').run(
        "gh pr view 12 --json state", '{"state":"MERGED"}'
    )
    assert kinds(transcript) == ["pr_merged"]


def test_a_review_that_was_refused_is_none_whatever_reviews_are_listed():
    text = 'failed to create review: GraphQL: Can not approve your own pull request\n[{"state":"APPROVED"}]'
    assert kinds(Transcript().run("gh pr review 12 --approve 2>&1; gh api repos/o/r/pulls/12/reviews", text)) == []


def test_a_merge_that_nobody_asked_for_is_not_the_sessions():
    transcript = Transcript().run("gh pr view 12 --json state", '{"state":"MERGED"}').run("gh pr merge 13 --auto")
    assert kinds(transcript.run("gh pr view 13 --json state", '{"state":"MERGED"}')) == []


def test_a_link_that_the_harness_recorded_opens_no_pull_request():
    assert Transcript().pr_link(PR).signals.pull_requests == ()


def test_a_loop_opens_as_many_issues_as_it_prints_and_two_commands_two():
    urls = "https://github.com/o/r/issues/1\nhttps://github.com/o/r/issues/2"
    loop = Transcript().run('for t in a b; do gh issue create -t "$t" -b x; done', urls)
    two = Transcript().run("gh issue create -t a -b x; gh issue create -t b -b x", urls)
    assert loop.signals.count(EffectKind.ISSUE_OPENED) == two.signals.count(EffectKind.ISSUE_OPENED) == 2
    assert Transcript().run("gh issue create -t a -b x", urls).signals.count(EffectKind.ISSUE_OPENED) == 1


def test_the_same_comment_posted_again_counts_once():
    transcript = Transcript()
    for number in range(3):
        transcript.run(f"gh pr comment {number} --body 'Nice  work'", f"{PR}#issuecomment-{number}")
        transcript.tool("mcp__github__add_issue_comment", "other", f"{PR}#issuecomment-9{number}", body="Nice work")
    transcript.run("gh pr comment 1 --body 'Another'", f"{PR}#issuecomment-77")
    assert kinds(transcript) == ["comment", "comment"]


RUNS = "completed\tsuccess\tFix\tLint\tmain\tpush\t2\t1m\t2026\ncompleted\t{}\tFix\tCI\tmain\tpush\t1\t1m\t2026\n"


@pytest.mark.parametrize(
    ("command", "red", "green", "fixed"),
    [
        ("gh run list --limit 2", RUNS.format("failure"), RUNS.format("success"), ["CI@main"]),
        ("gh run list", RUNS.format("failure"), RUNS.format("failure").replace("main", "next"), []),
        ("gh run list", RUNS.format("failure"), "in_progress\t\tFix\tCI\tmain\tpush\t3\n" + RUNS.format("success"), []),
        ("gh run list --json conclusion,headBranch,workflowName",
         '[{"conclusion":"failure","headBranch":"main","workflowName":"CI"}]',
         '[{"conclusion":"success","headBranch":"main","workflowName":"CI"}]', ["CI@main"]),
        ("gh run view 5", "\nX main CI · 5\nTriggered\n", "\n✓ main CI · 6\nTriggered\n", ["CI@main"]),
        ("gh pr checks 12", "test\tfail\t1m", "test\tpass\t1m\nlint\tpending\t0", []),
        ("gh pr view 12 --json statusCheckRollup",
         '{"statusCheckRollup":[{"conclusion":"FAILURE"},{"conclusion":"SUCCESS"}]}',
         '{"statusCheckRollup":[{"conclusion":"SUCCESS"}]}', ["12"]),
    ],
)  # fmt: skip
def test_ci_is_fixed_where_the_same_workflow_or_pull_request_goes_from_red_to_green(command, red, green, fixed):
    transcript = Transcript().run(command, red).run("git commit -am 'Fix test'", COMMIT).run(command, green)
    assert [effect.key for effect in transcript.signals.effects if effect.kind is EffectKind.CI_FIXED] == fixed


def test_checks_of_another_pull_request_fix_nothing():
    transcript = Transcript().run("gh pr checks 12", "test\tfail\t1m").run("git commit -am 'Fix test'", COMMIT)
    assert kinds(transcript.run("gh pr checks 13", "test\tpass\t1m")) == []


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("cd nowhere && pytest", "bash: line 1: cd: nowhere: No such file or directory"),
        ("pytest", "bash: pytest: command not found"),
        ("python -m pytest -q", "/usr/bin/python: No module named pytest"),
        ("pytest --fast", "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --fast"),
        ("pytest tests/no.py", "ERROR: file or directory not found: tests/no.py\n\nno tests ran in 0.00s"),
        ("npm test", 'npm error Missing script: "test"'),
        ("go build && go vet ./... && go test ./... | tail", "x.go:1: vet: undefined"),
        ("pytest", "The user doesn't want to proceed with this tool use."),
        ("go test ./...", "FAIL\t./internal/sem [setup failed]\nFAIL"),
        ("npm run check", "3 errors"),
        ("npx jest --listTests", "boom"),
    ],
)
def test_a_runner_that_never_began_is_no_red_run(command, text):
    assert Transcript().run(command, text, failed=True, exit_code=1).signals.test_runs == ()


@pytest.mark.parametrize(
    ("command", "text", "failed", "passed"),
    [
        ("go test ./... 2>&1 | tail", "ok  \tx/a\t0.1s\nFAIL\tx/b [build failed]\nFAIL", False, False),
        (
            "bun test",
            "[Limiter] Task 2 failed: 84\nerror: Item 3 failed\n 1187 pass\n 0 fail\nRan 1187 tests",
            False,
            True,
        ),
        ("bun test | tail", " 1346 pass\n 114 fail", False, False),
        (
            "corepack pnpm exec vitest run",
            " Test Files  1 failed | 2 passed (3)\n      Tests  1 failed | 9 passed",
            True,
            False,
        ),
        ("mise exec -- go test ./...", "ok  \tx\t0.1s", False, True),
        ("node --test test/*.test.ts", "ℹ tests 17\nℹ pass 17\nℹ fail 0", False, True),
        ("pytest --cov --cov-fail-under 90", "4 passed in 1s\nFAIL Required coverage not reached", True, False),
        ("pytest", "==== 2 passed, 1 error in 0.3s ====", True, False),
        ("cargo nextest run", "Summary [0.1s] 5 tests run: 4 passed, 1 failed, 0 skipped", True, False),
        ("deno test", "ok | 5 passed | 0 failed (10ms)", False, True),
        ("deno test", "FAILED | 4 passed | 1 failed (10ms)", True, False),
        ("npm test", "  1 failed\n  5 passed (3s)", True, False),
        ("npm test", "  6 passed (3s)", False, True),
        ("make test", "5 runs, 8 assertions, 0 failures, 1 errors, 0 skips", True, False),
        ("make test", "3 tests, 0 failures", False, True),
        ("make test", "3 tests, 2 failures", False, False),
        ("make test", "Executed 5 tests, with 1 failure (0 unexpected)", True, False),
        ("mvn test", "Tests run: 5, Failures: 0, Errors: 1, Skipped: 0", True, False),
        ("mvn test", "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\nBUILD SUCCESS", False, True),
    ],
)
def test_the_runners_own_summary_decides(command, text, failed, passed):
    (run,) = Transcript().run(command, text, failed=failed).signals.test_runs
    assert run.passed is passed


def test_a_run_that_still_runs_is_not_green_yet():
    running = "Process running with session ID 7\nOutput:\nok  \tx/a\t0.1s"
    transcript = Transcript().run("go test ./...", running, failed=None)
    assert transcript.signals.test_runs == ()
    transcript.call("w", "write_stdin", arguments={"session_id": 8, "chars": ""}).result("w", "ok  \tx/b\t0.1s")
    assert transcript.signals.test_runs == ()
    transcript.call("v", "write_stdin", arguments={"session_id": 7, "chars": ""}).result("v", "FAIL\tx/c\t0.1s\nFAIL")
    assert [run.passed for run in transcript.signals.test_runs] == [False]


@pytest.mark.parametrize(
    ("command", "text", "failed"),
    [
        ("grep -rn foo src", "", 0),
        ("cat a | grep foo", "", 0),
        ("cd src && rg foo", "", 0),
        ("which tox", "", 0),
        ("diff a b", "1c1\n< a", 0),
        ("test -f a", "", 0),
        ("[ -d x ]", "", 0),
        ("git diff --quiet", "", 0),
        ("cd nowhere && grep foo a", "cd: nowhere: No such file or directory", 1),
        ("grep foo a; make", "boom", 1),
        ("ls nowhere", "", 1),
    ],
)
def test_an_answer_is_no_error(command, text, failed):
    signals = Transcript().run(command, text, failed=True, exit_code=1).signals
    assert (signals.known_results, signals.failed_calls) == (1, failed)
    assert Transcript().run(command, text, failed=True, exit_code=2).signals.failed_calls == 1


TEST = "tests/test_a.py"


@pytest.mark.parametrize(
    ("path", "old", "new", "loosened"),
    [
        (TEST, "def test_a():\n    assert f(1) == 2", "def test_a():\n    pass", 1),
        (TEST, "def test_a():\n    f(1)", "@pytest.mark.skip\ndef test_a():\n    f(1)", 1),
        (TEST, "    assert f(1) == 2", "    assert f(1) == 3", 1),
        ("src/a.test.ts", "expect(f(1)).toBe(2)", "expect(f(1)).toBe(3)", 1),
        ("src/a.test.ts", "it('a', () => {", "it.skip('a', () => {", 1),
        ("a_test.go", 't.Errorf("x")', "", 1),
        (TEST, "    assert f(1) == 2", "    assert f(1) == 2\n    assert f(2) == 4", 0),
        (TEST, "    x = 1", "    x = 2", 0),
        ("src/a.py", "    assert f(1) == 2", "    pass", 0),
    ],
)
def test_an_edit_that_loosens_a_test_is_flagged(path, old, new, loosened):
    assert Transcript().edit(path, old, new).signals.loosened_tests == loosened


def test_tests_that_pass_after_a_loosening_alone_were_not_fixed():
    loosen = (TEST, "    assert f(1) == 2", "    pass")
    transcript = Transcript().run("pytest", RED, failed=True).edit(*loosen).run("git commit -am 'Fix it'", COMMIT)
    assert kinds(transcript.run("pytest", GREEN)) == []
    transcript = Transcript().run("pytest", RED, failed=True).edit(*loosen).edit("src/a.py", "a", "b")
    assert kinds(transcript.run("pytest", GREEN)) == ["tests_fixed"]


def test_one_piece_of_work_mends_tests_once():
    transcript = Transcript().run("pytest", RED, failed=True).run("make test", RED, failed=True).edit("a.py", "a", "b")
    assert kinds(transcript.run("pytest", GREEN).run("make test", GREEN)) == ["tests_fixed"]


def test_a_session_is_cut_where_an_error_of_the_harness_is_its_end():
    assert Transcript().says("hm").api_error("quota").signals.cut == "quota"
    assert Transcript().api_error("overloaded").says("again").signals.cut == ""
    assert Transcript().api_error("overloaded").run("ls").signals.cut == ""
    assert Transcript().run("ls").api_error("overloaded").says("go on", Role.USER).signals.cut == "overloaded"


def test_a_session_has_concluded_where_the_last_word_comes_after_the_last_result():
    assert Transcript().run("ls").says("Done.").signals.concluded is True
    assert Transcript().says("Done.").run("ls").signals.concluded is False
    assert Transcript().run("ls").says("hm", thinking=True).signals.concluded is False
    assert Transcript().run("ls").says("Done.", sidechain=True).signals.concluded is False
    assert Transcript().run("ls").api_error().signals.concluded is False


@pytest.mark.parametrize(
    ("text", "rejected"),
    [
        ("The user doesn't want to proceed with this tool use. The tool use was rejected", 1),
        ("[Request interrupted by user for tool use]", 1),
        ("exec command rejected by user", 1),
        ("patch rejected by user", 1),
        ("push was rejected by the server", 0),
        ("tests: The user doesn't want to proceed", 0),
    ],
)
def test_calls_that_the_user_refused_are_counted(text, rejected):
    assert Transcript().run("make", text, failed=True).signals.rejected == rejected
    assert Transcript().run("cat x", text).signals.rejected == 0


def test_distinct_successful_reads_are_counted():
    transcript = Transcript().tool("Read", "read", "x", path="a.py").tool("Read", "read", "x", path="a.py")
    transcript.tool("Grep", "search", "x", pattern="a").tool("WebFetch", "web", "x", url="https://a").run("cat a b")
    transcript.run("git log -3 && gh issue list").run("cat no", failed=True).run("make").run("echo x | head -3")
    assert transcript.signals.reads == 6
    opaque = Transcript().call("a", "mcp__x__read", "read", path="a", clarity=Clarity.OPAQUE).result("a", "x")
    assert opaque.signals.reads == 0


@pytest.mark.parametrize(
    "command",
    [
        "ssh h " * 30_000,
        "docker exec c " * 15_000,
        "x=$(mktemp -d);" * 13_000,
        "cd a;" * 40_000,
        "git init /tmp/a;" * 12_000,
        "git reset --hard HEAD~1;" * 8_000,
        "f() {" * 30_000,
        "cd $A$A$A$A/" + "/".join("a" * 100_000),
        "sed -i x " + "a.py " * 30_000,
        "python -c 'open(a.b)'" * 9_000,
    ],
)
def test_a_hostile_command_costs_little(command):
    start = time.process_time()
    transcript = Transcript().run("git commit -m x", COMMIT)
    transcript.run(command, "abc1234 x\n" * 40_000).run("git log", "abc1234 x\n" * 40_000)
    transcript.signals  # noqa: B018
    assert time.process_time() - start < 4


@pytest.mark.parametrize(
    ("command", "unit"),
    [
        ("pytest", "1 a, "), ("pytest", "Tests: 1 "), ("pytest", "tests run: "), ("gh run list", "a\tb\tc"),
        ("gh run view 1", "X a b "), ("gh pr create", "["), ("gh pr create", '{"a":'),
        ("git push", "To a\n * [new tag] "),
        ("git log", "commit " + "a" * 40 + "\n"), ("git commit -qm x; git log", "    a"), ("git status", " M a | 1 "),
        ("patch", "patching file "), ("gh run list", f"{PR}\n"), ("make test", "cd: "),
    ],
)  # fmt: skip
def test_a_hostile_result_costs_little(command, unit):
    start = time.process_time()
    Transcript().run(command, unit * (800_000 // len(unit)), failed=None).signals  # noqa: B018
    assert time.process_time() - start < 4
