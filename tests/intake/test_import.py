"""Importing folders of logs, and making a token from the shell."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from bandit import audit
from bandit.models import Arm, LedgerEntry
from grading.evidence import ownership
from grading.models import Agent, ApiToken, Session
from grading.reward import rewards
from tests.casts import logs
from tests.processes import for_the_site, started, wait_for

CLAUDE = "5b1f3c52-7a0e-4c0f-9a34-0d1f5f2e71a3"

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path) -> Path:
    """One log of each kind, and files that are none."""
    write(tmp_path / "claude" / f"{CLAUDE}.jsonl", logs.claude(CLAUDE, logs.COMMIT))
    aside = logs.claude(CLAUDE, ("git commit -am Aside", "[main 5e6f7a8] Aside\n 1 file changed")).decode()
    aside = aside.replace('"isSidechain": false', '"isSidechain": true, "agentId": "a1"').replace(f"{CLAUDE}-", "side-")
    write(tmp_path / "claude" / CLAUDE / "subagents" / "agent-a1.jsonl", aside.replace('"t0"', '"s0"').encode())
    write(tmp_path / "gptme" / "2026-03-31-fix" / "conversation.jsonl", logs.gptme(("user", "hi"), ("assistant", "ho")))
    write(tmp_path / "other" / "data.jsonl", b'{"x": 1}\n' * 50)
    write(tmp_path / "other" / "empty.jsonl", b"")
    write(tmp_path / "other" / "notes.md", b"not looked at")
    return tmp_path


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def run(capsys, *arguments: object, **options) -> str:
    call_command("import_sessions", *map(str, arguments), **{"processes": 1, **options})
    return capsys.readouterr().out


def test_a_folder_is_imported_with_a_summary(folder, capsys):
    said = run(capsys, folder, agent="bob")
    assert set(Session.objects.values_list("external_id", flat=True)) == {CLAUDE, "a1", "2026-03-31-fix"}
    assert "3 imported" in said
    assert "1 logs of subagents, which count for the session that started them" in said
    assert "1 not a log of Claude Code, gptme or Codex CLI" in said
    assert "1 empty files" in said
    assert Session.objects.get(external_id=CLAUDE).agent.name == "bob"


def test_a_second_run_imports_nothing(folder, capsys):
    run(capsys, folder)
    said = run(capsys, folder)
    assert "3 already there" in said
    assert "imported" not in said
    assert Session.objects.count() == 3


def test_a_subagents_work_is_its_parents(folder, capsys):
    run(capsys, folder)
    parent, aside = Session.objects.get(external_id=CLAUDE), Session.objects.get(external_id="a1")
    assert ownership.part_of(aside) == parent
    assert {commit["hash"] for commit in parent.signals["commits"]} == {"1a2b3c4", "5e6f7a8"}
    assert rewards.live(aside).value is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("processes", [1, 3])
def test_several_processes_take_in_what_one_does(folder, capsys, processes):
    for name in ("b-copy", "a-copy"):  # of the same bytes the first by name counts, whoever comes to them first
        write(folder / "gptme" / name / "conversation.jsonl", logs.gptme(("user", "same"), ("assistant", "yes")))
    said = run(capsys, folder, processes=processes)
    assert [line.strip() for line in said.splitlines() if line[5].isdigit()] == [
        "4 imported",
        "1 already there",
        "2 refused",
    ]
    assert {each.external_id: (each.reward_source, each.reward_value) for each in Session.objects.with_reward()} == {
        CLAUDE: ("trajectory", 0.587192),
        "a1": ("", None),
        "2026-03-31-fix": ("floor", 0.1),
        "a-copy": ("floor", 0.1),
    }
    live = LedgerEntry.objects.live().values_list("observation", "arm__name", "value_micro")
    names = {session.observation: session.external_id for session in Session.objects.all()}
    assert sorted((names[observation], arm, micro) for observation, arm, micro in live) == [
        ("2026-03-31-fix", "gptme", 0),
        (CLAUDE, "claude-code", 587192),
        ("a-copy", "gptme", 0),
    ]
    assert audit.audit() == []
    assert "5 already there" in run(capsys, folder, processes=processes)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_an_import_that_was_stopped_goes_on_where_it_was(tmp_path, capsys, blow):
    many = 100
    for number in range(many):
        data = logs.claude(f"{number:08}-7a0e-4c0f-9a34-0d1f5f2e71a3", logs.COMMIT)
        write(tmp_path / f"{number}.jsonl", data)
    command = [sys.executable, "manage.py", "import_sessions", str(tmp_path), "--processes", "2"]
    with started(command, env=for_the_site(), stdout=subprocess.PIPE, text=True) as process:
        wait_for(Session.objects.exists)
        helpers = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        process.send_signal(blow)
        said = process.communicate(timeout=90)[0]
    wait_for(lambda: not any(Path(f"/proc/{pid}/fd/0").exists() for pid in helpers))
    before = Session.objects.count()
    assert 0 < before < many
    assert blow == signal.SIGKILL or f"of {many}; run it again to go on." in said
    said = run(capsys, tmp_path, processes=2)
    assert f"{many - before} imported" in said
    assert f"{before} already there" in said
    assert Session.objects.count() == many


def test_a_log_that_grew_is_added_to_its_session(folder, capsys):
    run(capsys, folder / "claude")
    write(folder / "claude" / f"{CLAUDE}.jsonl", logs.claude(CLAUDE, logs.COMMIT, ("ls", "a b")))
    assert "1 added to a session that was there" in run(capsys, folder / "claude")
    assert Session.objects.count() == 2


def test_a_single_file_can_be_named(folder, capsys):
    assert "1 imported" in run(capsys, folder / "claude" / f"{CLAUDE}.jsonl", category="Cross Repo")
    assert Session.objects.get().category == Arm.objects.resolve("category", "cross-repo")


def test_a_log_without_times_counts_as_ended_when_it_was_written(tmp_path, capsys):
    path = tmp_path / f"{CLAUDE}.jsonl"
    write(path, logs.claude(CLAUDE, logs.COMMIT).replace(b"timestamp", b"no_time"))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    run(capsys, path)
    assert Session.objects.get().ended_at.timestamp() == 1_700_000_000


def test_two_sessions_with_one_log_are_said_to_share_it(tmp_path, capsys):
    for name in ("one", "two"):
        write(tmp_path / name / "conversation.jsonl", logs.gptme(("user", "hi"), ("assistant", "ho")))
    run(capsys, tmp_path / "one", agent="bob")
    assert "already there" in run(capsys, tmp_path / "two", agent="bob")
    assert "1 imported" in run(capsys, tmp_path / "two", agent="alice")


def test_an_empty_folder_is_said_to_be_empty(tmp_path, capsys):
    assert "No .jsonl file found" in run(capsys, tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"category": "crossrepos"}, "Did you mean 'cross-repo'"),
        ({"agent": "no name!"}, "--agent 'no name!'"),
    ],
)
def test_a_wrong_option_is_refused_in_words(folder, options, words):
    with pytest.raises(CommandError, match=words):
        call_command("import_sessions", str(folder), **options)


def test_a_path_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(CommandError, match="does not exist"):
        call_command("import_sessions", str(tmp_path / "nowhere"))


@pytest.mark.data
def test_the_folder_of_real_sessions_can_be_imported(capsys):
    folder = os.environ.get("GRADING_DATA_DIR")
    if not folder:
        pytest.skip("GRADING_DATA_DIR is not set: the larger folder of real sessions was not read")
    said = run(capsys, Path(folder) / "transcripts" / "gptme")
    assert "12 imported" in said
    assert Session.objects.filter(harness__name="gptme").count() == 12


def test_a_token_is_printed_once_and_works(capsys):
    call_command("issue_token", "bob", note="laptop")
    secret = capsys.readouterr().out.strip()
    assert ApiToken.objects.authenticate(secret).agent == Agent.objects.get(name="bob")
    with pytest.raises(CommandError, match="no name"):
        call_command("issue_token", "no name")
