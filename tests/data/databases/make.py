"""Make one of the databases beside this file, from the code of the folder in which it is run.

    git worktree add --detach /tmp/then COMMIT
    cd /tmp/then && path/to/.venv/bin/python path/to/tests/data/databases/make.py path/to/grading-NNNN.tar.xz

NNNN is the last migration of `grading` there; the commit is noted inside. What is in it came about by that code alone:
by its samples, its simulated judge, its tests' world, its API and its pages. Only what stays the same from version to
version is used here: commands, tasks, addresses, and `tests.world`. The tests find every file that lies here.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))
STATE = Path(tempfile.mkdtemp(prefix="gradingsite-then-"))
TABLES_LEFT_OUT = ("django_session",)
END = "2026-03-30T{:02d}:00:00+00:00"
LESSONS = ["ask-first", "read-twice"]
PATCH = "--- /dev/null\n+++ b/tasks/new.md\n@@ -0,0 +1,2 @@\n+# Ask before each retry\n+{}\n".format(
    "Many words. " * 30
)
FACTS = {
    "commits": [{"sha": "4c1e9b2" + "0" * 33}],
    "pull_requests": ["https://example.test/pull/7"],
}


def main(out: str) -> None:
    from gradingsite import broker

    ours = broker.prepare(STATE / "broker")
    os.environ |= {"GRADINGSITE_STATE": str(STATE), "REDIS_URL": ours.url, "SECRET_KEY": "tests"}
    os.environ |= {"DJANGO_SETTINGS_MODULE": "gradingsite.settings", "LOG_LEVEL": "WARNING"}
    os.environ["ALLOWED_HOSTS"] = "testserver"  # what django.test.Client sends
    (STATE / "chance.key").write_bytes(bytes(range(32)))
    redis = subprocess.Popen(broker.command(ours, STATE / "broker"))
    try:
        ours.wait_until_up()
        set_up()
        live(Path(out))
    finally:
        redis.terminate()
    # Not `sys.exit`: a judge's call still hangs in a thread.
    os._exit(0)


def set_up() -> None:
    import django
    from django.conf import settings
    from django.core.management import call_command

    django.setup()
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    call_command("migrate", verbosity=0)


def live(out: Path) -> None:
    import time_machine
    from django.conf import settings
    from django.core.management import call_command

    from grading.models import JudgeJob, Session
    from grading.simulator import Simulator
    from tests import world

    simulator = Simulator()
    simulator.start()
    settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-test", simulator.url
    settings.JUDGE_BACKOFF_SECONDS = 0.01
    bob = caller("bob")
    teach()
    # Some of them days before: of decisions that wait for their sessions, an agent may have eight that are of one day.
    for day, numbers in ((28, range(5)), (30, range(5, 10))):
        with time_machine.travel(f"2026-03-{day}T06:30:00+00:00"):
            for number in numbers:
                choose(bob, f"before-{number}")
    time_machine.travel("2026-03-31T18:00:00+00:00").start()
    call_command("load_samples", verbosity=0)
    run("judge")
    for number in range(6):
        submit(bob, number)
    run("judge")
    simulator.mode = "garbage"
    submit(bob, 6)
    run("judge")
    simulator.mode = "hang"
    submit(bob, 7)
    threading.Thread(target=run, args=("judge",), daemon=True).start()
    wait_for(lambda: JudgeJob.objects.filter(state="leased").exists())
    submit(bob, 8, outcome="infrastructure", outcome_reason="the runner was gone")
    submit(bob, 9)
    act(world.make())
    run("sweep", "prioritise", "at_night", "name_models", "notices")
    keep(out, bob)
    print(Session.objects.count(), "sessions;", out, out.stat().st_size, "bytes")


def run(*tasks: str) -> None:
    """What a worker does, of these tasks those that there were."""
    from gradingsite.celery import app

    app.loader.import_default_modules()
    for name in tasks:
        if task := app.tasks.get(f"grading.tasks.{name}"):
            task()


def caller(agent: str) -> Any:
    from django.core.management import call_command
    from django.test import Client

    with (STATE / "token").open("w") as file:
        call_command("issue_token", agent, stdout=file)
    return Client(headers={"Authorization": f"Bearer {(STATE / 'token').read_text().strip()}"})


def teach() -> None:
    """Lessons to draw, where sessions are given some already."""
    from bandit.models import Arm, Bandit

    for bandit in Bandit.objects.filter(name="lesson"):
        for name in LESSONS:
            Arm.objects.create(bandit=bandit, name=name)


def choose(bob: Any, decision: str) -> None:
    """A selection, and a draw of lessons where there is one already."""
    for address, asked in (
        ("selections", {"decision_id": decision, "bandit": "category"}),
        ("assignments", {"decision_id": f"{decision}-lessons", "lessons": LESSONS}),
    ):
        answer = bob.post(f"/api/v1/{address}", json.dumps(asked), content_type="application/json")
        assert answer.status_code in {200, 404}, answer.content


def submit(bob: Any, number: int, **said: Any) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile

    from bandit.models import Bandit

    metadata = {
        "session_id": f"kept-{number}",
        "category": ("code", "infra", "triage", "news")[number % 4],
        "harness": "claude-code",
        "title": f"Mend the retry guard, part {number}",
        "ended_at": END.format(8 + number),
        "selection_id": f"before-{number}" if number % 3 else None,
        **said,
    }
    if Bandit.objects.filter(name="lesson").exists():
        metadata["lessons_decision_id"] = f"before-{number}-lessons"
    parts = {"transcript": transcript(number), "journal": f"Merged the fix; part {number} is done.".encode()}
    if number % 2:
        parts["patch"] = PATCH.encode()
    if number % 3 == 0:
        parts["facts"] = json.dumps({"commits": [{"sha": f"{number:040x}"}]} if number else FACTS).encode()
    files = {name: SimpleUploadedFile(name, data) for name, data in parts.items()}
    answer = bob.post("/api/v1/sessions", {"metadata": json.dumps(metadata), **files})
    assert answer.status_code == 201, answer.content


def transcript(number: int) -> bytes:
    """A short Claude Code log."""
    lines = []
    turns: list[tuple[str, Any]] = [("user", "Fix the retry guard and commit. " + "Mind the tests. " * 400)]
    for step, (command, output) in enumerate(
        [("uv run pytest -q", "1 failed"), ("uv run pytest -q", "8 passed"), ("git commit -am x", "[main 4c1e9b2] x")]
    ):
        use = {"type": "tool_use", "id": f"t{step}", "name": "Bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": output, "is_error": "failed" in output}
        turns += [("assistant", [use]), ("user", [result])]
    turns.append(("assistant", [{"type": "text", "text": f"Part {number} is fixed and committed."}]))
    for at, (role, content) in enumerate(turns):
        message = {"role": role, "content": content}
        if role == "assistant":
            usage = {"input_tokens": 10, "output_tokens": 5}
            message |= {"id": f"m{at}", "type": "message", "model": "claude-sonnet-4-5", "usage": usage}
        common = {"sessionId": f"kept-{number}", "cwd": "/repo", "version": "2.1.0", "isSidechain": False}
        when = END.format(7 + number).replace(":00:00", f":{at:02d}:00")
        lines.append({"type": role, "uuid": f"kept-{number}-{at}", "timestamp": when, "message": message, **common})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def act(_rows: Any) -> None:
    """What people do on pages: a correction and its undoing, an exclusion, a flag, a comment."""
    from django.contrib.auth.models import User
    from django.test import Client

    from grading.models import Grade, Session

    olga = Client()
    olga.force_login(User.objects.get(username="olga"))
    kept = list(Session.objects.filter(external_id__startswith="kept-").order_by("pk"))
    why = {"reason": "seen it"}
    for session, answer in zip(kept, ("grade", "exclude", "grade", "accept"), strict=False):
        post(olga, "review_answer", session.pk, {**why, "answer": answer, "value": ".9"})
    post(olga, "review_flag", kept[4].pk, why)
    post(olga, "review_comment", kept[4].pk, {**why, "text": "looks odd"})
    undone = Grade.objects.filter(session=kept[2], source="human").latest("pk")
    post(olga, "undo", undone.pk, why)


def post(client: Any, page: str, about: int, data: dict[str, str]) -> None:
    from django.urls import reverse

    answer = client.post(reverse(f"admin:{page}", args=[about]), data)
    assert answer.status_code in {200, 302}, (page, answer.status_code)


def wait_for(condition: Any, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.1)


def keep(out: Path, bob: Any) -> None:
    """The database as SQL, the evidence, and what the API said at that moment."""
    import sqlite3

    from django.apps import apps
    from django.db import connection
    from django.utils import timezone

    now = timezone.now()
    names = apps.get_model("bandit", "Bandit").objects.order_by("pk").values_list("name", flat=True)
    said = {
        "commit": subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip(),
        "now": now.isoformat(),
        "bandits": {name: bob.get(f"/api/v1/bandits/{name}").json() for name in names},
    }
    (STATE / "said.json").write_text(json.dumps(said, indent=1))
    with sqlite3.connect(connection.settings_dict["NAME"]) as database:
        lines = [
            line
            for line in database.iterdump()
            if not line.startswith(tuple(f'INSERT INTO "{name}"' for name in TABLES_LEFT_OUT))
        ]
    (STATE / "db.sql").write_text("\n".join(lines))
    with tarfile.open(out, "w:xz") as archive:
        for name in ("said.json", "db.sql", "evidence"):
            archive.add(STATE / name, name, filter=plain)


def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the names and times of who made it."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o700 if entry.isdir() else 0o600
    return entry


if __name__ == "__main__":
    main(sys.argv[1])
