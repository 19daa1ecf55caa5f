"""The hook file, run as an agent runs it: a process of its own, with a site that is there, away, or of another mind."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

import pytest

from grading.intake.erasing import erase
from grading.models import Agent, ApiToken, Session
from grading.models.evidence import Origin
from tests.casts import lesson as lesson_cast
from tests.casts import logs
from tests.processes import wait_for

HOOK = Path(__file__).parents[2] / "grading" / "agent" / "submit_session.py"
SESSION = "5b1f3c52-7a0e-4c0f-9a34-0d1f5f2e71a3"
UNKNOWN = "gs_none"
OLDEST = "python3.9"


def works(python: str) -> bool:
    """Whether this Python is installed here: a version manager's shim may be there without it."""
    return (
        bool(shutil.which(python))
        and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    )


PYTHONS = [sys.executable, *(python for python in (OLDEST,) if works(python))]


class Machine:
    """An agent's machine: its home folder, its spool, and the hook."""

    def __init__(self, home: Path, url: str, token: str = UNKNOWN) -> None:
        self.home, self.python = home, sys.executable
        self.spool = home / ".gradingsite" / "spool"
        path = os.environ["PATH"]
        self.environment = {"HOME": str(home), "PATH": path, "GRADINGSITE_URL": url, "GRADINGSITE_TOKEN": token}
        self.transcript = home / f"{SESSION}.jsonl"
        self.transcript.write_bytes(logs.claude(SESSION, logs.COMMIT))

    def payload(self, **fields) -> str:
        said = {"session_id": SESSION, "transcript_path": str(self.transcript), "cwd": str(self.home)}
        return json.dumps({**said, "hook_event_name": "SessionEnd", "reason": "other", **fields})

    def run(self, *arguments: str, stdin: str | None = None, **environment: str) -> str:
        """Run the hook; its output. It must end soon, whatever the site does, with 0, in one line."""
        start = time.monotonic()
        done = subprocess.run(
            [self.python, str(HOOK), *arguments],
            input=self.payload() if stdin is None else stdin,
            env={**self.environment, **environment},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert not done.stderr
        assert time.monotonic() - start < 10  # two seconds, but for a busy machine
        assert done.stdout.count("\n") == 1
        return done.stdout

    def flush(self, **environment: str) -> subprocess.CompletedProcess:
        command = [self.python, str(HOOK), "--flush"]
        environment = {**self.environment, **environment}
        return subprocess.run(
            command, env=environment, cwd=self.home, capture_output=True, text=True, timeout=30, check=False
        )

    @property
    def waiting(self) -> list[Path]:
        return sorted(path for path in self.spool.glob("[0-9]*")) if self.spool.exists() else []

    def wait_until_sent(self, left: int = 0) -> None:
        deadline = time.monotonic() + 20
        while len(self.waiting) > left:
            assert time.monotonic() < deadline, (self.spool / "sender.log").read_text()
            time.sleep(0.05)


class Unwilling:
    """A site that gives every request, or those with `only` in them, the same answer."""

    def __init__(self, status: int, body: bytes = b'{"error": "no"}', only: bytes = b"") -> None:
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(status if only in received[-1] else 200)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = Thread(target=self.server.serve_forever)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *error) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def away(tmp_path) -> Machine:
    """A machine whose site does not answer."""
    return Machine(tmp_path, f"http://127.0.0.1:{free_port()}")


@pytest.fixture
def bob(site, transactional_db) -> Agent:
    return site.agent()


@pytest.fixture
def machine(tmp_path, bob, live_server) -> Machine:
    """A machine with a running site and a live token."""
    return Machine(tmp_path, live_server.url, ApiToken.objects.issue(bob)[1])


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


def git(folder: Path, *arguments: str, **environment: str) -> str:
    identity = ("-c", "user.name=bob", "-c", "user.email=bob@example.test", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.check_output(command, env={**os.environ, **environment}, text=True).strip()


def commit(folder: Path, message: str, at: str = "") -> str:
    git(folder, "commit", "-q", "--allow-empty", "-m", message, **({"GIT_COMMITTER_DATE": at} if at else {}))
    return git(folder, "rev-parse", "HEAD")


def facts_of(machine: Machine) -> dict:
    return json.loads((machine.waiting[-1] / "session.json").read_text())["facts"]


# --- with a site


@pytest.mark.parametrize("python", PYTHONS)
def test_a_finished_session_reaches_the_site(machine, python):
    machine.python = python
    said = machine.run(GRADINGSITE_CATEGORY="cross-repo")
    assert f"session {SESSION[-8:]}" in said
    assert "being sent to" in said
    machine.wait_until_sent()
    session = Session.objects.get()
    assert (session.external_id, session.category.name, session.harness.name) == (SESSION, "cross-repo", "claude-code")
    assert session.signals["commits"]


def test_the_lessons_are_told_with_the_session(machine):
    lesson_cast.lesson("ask-first")
    lesson_cast.lesson("read-twice")
    decision = lesson_cast.drawn_as("read-twice", taken=False)
    machine.run(GRADINGSITE_LESSONS="ask first = .4, ,=1", GRADINGSITE_LESSONS_DRAWN=decision)
    machine.wait_until_sent()
    rows = Session.objects.get().lessons.order_by("arm__name").values_list("arm__name", "taken", "salience")
    assert list(rows) == [("ask-first", True, 0.4), ("read-twice", False, None)]


def test_a_salience_that_is_no_number_loses_no_lesson(machine):
    machine.run(GRADINGSITE_LESSONS="ask-first=much,read-twice=2,third=1.", GRADINGSITE_URL="http://127.0.0.1:9")
    told = json.loads((machine.waiting[-1] / "session.json").read_text())["metadata"]["lessons"]
    assert told == [{"name": "ask-first"}, {"name": "read-twice"}, {"name": "third", "salience": 1.0}]


def test_a_title_with_characters_that_the_site_refuses_loses_no_session(machine):
    title = "Tidy\tup \N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}"
    machine.run(GRADINGSITE_TITLE=title, GRADINGSITE_MODEL="m" * 121, GRADINGSITE_LESSONS="a\tb")
    machine.wait_until_sent()
    assert Session.objects.get().title == "Tidy?up \N{WOMAN}?\N{PERSONAL COMPUTER}"


@pytest.mark.parametrize(("code", "stored"), [("3221225786", None), ("-1073741510", -1073741510)])
def test_an_exit_code_that_the_site_cannot_store_loses_no_session(machine, code, stored):
    """What Windows reports for Ctrl-C: 0xC000013A, read as unsigned and as signed."""
    machine.run(GRADINGSITE_EXIT_CODE=code)
    machine.wait_until_sent()
    assert Session.objects.get().exit_code == stored


def test_what_waited_is_sent_with_the_next_session(machine):
    machine.run(stdin=machine.payload(session_id="earlier", transcript_path=None), GRADINGSITE_URL="http://127.0.0.1:9")
    assert "with 1 unsent before" in machine.run()
    machine.wait_until_sent()
    assert set(Session.objects.values_list("external_id", flat=True)) == {"earlier", SESSION}


def test_the_same_end_twice_is_one_session(machine):
    machine.run()
    machine.run()
    machine.wait_until_sent()
    assert Session.objects.count() == 1


def test_facts_seen_by_the_hook_are_independent_evidence(machine):
    folder = repository(machine.home / "work")
    sha = commit(folder, f"Fix it\n\nSession-Id: {SESSION}")
    pull_request = "https://github.com/gptme/gptme-contrib/pull/619"
    machine.run(stdin=machine.payload(cwd=str(folder)), GRADINGSITE_PULL_REQUEST=pull_request)
    machine.wait_until_sent()
    rows = Session.objects.get().artifacts.filter(origin=Origin.FACTS).values_list("key", flat=True)
    assert set(rows) == {sha, pull_request}


def test_flush_sends_and_says_so(machine):
    machine.run(GRADINGSITE_URL="http://127.0.0.1:9")
    wait_for_diary(machine)
    done = machine.flush()
    assert done.returncode == 0
    assert f"gradingsite: {SESSION}: accepted" in done.stdout
    assert "everything is sent" in done.stdout


def test_the_site_serves_the_file_with_its_own_address(client, settings, tmp_path):
    settings.SITE_URL = "https://grades.example.test/"
    text = client.get("/agent/submit_session.py").content.decode()
    assert "SITE = 'https://grades.example.test'  #" in text
    settings.SITE_URL = ""
    assert "SITE = 'http://testserver'  #" in client.get("/agent/submit_session.py").content.decode()
    file = tmp_path / "served.py"
    file.write_text(text)
    done = subprocess.run([sys.executable, str(file), "--help"], capture_output=True, text=True, check=True)
    assert "--flush" in done.stdout


def test_a_foreign_host_name_is_not_written_into_the_file(client):
    assert client.get("/agent/submit_session.py", headers={"host": "evil.example.test"}).status_code == 400


# --- without one


def wait_for_diary(machine: Machine) -> str:
    """What the background sender noted, once it has ended its first try."""
    diary, deadline = machine.spool / "sender.log", time.monotonic() + 20
    while not diary.exists() or "unsent" not in diary.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return diary.read_text()


def test_a_site_that_is_away_loses_nothing(away):
    away.run()
    assert "is unreachable" in wait_for_diary(away)
    assert (away.waiting[0] / "transcript").read_bytes() == away.transcript.read_bytes()
    assert oct((away.home / ".gradingsite").stat().st_mode)[-3:] == "700"
    assert "gs_none" not in (away.waiting[0] / "session.json").read_text()


def test_a_hanging_site_does_not_hold_the_agent_up(tmp_path):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        machine = Machine(tmp_path, f"http://127.0.0.1:{deaf.getsockname()[1]}")
        machine.run()
        assert len(machine.waiting) == 1


def test_without_a_token_the_session_is_kept_and_the_way_out_told(away):
    said = away.run(GRADINGSITE_TOKEN="")
    assert "no token: set GRADINGSITE_TOKEN" in said
    assert len(away.waiting) == 1


def test_the_token_may_be_in_a_file(machine):
    token = machine.environment.pop("GRADINGSITE_TOKEN")
    (machine.home / ".gradingsite").mkdir()
    (machine.home / ".gradingsite" / "token").write_text(token + "\n")
    machine.run()
    machine.wait_until_sent()
    assert Session.objects.exists()


@pytest.mark.parametrize("status", [500, 503, 429, 401, 302])
def test_an_answer_that_may_change_keeps_the_session(tmp_path, status):
    with Unwilling(status) as site:
        machine = Machine(tmp_path, site.url)
        machine.run()
        wait_for_diary(machine)
        assert len(machine.waiting) == 1
        assert len(site.received) == 1
        assert machine.flush().returncode == 1


def test_a_refused_session_is_set_aside_with_the_answer(tmp_path):
    with Unwilling(422, b'{"todo": "correct it"}') as site:
        machine = Machine(tmp_path, site.url)
        machine.run()
        machine.wait_until_sent()
    (refused,) = (machine.spool / "refused").iterdir()
    assert "correct it" in (refused / "answer.txt").read_text()
    assert (refused / "session.json").exists()


def spooled(machine: Machine, name: str, text: str | None) -> None:
    """An entry older than those that come, with this as its session.json."""
    entry = machine.spool / name
    entry.mkdir(parents=True)
    if text is not None:
        (entry / "session.json").write_text(text)


BAD = [
    None, "", "{", "null", "[]", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "[" * 99_999,
    '{"metadata": {}}', '{"metadata": {"session_id": "x"}, "files": []}',
    '{"metadata": {"session_id": "x"}, "files": {"transcript": "/a\\u0000b"}}',
    '{"metadata": {"session_id": "x"}, "files": {"transcript": 7.5}}',
    '{"metadata": {"session_id": "x"}, "files": {}, "facts": 3}',
    '{"metadata": {"session_id": "x"}, "files": {}, "unobserved": "later", "facts": 3}',
]  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_an_entry_that_is_no_session_is_set_aside_and_the_others_go_on(tmp_path, text):
    with Unwilling(200) as site:
        machine = Machine(tmp_path, site.url)
        spooled(machine, "1-bad", text)
        machine.run()
        machine.wait_until_sent()
    assert len(site.received) == 1
    (refused,) = (machine.spool / "refused").iterdir()
    assert refused.name == "1-bad"
    assert (refused / "answer.txt").read_text()


def test_a_file_in_the_spool_holds_up_no_session(tmp_path):
    with Unwilling(200) as site:
        machine = Machine(tmp_path, site.url)
        machine.spool.mkdir(parents=True)
        (machine.spool / "1-notes.txt").write_text("not a session")
        machine.run()
        machine.wait_until_sent(left=1)
        done = machine.flush()
    assert len(site.received) == 1
    assert (done.returncode, done.stdout) == (0, "gradingsite: everything is sent\n")


def test_a_session_on_which_the_site_fails_holds_up_no_other(tmp_path):
    with Unwilling(500, only=b"poison") as site:
        machine = Machine(tmp_path, site.url)
        for number in range(5):
            spooled(machine, f"{number}-bad", json.dumps({"metadata": {"session_id": "poison"}, "files": {}}))
        machine.flush()
        machine.run()
        machine.wait_until_sent(left=5)
    assert sum(b"poison" not in body for body in site.received) == 1


def test_a_file_that_is_gone_is_said_to_be_gone(tmp_path):
    with Unwilling(200) as site:
        machine = Machine(tmp_path, site.url)
        machine.transcript.unlink()
        assert "without a transcript" in machine.run()
        machine.wait_until_sent()
    assert b"FileNotFoundError" in site.received[0]


def test_two_senders_do_not_send_twice(tmp_path):
    with Unwilling(200) as site:
        machine = Machine(tmp_path, site.url)
        (machine.home / ".gradingsite").mkdir()
        runs = [
            subprocess.Popen(
                [sys.executable, str(HOOK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=machine.environment
            )
            for _ in range(4)
        ]
        for number, run in enumerate(runs):  # at once: the hook waits little for its input
            run.stdin.write(machine.payload(session_id=f"s{number}", transcript_path=None).encode())
            run.stdin.close()
        for run in runs:
            run.wait(20)
            run.stdout.close()
        machine.wait_until_sent()
    assert len(site.received) == 4


# --- standard input


@pytest.mark.parametrize(
    "stdin",
    ["", "no json", "[]", "null", "{", "[" * 50_000, '{"session_id": 12345, "cwd": null}', '{"hook_event_name": "X"}'],
)
def test_an_input_that_names_no_session_is_said_to_be_so(away, stdin):
    assert "expected a hook's JSON with a session_id" in away.run(stdin=stdin)
    assert not away.waiting


def test_a_silent_input_does_not_hang(away):
    reader, writer = os.pipe()
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(HOOK)], stdin=reader, env=away.environment, capture_output=True, timeout=10, check=True
    )
    os.close(writer)
    os.close(reader)
    assert b"nothing to submit" in done.stdout
    assert time.monotonic() - start < 2


def test_an_input_that_is_never_closed_is_enough_once_it_is_whole(away):
    reader, writer = os.pipe()
    os.write(writer, away.payload().encode())
    subprocess.run(
        [sys.executable, str(HOOK)], stdin=reader, env=away.environment, capture_output=True, timeout=10, check=True
    )
    os.close(writer)
    os.close(reader)
    assert len(away.waiting) == 1


def test_the_real_payloads_of_a_session_end_are_understood(away):
    payload = {
        "session_id": "00000000-0000-4000-8000-000000000000",
        "transcript_path": "/home/USER/.claude/projects/PROJECT/00000000-0000-4000-8000-000000000000.jsonl",
        "cwd": "/home/USER/project",
        "hook_event_name": "SessionEnd",
        "reason": "prompt_input_exit",
    }
    assert "session 00000000, without a transcript" in away.run(stdin=json.dumps(payload))


def test_codex_hands_its_json_over_as_an_argument(away):
    folder = away.home / ".codex" / "sessions" / "2026" / "03" / "31"
    folder.mkdir(parents=True)
    (folder / "rollout-2026-03-31T11-00-00-aaaa.jsonl").write_text('{"timestamp": "2026-03-31T11:00:00Z"}')
    (folder / "rollout-2026-03-31T12-00-00-bbbb.jsonl").write_text('{"timestamp": "2026-03-31T12:00:00Z"}')
    away.run("--codex", '{"type": "agent-turn-complete", "thread-id": "aaaa"}', stdin="")
    said = json.loads((away.waiting[0] / "session.json").read_text())
    assert said["metadata"]["harness"] == "codex"
    assert said["metadata"]["started_at"] == "2026-03-31T11:00:00+00:00"
    assert said["files"]["transcript"].endswith("aaaa.jsonl") or said["files"]["transcript"].endswith("/transcript")


def test_gptme_hands_its_folder_over_in_the_environment(away):
    folder = away.home / "2026-03-31-fix"
    folder.mkdir()
    (folder / "conversation.jsonl").write_bytes(logs.gptme(("user", "hello"), ("assistant", "hi")))
    away.run(stdin="", GPTME_LOGDIR=str(folder), GPTME_MODEL="openai/gpt-5")
    said = json.loads((away.waiting[0] / "session.json").read_text())
    assert (said["metadata"]["session_id"], said["metadata"]["harness"]) == ("2026-03-31-fix", "gptme")
    assert said["metadata"]["model"] == "openai/gpt-5"


# --- whose commits


@pytest.fixture
def offline(away) -> Machine:
    """A machine with a repository, whose session began a minute ago."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 60))
    away.transcript.write_text(f'{{"timestamp": "{moment}.000Z"}}\n')
    repository(away.home / "work")
    return away


def test_commits_with_the_trailer_are_the_sessions(offline):
    folder = offline.home / "work"
    commit(folder, "Somebody else's")
    own = commit(folder, f"Fix it\n\nSession-Id: {SESSION}")
    commit(folder, "Another's\n\nSession-Id: another")
    offline.run(stdin=offline.payload(cwd=str(folder)))
    (fact,) = facts_of(offline)["commits"]
    assert (fact["sha"], fact["by"], fact["subject"]) == (own, "trailer", "Fix it")


def test_without_trailers_the_commits_made_in_the_own_worktree_count(offline):
    folder = offline.home / "work"
    commit(folder, "First")
    git(folder, "worktree", "add", "-q", "-b", "topic", "../topic")
    own = commit(offline.home / "topic", "Mine")
    commit(folder, "Made meanwhile in the main worktree")
    commit(offline.home / "topic", "Of a session that says so\n\nSession-Id: another")
    offline.run(stdin=offline.payload(cwd=str(offline.home / "topic")))
    (fact,) = facts_of(offline)["commits"]
    assert (fact["sha"], fact["by"]) == (own, "own worktree, between start and end")


def test_commits_made_before_the_session_or_pulled_in_are_not_its_own(offline):
    folder = offline.home / "work"
    commit(folder, "Base", at="2026-03-31T10:00:00Z")
    git(folder, "branch", "theirs")
    git(folder, "worktree", "add", "-q", "../other", "theirs")
    commit(offline.home / "other", "Theirs")
    git(folder, "merge", "-q", "--ff-only", "theirs")
    offline.run(stdin=offline.payload(cwd=str(folder)))
    assert "commits" not in facts_of(offline)


def test_a_message_does_not_pass_for_another_commit(offline):
    """A subject may contain what ends a line elsewhere, and a trailer may go on in the next line."""
    folder = offline.home / "work"
    forged = f"{'1' * 40}\x1f2026-03-31T12:00:00Z\x1f{SESSION}\x1fForged"
    own = commit(folder, f"Odd\x0c{forged}\n\nSession-Id: {SESSION},\n another")
    offline.run(stdin=offline.payload(cwd=str(folder)))
    (fact,) = facts_of(offline)["commits"]
    assert (fact["sha"], fact["by"]) == (own, "trailer")


def test_an_amended_commit_counts_once(offline):
    folder = offline.home / "work"
    commit(folder, "Draft")
    git(folder, "commit", "-q", "--amend", "--allow-empty", "-m", "Final")
    offline.run(stdin=offline.payload(cwd=str(folder)))
    assert [fact["subject"] for fact in facts_of(offline)["commits"]] == ["Final"]


def test_a_password_in_the_remote_address_is_left_out(offline):
    folder = offline.home / "work"
    git(folder, "remote", "add", "origin", "https://bob:hunter2@example.test/work.git")
    commit(folder, "Mine")
    offline.run(stdin=offline.payload(cwd=str(folder)))
    assert facts_of(offline)["commits"][0]["repo"] == "https://example.test/work.git"


@pytest.mark.parametrize(
    "remote", ["https://bob:hunt@er2@example.test/work.git", "https://example.test/work.git?t=hunter2"]
)
def test_no_part_of_a_password_in_the_remote_address_is_sent(offline, remote):
    folder = offline.home / "work"
    git(folder, "remote", "add", "origin", remote)
    commit(folder, f"Mine\n\nSession-Id: {SESSION}")
    offline.run(stdin=offline.payload(cwd=str(folder)))
    assert facts_of(offline)["commits"][0]["repo"] == "https://example.test/work.git"


def test_a_slow_git_does_not_hold_the_agent_up(offline):
    slow = offline.home / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nsleep 3\n")
    slow.chmod(0o755)
    path = f"{slow.parent}:{offline.environment['PATH']}"
    said = offline.run(stdin=offline.payload(cwd=str(offline.home / "work")), PATH=path)
    assert "commits are read in the background" in said


# --- what was sent, sent again


def resend(machine: Machine, since: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(HOOK), "--resend", since],
        env={**machine.environment, **environment},
        cwd=machine.home,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def sent(machine: Machine) -> list[Path]:
    return sorted((machine.spool / "sent").glob("[0-9]*"))


def test_a_site_that_lost_a_session_gets_it_again_as_it_was_sent(machine):
    """Whatever was written to its files meanwhile."""
    journal = machine.home / "journal.md"
    journal.write_text("Merged the fix, and the tests pass. " * 5)
    machine.run(GRADINGSITE_JOURNAL=str(journal))
    machine.wait_until_sent()
    before = Session.objects.get()
    evidence = list(before.evidence.order_by("kind").values_list("kind", "sha256", "filename"))
    journal.write_text("Another session's words. " * 5)
    machine.transcript.unlink()
    forget(before)
    assert "to be sent again: 1," in resend(machine, "2026-03-31T00:00:00Z").stdout
    again = Session.objects.get()
    assert list(again.evidence.order_by("kind").values_list("kind", "sha256", "filename")) == evidence
    assert len(sent(machine)) == 1
    assert machine.waiting == []


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(machine):
    """The session arrives without the file, and its facts say why."""
    journal = machine.home / "journal.md"
    os.mkfifo(journal)
    machine.run(GRADINGSITE_JOURNAL=str(journal))
    machine.wait_until_sent()
    assert [row.kind for row in Session.objects.get().evidence.exclude(kind="facts")] == ["transcript"]


def forget(session: Session) -> None:
    """Lose it as a disk does: no erasure of that name is on record."""
    name, agents = session.agent.name, Agent.objects.filter(pk=session.agent_id)
    agents.update(name="somebody-else")
    erase(Session.objects.filter(pk=session.pk), who="a test", why="the disk was lost")
    agents.update(name=name)


def test_sending_again_what_the_site_has_changes_nothing(machine):
    machine.run()
    machine.wait_until_sent()
    before = Session.objects.get().submissions.count()
    done = resend(machine, "2026-03-31T00:00:00Z")
    assert done.returncode == 0
    assert "accepted" in done.stdout
    assert Session.objects.get().submissions.count() == before


def test_what_was_erased_on_the_site_is_not_brought_back(machine):
    machine.run()
    machine.wait_until_sent()
    erase(Session.objects.all(), who="a test", why="asked for")
    assert "refused with 410" in resend(machine, "2026-03-31T00:00:00Z").stdout
    assert not Session.objects.exists()
    assert sent(machine) == machine.waiting == []


def test_what_was_sent_before_the_moment_stays_where_it_is(machine):
    machine.run()
    machine.wait_until_sent()
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    assert "to be sent again: 0," in resend(machine, later).stdout
    assert len(sent(machine)) == 1


def test_what_was_sent_is_kept_for_a_week_for_its_owner_alone(machine):
    machine.run()
    machine.wait_until_sent()
    (old,) = sent(machine)
    assert [
        path for path in [old.parent, *old.parent.rglob("*")] if path.is_dir() and path.stat().st_mode & 0o077
    ] == []
    eight_days_ago = time.time() - 8 * 86_400
    os.utime(old / "session.json", (eight_days_ago, eight_days_ago))
    machine.run(stdin=machine.payload(session_id="another", transcript_path=None))
    wait_for(lambda: len(sent(machine)) == 1 and old not in sent(machine), 20)


def test_who_wants_nothing_kept_keeps_nothing(machine):
    machine.run(GRADINGSITE_KEEP_DAYS="0")
    machine.wait_until_sent()
    assert sent(machine) == []


def test_a_moment_that_is_none_is_asked_for_again(away):
    done = resend(away, "yesterday")
    assert (done.returncode, "expected a time after --resend" in done.stdout) == (2, True)
