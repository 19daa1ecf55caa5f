"""The hook sends what was there before: every file told, the oldest first, at a known price, resumable."""

import datetime as dt
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pytest
import zstandard
from django.utils import timezone

from grading.evidence import store
from grading.models import ApiToken, Session
from grading.models.agents import TokenScope
from grading.witness import Witness
from tests.agent.test_hook import commit, free_port, git, repository
from tests.agent.test_installing import CODEX, CODEX_SESSION, GPTME, Person
from tests.casts import logs
from tests.casts import quota as quota_cast
from tests.processes import started, wait_for

DATA = Path(os.environ.get("GRADING_DATA_DIR", "."), "transcripts")
LONG_AGO = dt.datetime(2026, 3, 31, 11, 40, tzinfo=dt.UTC).timestamp()
FIRST, SECOND, THIRD = (f"{number}b1f3c52-7a0e-4c0f-9a34-0d1f5f2e71a3" for number in (1, 2, 3))


class Old(Person):
    """Somebody whose agents have worked for a while."""

    def put(self, place: str, data: bytes, *, at: float = LONG_AGO) -> Path:
        path = self.home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (at, at))
        return path

    def claude(self, session_id: str, minute: int = 40, *calls) -> Path:
        data = logs.claude(session_id, *(calls or (logs.COMMIT,)))
        data = data.replace(b"11:40:00.000Z", f"11:{minute:02}:00.000Z".encode())
        return self.put(f".claude/projects/-home-bob/{session_id}.jsonl", data)

    def sends(self, *arguments: str, code: int = 0, **environment: str) -> str:
        done = self.do("--backfill", "--yes", *arguments, seconds=600, **environment)
        assert (done.returncode, done.stderr) == (code, ""), done
        return done.stdout

    def tally(self, said: str) -> dict[str, int]:
        found = re.findall(r"^ *([\d,]+)  (\S.*)$", said, re.MULTILINE)
        return {words.split(",")[0].split(":")[0]: int(count.replace(",", "")) for count, words in found}


@pytest.fixture
def old(site, tmp_path, live_site, transactional_db, settings) -> Old:
    settings.ANTHROPIC_API_KEY, settings.JUDGE_MODEL = quota_cast.KEY, "claude-sonnet-5-5"
    _row, secret = ApiToken.objects.issue(site.agent(), scope=TokenScope.HOOK)
    with urlopen(f"{live_site}/healthz/live", timeout=120):  # noqa: S310 - of this test
        pass  # whoever asks first waits until the site has read its own code, and a hook waits for seconds only
    return Old(tmp_path, live_site, secret)


def test_each_harnesses_logs_are_sent_once_and_every_file_is_named(old):
    old.claude(FIRST)
    aside = (
        logs.claude(FIRST, ("ls", "x")).decode().replace('"isSidechain": false', '"isSidechain": true, "agentId": "a1"')
    )
    old.put(f".claude/projects/-home-bob/{FIRST}/subagents/agent-a1.jsonl", aside.replace(f"{FIRST}-", "s-").encode())
    old.put(f".codex/sessions/2026/06/18/rollout-2026-06-18T10-00-00-{CODEX_SESSION}.jsonl", CODEX.read_bytes())
    old.put(".local/share/gptme/logs/2026-03-31-fix/conversation.jsonl", GPTME.read_bytes())
    old.put(".local/share/gptme/logs/2026-03-31-fix/branches/other.jsonl", GPTME.read_bytes())
    old.put(".claude/projects/-home-bob/notes.txt", b"not a log")
    old.put(".claude/projects/-home-bob/empty.jsonl", b"")
    old.put(".claude/projects/-home-bob/.git/log.jsonl", logs.claude(SECOND, logs.COMMIT))
    (old.home / ".claude/projects/link.jsonl").symlink_to(GPTME)
    said = old.sends()
    assert old.tally(said) == {
        "sent": 4,
        "not a session log": 3,
        "skipped": 1,
        "files in all": 8,
    }
    made = {each.external_id: each for each in Session.objects.select_related("harness")}
    assert set(made) == {FIRST, "a1", CODEX_SESSION, "2026-03-31-fix"}
    assert {each.history for each in made.values()} == {"none"}
    assert {made[name].harness.name for name in made} == {"claude-code", "codex", "gptme"}
    assert made[FIRST].ended_at.timestamp() == LONG_AGO
    assert not any(each.judge_jobs.exists() for each in made.values())
    again = old.sends()
    assert old.tally(again)["sent earlier from here"] == 4
    assert Session.objects.count() == 4
    (old.home / ".gradingsite/backfilled.jsonl").unlink()
    assert old.tally(old.sends())["already on the site"] == 4
    listed = old.sends("--list")
    assert all(
        f"{path}" in listed for path in (old.home / ".claude/projects").rglob("*.jsonl") if ".git" not in str(path)
    )


def test_codex_log_that_was_archived_and_compressed_is_sent(old):
    name = f".codex/archived_sessions/rollout-2026-06-18T10-00-00-{CODEX_SESSION}.jsonl.zst"
    old.put(name, zstandard.ZstdCompressor().compress(CODEX.read_bytes()))
    said = old.sends("codex")
    assert old.tally(said)["sent"] == 1
    assert f"1 of codex, from {old.home}/.codex/sessions and {old.home}/.codex/archived_sessions" in said
    session = Session.objects.get()
    assert (session.external_id, session.harness.name) == (CODEX_SESSION, "codex")
    assert not session.evidence.exclude(problem="").exists()


def test_the_oldest_goes_first_and_the_judge_reads_what_was_chosen(old):
    for name, minute in ((FIRST, 50), (SECOND, 10), (THIRD, 30)):
        old.claude(name, minute)
    said = old.sends("--judge", "backlog")
    assert list(Session.objects.order_by("pk").values_list("external_id", flat=True)) == [SECOND, THIRD, FIRST]
    assert all(each.judge_jobs.get().backlog for each in Session.objects.all())
    assert "3 logs to send" in said
    assert "from 2026-03-31 to 2026-03-31" in said


def test_what_ended_after_the_agent_was_connected_is_sent_as_any_session_with_its_price(old):
    old.claude(FIRST)
    ApiToken.objects.update(created_at=timezone.now() - dt.timedelta(hours=2))
    hour_ago = timezone.now() - dt.timedelta(hours=1)
    data = logs.claude(SECOND, logs.COMMIT).replace(b"2026-03-31T11:40:00.000Z", hour_ago.isoformat().encode())
    old.put(f".claude/projects/p/{SECOND}.jsonl", data, at=hour_ago.timestamp())
    old.put(f".claude/projects/p/{THIRD}.jsonl", logs.claude(THIRD, logs.COMMIT), at=time.time())
    said = old.sends()
    assert "1 of them ended after this agent was connected" in said
    assert re.search(r"they are judged like any session, for about \$\d+\.\d\d", said)
    assert old.tally(said) == {"sent": 2, "may still be running; its hook sends it": 1, "files in all": 3}
    assert dict(Session.objects.values_list("external_id", "history")) == {FIRST: "none", SECOND: ""}


def test_only_the_harnesses_that_are_named_and_from_where_they_were_told_to_keep_logs(old):
    old.claude(FIRST)
    old.put("elsewhere/2026-03-31-fix/conversation.jsonl", GPTME.read_bytes())
    old.put("data/gptme/logs/2026-04-01-fix/conversation.jsonl", GPTME.read_bytes() + b"\n")
    old.put("codex-home/sessions/2026/06/18/rollout-x.jsonl", CODEX.read_bytes())
    assert old.tally(old.sends("gptme", GPTME_LOGS_HOME=str(old.home / "elsewhere")))["files in all"] == 1
    assert old.tally(old.sends("gptme", XDG_DATA_HOME=str(old.home / "data")))["files in all"] == 1
    assert old.tally(old.sends("codex", CODEX_HOME=str(old.home / "codex-home")))["files in all"] == 1
    assert old.tally(old.sends(CLAUDE_CONFIG_DIR=str(old.home / ".claude")))["sent"] == 1
    assert Session.objects.count() == 4


def test_a_hostile_name_and_a_log_of_another_session_are_told_safely(old):
    old.put(".claude/projects/p/a\x1b[2J.jsonl", logs.claude(FIRST, logs.COMMIT))
    torn = f'{{"type": "user", "sessionId": "{SECOND}"}}\n'.encode()
    old.put(f".claude/projects/p/{SECOND}.jsonl", logs.claude(THIRD, logs.COMMIT) + torn)
    said = old.sends("--list", code=1)
    assert "\x1b" not in said
    assert old.tally(said) == {"sent": 1, "refused": 1, "files in all": 2}
    assert "422: transcript: " in said
    assert old.tally(old.sends(code=1)) == {"sent earlier from here": 1, "refused": 1, "files in all": 2}


def test_nothing_is_sent_without_a_yes_or_with_a_door_that_is_shut(old):
    old.claude(FIRST)
    done = old.do("--backfill")
    assert done.returncode == 1
    assert "--yes sends them without asking, with --judge none or --judge backlog" in done.stdout
    assert re.search(r"Should the judge read the 1 earlier sessions, for about \$\d", done.stdout)
    assert old.do("--backfill", "--judge", "never").returncode == 2
    ApiToken.objects.update(created_at=timezone.now() - dt.timedelta(days=8))
    assert "make a new one" in old.sends(code=1)
    ApiToken.objects.update(scope=TokenScope.AGENT, created_at=timezone.now())
    assert "it is the agent’s own" in old.sends(code=1)
    assert not Session.objects.exists()
    assert "does not know the token" in old.sends(code=1, GRADINGSITE_TOKEN="gs_none")
    assert "does not answer" in old.sends(code=1, GRADINGSITE_URL=f"http://127.0.0.1:{free_port()}")


def test_logs_from_after_the_connection_are_not_sent_without_a_yes_either(old):
    ApiToken.objects.update(created_at=timezone.now() - dt.timedelta(hours=2))
    hour_ago = timezone.now() - dt.timedelta(hours=1)
    data = logs.claude(FIRST, logs.COMMIT).replace(b"2026-03-31T11:40:00.000Z", hour_ago.isoformat().encode())
    old.put(f".claude/projects/p/{FIRST}.jsonl", data, at=hour_ago.timestamp())
    done = old.do("--backfill")
    assert done.returncode == 1
    assert "nothing was sent" in done.stdout
    assert not Session.objects.exists()


def test_somebody_at_a_terminal_is_asked_and_may_choose(old):
    old.claude(FIRST)
    said = at_a_terminal(old, b"what\nbacklog\n")
    assert b"none, backlog or q? [none]" in said
    assert Session.objects.get().history == "backlog"


def test_somebody_at_a_terminal_may_send_nothing(old):
    old.claude(FIRST)
    assert b"nothing was sent" in at_a_terminal(old, b"q\n")
    assert not Session.objects.exists()


def at_a_terminal(old: Old, typed: bytes) -> bytes:
    """Run it with a terminal of its own, and type that."""
    pid, terminal = os.forkpty()
    if not pid:
        os.chdir(old.home)
        os.execve(sys.executable, [sys.executable, str(old.file), "--backfill"], old.environment)  # noqa: S606 - ours
    os.write(terminal, typed)
    said = b""
    while True:
        try:
            more = os.read(terminal, 65_536)
        except OSError:  # Linux says so at the end
            break
        if not more:
            break
        said += more
    os.waitpid(pid, 0)
    os.close(terminal)
    return said


class Busy:
    """A site that answers the submissions with these, one after the other, and then takes all, with these problems."""

    def __init__(self, *answers: tuple[int, dict[str, str]], problems: Sequence[dict[str, str]] = ()) -> None:
        waiting, self.received = list(answers), []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                until = timezone.now() + dt.timedelta(days=7)
                said = {"history_before": timezone.now().isoformat(), "history_until": until.isoformat()}
                self.answer(200, {**said, "agent": "bob", "verdict_usd": None}, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = waiting.pop(0) if waiting else (201, {})
                if status == 201:
                    received.append(re.search(rb'"session_id": "([^"]+)"', body)[1].decode())
                self.answer(status, {"created": True, "error": "over quota", "problems": problems}, headers)

            def answer(self, status: int, said: dict, headers: dict[str, str]) -> None:
                body = json.dumps(said).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def busy():
    made = []

    def make(*answers, **options) -> Busy:
        site = Busy(*answers, **options)
        Thread(target=site.server.serve_forever, daemon=True).start()
        made.append(site)
        return site

    yield make
    for site in made:
        site.server.shutdown()
        site.server.server_close()


def test_a_quota_is_waited_for_and_trouble_is_tried_again(tmp_path, busy):
    site = busy((429, {"Retry-After": "1"}), (429, {"Retry-After": "1"}), (503, {"Retry-After": "1"}))
    old = Old(tmp_path, site.url, "gs_x")
    old.claude(FIRST)
    old.claude(SECOND, 50)
    started = time.monotonic()
    said = old.sends()
    assert time.monotonic() - started >= 3
    assert said.count("the site accepts no more for now: over quota") == 2
    assert "the site failed with 503" in said
    assert site.received == [FIRST, SECOND]


def test_a_site_that_knows_the_token_no_more_is_asked_no_further(tmp_path, busy):
    site = busy((201, {}), (401, {}))
    old = Old(tmp_path, site.url, "gs_x")
    for number, name in enumerate((FIRST, SECOND, THIRD)):
        old.claude(name, 10 + number)
    said = old.sends(code=1)
    assert old.tally(said) == {"sent": 1, "not sent yet": 2, "files in all": 3}
    assert old.tally(old.sends())["sent"] == 2
    assert site.received == [FIRST, SECOND, THIRD]


def test_remarks_on_the_content_of_a_log_are_not_listed_and_others_are(tmp_path, busy):
    problems = [
        {"part": "transcript", "code": "carried", "expected": "a log of what this session did"},
        {"part": "category", "code": "no_category", "expected": "a category"},
    ]
    old = Old(tmp_path, busy(problems=problems).url, "gs_x")
    old.claude(FIRST)
    said = old.sends()
    assert "1: no_category: expected a category\n" in said
    assert "carried" not in said


def test_a_long_receipt_is_read_to_its_end(tmp_path, busy):
    owned = {"part": "facts.commit", "code": "owned_by_another_session", "expected": "a commit of its own" * 5}
    old = Old(tmp_path, busy(problems=[owned] * 500).url, "gs_x")
    old.claude(FIRST)
    assert old.tally(old.sends())["sent"] == 1


def test_ctrl_c_ends_it_and_the_next_run_goes_on(tmp_path, busy):
    site = busy((201, {}), (429, {"Retry-After": "600"}))
    old = Old(tmp_path, site.url, "gs_x")
    for number, name in enumerate((FIRST, SECOND, THIRD)):
        old.claude(name, 10 + number)
    command = [sys.executable, str(old.file), "--backfill", "--yes"]
    options = {"env": {**old.environment, "PYTHONUNBUFFERED": "1"}, "stdout": subprocess.PIPE, "text": True}
    with started(command, start_new_session=True, **options) as process:
        memory = old.home / ".gradingsite/backfilled.jsonl"
        wait_for(lambda: memory.exists() and memory.read_text().count("\n") == 1)
        another = old.do("--backfill", "--yes")
        assert "another --backfill is running here" in another.stdout
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[0]
    assert "stopped; run it again to continue" in said
    assert old.tally(said) == {"sent": 1, "not sent yet": 2, "files in all": 3}
    assert old.tally(old.sends()) == {"sent": 2, "sent earlier from here": 1, "files in all": 3}
    assert site.received == [FIRST, SECOND, THIRD]


# Every third file, none of which is refused, takes ten seconds. tests/intake/test_import.py reads all of them.
@pytest.mark.parametrize(("step", "code"), [(3, 0), pytest.param(1, 1, marks=pytest.mark.slow)])
@pytest.mark.data
def test_real_folders_of_three_harnesses_are_sent_as_an_import_takes_them(old, step, code):
    if not DATA.is_dir():
        pytest.skip("GRADING_DATA_DIR is not set: the larger folder of real sessions was not read")
    named = {"claude-code": ".claude/projects", "codex": ".codex/sessions", "gptme": ".local/share/gptme/logs"}
    files = 0
    for harness, place in named.items():
        paths = [path for path in sorted((DATA / harness).rglob("*")) if path.is_file()][::step]
        for path in paths:
            old.put(f"{place}/{path.relative_to(DATA / harness)}", path.read_bytes())
        files += len(paths)
    said = old.sends("--list", code=code)
    tally = old.tally(said)
    assert tally.pop("files in all") == sum(tally.values()) == files
    fates = Counter(
        line[:36].strip().split(",")[0] for line in said.splitlines() if line[36:38] == "  " and "/" in line
    )
    assert sum(fates.values()) == files
    # What is refused for its log alone is stored all the same, under its session.
    assert tally["sent"] + tally.get("refused", 0) >= Session.objects.count() >= tally["sent"] > 60 / step


def test_commits_of_a_past_session_are_sent_as_claims(old):
    work = repository(old.home / "work")
    git(work, "remote", "add", "origin", "https://bob:hunter2@example.test/work.git")
    before, mine, after = (
        commit(work, name, f"2026-03-31T11:{minute}:00+00:00")
        for name, minute in (("Before", 20), ("In time", 35), ("After", 55))
    )
    told = commit(work, f"Another's\n\nSession-Id: {SECOND}", "2026-03-31T11:36:00+00:00")
    data = logs.claude(FIRST, logs.COMMIT).replace(b"11:40:00", b"11:30:00", 1)
    old.put(f".claude/projects/-home-bob/{FIRST}.jsonl", in_folder(data, work))
    old.sends()
    facts = Session.objects.get(external_id=FIRST).evidence.get(kind="facts")
    assert facts.witness == Witness.CLAIMED
    (said,) = json.loads(store.text_of(facts))["commits"]
    assert (said["sha"], said["repo"]) == (mine, "https://example.test/work.git")
    assert not {before, after, told} & {said["sha"]}


def test_no_command_of_a_repository_that_a_log_names_is_run(old):
    work, ran = repository(old.home / "work"), old.home / "ran"
    mine = commit(work, "In time", "2026-03-31T11:35:00+00:00")
    script = old.home / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o700)
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "gpg.program", "alias.log", "diff.external"):
        git(work, "config", name, f"!{script}" if name.startswith("alias") else str(script))
    git(work, "config", "log.showSignature", "true")
    # An object that is missing is fetched, by an address that is a command.
    git(work, "config", "extensions.partialClone", "origin")
    git(work, "config", "remote.origin.promisor", "true")
    git(work, "config", "remote.origin.url", f"ext::{script}")
    git(work, "config", "protocol.ext.allow", "always")
    (work / ".git" / "objects" / mine[:2] / mine[2:]).unlink()
    old.put(f".claude/projects/-home-bob/{FIRST}.jsonl", in_folder(logs.claude(FIRST, logs.COMMIT), work))
    assert old.tally(old.sends())["sent"] == 1
    assert not ran.exists()


def test_a_past_session_whose_folder_is_gone_is_sent_without_facts(old):
    data = in_folder(logs.claude(FIRST, logs.COMMIT), old.home / "gone")
    old.put(f".claude/projects/-home-bob/{FIRST}.jsonl", data)
    assert old.tally(old.sends())["sent"] == 1
    assert not Session.objects.get(external_id=FIRST).evidence.filter(kind="facts").exists()


def in_folder(data: bytes, folder: Path) -> bytes:
    """The log as its harness writes it in that folder."""
    rows = [{**json.loads(line), "cwd": str(folder)} for line in data.splitlines()]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
