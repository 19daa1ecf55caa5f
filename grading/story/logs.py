"""Made-up logs in the formats of Claude Code and of Codex."""

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MODEL = "claude-sonnet-4-5"
VERSION, CODEX_VERSION = "2.1.14", "0.92.0"
FOLDER = "/srv/relay"
# A command, what it printed, and whether it failed.
Command = tuple[str, str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file that a session writes. `path` is below the folder of the session's log."""

    path: str
    text: str


def log(
    session_id: str,
    started_at: dt.datetime,
    task: str,
    steps: Iterable[Command | NewFile],
    last_words: str,
    *,
    model: str = MODEL,
    version: str = VERSION,
    folder: str = FOLDER,
) -> bytes:
    """A whole log of Claude Code, with one line a minute. The same arguments give the same log."""
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
            message |= {"id": f"msg_{session_id}_{number}", "type": "message", "model": model, "usage": usage}
        at = started_at + dt.timedelta(minutes=number)
        lines.append(
            {
                "type": role,
                "uuid": f"{session_id}-{number}",
                "timestamp": at.isoformat(),
                "sessionId": session_id,
                "cwd": folder,
                "version": version,
                "isSidechain": False,
                "message": message,
            }
        )

    add("user", task)
    for number, step in enumerate(steps):
        name = f"toolu_{session_id}_{number}"
        if isinstance(step, NewFile):
            path = f"{folder}/{step.path}"
            tool, call = "Write", {"file_path": path, "content": step.text}
            output, failed = f"File created successfully at: {path}", False
        else:
            tool, (command, output, failed) = "Bash", step
            call = {"command": command}
        add("assistant", [{"type": "tool_use", "id": name, "name": tool, "input": call}])
        add("user", [{"type": "tool_result", "tool_use_id": name, "content": output, "is_error": failed}])
    add("assistant", [{"type": "text", "text": last_words}])
    return _jsonl(lines)


def codex_log(
    session_id: str, started_at: dt.datetime, task: str, commands: Sequence[Command], last_words: str, *, model: str
) -> bytes:
    """A whole log of Codex, with one response a minute. The same arguments give the same log."""
    meta = {"id": session_id, "cwd": FOLDER, "source": "exec", "cli_version": CODEX_VERSION}
    lines: list[dict[str, Any]] = []

    def add(kind: str, payload: dict[str, Any], minute: int) -> None:
        at = (started_at + dt.timedelta(minutes=minute)).isoformat()
        lines.append({"timestamp": at, "type": kind, "payload": payload})

    def add_message(role: str, kind: str, text: str, minute: int) -> None:
        content = [{"type": kind, "text": text}]
        add("response_item", {"type": "message", "role": role, "content": content}, minute)

    def add_usage(responses: int) -> None:
        input_tokens = sum(11_000 + 1_900 * number for number in range(responses))
        total = {
            "input_tokens": input_tokens,
            "cached_input_tokens": input_tokens * 4 // 5,
            "output_tokens": 260 * responses,
        }
        add("event_msg", {"type": "token_count", "info": {"total_token_usage": total}}, responses)

    add("session_meta", {**meta, "timestamp": started_at.isoformat()}, 0)
    add("turn_context", {"model": model, "cwd": FOLDER}, 0)
    add_message("user", "input_text", task, 0)
    for number, (command, output, failed) in enumerate(commands, start=1):
        call = {"name": "exec_command", "call_id": f"call_{number}", "arguments": json.dumps({"cmd": command})}
        add("response_item", {"type": "function_call", **call}, number)
        printed = f"Process exited with code {int(failed)}\nOutput:\n{output}"
        add("response_item", {"type": "function_call_output", "call_id": f"call_{number}", "output": printed}, number)
        add_usage(number)
    add_message("assistant", "output_text", last_words, len(commands) + 1)
    add_usage(len(commands) + 1)
    return _jsonl(lines)


def _jsonl(lines: Iterable[object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
