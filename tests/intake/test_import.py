"""Importing folders of logs, and making a token from the shell."""

import datetime as dt
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from bandit import audit
from bandit.models import Arm, LedgerEntry
from grading import formats
from grading.evidence import ownership, receiving
from grading.intake.erasing import erase, erase_agent
from grading.intake.importing import IMPORTS_WITH_FILES, forget_files
from grading.models import Agent, ApiToken, ImportedFile, LogImport, Session
from grading.models.imports import Fate
from grading.plain import plain_text
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
    write(tmp_path / "other" / "notes.md", b"notes, not a log")
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
    assert tally(said) == {"imported": 3, "other": 3, "files": 6}
    assert "logs of subagents, which count for the session that started them (1)" in said
    assert "not a log of a known harness (2)" in said
    assert "empty files (1)" in said
    assert Session.objects.get(external_id=CLAUDE).agent.name == "bob"


def test_a_second_run_imports_nothing(folder, capsys):
    run(capsys, folder)
    said = run(capsys, folder)
    assert tally(said) == {"there": 3, "other": 3, "files": 6}
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
    assert tally(said) == {"imported": 4, "there": 1, "other": 3, "files": 8}
    assert {each.external_id: (each.reward_source, each.reward_value) for each in Session.objects.all()} == {
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
    assert tally(run(capsys, folder, processes=processes)) == {"there": 5, "other": 3, "files": 8}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_an_import_that_was_stopped_goes_on_where_it_was(tmp_path, capsys, blow):
    many = 40
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
    first = LogImport.objects.get()
    if blow == signal.SIGINT:
        assert f"of {many}: stopped by Ctrl-C. Run it again to go on." in said
        assert first.stopped == "stopped by Ctrl-C"
        assert first.files == first.found.count() == sum(tally(said).values()) / 2
    else:
        assert first.ended_at is None
    said = run(capsys, tmp_path, processes=2)
    assert tally(said) == {"imported": many - before, "there": before, "files": many}
    assert Session.objects.count() == many


def test_a_log_that_grew_is_added_to_its_session(folder, capsys):
    run(capsys, folder / "claude")
    write(folder / "claude" / f"{CLAUDE}.jsonl", logs.claude(CLAUDE, logs.COMMIT, ("ls", "a b")))
    assert tally(run(capsys, folder / "claude")) == {"added": 1, "there": 1, "files": 2}
    assert Session.objects.count() == 2


def test_an_error_of_a_parser_refuses_one_file(folder, capsys, monkeypatch):
    parse = receiving.parse

    def fail_for_one(file, name):
        if name == "conversation.jsonl":
            raise KeyError("role")
        return parse(file, name)

    monkeypatch.setattr(receiving, "parse", fail_for_one)
    said = run(capsys, folder / "claude", folder / "gptme")
    assert tally(said) == {"imported": 2, "refused": 1, "files": 3}
    assert "logs that the reader failed at" in said


def test_a_single_file_can_be_named(folder, capsys):
    said = run(capsys, folder / "claude" / f"{CLAUDE}.jsonl", category="Cross Repo")
    assert tally(said) == {"imported": 1, "files": 1}
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
    assert tally(run(capsys, tmp_path / "two", agent="alice")) == {"imported": 1, "files": 1}


def test_an_empty_folder_is_said_to_be_empty(tmp_path, capsys):
    assert "No file found" in run(capsys, tmp_path)


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(capsys):
    said = run(capsys, "/proc/self/mem")
    assert tally(said) == {"refused": 1, "files": 1}
    assert "files that cannot be read" in said
    assert ImportedFile.objects.get().detail == "Input/output error"


def test_a_folder_and_a_file_in_it_name_that_file_once(folder, capsys):
    log = folder / "claude" / f"{CLAUDE}.jsonl"
    (folder / "by a link").symlink_to(folder / "claude")
    said = run(capsys, log, folder / "claude", folder / "by a link", log.parent / ".." / "claude")
    assert tally(said) == {"imported": 2, "files": 2}


def test_every_file_can_be_listed_safely(folder, capsys):
    write(folder / "other" / "\x1b[2J ghp_0123456789abcdefghijABCDEFGHIJ456789", b"x")
    said = run(capsys, folder, list=True)
    assert f"imported           {folder / 'claude' / CLAUDE}.jsonl\n" in said
    assert "\x1b" not in said
    assert "not a session log  " in said
    page = LogImport.objects.get()
    assert page.get_absolute_url() in said
    assert not page.found.filter(path__contains="ghp_").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("processes", [1, 2])
def test_a_name_that_is_no_utf_8_stops_nothing(tmp_path, capsys, processes):
    """Names from an old system, in Latin-1; the files have the same size, so that their bytes are compared."""
    for number, name in enumerate((b"caf\xe9", b"th\xe9")):
        words = (("user", f"hi {number}"), ("assistant", "ho"))
        write(tmp_path / os.fsdecode(name) / "conversation.jsonl", logs.gptme(*words))
    assert tally(run(capsys, tmp_path, processes=processes)) == {"imported": 2, "files": 2}
    assert {session.external_id for session in Session.objects.all()} == {"caf\ufffd", "th\ufffd"}


def test_only_the_beginning_of_what_is_no_log_is_read(tmp_path):
    read = BytesIO(b"Lorem ipsum dolor sit amet.\n" * 1_000_000)
    with pytest.raises(formats.UnknownFormat):
        formats.recognise(read)
    assert read.tell() == formats.SNIFF_BYTES


def test_a_log_whose_first_line_is_long_is_recognised():
    assert formats.recognise(BytesIO(logs.claude(CLAUDE, logs.COMMIT, padding=300_000))).format == "claude-code"


def test_the_files_of_early_imports_are_forgotten_and_their_counts_stay(folder, capsys, settings):
    for _ in range(IMPORTS_WITH_FILES + 1):
        run(capsys, folder / "gptme")
    assert forget_files(timezone.now()) == 1
    first, second = LogImport.objects.order_by("pk")[:2]
    assert (first.files, first.found.count()) == (1, 0)
    assert second.found.count() == 1
    settings.RETENTION_DAYS = 30
    assert forget_files(timezone.now() + dt.timedelta(days=31)) == IMPORTS_WITH_FILES


def test_an_erased_session_is_in_no_import_and_an_erased_agent_has_none(folder, capsys):
    run(capsys, folder, agent="bob")
    erase(Session.objects.filter(external_id="2026-03-31-fix"), who="olga", why="asked to")
    assert not ImportedFile.objects.filter(path__contains="2026-03-31-fix").exists()
    for _ in erase_agent(Agent.objects.get(name="bob"), who="olga", why="asked to"):
        pass
    assert not LogImport.objects.exists()


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
@pytest.mark.django_db(transaction=True)
def test_every_file_of_the_folder_of_real_sessions_is_named(capsys, tmp_path):
    folder = os.environ.get("GRADING_DATA_DIR")
    if not folder:
        pytest.skip("GRADING_DATA_DIR is not set: the larger folder of real sessions was not read")
    folder = Path(folder) / "transcripts"
    mixed = _with_wrong_files(tmp_path / "wrong")
    walked = [path for root in (folder, mixed) for path in root.rglob("*") if path.is_symlink() or not path.is_dir()]
    there = {plain_text(str(path)) for path in walked}
    left_out = {str(path) for path in there if "/node_modules/" in path or "/.git/" in path}
    said = run(capsys, folder, mixed, processes=2)
    made = LogImport.objects.get()
    found = made.found.exclude(fate="folder")
    assert Counter(found.values_list("path", flat=True)) == Counter(there - left_out)
    counts = Counter(found.values_list("fate", flat=True))
    assert tally(said) == {**counts, "files": len(there - left_out), "folder": 2}
    assert made.counts == {**counts, "folder": 2}
    assert made.ended_at
    assert Session.objects.filter(harness__name="gptme").count() == 49
    assert counts["imported"] == Session.objects.count()
    fates = {
        Path(path).name: fate for path, fate in found.filter(path__startswith=str(mixed)).values_list("path", "fate")
    }
    can_be_read = os.access(mixed / "secret.jsonl", os.R_OK)  # by root, for whom no file is unreadable
    taken_in = {"log.txt", "log", "picture.png.log", "cut off.jsonl"} | ({"secret.jsonl"} if can_be_read else set())
    assert {name for name, fate in fates.items() if fate == "imported"} == taken_in
    assert {name for name, fate in fates.items() if fate == "skipped"} == {"a link.jsonl", "link to a folder", "pipe"}
    assert {name for name, fate in fates.items() if fate == "refused"} == {"secret.jsonl"} - taken_in
    assert {path for path, _ in made.found.filter(fate="folder").values_list("path", "why")} == {
        str(mixed / "node_modules"),
        str(mixed / "repo" / ".git"),
    }


def _with_wrong_files(folder: Path) -> Path:
    """What lies about beside logs: pictures, databases, text, other JSON, links, pipes; and logs with other names."""
    write(folder / "picture.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 300)
    write(folder / "binary.jsonl", bytes(range(256)) * 300)
    write(folder / "empty.jsonl", b"")
    write(folder / "blank.jsonl", b" \n" * 100)
    write(folder / "huge.txt", b"Lorem ipsum dolor sit amet. " * 400_000)
    write(folder / "one line.json", b'{"a": "' + b"x" * 300_000)
    write(folder / "document.json", json.dumps({"messages": [{"role": "user"}] * 50}, indent=1).encode())
    write(folder / "list.json", b"[" + b'{"a": 1}, ' * 20_000)
    write(folder / "in utf-16.jsonl", logs.claude("u", logs.COMMIT).decode().encode("utf-16"))
    write(folder / os.fsdecode(b"not utf-8 \xff \x1b[2J.txt"), b"x")
    with closing(sqlite3.connect(folder / "state.sqlite")) as database:
        database.execute("CREATE TABLE x (y)")
        database.commit()
    log = {name: logs.claude(name, logs.COMMIT) for name in ("one", "two", "three", "four", "five")}
    write(folder / "log.txt", log["one"])
    write(folder / "log", log["two"])
    write(folder / "picture.png.log", log["three"])
    write(folder / "cut off.jsonl", log["four"][:-40])
    write(folder / "secret.jsonl", log["five"])
    (folder / "secret.jsonl").chmod(0)
    write(folder / "repo" / ".git" / "log.jsonl", logs.claude("six", logs.COMMIT))
    write(folder / "node_modules" / "log.jsonl", logs.claude("seven", logs.COMMIT))
    (folder / "a link.jsonl").symlink_to(folder / "log.txt")
    (folder / "link to a folder").symlink_to(folder / "repo")
    os.mkfifo(folder / "pipe")
    return folder


def tally(said: str) -> dict[str, int]:
    """The rows of the table, by fate; the sum as "files"."""
    rows = {fate.words: str(fate) for fate in Fate} | {"files in all": "files"}
    found = (re.fullmatch(r" *([\d,]+)  (.+)", line) for line in said.splitlines())
    return {rows[row[2]]: int(row[1].replace(",", "")) for row in found if row}


def test_a_token_is_printed_once_and_works(capsys):
    call_command("issue_token", "bob", note="laptop")
    secret = capsys.readouterr().out.strip()
    assert ApiToken.objects.authenticate(secret).agent == Agent.objects.get(name="bob")
    with pytest.raises(CommandError, match="no name"):
        call_command("issue_token", "no name")
