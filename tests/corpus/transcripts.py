"""A Claude Code log with whatever text one likes in the places where a log has text."""

import json

STARTED = "2026-03-31T11:00:00.000Z"


def log(session_id: str, *steps) -> bytes:
    """JSON lines of a session. A step is ("user", text), ("said", text) or (tool, arguments, output)."""
    lines = []
    for number, step in enumerate(steps):
        match step:
            case ("user", text):
                lines.append(_line(session_id, number, "user", text))
            case ("said", text):
                lines.append(_line(session_id, number, "assistant", [{"type": "text", "text": text}]))
            case (tool, arguments, output):
                call = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": arguments}
                result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
                lines.append(_line(session_id, number, "assistant", [call]))
                lines.append(_line(session_id, f"{number}r", "user", [result]))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _line(session_id, number, kind, content):
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "type": "message"}
    return {
        "type": kind,
        "uuid": f"u{number}",
        "timestamp": STARTED,
        "message": message,
        "sessionId": session_id,
        "cwd": "/repo",
        "version": "2.1.0",
        "isSidechain": False,
    }
