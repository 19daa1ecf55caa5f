"""Made-up logs in the format of Claude Code."""

import datetime as dt
import json
from collections.abc import Iterable
from typing import Any

MODEL = "claude-sonnet-4-5"
VERSION = "2.1.14"
# A command, what it printed, and whether it failed.
Command = tuple[str, str, bool]


def log(
    session_id: str,
    started_at: dt.datetime,
    task: str,
    commands: Iterable[Command],
    last_words: str,
    *,
    version: str = VERSION,
) -> bytes:
    """A session's whole log, with one line a minute. The same arguments give the same log."""
    lines: list[dict[str, Any]] = []

    def add(role: str, content: object) -> None:
        number = len(lines) + 1
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            usage = {
                "input_tokens": 8,
                "cache_read_input_tokens": 14_000 + 1_300 * number,
                "cache_creation_input_tokens": 1_300,
                "output_tokens": 120 + len(json.dumps(content)),
            }
            message |= {"id": f"msg_{session_id}_{number}", "type": "message", "model": MODEL, "usage": usage}
        at = started_at + dt.timedelta(minutes=number)
        lines.append(
            {
                "type": role,
                "uuid": f"{session_id}-{number}",
                "timestamp": at.isoformat(),
                "sessionId": session_id,
                "cwd": "/srv/work",
                "version": version,
                "isSidechain": False,
                "message": message,
            }
        )

    add("user", task)
    for number, (command, output, failed) in enumerate(commands):
        name = f"toolu_{session_id}_{number}"
        add("assistant", [{"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}])
        add("user", [{"type": "tool_result", "tool_use_id": name, "content": output, "is_error": failed}])
    add("assistant", [{"type": "text", "text": last_words}])
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
