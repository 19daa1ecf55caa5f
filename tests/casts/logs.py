"""Small logs as the harnesses write them, for tests of what comes after the parsers."""

import json
from collections.abc import Iterator
from random import Random

COMMIT = ("git commit -am 'Fix it'", "[main 1a2b3c4] Fix it\n 1 file changed, 2 insertions(+)")
OUTPUT = "the guard retries a failed call once and tells the caller why it was refused so that nothing is ever lost"


def claude(
    session_id: str,
    *calls: tuple[str, str],
    task: str = "",
    padding: int = 6_000,
    api_error: str = "",
    said: str = "Done.",
) -> bytes:
    """A Claude Code log: a task, then each (shell command, its output), then a last message or an API error."""
    task = task or "Do the task. " + "x" * padding
    lines = [_line(session_id, "user", "u0", {"role": "user", "content": task})]
    for number, (command, output) in enumerate(calls):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": False}
        lines.append(_line(session_id, "assistant", f"a{number}", _reply([use], f"m{number}")))
        lines.append(_line(session_id, "user", f"r{number}", {"role": "user", "content": [result]}))
    if api_error:
        reply = {**_reply([{"type": "text", "text": api_error}], "err"), "model": "<synthetic>"}
        lines.append(_line(session_id, "assistant", "end", reply, isApiErrorMessage=True))
    elif said:
        lines.append(_line(session_id, "assistant", "end", _reply([{"type": "text", "text": said}], "end")))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def worked(session_id: str) -> bytes:
    """A short Claude Code session: asked to fix a guard, it tests, commits and reports."""
    tested = ("uv run pytest -q", "8 passed")
    committed = ("git commit -am 'send a failed call once'", "[main 4c1e9b2] send a failed call once")
    task = "Fix the retry guard and commit"
    return claude(session_id, tested, committed, task=task, said="The guard is fixed and committed.")


def gptme(*turns: tuple[str, str]) -> bytes:
    """A gptme log, which does not say whose it is."""
    lines = [
        {"role": role, "content": content, "timestamp": f"2026-03-31T11:{minute:02d}:00"}
        for minute, (role, content) in enumerate(turns)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def long_claude(events: int, output_lines: int) -> Iterator[bytes]:
    """The lines of a long Claude Code log: a task, then commands, each with this many lines of random output."""
    random, words = Random(1), OUTPUT.split()
    yield _record(0, "user", "Make the guard safe.")
    for number in range(1, events // 2):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"make check-{number}"}}
        output = "\n".join(" ".join(random.choices(words, k=12)) for _ in range(output_lines))
        last_line = f"{'Prüfsumme' if number % 1000 == 0 else 'ok'} {number}"
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{output}\n{last_line}"}
        yield _record(2 * number, "assistant", [use])
        yield _record(2 * number + 1, "user", [result])
    yield _record(events, "assistant", [{"type": "text", "text": "Done."}])


def _record(number: int, kind: str, content: object) -> bytes:
    at = f"2026-03-31T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
    message = {"role": kind, "content": content}
    record = {"type": kind, "uuid": f"u{number}", "sessionId": "long", "timestamp": at, "message": message}
    return json.dumps(record).encode() + b"\n"


def _reply(content: list[dict], message_id: str) -> dict:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {"id": message_id, "role": "assistant", "model": "claude-opus-4-6", "content": content, "usage": usage}


def _line(session_id: str, kind: str, uuid: str, message: dict, **fields) -> dict:
    return {
        "type": kind,
        "uuid": f"{session_id}-{uuid}",
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/home/bob/project",
        "sessionId": session_id,
        "version": "2.1.100",
        "gitBranch": "main",
        "timestamp": "2026-03-31T11:40:00.000Z",
        "message": message,
        **fields,
    }
