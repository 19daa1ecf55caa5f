"""What the hook says of the session's surroundings: project, task, version, settings, instructions, cost."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from grading.intake import SubmittedSession
from grading.models import ApiToken, Session
from tests.agent.test_hook import HOOK, SESSION, Machine, bob, free_port, git, repository  # noqa: F401 - a fixture


@pytest.fixture
def away(tmp_path: Path) -> Machine:
    """A machine whose site does not answer, with a repository."""
    machine = Machine(tmp_path, f"http://127.0.0.1:{free_port()}")
    repository(tmp_path / "work")
    return machine


def metadata(machine: Machine, *, folder: str = "work", **environment: str) -> dict:
    """What the hook wrote down of a session in a folder; the site's schema takes it."""
    payload = machine.payload(cwd=str(machine.home / folder))
    machine.run(stdin=payload, **environment)
    said = json.loads((machine.waiting[-1] / "session.json").read_text())["metadata"]
    assert SubmittedSession.model_validate(said)
    return said


def files(machine: Machine, **environment: str) -> dict[str, dict]:
    listed = metadata(machine, **environment)["ran_with"].get("instruction_files", [])
    return {file["name"]: file for file in listed}


def loaded(machine: Machine, path: Path, **fields: str) -> None:
    payload = machine.payload(cwd=str(machine.home / "work"), hook_event_name="InstructionsLoaded", file_path=str(path))
    assert run_silently(machine, json.dumps({**json.loads(payload), **fields})) == ""


def run_silently(machine: Machine, stdin: str) -> str:
    command = [machine.python, str(HOOK)]
    done = subprocess.run(
        command,
        input=stdin,
        env=machine.environment,
        cwd=machine.home,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("https://ada:s3cret@forge.example/ada/engine.git?key=1", "https://forge.example/ada/engine.git"),
        ("git@forge.example:ada/engine.git", "forge.example:ada/engine.git"),
        ("ssh://git@forge.example/ada/engine", "ssh://forge.example/ada/engine"),
        ("", "work"),
    ],
)
def test_the_project_is_the_remote_or_the_folder(away, remote, expected):
    """User, password and query stay on the machine; without a remote the repository's folder is the project."""
    if remote:
        git(away.home / "work", "remote", "add", "origin", remote)
    (away.home / "work" / "deep").mkdir()
    assert metadata(away, folder="work/deep")["project"] == expected


def test_the_caller_names_project_task_and_cost(away):
    """The environment outranks what the hook finds; a cost that is no number is left out."""
    said = metadata(away, GRADINGSITE_PROJECT="engine", GRADINGSITE_TASK=" T-1\u202e ", GRADINGSITE_COST_USD="1.25")
    assert (said["project"], said["task"], said["cost_usd"]) == ("engine", "T-1?", 1.25)
    assert "cost_usd" not in metadata(away, GRADINGSITE_COST_USD="much")


def test_the_harness_says_its_settings_and_cost(away):
    """Permission mode, effort and cost of the hook's own input are sent along, of whatever type they are."""
    work = str(away.home / "work")
    cost = {"total_cost_usd": 0.5}
    away.run(stdin=away.payload(cwd=work, permission_mode="plan", effort={"level": "high"}, cost=cost))
    said = json.loads((away.waiting[-1] / "session.json").read_text())["metadata"]
    assert said["ran_with"].items() >= {"permission_mode": "plan", "reasoning_effort": "high", "source": "hook"}.items()
    assert said["ran_with"]["harness_version"] == "2.1.100"
    assert said["cost_usd"] == 0.5
    away.run(stdin=away.payload(cwd=work, permission_mode=["plan"], effort=7, cost="much", total_cost_usd=True))
    assert SubmittedSession.model_validate(json.loads((away.waiting[-1] / "session.json").read_text())["metadata"])


def test_instructions_are_found_up_to_the_repositorys_root(away):
    """Files of the folder, of those above it up to the root, and at home; only name, length and hash."""
    work = away.home / "work"
    (work / "sub" / ".claude" / "rules" / "deep").mkdir(parents=True)
    (work / "CLAUDE.md").write_text("Write tests first.\n")
    (work / "sub" / "AGENTS.md").write_text("Be kind.")
    (work / "sub" / ".claude" / "rules" / "deep" / "go.md").write_text("Use go test.")
    (away.home / ".claude").mkdir()
    (away.home / ".claude" / "CLAUDE.md").write_text("Mine.")
    (away.home / "AGENTS.md").write_text("At home.")
    (work / "empty").mkdir()
    found = files(away, folder="work/sub")
    assert set(found) == {
        "CLAUDE.md",
        "sub/AGENTS.md",
        "sub/.claude/rules/deep/go.md",
        "~/.claude/CLAUDE.md",
        "~/AGENTS.md",
    }
    assert found["CLAUDE.md"] == {
        "name": "CLAUDE.md",
        "bytes": 19,
        "sha256": hashlib.sha256(b"Write tests first.\n").hexdigest(),
    }


@pytest.mark.parametrize(("wanted", "expected"), [("hashes", None), ("text", "Be kind."), ("none", "nothing")])
def test_a_setting_says_what_is_sent_of_instructions(away, wanted, expected):
    """By default hashes alone; the text, or nothing at all, where the machine's setting says so."""
    (away.home / "work" / "CLAUDE.md").write_text("Be kind.")
    found = files(away, GRADINGSITE_INSTRUCTIONS=wanted)
    assert (found["CLAUDE.md"].get("text") if found else "nothing") == expected


def test_what_the_harness_loaded_counts_instead(away):
    """Files that Claude Code names as they are loaded are those that were given, as they were then."""
    work = away.home / "work"
    (work / "CLAUDE.md").write_text("Not loaded.")
    rule = work / ".claude" / "rules" / "go.md"
    rule.parent.mkdir(parents=True)
    for text in ("Before.", "Use go test."):
        rule.write_text(text)
        loaded(away, rule)
    loaded(away, work / "gone.md")
    loaded(away, rule, session_id="another")
    rule.write_text("Changed since.")
    found = files(away)
    assert {name: file["sha256"] for name, file in found.items()} == {
        ".claude/rules/go.md": hashlib.sha256(b"Use go test.").hexdigest()
    }
    assert not list(away.spool.glob("[0-9]*/answer.txt"))


def test_hostile_files_stop_nothing(away):
    """Thousands of rules, a pipe without a writer, a folder, a huge file and unprintable names stop no session."""
    work = away.home / "work"
    rules = work / ".claude" / "rules"
    rules.mkdir(parents=True)
    for number in range(3_000):
        (rules / f"{number:05d}{'x' * 150}.md").write_text("Rule")
    os.mkfifo(work / "CLAUDE.md")
    (work / "AGENTS.md").mkdir()
    (work / "CLAUDE.local.md").write_bytes(b"x" * (2 << 20))
    odd_folder = Path(os.fsdecode(os.fsencode(work / "sub") + b"\xff\n"))
    (odd_folder / ".claude").mkdir(parents=True)
    (odd_folder / ".claude" / "CLAUDE.md").write_text("Odd")
    said = metadata(away)
    assert 0 < len(said["ran_with"]["instruction_files"]) <= 200
    assert len(json.dumps(said)) <= 60_000
    name = os.fsdecode(os.fsencode("work/sub") + b"\xff\n")
    odd = metadata(away, folder=name)["ran_with"]["instruction_files"]
    assert odd[0]["name"] == "sub??/.claude/CLAUDE.md"


def test_large_texts_give_way(away):
    """Texts that do not fit into the metadata are left out, and the hashes stay."""
    for name in ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md"):
        (away.home / "work" / name).write_text(name * 4_000)
    found = files(away, GRADINGSITE_INSTRUCTIONS="text")
    assert len(found) == 4
    assert not any("text" in file for file in found.values())


def test_a_version_that_no_log_has_is_asked_of_the_harness(away):
    """Without a log the background sender asks the program itself, and a program that hangs costs only the version."""
    programs = away.home / "bin"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\necho '2.1.205 (Claude Code)'\n")
    (programs / "claude").chmod(0o755)
    path = f"{programs}:{away.environment['PATH']}"
    away.run(stdin=away.payload(transcript_path=None, cwd=str(away.home)), PATH=path)
    done = away.flush(PATH=path)
    assert done.returncode == 1
    said = json.loads((away.waiting[-1] / "session.json").read_text())
    assert said["metadata"]["ran_with"] == {"source": "hook", "harness_version": "2.1.205"}
    assert "unversioned" not in said


@pytest.mark.parametrize(("version", "events"), [("2.1.69", 2), ("2.1.9", 1), ("?", 1)])
def test_installing_calls_it_for_instructions_where_the_harness_does(away, version, events):
    """A version that does not know the event is spared it; uninstalling takes all of it out again."""
    programs = away.home / "bin"
    programs.mkdir()
    (programs / "claude").write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    (programs / "claude").chmod(0o755)
    away.environment["PATH"] = f"{programs}:{away.environment['PATH']}"
    settings = away.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"}')
    install(away, "--install")
    install(away, "--install")
    hooks = json.loads(settings.read_text())["hooks"]
    assert len(hooks) == events
    assert all(len(groups) == 1 for groups in hooks.values())
    install(away, "--uninstall")
    assert json.loads(settings.read_text()) == {"model": "opus"}


def install(machine: Machine, verb: str) -> None:
    command = [machine.python, str(HOOK), verb, "claude-code", "--yes"]
    subprocess.run(command, env=machine.environment, cwd=machine.home, capture_output=True, timeout=60, check=False)


def test_the_site_stores_what_the_hook_says(tmp_path, bob, live_server):  # noqa: F811 - the fixture
    """From a repository on a machine to the session's columns."""
    machine = Machine(tmp_path, live_server.url, ApiToken.objects.issue(bob)[1])
    work = repository(tmp_path / "work")
    git(work, "remote", "add", "origin", "https://ada:s3cret@forge.example/ada/engine.git")
    (work / "CLAUDE.md").write_text("Be kind.")
    machine.run(stdin=machine.payload(cwd=str(work), permission_mode="plan"), GRADINGSITE_TASK="T-1")
    machine.wait_until_sent()
    session = Session.objects.get(external_id=SESSION)
    assert (session.project.name, session.task) == ("forge.example/ada/engine", "T-1")
    assert session.facts.permission_mode == "plan"
    assert [(file["name"], file["source"]) for file in session.facts.instruction_files] == [("CLAUDE.md", "hook")]
    assert session.facts.sources["harness_version"] == "log"
