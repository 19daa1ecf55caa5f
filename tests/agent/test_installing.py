"""The hook puts itself into an agent's settings, as somebody at a terminal has it do, and says whether all is well."""

import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from grading.models import Agent, ApiToken, Session
from grading.models.agents import TokenScope
from tests.agent.test_hook import HOOK, Machine, free_port
from tests.casts import logs
from tests.processes import wait_for

SESSION = "5b1f3c52-7a0e-4c0f-9a34-0d1f5f2e71a3"
# Real input of hooks, beside the real sessions.
HOOKS = Path(os.environ.get("GRADING_DATA_DIR", "."), "hooks", "vredchenko__claude-transcripts")
LOGS = Path(__file__).parents[1] / "data" / "transcripts"
CODEX, GPTME = LOGS / "codex-019ed628.jsonl", LOGS / "gptme-replay-00.jsonl"
CODEX_SESSION = "019ed628-d563-7e40-bbb1-93a6a302d688"
FOREIGN = {"hooks": [{"type": "command", "command": "notify-send done"}]}
SETTINGS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gptme": ".config/gptme/config.toml",
}


class Person(Machine):
    """Somebody at the agent's machine, who has downloaded the hook file."""

    def __init__(self, home: Path, url: str, token: str = "") -> None:
        super().__init__(home, url, token)
        self.file = home / "submit_session.py"
        self.file.write_text(HOOK.read_text())

    def do(
        self, *arguments: str, stdin: str = "", seconds: float = 60, **environment: str
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, str(self.file), *arguments],
            input=stdin,
            env={**self.environment, **environment},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            start_new_session=True,  # without a terminal that could be asked
        )

    def settings(self, harness: str) -> Path:
        return self.home / SETTINGS[harness]

    def has(self, harness: str, text: str) -> Path:
        path = self.settings(harness)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def person(tmp_path) -> Person:
    """Somebody whose site does not answer."""
    return Person(tmp_path, f"http://127.0.0.1:{free_port()}")


@pytest.fixture
def connected(site, tmp_path, live_site, transactional_db) -> Person:
    """Somebody with a site and a token."""
    _row, secret = ApiToken.objects.issue(site.agent(), scope=TokenScope.HOOK)
    return Person(tmp_path, live_site, secret)


@pytest.mark.parametrize("harness", SETTINGS)
def test_nothing_is_changed_without_a_yes(person, harness):
    done = person.do("--install", harness)
    assert done.returncode == 1
    assert "use --yes to proceed without asking" in done.stdout
    assert "nothing was changed" in done.stdout
    assert "+" in done.stdout
    assert not person.settings(harness).exists()
    assert not (person.home / ".gradingsite").exists()


@pytest.mark.parametrize("harness", SETTINGS)
def test_twice_is_once_and_taking_it_out_leaves_what_was_there(person, harness):
    before = {
        "claude-code": json.dumps({"model": "opus", "hooks": {"SessionEnd": [FOREIGN], "Stop": [FOREIGN]}}, indent=2)
        + "\n",
        "codex": json.dumps({"hooks": {"Stop": [FOREIGN]}}, indent=2) + "\n",
        "gptme": '[user]\nname = "x"\n\n[[hooks.scripts]]\nevent = "session.end"\ncommand = "notify-send done"\n',
    }[harness]
    path = person.has(harness, before)
    path.chmod(0o640)
    person.do("--install", harness, "--yes")
    once = path.read_text()
    assert once.count(".gradingsite/submit_session.py") == 1
    assert "notify-send done" in once
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    again = person.do("--install", harness, "--yes")
    assert "nothing to do" in again.stdout
    assert path.read_text() == once
    assert person.do("--uninstall", harness, "--yes").returncode == 0
    assert path.read_text() == before
    assert "nothing to do" in person.do("--uninstall", harness, "--yes").stdout


def test_settings_that_are_a_link_stay_one(person):
    real = person.home / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text("{}")
    link = person.settings("claude-code")
    link.parent.mkdir()
    link.symlink_to(real)
    person.do("--install", "claude-code", "--yes")
    assert link.is_symlink()
    assert "SessionEnd" in json.loads(real.read_text())["hooks"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{not json", "is not a JSON object"),
        ("[]", "is not a JSON object"),
        ('{"hooks": []}', "not what was expected"),
        ('{"hooks": {"SessionEnd": [{"command": "x"}]}}', "not what was expected"),
        ('{"hooks": {"SessionEnd": {"hooks": []}}}', "not what was expected"),
        ('{"hooks": {"SessionEnd": null}}', "not what was expected"),
    ],
)
def test_settings_that_are_not_understood_are_left_alone(person, text, words):
    path = person.has("claude-code", text)
    done = person.do("--install", "claude-code", "--yes")
    assert done.returncode == 1
    assert words in done.stdout
    assert not done.stderr
    assert path.read_text() == text


def test_the_python_of_a_virtual_environment_is_not_the_one_that_is_called(person):
    assert sys.prefix != sys.base_prefix  # the tests run in one
    person.do("--install", "claude-code", "--yes")
    groups = json.loads(person.settings("claude-code").read_text())["hooks"]["SessionEnd"]
    python, file = shlex.split(groups[0]["hooks"][0]["command"])
    assert Path(python).parent == Path(sys.base_prefix) / "bin"
    assert Path(file) == person.home / ".gradingsite" / "submit_session.py"


def test_another_version_is_shown_with_its_checksum_before_it_is_taken(person):
    person.do("--install", "claude-code", "--yes")
    person.file.write_text(HOOK.read_text() + "# newer\n")
    own = person.home / ".gradingsite" / "submit_session.py"
    assert "+# newer" in person.do("--install", "claude-code").stdout
    assert "# newer" not in own.read_text()
    assert "sha256 " in person.do("--install", "claude-code", "--yes").stdout
    assert "# newer" in own.read_text()


@pytest.mark.parametrize("is_file", [True, False])
def test_the_token_comes_from_a_file_or_a_pipe_and_is_never_shown(person, is_file):
    secret = "gs_" + "a" * 40
    (person.home / "secret").write_text(secret + "\n")
    given = "secret" if is_file else "-"
    done = person.do("--install", "claude-code", "--yes", "--token-file", given, stdin="" if is_file else secret)
    kept = person.home / ".gradingsite" / "token"
    assert kept.read_text() == secret
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert secret not in done.stdout + done.stderr


def test_what_is_no_token_is_not_kept(person):
    done = person.do("--install", "claude-code", "--yes", "--token-file", "-", stdin="hunter2")
    assert done.returncode == 1
    assert "expected a token" in done.stdout
    assert not person.settings("claude-code").exists()


def test_an_unknown_harness_is_named_with_those_that_are_known(person):
    done = person.do("--install", "claude")
    assert done.returncode == 2
    assert "expected claude-code, codex, gptme after --install, not 'claude'" in done.stdout


# --- checking


def test_a_machine_where_nothing_is_set_up_says_what_is_missing(person):
    done = person.do("--check")
    assert done.returncode == 1
    assert "BAD token: no token" in done.stdout
    assert "BAD hook: not installed" in done.stdout
    assert "ok  receipts: none so far" in done.stdout


def test_a_site_that_is_away_and_one_that_is_none_are_told_apart(person, live_site, transactional_db):
    assert "does not answer" in person.do("--check", GRADINGSITE_TOKEN="gs_x").stdout
    unknown = person.do("--check", GRADINGSITE_TOKEN="gs_x", GRADINGSITE_URL=live_site)
    assert "BAD token: the site does not know it" in unknown.stdout
    other = person.do("--check", GRADINGSITE_TOKEN="gs_x", GRADINGSITE_URL=f"{live_site}/elsewhere")
    assert "answered 404" in other.stdout


def test_a_token_for_reading_is_bad_for_submitting(connected):
    _row, reading = ApiToken.objects.issue(Agent.objects.get(), scope=TokenScope.READ)
    assert "BAD token: of agent bob, scope: reading only" in connected.do("--check", GRADINGSITE_TOKEN=reading).stdout


def test_a_hook_whose_program_is_gone_is_bad(connected):
    connected.do("--install", "claude-code", "--yes")
    (connected.home / ".gradingsite" / "submit_session.py").unlink()
    done = connected.do("--check")
    assert done.returncode == 1
    assert "which does not exist" in done.stdout


def called_with(person: Person, harness: str, text: str) -> None:
    """Run what stands in the harness's settings, as it does at the end of a session."""
    settings = json.loads(person.settings(harness).read_text())["hooks"]
    line = next(iter(settings.values()))[-1]["hooks"][0]["command"]
    subprocess.run(line, shell=True, input=text, text=True, env=person.environment, check=True)  # noqa: S602


def arrived(person: Person, session: str, harness: str) -> None:
    wait_for(lambda: Session.objects.filter(external_id=session, harness__name=harness).exists(), 20)
    person.wait_until_sent()
    checked = person.do("--check")
    assert checked.returncode == 0, checked.stdout
    assert f"ok  hook: {harness}" in checked.stdout
    assert "receipts: the last 20" in checked.stdout


def test_a_session_that_the_site_refused_is_told(connected):
    connected.do("--install", "claude-code", "--yes")
    connected.transcript.write_bytes(logs.claude("another", logs.COMMIT))
    called_with(connected, "claude-code", connected.payload())
    wait_for(lambda: list(connected.spool.glob("refused/*/answer.txt")), 20)
    done = connected.do("--check")
    assert done.returncode == 1
    assert "BAD receipts: none so far; the site refused the latest session: refused with 422" in done.stdout


@pytest.mark.skipif(not HOOKS.is_dir(), reason="GRADING_DATA_DIR is not set: no real input of hooks was read")
@pytest.mark.parametrize("name", ["clear", "logout", "other-abnormal", "prompt-input-exit"])
@pytest.mark.parametrize("harness", ["claude-code", "codex"])
def test_what_was_installed_sends_a_session_and_checks_out(connected, harness, name):
    """With the input that these agents give their hooks, as it is but for the paths."""
    done = connected.do("--install", harness, "--yes")
    assert "ok  site" in done.stdout
    given = json.loads((HOOKS / "session-end" / f"{name}.json").read_text())
    session, log = SESSION, logs.claude(SESSION, logs.COMMIT)
    if harness == "codex":
        session, log = CODEX_SESSION, CODEX.read_bytes()
        given["turn_id"] = "1"
    connected.transcript.write_bytes(log)
    given |= {"session_id": session, "transcript_path": str(connected.transcript), "cwd": str(connected.home)}
    called_with(connected, harness, json.dumps(given))
    arrived(connected, session, harness)


def test_gptme_calls_it_by_its_environment(connected):
    connected.do("--install", "gptme", "--yes")
    folder = connected.home / ".local/share/gptme/logs/2026-03-31-a-run"
    folder.mkdir(parents=True)
    (folder / "conversation.jsonl").write_bytes(GPTME.read_bytes())
    settings = tomllib.loads(connected.settings("gptme").read_text())
    [script] = settings["hooks"]["scripts"]
    assert script["event"] == "session.end"
    environment = {"GPTME_HOOK_EVENT": "session.end", "GPTME_LOGDIR": str(folder), "GPTME_WORKSPACE": str(folder)}
    subprocess.run(script["command"], shell=True, env={**connected.environment, **environment}, check=True)  # noqa: S602
    arrived(connected, folder.name, "gptme")


# --- the plugin

PROGRAM = {"claude-code": "claude", "codex": "codex"}
MANIFEST = {"claude-code": ".claude-plugin", "codex": ".codex-plugin"}
LISTING = {"claude-code": ".claude-plugin/marketplace.json", "codex": ".agents/plugins/marketplace.json"}
ENABLED = {"claude-code": ".claude/settings.json", "codex": ".codex/config.toml"}


def put_harness(person, harness: str, *, refuses: bool = False) -> dict[str, str]:
    """A harness's program, which notes what it is called with, and enables and disables plugins in its settings.

    Returns the environment in which it is found.
    """
    folder = person.home / "bin"
    folder.mkdir(exist_ok=True)
    enabled = person.home / ENABLED[harness]
    program = folder / PROGRAM[harness]
    entry = (
        '{"enabledPlugins": {"gradingsite@gradingsite": true}}'
        if harness == "claude-code"
        else ('[plugins."gradingsite@gradingsite"]\nenabled = true')
    )
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {person.home}/calls\n'
        f'case "$1 $2" in\n  "plugin add"|"plugin install") {"echo no such command; exit 2" if refuses else ""}\n'
        f"    mkdir -p {enabled.parent}; printf '%s\\n' '{entry}' > {enabled};;\n"
        f'  "plugin remove"|"plugin uninstall") rm -f {enabled};;\n'
        "esac\n"
    )
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def calls_of(person) -> list[str]:
    calls = person.home / "calls"
    return [line for line in calls.read_text().splitlines() if line.startswith("plugin")] if calls.exists() else []


@pytest.mark.parametrize("harness", PROGRAM)
def test_a_plugin_has_hook_and_skill_and_is_installed_by_the_harness(person, harness):
    environment = put_harness(person, harness)
    done = person.do("--plugin", harness, "--yes", **environment)
    root = person.home / ".gradingsite" / "plugins" / harness
    install = {"claude-code": "install", "codex": "add"}[harness]
    assert calls_of(person) == [f"plugin marketplace add {root}", f"plugin {install} gradingsite@gradingsite"], (
        done.stdout
    )
    listing = json.loads((root / LISTING[harness]).read_text())
    (plugin,) = listing["plugins"]
    source = plugin["source"] if isinstance(plugin["source"], str) else plugin["source"]["path"]
    folder = root / source
    assert json.loads((folder / MANIFEST[harness] / "plugin.json").read_text())["name"] == "gradingsite"
    event = {"claude-code": "SessionEnd", "codex": "Stop"}[harness]
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    assert ".gradingsite/submit_session.py" in hooks[event][0]["hooks"][0]["command"]
    skill = (folder / "skills" / "gradingsite" / "SKILL.md").read_text()
    assert skill.startswith("---\nname: gradingsite\n")
    assert "--check" in skill
    assert f"ok  hook: {harness}, as the plugin gradingsite" in done.stdout.replace("gradingsite: ok", "ok")
    assert ("type /hooks" in done.stdout) == (harness == "codex")
    again = person.do("--plugin", harness, "--yes", **environment)
    assert "nothing to do" in again.stdout
    assert len(calls_of(person)) == 2


@pytest.mark.parametrize("harness", PROGRAM)
def test_a_plugin_replaces_the_hook_in_the_settings(person, harness):
    """Otherwise each session would be sent twice."""
    person.do("--install", harness, "--yes")
    assert ".gradingsite/submit_session.py" in person.settings(harness).read_text()
    person.do("--plugin", harness, "--yes", **put_harness(person, harness))
    settings = person.settings(harness)
    assert not settings.exists() or ".gradingsite/submit_session.py" not in settings.read_text()


@pytest.mark.parametrize("harness", PROGRAM)
def test_uninstalling_removes_the_plugin(person, harness):
    environment = put_harness(person, harness)
    person.do("--plugin", harness, "--yes", **environment)
    assert person.do("--uninstall", harness, "--yes", **environment).returncode == 0
    remove = {"claude-code": "uninstall", "codex": "remove"}[harness]
    assert calls_of(person)[2:] == [f"plugin {remove} gradingsite@gradingsite", "plugin marketplace remove gradingsite"]
    assert not (person.home / ".gradingsite" / "plugins" / harness).exists()


def test_a_harness_that_takes_no_plugin_keeps_its_hook(person):
    person.do("--install", "codex", "--yes")
    done = person.do("--plugin", "codex", "--yes", **put_harness(person, "codex", refuses=True))
    assert done.returncode == 1
    assert "no such command" in done.stdout
    assert "--install codex puts the hook into its settings instead" in done.stdout
    assert ".gradingsite/submit_session.py" in person.settings("codex").read_text()


def test_without_the_harness_there_is_no_plugin(person):
    done = person.do("--plugin", "claude-code", "--yes", PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert "claude is not on the PATH" in done.stdout
    assert not (person.home / ".gradingsite").exists()
    assert person.do("--plugin", "gptme").returncode == 2


def test_a_plugin_is_not_made_without_a_yes(person):
    done = person.do("--plugin", "claude-code", **put_harness(person, "claude-code"))
    assert done.returncode == 1
    assert "would run" in done.stdout
    assert calls_of(person) == []
    assert not (person.home / ".gradingsite").exists()
