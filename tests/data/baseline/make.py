"""Make the baseline: a site of 320 sessions, created through HTTP by the code of the current folder.

    python tests/data/baseline/make.py tests/data/baseline/site.tar.xz

The archive holds the database as SQL, the evidence, `facts.json` (`tests.facts`) and `about.json`: the commit, the time
and the digests. `tests/infra/test_baseline.py` upgrades it and compares.
"""

import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))
STATE = Path(tempfile.mkdtemp(prefix="gradingsite-baseline-"))
START = datetime(2026, 9, 1, 9, tzinfo=UTC)
SESSIONS, A_DAY = 320, 10
AGENTS = ("alice", "bob", "carol", "dave")
CATEGORIES = ("code", "infra", "triage", "news", "content")
HARNESSES = ("claude-code", "codex", "gptme")
LESSONS = ("ask-first", "read-twice")
# From this session on the judge's quota is gone, and until that one.
OUT = range(140, 175)
# These are of an agent that is erased.
DAVE = range(245, 251)
# What people do once the session of this number is in.
PERSON = {60: "merge", 110: "part", 200: "merge", 230: "erase", 260: "erase an agent", 290: "exclude"}
WORDS = ["retry", "guard", "parser", "index", "queue", "cache", "token", "branch", "import", "release"]


def main(out: Path) -> None:
    from gradingsite import broker

    ours = broker.prepare(STATE / "broker")
    os.environ |= {"GRADINGSITE_STATE": str(STATE), "REDIS_URL": ours.url, "SECRET_KEY": "baseline" * 8}
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "gradingsite.settings",
        "LOG_LEVEL": "ERROR",
        "ALLOWED_HOSTS": "testserver",
    }
    (STATE / "chance.key").write_bytes(bytes(range(32)))
    redis = subprocess.Popen(broker.command(ours, STATE / "broker"))
    try:
        ours.wait_until_up()
        live(out)
    finally:
        redis.terminate()


def live(out: Path) -> None:
    import django

    django.setup()

    import time_machine
    from django.conf import settings
    from django.core.management import call_command

    from bandit.models import Arm, Bandit
    from grading.models import Agent, ApiToken, Session
    from grading.simulator import Simulator
    from tests.site import Site

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with time_machine.travel(START, tick=False) as clock, Simulator() as judge:
        call_command("migrate", verbosity=0)
        call_command("load_samples", verbosity=0)
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-baseline", judge.url
        for name in LESSONS:
            Arm.objects.create(bandit=Bandit.objects.get(name="lesson"), name=name)
        person = Site().person("olga", "operator")
        agents = {name: caller(ApiToken.objects.issue(Site().agent(name))[1]) for name in AGENTS}
        for number in range(SESSIONS):
            clock.move_to(START + timedelta(days=number // A_DAY, hours=number % A_DAY, minutes=30))
            judge.mode = "spend_limit" if number in OUT else "verdict"
            submit(agents["dave" if number in DAVE else AGENTS[number % 3]], number)
            olga = browser(person)  # logged in anew: a login ends after hours
            if number == OUT.stop:
                post(olga, "/quota/probe/", {})
            run("judge")
            if number % 7 == 3:
                correct(olga, number)
            if act := PERSON.get(number):
                do(olga, act)
            if number % A_DAY == A_DAY - 1:
                print(f"{number + 1} sessions", flush=True)
                run("sweep", "prioritise", "at_night")
        # The last ones wait for their judge.
        judge.mode = "spend_limit"
        for number in range(SESSIONS, SESSIONS + 5):
            submit(agents["alice"], number)
        run("judge")
        assert Session.objects.yours().count() > 300, Session.objects.yours().count()
        assert Agent.objects.count() >= len(AGENTS)
        keep(out)
    os._exit(0)


def run(*tasks: str) -> None:
    """Run these of the worker's tasks."""
    from grading import tasks as ours

    for name in tasks:
        getattr(ours, name)()


def caller(secret: str) -> Any:
    from django.test import Client

    return Client(headers={"Authorization": f"Bearer {secret}"})


def browser(user: Any) -> Any:
    from django.test import Client

    client = Client()
    client.force_login(user)
    return client


def post(client: Any, path: str, data: dict[str, Any], expected: tuple[int, ...] = (200, 302)) -> Any:
    answer = client.post(path, data)
    assert answer.status_code in expected, (path, answer.status_code, answer.content[:500])
    return answer


def submit(agent: Any, number: int) -> None:
    """Ask for a decision, then submit a session. What the session contains depends on its number."""
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.utils import timezone

    asked = {"decision_id": f"decision-{number}", "bandit": "category"}
    chosen = agent.post("/api/v1/selections", json.dumps(asked), content_type="application/json")
    is_chosen = chosen.status_code in {200, 201} and number % 2 == 0
    now = timezone.now()
    metadata = {
        "session_id": f"session-{number}",
        "category": chosen.json()["arm"] if is_chosen else CATEGORIES[number % len(CATEGORIES)],
        "harness": HARNESSES[number % 3],
        "model": ("claude-sonnet-5-5", "gpt-5-codex")[number % 2],
        "title": f"Mend the {WORDS[number % len(WORDS)]}, part {number}",
        "started_at": (now - timedelta(minutes=40)).isoformat(),
        "ended_at": now.isoformat(),
    }
    if is_chosen:
        metadata["selection_id"] = asked["decision_id"]
    if number % 23 == 5:
        metadata |= {"outcome": "infrastructure", "outcome_reason": "The runner was gone."}
    if number % 5 == 2:
        metadata["lessons"] = [{"name": LESSONS[number % 2], "salience": 0.5}]
    parts: dict[str, bytes] = {}
    if number % 11 != 7:
        parts["transcript"] = transcript(number, now)
    if number % 3 == 0:
        parts["journal"] = f"Merged the fix for the {WORDS[number % 10]}; part {number} is done. ".encode() * 6
    if number % 4 == 1:
        parts["patch"] = patch(number)
    if number % 6 == 0:
        facts: dict[str, Any] = {"commits": [{"sha": f"{number:040x}"}]}
        if number % 12 == 0:
            facts["pull_requests"] = [f"https://example.test/pull/{number}"]
        if number % 18 == 0:
            facts["checks"] = [{"name": "ci", "passed": number % 36 == 0}]
        parts["facts"] = json.dumps(facts).encode()
    if not parts:
        parts["journal"] = b"Nothing to report."
    files = {name: SimpleUploadedFile(f"{name}.jsonl", data) for name, data in parts.items()}
    post(agent, "/api/v1/sessions", {"metadata": json.dumps(metadata), **files}, expected=(200, 201, 422))
    if number % 50 == 40:  # more evidence comes later
        later = {"journal": SimpleUploadedFile("journal", f"Afterwards: {WORDS[number % 10]} holds.".encode() * 8)}
        post(agent, "/api/v1/sessions", {"metadata": json.dumps(metadata), **later}, expected=(200, 201, 422))


def transcript(number: int, now: datetime) -> bytes:
    """Return a short Claude Code log: tests that fail or pass, with or without a commit."""
    name = f"session-{number - 1 if number % 40 == 39 else number}"  # answered 422: another session's log
    steps = [("uv run pytest -q", "2 failed, 8 passed" if number % 4 == 3 else f"{number + 8} passed")]
    if number % 3 != 2:
        steps.append((f"git commit -am 'Mend part {number}'", f"[main {number + 0x4C1E000:07x}] Mend part {number}"))
    if number % 8 == 0:
        steps.append(("gh pr create --fill", f"https://github.com/example/site/pull/{1000 + number}"))
    turns: list[tuple[str, Any]] = [
        ("user", f"Mend the {WORDS[number % 10]}, part {number}. " + "Mind the tests. " * 350)
    ]
    for step, (command, output) in enumerate(steps):
        use = {"type": "tool_use", "id": f"t{step}", "name": "Bash", "input": {"command": command}}
        failed = "failed" in output
        turns += [("assistant", [use])]
        turns += [("user", [{"type": "tool_result", "tool_use_id": f"t{step}", "content": output, "is_error": failed}])]
    turns.append(("assistant", [{"type": "text", "text": f"Part {number} is mended."}]))
    lines = []
    for at, (role, content) in enumerate(turns):
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"m{at}", "type": "message", "model": "claude-sonnet-5-5"}
            message["usage"] = {"input_tokens": 900 + number, "output_tokens": 50}
        when = (now - timedelta(minutes=30) + timedelta(minutes=at)).isoformat().replace("+00:00", "Z")
        common = {"sessionId": name, "cwd": "/repo", "version": "2.1.0", "isSidechain": False}
        lines.append({"type": role, "uuid": f"{name}-{at}", "timestamp": when, "message": message, **common})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def patch(number: int) -> bytes:
    text = f"+# Look at the {WORDS[number % 10]} of part {number}\n" + "".join(
        f"+{WORDS[(number + line) % 10]} {WORDS[(number * 3 + line) % 10]} before release {number + line}\n"
        for line in range(number % 9)
    )
    head = f"diff --git a/tasks/{number}.md b/tasks/{number}.md\nnew file mode 100644\n--- /dev/null\n"
    return f"{head}+++ b/tasks/{number}.md\n@@ -0,0 +1,{text.count(chr(10))} @@\n{text}".encode()


def correct(olga: Any, number: int) -> None:
    """Grade the session on its page as a person does; undo every third of these grades."""
    from grading.models import Grade, Session

    session = Session.objects.filter(external_id=f"session-{number}").first()
    if session is None:
        return
    said = {"answer": "grade", "value": f".{number % 9 + 1}", "reason": "Read it."}
    post(olga, f"/review/{session.pk}/answer/", said)
    if number % 21 == 3:
        grade = Grade.objects.filter(session=session, source="human").latest("pk")
        post(olga, f"/grades/{grade.pk}/undo/", {"reason": "A slip."})


def do(olga: Any, act: str) -> None:
    from django.core.management import call_command

    from bandit.models import Arm
    from grading.models import Session

    arms = {arm.name: arm for arm in Arm.objects.filter(bandit__name="category")}
    page = f"/bandits/category/arms/{arms['news'].pk}/"
    if act == "merge":
        post(olga, page, {"do": "merge", "into": arms["content"].pk, "why": "One thing."})
    elif act == "part":
        post(olga, page, {"do": "part", "why": "Two things."})
    elif act == "erase":
        names = [f"session-{number}" for number in (1, 4, 64, 142)]
        call_command("erase_session", "bob", *names, yes=True, stdout=io.StringIO())
    elif act == "erase an agent":
        call_command("erase_agent", "dave", yes=True, stdout=io.StringIO())
    else:
        session = Session.objects.get(external_id="session-288")
        post(olga, f"/review/{session.pk}/answer/", {"answer": "exclude", "reason": "Not ours."})


def keep(out: Path) -> None:
    from django.db import connection
    from django.utils import timezone

    from tests.facts import digests, facts

    held = facts(timezone.now())
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
    about = {"commit": commit, "now": timezone.now().isoformat(), "digests": digests(held)}
    (STATE / "about.json").write_text(json.dumps(about, indent=1))
    (STATE / "facts.json").write_text(json.dumps(held))
    with sqlite3.connect(connection.settings_dict["NAME"]) as database:
        (STATE / "db.sql").write_text("\n".join(database.iterdump()))
    with tarfile.open(out, "w:xz") as archive:
        for name in ("about.json", "facts.json", "db.sql", "evidence"):
            archive.add(STATE / name, name, filter=plain)
    counts = {kind: len(rows) for kind, rows in held.items()}
    print(f"{counts}; {out} has {out.stat().st_size} bytes")


def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove owner and time from a file of the archive."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o700 if entry.isdir() else 0o600
    return entry


if __name__ == "__main__":
    main(Path(sys.argv[1]))
