"""What sessions leave behind, true or made up: logs as Claude Code writes them, patches, journals."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

Call = tuple[str, str]
WORDS = (  # noqa: SIM905 - a list of words reads best as words
    "ledger retry guard window parser socket header backlog answer replay column bucket margin anchor signal record "
    "branch worker schedule cursor filter digest bundle filing border candle harbour meadow orchard pepper quarry river"
).split()


def hash_of(name: str) -> str:
    """A commit's hash that is this name's alone."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def commits(name: str, count: int) -> list[Call]:
    """So many commits, each with tests that passed before it."""
    calls = []
    for number in range(count):
        short = hash_of(f"{name}/{number}")[:7]
        calls.append(("uv run pytest -q", f"{3 + number} passed in 0.4s"))
        said = f"{name} step {number}"
        changed = f"[main {short}] {said}\n 2 files changed, {9 + number} insertions(+)"
        calls.append((f"git commit -am '{said}'", changed))
    return calls


def merges(name: str, count: int) -> list[Call]:
    """So many pull requests opened and merged."""
    first = int(hash_of(name)[:6], 16)
    calls = []
    for number in range(first, first + count):
        url = f"https://github.com/acme/tool/pull/{number}"
        calls.append((f"gh pr create --title '{name} {number}' --body done", url))
        calls.append((f"gh pr merge {number} --squash", f"✓ Squashed and merged pull request #{number} ({name})"))
    return calls


def failures(name: str) -> list[Call]:
    """Work that came to nothing: the tests fail at the end."""
    return [
        ("uv run pytest -q", f"FAILED tests/test_{hash_of(name)[:5]}.py::test_guard\n1 failed, 3 passed in 0.5s"),
        ("cat notes.txt", f"cat: notes.txt: No such file or directory ({name})"),
        ("uv run pytest -q", f"FAILED tests/test_{hash_of(name)[:5]}.py::test_guard\n1 failed, 3 passed in 0.4s"),
    ]


def log(
    name: str,
    calls: Sequence[Call],
    ended_at: datetime,
    *,
    task: str = "Fix the guard and commit",
    last: str = "That is all.",
    extra: Iterable[dict[str, object]] = (),
) -> bytes:
    """A log whose records are this session's alone: a task, each call with its result, and the last words."""
    # So long that nobody takes it for a stub.
    said: list[tuple[str, object]] = [("user", f"{task} ({name})\n" + prose(name, 5_200))]
    for number, (command, result) in enumerate(calls):
        call = {"type": "tool_use", "id": f"{name}-{number}", "name": "Bash", "input": {"command": command}}
        answer = {"type": "tool_result", "tool_use_id": f"{name}-{number}", "content": result}
        answer["is_error"] = "FAILED" in result or "No such file" in result
        said += [("assistant", [call]), ("user", [answer])]
    if last:
        said.append(("assistant", [{"type": "text", "text": last}]))
    lines = []
    for number, (role, content) in enumerate(said):
        message: dict[str, object] = {"role": role, "content": content}
        if role == "assistant":
            usage = {"input_tokens": 900, "output_tokens": 80}
            message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "type": "message", "usage": usage}
        at = ended_at - timedelta(seconds=4 * (len(said) - number))
        lines.append({"type": role, "uuid": f"{name}-{number}", "timestamp": at.isoformat(), "message": message})
    common = {"sessionId": name, "cwd": "/repo", "version": "2.1.0", "isSidechain": False}
    return "".join(json.dumps({**line, **common}) + "\n" for line in [*lines, *extra]).encode()


def api_error(name: str, ended_at: datetime) -> dict[str, object]:
    """The record that Claude Code writes where the API has failed it."""
    text = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    message = {
        "role": "assistant",
        "id": f"{name}-error",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": text}],
    }
    return {
        "type": "assistant",
        "uuid": f"{name}-error",
        "timestamp": ended_at.isoformat(),
        "isApiErrorMessage": True,
        "message": message,
    }


def patch(name: str, files: int = 12) -> bytes:
    """New small files of made-up text in the folders that count."""
    parts = []
    for number in range(files):
        folder = ("tasks", "knowledge", "posts/2026", "tasks")[number % 4]
        lines = [prose(f"{name}/{number}/{line}", 90) for line in range(4)]
        path = f"{folder}/{hash_of(name)[:6]}-{number}.md"
        added = "".join(f"+{line}\n" for line in lines)
        parts.append(
            f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
            f"@@ -0,0 +1,{len(lines)} @@\n{added}"
        )
    return "".join(parts).encode()


def boast(name: str) -> bytes:
    """A journal that claims everything."""
    claims = [
        f"- Item {number} of {name}: committed, pushed, merged and verified; all tests passed." for number in range(12)
    ]
    return "\n".join([f"# {name}", *claims, ""]).encode()


def prose(name: str, characters: int) -> str:
    """Words in an order that is this name's alone."""
    found: list[str] = []
    length = number = 0
    while length < characters:
        digest = hashlib.sha256(f"{name}/{number}".encode()).digest()
        found += [WORDS[byte % len(WORDS)] for byte in digest]
        length, number = sum(len(word) + 1 for word in found), number + 1
    return " ".join(found)[:characters].strip()
