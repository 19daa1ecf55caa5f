"""Logs as harnesses write them, handed in through the real intake."""

import json
from collections.abc import Iterable

from grading.models import Grade, Session, Settlement
from grading.reward import rewards
from grading.vocabulary import Source

Block = dict | str


def claude(session_id: str, *turns: tuple[str, Iterable[Block] | str], **fields) -> bytes:
    """A Claude Code log: (role, blocks or text) in order. `fields` go on the last line."""
    lines = []
    for number, (role, content) in enumerate(turns):
        message = {"role": role, "content": content if isinstance(content, str) else list(content)}
        if role == "assistant":
            usage = {"input_tokens": 10, "output_tokens": 5}
            message |= {"id": f"m{number}", "model": "claude-opus-4-6", "usage": usage}
        lines.append(
            {
                "type": role,
                "uuid": f"{session_id}-{number}",
                "isSidechain": False,
                "cwd": "/repo",
                "sessionId": session_id,
                "version": "2.1.100",
                "timestamp": f"2026-03-31T11:{number % 60:02d}:00.000Z",
                "message": message,
            }
        )
    lines[-1] |= fields
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def called(number: int, name: str, **arguments) -> dict:
    return {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}


def answered(number: int, text: str, *, failed: bool = False) -> dict:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": failed}


def calls(*made: tuple[str, dict, str], task: str = "Do the task. ", failed: Iterable[int] = ()) -> list:
    """Turns: a task, then each (tool, arguments, result)."""
    turns: list = [("user", task + "x" * 6_000)]
    for number, (name, arguments, text) in enumerate(made):
        turns.append(("assistant", [called(number, name, **arguments)]))
        turns.append(("user", [answered(number, text, failed=number in set(failed))]))
    return turns


def says(text: str) -> tuple[str, list[Block]]:
    return ("assistant", [{"type": "text", "text": text}])


def codex(session_id: str, *payloads: dict) -> bytes:
    """A Codex rollout with these response items."""
    meta = {"id": session_id, "cwd": "/repo", "cli_version": "0.120.0", "source": "cli"}
    lines = [{"type": "session_meta", "payload": meta}]
    task = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it. " + "x" * 6_000}]}
    lines += [{"type": "response_item", "payload": item} for item in (task, *payloads)]
    at = "2026-03-31T11:40:00.000Z"
    return "".join(json.dumps({"timestamp": at, **line}) + "\n" for line in lines).encode()


def trajectory(session: Session) -> Grade:
    return session.grades.filter(source=Source.TRAJECTORY).latest("pk")


def reward(session: Session) -> Settlement:
    return rewards.live(session)
