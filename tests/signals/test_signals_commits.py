"""Commits: which ones a session made, however they were called, and which of them do not count."""

import pytest

from grading.signals import EffectKind
from tests.transcript import Transcript

pytestmark = pytest.mark.pure

COMMIT = "[main abc1234] Fix it\n 1 file changed, 2 insertions(+)"
OTHER = "[main def5678] Add it\n 2 files changed, 2 insertions(+)"
PUSHED = "To github.com:o/r.git\n   1111111..abc1234  main -> main"
LONG_LOG = f"commit abc1234{'0' * 33} (HEAD)\nAuthor: a\n\n    Fix the thing\n"
TEMPORARY = "/tmp/x"  # noqa: S108 - a name in a transcript
INIT = "Initialized empty Git repository in /tmp/x/.git/"


def hashes(transcript: Transcript) -> list[str]:
    return [commit.hash for commit in transcript.signals.commits]


@pytest.mark.parametrize(
    "command",
    [
        "rtk git commit -m x",
        "rtk proxy git commit -m x",
        "uv run --with ruff git commit -m x",
        "poetry run git commit -m x",
        "pnpm exec git commit -m x",
        "npx -p husky git commit -m x",
        "env -u A B=1 git commit -m x",
        "timeout -k 5 30 git commit -m x",
        "nice -n 10 git commit -m x",
        "sudo -u me git commit -m x",
        "ls | xargs -I {} git -C {} commit -m x",
        "ssh -p 22 -i key host 'cd /repo && git commit -m x'",
        "docker exec -w /app box sh -c 'git commit -m x'",
        "docker compose exec -T app git commit -m x",
        "kubectl -n dev exec pod -- git commit -m x",
        "(cd sub; (git commit -m x))",
        "save() { git add .; git commit -m \"$1\"; }; save 'Fix it'",
        "for f in a; do git add $f; git commit -m $f; done",
        "case $x in a) git commit -m x;; esac",
        "git commit -F - <<EOF\nFix it\nEOF",
    ],
)
def test_a_wrapper_does_not_hide_a_commit(command):
    assert hashes(Transcript().run(command, COMMIT)) == ["abc1234"]


@pytest.mark.parametrize(
    "command",
    [
        "for f in a b; do git add $f; git commit -m $f; done",
        "ls | while read f; do git add $f; git commit -m $f; done",
        'save() { git commit -m "$1"; }; save a; save b',
        "git commit -m a && git commit -m b",
    ],
)
def test_a_loop_or_a_function_commits_more_than_once(command):
    assert hashes(Transcript().run(command, f"{COMMIT}\n{OTHER}")) == ["abc1234", "def5678"]


@pytest.mark.parametrize("command", ["docker run box git commit -m x", "ssh host", "docker exec box ls", "npx git"])
def test_a_wrapper_alone_commits_nothing(command):
    assert hashes(Transcript().run(command, "")) == []


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git commit -q -m 'Fix it' && git push", PUSHED),
        ("git commit -q -F msg.txt && git push 2>&1 | tail -1", "   1111111..abc1234  main -> main"),
        ("git commit -m 'Fix it' >/dev/null && git rev-parse --short HEAD", "abc1234"),
        ("git commit -m 'Fix the thing' | tail -1; git log --oneline -1", " 1 file changed\nabc1234 Fix the thing"),
        ("git commit -m 'Fix the thing' >/dev/null; git log -1", LONG_LOG),
        ("rtk git commit -m 'Fix the thing that broke today'; rtk git log", "ok\nabc1234 Fix the thing that broke..."),
        ("git commit -q --amend && echo ok && git show --stat --oneline HEAD | head", "ok\nabc1234 Fix\n a | 6 +-"),
        ("git commit -q -F m.txt && git log --oneline -3 | cat", "abc1234 Fix it\n1111111 Older\n2222222 Old"),
    ],
)  # fmt: skip
def test_a_hidden_commit_counts_when_the_call_shows_its_hash(command, text):
    assert [hash_[:7] for hash_ in hashes(Transcript().run(command, text))] == ["abc1234"]


def test_a_later_push_or_head_shows_a_hidden_commit():
    quiet = "git add -A && git commit -q -F message.txt"
    assert hashes(Transcript().run(quiet).run("git push", PUSHED)) == ["abc1234"]
    assert hashes(Transcript().run(quiet).run("git rev-parse HEAD", "a" * 40)) == ["a" * 40]
    assert hashes(Transcript().run(quiet).run("git log --oneline -2", "abc1234 Fix\n1111111 Old")) == ["abc1234"]


@pytest.mark.parametrize(
    ("command", "text", "failed"),
    [
        ("git commit -q -m 'Fix it' && git push", PUSHED, True),
        ("git commit -q -m 'Fix it'; git push", "On branch main\nnothing to commit\n" + PUSHED, False),
        ("git commit -qm 'Fix the thing'; git rev-parse HEAD", "a" * 40, False),
        ("git commit -qm 'Fix the thing'; git log --oneline -1", "abc1234 Another thing", False),
    ],
)
def test_a_hash_proves_no_commit_that_failed_or_may_have_failed(command, text, failed):
    assert hashes(Transcript().run(command, text, failed=failed)) == []


def test_a_head_that_was_there_before_proves_no_later_commit():
    transcript = Transcript().run("git commit -m x", COMMIT).run("git commit -q -F m.txt", "", failed=True)
    assert hashes(transcript.run("git rev-parse HEAD", "def5678")) == ["abc1234"]
    transcript = (
        Transcript().run("git commit -q -F m.txt").run("git pull", "Updating").run("git rev-parse HEAD", "b" * 40)
    )
    assert hashes(transcript) == []


def test_one_hidden_commit_is_counted_once_however_often_it_is_shown():
    transcript = Transcript().run("git commit -qm 'Fix the thing' && git push", PUSHED)
    transcript.run("git log --oneline", "abc1234 Fix the thing\n1111111 Fix the thing")
    assert hashes(transcript) == ["abc1234"]


@pytest.mark.parametrize(
    "command",
    [
        "cd /tmp/x && git init && git commit -m x",
        "mkdir -p /tmp/x; git -C /tmp/x init -q; git -C /tmp/x commit -m x",
        "tmp=$(mktemp -d); cd $tmp && git init -q && git commit -m x",
        'cd "$(mktemp -d)" && git init && git commit -m x',
        'export D="$(mktemp -d)"; git init "$D/repo" && cd "${D}/repo" && git commit -m x',
        "cd $TMPDIR && git init demo && cd demo && git commit -m x",
        "git init --bare /tmp/r.git; git clone /tmp/r.git /tmp/w; cd /tmp/w; git commit -m x",
        "S=/Users/me/work/scratchpad; mkdir $S/a; git init $S/a; (cd $S/a; git commit -m x)",
    ],
)
def test_a_commit_in_a_throwaway_repository_does_not_count(command):
    assert hashes(Transcript().run(command, COMMIT)) == []


def test_a_throwaway_repository_is_known_in_later_calls():
    transcript = Transcript().run("mkdir /tmp/x && cd /tmp/x && git init", INIT).run("git commit -m x", COMMIT)
    assert hashes(transcript) == []
    transcript.run("cd /repo && git commit -m x", OTHER)
    assert hashes(transcript) == ["def5678"]
    told = Transcript().call("a", command="git init", arguments={"workdir": TEMPORARY}).result("a", INIT)
    told.call("b", command="git commit -m x", arguments={"workdir": TEMPORARY}).result("b", COMMIT)
    told.call("c", command="git commit -m x", arguments={"workdir": "/repo"}).result("c", OTHER)
    assert hashes(told) == ["def5678"]


def test_a_temporary_repository_that_existed_before_is_no_throwaway():
    again = INIT.replace("Initialized empty", "Reinitialized existing")
    transcript = Transcript().run("cd /tmp/x && git init", again).run("git commit -m x", COMMIT)
    assert hashes(transcript) == ["abc1234"]
    made = Transcript().run("cd /tmp/x && git init", INIT).run("git init", again).run("git commit -m x", COMMIT)
    assert hashes(made) == []


@pytest.mark.parametrize(
    "command",
    [
        "(cd /tmp/x && git init -q); git commit -m x",
        "cd /tmp/x && git init -q; cd /repo; git commit -m x",
        "git clone https://github.com/o/r /tmp/r && cd /tmp/r && git commit -m x",
        "git worktree add /tmp/w && cd /tmp/w && git commit -m x",
        "git init && git commit -m x",
        "mkdir /srv/app && cd /srv/app && git init && git commit -m x",
    ],
)
def test_a_real_repository_counts_wherever_it_lies(command):
    assert hashes(Transcript().run(command, COMMIT)) == ["abc1234"]


def test_a_directory_that_the_harness_resets_is_left():
    transcript = Transcript().run("cd /tmp/x && git init", f"{INIT}\nShell cwd was reset to /repo")
    assert hashes(transcript.run("git commit -m x", COMMIT)) == ["abc1234"]


def test_a_push_to_a_repository_that_the_session_made_does_not_count():
    transcript = Transcript().run("git init --bare /tmp/r.git").run("git remote add t /tmp/r.git")
    transcript.run("git push t main", "To /tmp/r.git\n * [new branch]      main -> main")
    transcript.run("git init --bare ../r.git").run("git push l", "To ../r.git\n * [new branch]      main -> main")
    assert transcript.signals.effects == ()
    transcript.run("git push", PUSHED)
    assert transcript.signals.count(EffectKind.PUSH) == 1


def test_an_empty_commit_does_not_count():
    assert hashes(Transcript().run("git commit --allow-empty -m 'Trigger CI'", "[main abc1234] Trigger CI")) == []
    assert hashes(Transcript().run("git commit --allow-empty -qm 'Trigger CI' && git push", PUSHED)) == []
    assert hashes(Transcript().run("git commit --allow-empty -am x", COMMIT)) == ["abc1234"]


def test_a_commit_and_the_revert_of_it_do_not_count():
    transcript = Transcript().run("git commit -m x", COMMIT).run("git commit -m y", OTHER)
    transcript.run("git revert --no-edit abc1234", '[main 9999999] Revert "Fix it"\n 1 file changed')
    assert hashes(transcript) == ["def5678"]
    assert transcript.signals.undone == ("abc1234", "9999999")


def test_the_revert_of_somebody_elses_commit_is_work():
    text = '[main 9999999] Revert "Break it"\n 1 file changed'
    assert hashes(Transcript().run("git revert --no-edit 1234567", text)) == ["9999999"]


@pytest.mark.parametrize(
    ("command", "text", "left"),
    [
        ("git reset --hard HEAD~1", "HEAD is now at abc1234 Fix it", ["abc1234"]),
        ("git reset --hard HEAD^^", "", []),
        ("git reset HEAD~", "Unstaged changes after reset", ["abc1234"]),
        ("git reset --soft HEAD~2 && git stash", "", []),
        ("git reset --hard abc1234", "", ["abc1234"]),
        ("git reset --hard origin/main", "HEAD is now at 1111111 Old", []),
        ("git reset --hard", "HEAD is now at def5678 Add it", ["abc1234", "def5678"]),
        ("git reset --hard HEAD", "", ["abc1234", "def5678"]),
        ("git reset HEAD a.py", "", ["abc1234", "def5678"]),
        ("git reset --hard HEAD~5", "", []),
        ("git reset --soft HEAD~1 && git reset --soft HEAD~1", "", []),
        ("git branch kept && git reset --hard origin/main", "", ["abc1234", "def5678"]),
        ("git branch --force kept && git reset --hard origin/main", "", ["abc1234", "def5678"]),
        ("git tag --annotate v1 -m x && git reset --hard origin/main", "", ["abc1234", "def5678"]),
        ("git tag -s v1 -m x && git reset --hard origin/main", "", ["abc1234", "def5678"]),
        ("git branch -a && git reset --hard origin/main", "", []),
        ("git branch -m renamed && git reset --hard origin/main", "", []),
        ("git tag -d v1 && git reset --hard origin/main", "", []),
    ],
)
def test_commits_that_were_reset_do_not_count(command, text, left):
    transcript = Transcript().run("git commit -m x", COMMIT).run("git commit -m y", OTHER).run(command, text)
    assert hashes(transcript) == left
    assert set(transcript.signals.undone) == {"abc1234", "def5678"} - set(left)


def test_a_failed_reset_and_one_of_pushed_commits_take_nothing_away():
    transcript = Transcript().run("git commit -m x", COMMIT).run("git reset --hard HEAD~1", "fatal", failed=True)
    transcript.run("git push", PUSHED).run("git reset --hard origin/main", "HEAD is now at 1111111 Old")
    assert hashes(transcript) == ["abc1234"]


@pytest.mark.parametrize(
    "command", ["cd /tmp/x && git init -q && git reset --hard HEAD~1", "make test || git reset --hard HEAD~1"]
)
def test_a_reset_elsewhere_or_one_that_may_not_have_run_takes_nothing_away(command):
    assert hashes(Transcript().run("git commit -m x", COMMIT).run(command)) == ["abc1234"]


def test_commits_made_anew_after_a_reset_count_once():
    transcript = Transcript().run("git commit -m x", COMMIT).run("git commit -m y", OTHER)
    transcript.run("git reset --soft HEAD~2 && git commit -m 'Both'", "[main 9999999] Both\n 2 files changed")
    assert hashes(transcript) == ["9999999"]


def test_a_commit_made_anew_without_a_word_still_counts_under_the_hash_that_was_shown():
    transcript = Transcript().run("git commit -m 'Fix it'", COMMIT)
    transcript.run("git reset -q --soft main && git add a && git commit -q -C abc1234")
    assert hashes(transcript) == ["abc1234"]
    transcript.run("git log --oneline -1", "7777777 Fix it")
    assert hashes(transcript) == ["7777777"]


def test_a_rebased_commit_counts_once():
    transcript = Transcript().run("git commit -m 'Fix it'", COMMIT)
    transcript.run("git add a && git rebase --continue", "[detached HEAD 7777777] Fix it\n 1 file changed")
    assert hashes(transcript) == ["7777777"]


def test_an_amend_after_another_branch_was_checked_out_replaces_the_last_commit_only():
    transcript = Transcript().run("git commit -m x", COMMIT).run("git commit -m y", OTHER)
    transcript.run("git commit --amend --no-edit", "[main 7777777] Add it\n 2 files changed")
    assert hashes(transcript) == ["abc1234", "7777777"]


def test_of_several_lines_the_one_with_the_commands_own_subject_is_the_commit():
    text = f"[main 1111111] Made by a test\n 1 file changed\n{COMMIT}"
    assert hashes(Transcript().run("pytest -s; git commit -m 'Fix it'", text)) == ["abc1234"]


def test_a_script_that_speaks_of_commits_may_commit():
    script = "python3 - <<'EOF'\nimport subprocess\nsubprocess.run(['git', 'commit', '-m', 'Fix it'])\nEOF"
    assert hashes(Transcript().run(script, COMMIT)) == ["abc1234"]
    assert hashes(Transcript().run("python3 show.py", COMMIT)) == []
    assert hashes(Transcript().run("gt create -am 'Fix it'", COMMIT)) == ["abc1234"]
    assert hashes(Transcript().run("jj commit -m 'Fix it'", "Working copy now at: abc1234")) == []


def test_one_cherry_pick_may_make_several_commits():
    assert hashes(Transcript().run("git cherry-pick a1 b2", f"{COMMIT}\n{OTHER}")) == ["abc1234", "def5678"]
    assert hashes(Transcript().run("git cherry-pick a1..b2", f"{COMMIT}\n{OTHER}")) == ["abc1234", "def5678"]


def test_a_merge_that_git_names_by_no_hash_is_shown_by_the_push():
    merged = "Merge made by the 'ort' strategy.\n a | 2 +-"
    assert hashes(Transcript().run("git merge origin/main --no-edit", merged).run("git push", PUSHED)) == ["abc1234"]
    forward = Transcript().run("git merge origin/main", "Updating 1..2\nFast-forward").run("git push", PUSHED)
    assert hashes(forward) == []


def test_an_amend_replaces_the_last_commit_of_its_own_branch():
    transcript = Transcript().run("git commit -m x", COMMIT).run("git commit -m y", OTHER.replace("main", "side"))
    transcript.run("git commit --amend --no-edit", "[main 7777777] Fix it\n 1 file changed")
    assert hashes(transcript) == ["7777777", "def5678"]


def test_a_forced_push_gives_a_rebased_commit_its_new_hash():
    transcript = Transcript().run("git commit -m x", COMMIT)
    transcript.run("git rebase origin/main", "Successfully rebased and updated refs/heads/x.")
    transcript.run("git push -f", "To github.com:o/r.git\n + abc1234...7777777 x -> x (forced update)")
    assert hashes(transcript) == ["7777777"]


def test_a_branch_pushed_anew_after_more_work_is_another_push():
    pushed = "To github.com:o/r.git\n * [new branch]      x -> x"
    transcript = Transcript().run("git commit -m x", COMMIT).run("git push -u origin x", pushed)
    transcript.run("git commit -m y", OTHER).run("git push -u origin x", pushed)
    assert transcript.signals.count(EffectKind.PUSH) == 2


def test_commits_and_pushes_of_a_subagent_in_the_same_log_count():
    transcript = Transcript().call("a", command="git commit -m x", sidechain=True)
    assert hashes(transcript.result("a", COMMIT)) == ["abc1234"]
