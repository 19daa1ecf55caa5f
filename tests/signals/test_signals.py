"""What counts as done: the tool's result, never the words."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.formats.events import Boundary, Role
from grading.signals import EffectKind, Signals, extract
from tests.transcript import Transcript

pytestmark = pytest.mark.pure

COMMIT = "[main abc1234] Fix it\n 1 file changed, 2 insertions(+)\n create mode 100644 src/a.py"
PR = "https://github.com/o/r/pull/12"


def commits_of(command, text, **result) -> list[str]:
    return [commit.hash for commit in Transcript().run(command, text, **result).signals.commits]


@pytest.mark.parametrize(
    ("line", "branch"),
    [
        ("[main abc1234] Fix it", "main"),
        ("[main (root-commit) abc1234] Begin", "main"),
        ("[detached HEAD abc1234] Fix it", "detached HEAD"),
        ("[feat/x.y-2/z_1 abc1234] Fix it", "feat/x.y-2/z_1"),
        ("[release/v1.2.3 abc1234def567890123456789012345678901234] Fix", "release/v1.2.3"),
        ("\x1b[32m[main abc1234] Fix it\x1b[0m", "main"),
        ("pre-commit...Passed\r\n[main abc1234] Fix it\r\n 1 file changed", "main"),
    ],
)
def test_a_commit_counts_when_git_says_so(line, branch):
    (commit,) = Transcript().run("git commit -m 'Fix it'", line).signals.commits
    assert commit.hash.startswith("abc1234")
    assert commit.branch == branch


@pytest.mark.parametrize(
    "command",
    [
        "git commit -am 'Fix it'",
        "cd /repo && git add -A && git commit -m 'Fix it' && git push",
        "git add a; git commit -m x; ls",
        "git -C /repo -c user.name=a commit -m x",
        "bash -lc 'git add . && git commit -m \"a && b\"'",
        "git commit -F - <<'EOF'\nFix it (really) 'quoted'\nEOF",
        'git commit -m "$(cat <<\'EOF\'\nFix it\n\nIt\'s (half) "quoted"\nEOF\n)"',
        "if git commit -m x; then git push; fi",
        "GIT_EDITOR=true sudo -E timeout 30 /usr/bin/git commit -m x",
        "(cd sub && git commit -m x)",
        "git commit -m x 2>&1 | tail -3",
        "git cherry-pick abc",
        "git safe-commit a.py -m x",
        "./scripts/commit.sh 'Fix it'",
        "bash <<'EOF'\ngit commit -m x\nEOF",
        'git add .; if ($?) { git commit -m "x" }; if ($?) { git push }',
        "git commit -m @'\nFix it\n'@; git push",
        '& "C:\\Program Files\\Git\\bin\\git.exe" commit -m x',
        'powershell.exe -NoProfile -Command "git commit -m x; git push"',
        "pwsh -c 'git commit -m x'",
        'cmd /c "git add . && git commit -m x"',
        "cmd.exe /d /c git commit -m x",
        "$output = git commit -m x 2>&1; $output",
    ],
)
def test_a_commit_counts_however_it_was_called(command):
    assert commits_of(command, COMMIT) == ["abc1234"]


@pytest.mark.parametrize(
    "command",
    [
        "cat build.log",
        "git log --format='[main %h] %s'",
        "grep -r commit .",
        "echo 'git commit -m x'",
        'echo "run: git commit -m x"',
        "ls # git commit -m x",
        "cat > run.sh <<'EOF'\ngit commit -m x\nEOF",
        "git commit --dry-run",
        "git show --stat",
        "gh run view 12 --log",
    ],
)
def test_a_line_like_a_commit_is_none_without_a_commit_command(command):
    assert commits_of(command, COMMIT) == []


def test_the_same_hash_counts_once():
    """I04, one commit counted two or three times: impossible. Background output comes up again, and short and full
    hashes are one commit.
    """
    transcript = Transcript().run("git commit -m x", COMMIT).run("git commit -m x", COMMIT)
    transcript.run("git commit -m x", f"[main abc1234{'0' * 33}] Fix it")
    assert len(transcript.signals.commits) == 1


def test_a_log_printed_beside_a_commit_adds_none():
    text = "[main 1111111] Old\n[main 2222222] Older\n" + COMMIT
    assert commits_of("cat old.log; git commit -m x", text) == ["abc1234"]


def test_a_failed_commit_is_none():
    assert commits_of("git add . && git commit -m x", COMMIT, failed=True) == []
    assert commits_of("git commit -m x", COMMIT, failed=None, exit_code=1) == []


def test_a_commit_counts_where_a_later_command_fails():
    """I17: the exit status of the whole call is not the commit's."""
    assert commits_of("git commit -m x && git push", COMMIT + "\n! [rejected] main", exit_code=126, failed=None) == [
        "abc1234"
    ]


def test_the_hash_may_stand_far_into_the_output():
    assert commits_of("git commit -m x", "x" * 7_900 + "\n" + COMMIT) == ["abc1234"]
    assert commits_of("git commit -m x", "hook\n" * 500_000 + COMMIT) == ["abc1234"]


def test_a_quiet_commit_counts_when_the_call_then_shows_its_hash():
    assert commits_of("git commit -qm x && git log --oneline -1", "abc1234 Fix it") == ["abc1234"]
    assert commits_of("git commit -q -m x && git rev-parse HEAD", "a" * 40) == ["a" * 40]
    assert commits_of("git commit -qm 'Fix the thing'; git log --oneline -1", "abc1234 Fix the thing") == ["abc1234"]
    assert commits_of("git commit -qm 'Fix the thing'; git log --oneline -1", "abc1234 Another thing") == []
    assert commits_of("git commit -q -F - <<'EOF'\nFix the thing\n\nWhy\nEOF\ngit log -2", "abc1234 Fix the thing") == [
        "abc1234"
    ]
    assert commits_of("git commit -qm x", "") == []


@pytest.mark.parametrize(
    "option", ["--author=bob", "--grep=Fix", "--skip=1", "--skip 1", "--until=yesterday", "1234567"]
)
def test_a_log_that_may_leave_head_out_shows_no_quiet_commit(option):
    assert commits_of(f"git commit -qm x && git log --oneline -1 {option}", "abc1234 Fix it") == []


def test_a_later_log_shows_the_quiet_commit_of_that_subject_and_no_other():
    transcript = Transcript().run("git commit -qm \"$(cat <<'EOF'\nFix the thing\nEOF\n)\"")
    transcript.run("git log --oneline", "def5678 (HEAD -> main) Fix the thing\nabc1234 Older thing")
    assert [commit.hash for commit in transcript.signals.commits] == ["def5678"]


def test_an_amended_commit_replaces_the_one_before():
    transcript = (
        Transcript().run("git commit -m x", COMMIT).run("git commit --amend --no-edit", "[main def5678] Fix it")
    )
    assert [commit.hash for commit in transcript.signals.commits] == ["def5678"]


def test_commit_output_may_belong_to_a_later_call_of_a_persistent_shell():
    """I09: codex answers the commit's output to `write_stdin`."""
    transcript = Transcript().run("git commit -m x", "Process running with session ID 7", failed=None)
    transcript.call("w1", "write_stdin", "shell", arguments={"session_id": 7, "chars": ""})
    transcript.result("w1", "hook output\n" * 200 + COMMIT, failed=None)
    assert [commit.hash for commit in transcript.signals.commits] == ["abc1234"]


def test_a_commit_in_the_background_counts_when_its_output_is_read():
    transcript = Transcript().run("git commit -m x", "Command running in background with ID: b1")
    transcript.call("o", "BashOutput", "shell", arguments={"bash_id": "b1"}).result("o", COMMIT)
    transcript.call("p", "BashOutput", "shell", arguments={"bash_id": "b1"}).result("p", COMMIT)
    assert [commit.hash for commit in transcript.signals.commits] == ["abc1234"]


def test_a_persistent_shell_shows_no_commit_that_nobody_called():
    transcript = Transcript().call("w1", "write_stdin", "shell", arguments={"chars": ""}).result("w1", COMMIT)
    assert transcript.signals.commits == ()


def test_a_log_read_while_a_commit_is_open_is_none():
    transcript = Transcript().run("git commit -m x", "running", failed=None).run("cat old.log", COMMIT)
    transcript.tool("Read", "read", COMMIT, path="old.log")
    assert transcript.signals.commits == ()


def test_an_unpaired_result_is_counted_and_confirms_nothing():
    signals = Transcript().result("nobody", COMMIT).signals
    assert (signals.results, signals.commits) == (1, ())


def test_paths_of_a_commit_come_from_its_argv_its_output_and_the_writes_before():
    transcript = Transcript().run("git add docs/b.md && git commit -m x", COMMIT)
    assert transcript.signals.commits[0].paths == ("docs/b.md", "src/a.py")
    transcript = Transcript().write("journal/today.md", "hello").run("git commit -am x", "[main abc1234] x")
    assert transcript.signals.commits[0].paths == ("journal/today.md",)


@pytest.mark.parametrize(
    ("command", "text", "kind", "key"),
    [
        ("git push", "To x\n   1234567..89abcde  main -> main", EffectKind.PUSH, "main 89abcde"),
        ("git push -u origin a/b", " * [new branch]      a/b -> a/b", EffectKind.PUSH, "a/b a/b"),
        ("git push -f", " + 1234567...89abcde x -> x (forced update)", EffectKind.PUSH, "x 89abcde"),
        ("gh pr create --fill", f"Creating pull request\n{PR}\n", EffectKind.PR_OPENED, PR),
        ("URL=$(gh pr create -R o/r --fill) && echo $URL", PR, EffectKind.PR_OPENED, PR),
        ("glab mr create", "!3\nhttps://gitlab.com/a/b/c/-/merge_requests/3", EffectKind.PR_OPENED,
         "https://gitlab.com/a/b/c/-/merge_requests/3"),
        ("gh api repos/o/r/pulls -f title=x", f'{{"url":"https://api.github.com/repos/o/r/pulls/12","html_url":"{PR}"}}',
         EffectKind.PR_OPENED, PR),
        ("gh pr merge 12 --squash", "✓ Squashed and merged pull request o/r#12 (Fix)", EffectKind.PR_MERGED, "12"),
        ("gh pr merge", "✓ Merged pull request #12 (Fix)", EffectKind.PR_MERGED, "#12"),
        ("gh pr merge 12 --squash", "", EffectKind.PR_MERGED, "12"),
        ("gh pr close 12", "✓ Closed pull request o/r#12 (Fix)", EffectKind.PR_CLOSED, "12"),
        ("gh pr review 12 --approve", "", EffectKind.PR_REVIEWED, "12"),
        ("gh issue close 5", "✓ Closed issue #5 (Bug)", EffectKind.ISSUE_CLOSED, "5"),
        ("gh issue create -t x -b y", "https://github.com/o/r/issues/9", EffectKind.ISSUE_OPENED,
         "https://github.com/o/r/issues/9"),
        ("gh issue comment 5 -b x", "https://github.com/o/r/issues/5#issuecomment-77", EffectKind.COMMENT,
         "https://github.com/o/r/issues/5#issuecomment-77"),
    ],
)  # fmt: skip
def test_an_effect_counts_when_its_result_shows_it(command, text, kind, key):
    (effect,) = Transcript().run(command, text).signals.effects
    assert (effect.kind, effect.key) == (kind, key)


@pytest.mark.parametrize(
    ("command", "text", "failed"),
    [
        ("echo 'gh pr create'", PR, False),
        ("gh pr view 12", PR, False),
        ("gh pr create --dry-run", PR, False),
        ("gh pr create", f'a pull request for branch "x" already exists:\n{PR}', None),
        ("gh pr create", PR, True),
        ("gh pr list", PR, False),
        ("git push", "remote: https://github.com/o/r/pull/new/x", False),
        ("git push", "Everything up-to-date", False),
        ("git push", " ! [rejected]        main -> main (fetch first)", True),
        ("git push --dry-run", "   1234567..89abcde  main -> main", False),
        ("gh pr comment 3 -b 'ran gh pr merge 12'", "✓ Merged pull request #12", False),
        ("gh pr merge 12 --auto", "", False),
        ("gh pr merge 12 || true", "", False),
        ("gh pr merge 12; echo done", "", False),
        ("gh api repos/o/r/pulls", f'[{{"html_url":"{PR}"}}]', False),
        ("cat notes.md", "✓ Merged pull request #12", False),
    ],
)
def test_a_mention_or_a_failure_is_no_effect(command, text, failed):
    """I05, a merge read off a comment: impossible. Only a call with a result that shows it merges anything."""
    assert Transcript().run(command, text, failed=failed).signals.effects == ()


def test_a_line_about_another_pull_request_confirms_nothing():
    text = "X Pull request o/r#13 is not mergeable\n✓ Merged pull request o/r#12 (Fix)"
    transcript = Transcript().run("gh pr merge 13; gh pr merge 12", text)
    assert [effect.key for effect in transcript.signals.effects] == ["12"]


def test_the_harness_own_link_and_the_tool_count_one_pull_request():
    signals = Transcript().run("gh pr create", PR).pr_link(PR).pr_link(PR).signals
    assert signals.pull_requests == (PR,)


def test_a_tool_server_call_counts_like_a_command():
    transcript = Transcript().tool("mcp__github__create_pull_request", "other", f'{{"html_url":"{PR}"}}', title="x")
    transcript.tool("mcp__github__merge_pull_request", "other", '{"merged": true}')
    kinds = [effect.kind for effect in transcript.signals.effects]
    assert kinds == [EffectKind.PR_OPENED, EffectKind.PR_MERGED]


def test_a_result_without_a_status_is_neither_good_nor_bad():
    signals = Transcript().run("ls", failed=None).run("ls", failed=None, exit_code=2).signals
    assert (signals.results, signals.known_results, signals.failed_calls) == (2, 1, 1)


def test_ci_is_fixed_when_checks_fail_work_is_done_and_they_pass():
    transcript = Transcript().run("gh pr checks 12", "lint\tpass\t1s\ntest\tfail\t2m", exit_code=1, failed=None)
    transcript.run("git commit -am 'Fix test'", COMMIT).run("gh pr checks 12", "lint\tpass\t1s\ntest\tpass\t2m")
    assert transcript.signals.count(EffectKind.CI_FIXED) == 1


def test_a_rerun_that_passes_fixes_nothing():
    transcript = Transcript().run("gh pr checks 12", "test\tfail\t2m", exit_code=1, failed=None)
    transcript.run("gh run rerun 5").run("gh pr checks 12", "test\tpass\t2m")
    assert transcript.signals.count(EffectKind.CI_FIXED) == 0


@pytest.mark.parametrize(
    ("command", "text", "failed", "passed"),
    [
        ("python -m pytest -q", "3 passed in 1s", False, True),
        ("uv run pytest tests | tail -2", "1 failed, 3 passed in 1s", False, False),
        ("npm run test:unit", "Tests:  4 passed, 4 total", False, True),
        ("cargo test", "test result: FAILED. 1 passed; 2 failed", True, False),
        ("go test ./...", "ok  \tx/y\t0.1s", False, True),
        ("make test", "", False, True),
        ("make test", "boom", True, False),
        ("python -m unittest", "Ran 3 tests\n\nOK", False, True),
    ],
)
def test_a_test_run_has_the_outcome_its_runner_prints(command, text, failed, passed):
    (run,) = Transcript().run(command, text, failed=failed).signals.test_runs
    assert run.passed is passed


def test_reading_about_tests_is_no_test_run():
    assert Transcript().run("cat pytest.log", "3 passed").run("grep pytest x", "1 failed").signals.test_runs == ()


def test_confirmed_writes_have_paths_newness_and_added_lines():
    transcript = Transcript().write("tasks/a.md", "one\ntwo").edit("b.md", "x\ny", "x\nz\ny")
    transcript.write("c.md", "text", "The file c.md has been updated").write("d.md", "no", "denied", failed=True)
    files = [(change.path, change.is_new, change.added) for change in transcript.signals.files]
    assert files == [("tasks/a.md", True, ("one", "two")), ("b.md", False, ("z",)), ("c.md", False, ())]


def test_a_write_of_unknown_newness_is_not_new_once_the_file_was_read():
    transcript = Transcript().tool("read", "read", "old", path="a.md").write("a.md", "new", "Saved to a.md")
    transcript.write("b.md", "new", "Saved to b.md")
    assert [change.is_new for change in transcript.signals.files] == [False, None]


def test_an_edit_of_a_file_that_speaks_of_creation_creates_nothing():
    text = "The file /x/created/a.md has been updated:\n1 created\n"
    transcript = Transcript().tool("Edit", "edit", text, path="/x/created/a.md", old_string="a", new_string="b")
    assert transcript.signals.files[0].is_new is False


def test_lines_of_a_gptme_patch_are_read():
    patch = "<<<<<<< ORIGINAL\na\nb\n=======\na\nc\n>>>>>>> UPDATED"
    transcript = Transcript().tool("patch", "edit", "Patch successfully applied to `a.py`", path="a.py", patch=patch)
    (change,) = transcript.signals.files
    assert (change.added, change.removed) == (("c",), ("b",))


def test_files_of_a_codex_patch_and_of_redirections_are_read():
    patch = "*** Begin Patch\n*** Add File: tasks/a.md\n+hello\n*** Update File: b.py\n@@\n-x\n+y\n*** End Patch"
    transcript = Transcript().tool(
        "apply_patch", "edit", "Success. Updated the following files:\nA tasks/a.md", input=patch
    )
    transcript.run(f"apply_patch <<'EOF'\n{patch.replace('tasks/a', 'tasks/b')}\nEOF")
    transcript.run('echo "| Idea: x | 3 |" >> idea-backlog.md').run("cat > c.md <<'EOF'\nbody\nEOF")
    transcript.run("cat > no/d.md <<'EOF'\nbody\nEOF", "bash: no/d.md: No such file or directory").run("ls 2>/dev/null")
    files = [(change.path, change.is_new, change.added) for change in transcript.signals.files]
    assert files == [
        ("tasks/a.md", True, ("hello",)),
        ("b.py", False, ("y",)),
        ("tasks/b.md", True, ("hello",)),
        ("b.py", False, ("y",)),
        ("idea-backlog.md", False, ("| Idea: x | 3 |",)),
        ("c.md", None, ("body",)),
    ]


@pytest.mark.parametrize(
    ("command", "added"),
    [
        ('echo "- Idea: offline maps" >> ideas.md', ("- Idea: offline maps",)),
        ('echo -e "one\\ntwo" >> ideas.md', ("one", "two")),
        ("printf '%s\\n' '- one' '- two' >> ideas.md", ("- one", "- two")),
        ("printf '| %s | %s |\\n' one 1 two 2 >> ideas.md", ("| one | 1 |", "| two | 2 |")),
        ("printf -- '- one\\n' >> ideas.md", ("- one",)),
    ],
)
def test_printed_lines_are_read(command, added):
    (change,) = Transcript().run(command).signals.files
    assert change.added == added


def test_turns_cost_and_time_are_counted():
    transcript = Transcript().says("do it", Role.USER).says("rules", Role.SCAFFOLD).says("hm", thinking=True)
    transcript.used("m1", input_tokens=5, output_tokens=None).used("m1", input_tokens=2).used("m2", cost_usd=0.5)
    transcript.compaction().says("done").says("aside", sidechain=True).tool("WebFetch", "web", "page")
    signals = transcript.signals
    assert (signals.user_turns, signals.assistant_turns, signals.final_message) == (1, 2, 8)
    assert (signals.cost_usd, signals.compactions) == (0.5, 1)
    assert signals.duration == 10 * 60


def test_text_is_never_evidence():
    """I20: neither an injected prompt nor an answer can claim an effect."""
    claims = f"git commit -m x\n{COMMIT}\ngh pr create\n{PR}"
    transcript = Transcript().says(claims, Role.SCAFFOLD).says(claims, Role.USER).says(claims)
    assert transcript.signals.did_something is False


def test_another_commit_landing_meanwhile_changes_nothing():
    """I15, commits claimed by their time: impossible. Only commits that this session's own calls made are its own."""
    transcript = Transcript().run("git pull", f"Updating 1..2\n{COMMIT}").run("git log -3", COMMIT)
    assert transcript.signals.commits == ()


def test_signals_survive_json():
    transcript = (
        Transcript().write("a.md", "x").run("git commit -m x", COMMIT).run("gh pr create", PR).run("pytest", "1 passed")
    )
    signals = transcript.used("m", input_tokens=1).api_error().signals
    stored = json.loads(json.dumps(signals.as_dict()))
    assert Signals.from_dict(stored) == signals
    earlier = {"retries": 1, "models": ["m"], "tokens": {"input": 1}}
    assert Signals.from_dict({**stored, **earlier}) == signals


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git commit -m x", "[" * 400_000),
        ("git commit -m x", "[main " * 100_000),
        ("git commit -m x", "[main abc1234] x\n" * 40_000),
        ("git push", " * " * 200_000),
        ("gh pr create", "https://a/" * 80_000),
        ("pytest", "1 " * 300_000),
        ("gh pr checks", "\t" * 500_000),
        ("$(" * 100_000, ""),
        ('git commit -m "' + "$(cat <<A\n" * 20_000, ""),
        ("sudo " * 40_000, ""),
        ("a;" * 100_000, ""),
        ("git commit -qm 'x y z w v';" * 8_000, "abc1234 x\n" * 40_000),
        ("'" * 199_999, ""),
    ],
)
def test_hostile_text_costs_little(command, text):
    start = time.process_time()
    Transcript().run(command, text).signals  # noqa: B018
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    "unit", ["<<<<<<< ORIGINAL\n", "<<<<<<< ORIGINAL\n=======\n", "*** Add File: a\n", "*** Begin Patch\n"]
)
def test_a_hostile_edit_costs_little(unit):
    start = time.process_time()
    Transcript().tool("patch", "edit", "ok", path="a.py", patch=unit * (400_000 // len(unit))).signals  # noqa: B018
    assert time.process_time() - start < 3


@given(st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60), st.sampled_from([True, False, None]))))
def test_no_text_breaks_the_extraction(calls):
    transcript = Transcript()
    for command, text, failed in calls:
        transcript.run(command, text, failed=failed)
    assert extract(transcript.events).results == len(calls)


@given(st.text(alphabet="git commt-\"'$()<>|&;\\\n #EOF", max_size=80))
def test_no_command_line_breaks_the_shell_reader(command):
    assert Transcript().run(command, COMMIT).signals.results == 1


def test_work_that_a_log_copied_from_another_session_counts_for_nothing():
    told = Transcript().run("git commit -m x", "[main abc1234] x\n 1 file changed")
    told.add(Boundary, kind="session_change", detail="mine").run("git commit -m y", "[main def5678] y\n 1 file changed")
    assert [commit.hash for commit in extract(told.events).commits] == ["def5678"]


def test_the_task_is_the_first_line_of_what_a_person_first_asked():
    told = Transcript().says("be terse", Role.SCAFFOLD).says("\n  Fix the build\nplease", Role.USER)
    told.says("and then rest", Role.USER)
    assert extract(told.events).task == "Fix the build"
    assert extract(Transcript().says("x" * 10_000, Role.USER).events).task == "x" * 120
