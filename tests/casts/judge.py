"""What the tests of the judge share: a simulator that the site uses as its judge, and sessions with evidence."""

import io
import json

from grading import judging
from grading.evidence import store
from grading.judging.allowance import budget
from grading.models import Evidence, JudgeAttempt
from tests import cast

KEY = "sk-test"


def use(settings, sim) -> None:
    """Make `sim` the site's judge, with waits that tests can afford."""
    settings.ANTHROPIC_API_KEY = KEY
    settings.ANTHROPIC_BASE_URL = sim.url
    settings.JUDGE_TIMEOUT = 20
    settings.JUDGE_BACKOFF_SECONDS = 0.01
    settings.JUDGE_PROBE_SECONDS = 60


def in_batches(settings) -> None:
    """The backlog goes in batches, from two jobs on, and each is asked after at once."""
    settings.JUDGE_BATCH_LEAST = 2
    settings.JUDGE_BATCH_POLL_SECONDS = 0
    budget.set_policy(by=None, use_batches=True, repeat_share=0, second_share=0)


def give(session, kind, data: bytes, filename: str = "") -> Evidence:
    stored = store.store(io.BytesIO(data))
    return Evidence.objects.create(
        session=session, kind=kind, sha256=stored.sha256, size=stored.size, filename=filename
    )


def transcript(session) -> bytes:
    """A short Claude Code session: asked to fix a bug, edits, tests, commits, says so."""
    common = {"sessionId": session.external_id, "cwd": "/repo", "version": "2.1.0", "isSidechain": False}

    def line(number, kind, content):
        message = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "type": "message"}
        at = f"2026-03-31T11:{number:02d}:00.000Z"
        return {"type": kind, "uuid": f"{session.external_id}-{number}", "timestamp": at, "message": message, **common}

    def call(number, command):
        return line(
            number,
            "assistant",
            [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}],
        )

    def result(number, output):
        return line(number + 1, "user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": output}])

    lines = [
        line(1, "user", "Fix the retry guard and commit"),
        call(2, "uv run pytest -q"),
        result(2, "8 passed"),
        call(4, "git commit -am 'send a failed call once'"),
        result(4, "[main 4c1e9b2] send a failed call once"),
        line(6, "assistant", [{"type": "text", "text": "The guard is fixed and committed."}]),
    ]
    return "\n".join(json.dumps(entry) for entry in lines).encode() + b"\n"


def session(*, with_transcript: bool = True, patch: bytes = b"", **fields):
    """A session with something to judge."""
    made = cast.session(**fields)
    if with_transcript:
        give(made, "transcript", transcript(made), f"{made.external_id}.jsonl")
    give(made, "journal", f"Submitted PR 619. {made.external_id}".encode())
    if patch:
        give(made, "patch", patch)
    return made


def job(**fields):
    """An open job for a session with evidence."""
    made = judging.enqueue(session(**fields))
    assert made is not None
    return made


def attempts(job) -> list[JudgeAttempt]:
    return list(JudgeAttempt.objects.filter(job=job))
