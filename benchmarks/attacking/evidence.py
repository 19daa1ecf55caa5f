"""What sessions leave behind, true or invented: logs as Claude Code writes them, patches and journals."""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from benchmarks import scratch
from benchmarks.scratch import commit_hash

Call = tuple[str, str]  # command, output
# So long that a log is not taken for a stub.
TASK_CHARACTERS = 5_200
WORDS = (  # noqa: SIM905 - a list of words reads best as words
    "ledger retry guard window parser socket header backlog answer replay column bucket margin anchor signal record "
    "branch worker schedule cursor filter digest bundle filing border candle harbour meadow orchard pepper quarry river"
).split()


def commits(name: str, count: int) -> list[Call]:
    """So many commits, each with tests that passed before it."""
    calls = []
    for number in range(count):
        message = f"{name} step {number}"
        short_hash = commit_hash(f"{name}/{number}")[:7]
        calls.append(("uv run pytest -q", f"{3 + number} passed in 0.4s"))
        output = f"[main {short_hash}] {message}\n 2 files changed, {9 + number} insertions(+)"
        calls.append((f"git commit -am '{message}'", output))
    return calls


def merges(name: str, count: int) -> list[Call]:
    """So many pull requests, opened and merged."""
    first = int(commit_hash(name)[:6], 16)
    calls = []
    for number in range(first, first + count):
        url = f"https://github.com/acme/tool/pull/{number}"
        calls.append((f"gh pr create --title '{name} {number}' --body done", url))
        calls.append((f"gh pr merge {number} --squash", f"✓ Squashed and merged pull request #{number} ({name})"))
    return calls


def failures(name: str) -> list[Call]:
    """Work that came to nothing: the tests fail at the end."""
    failed = f"FAILED tests/test_{commit_hash(name)[:5]}.py::test_guard\n1 failed, 3 passed"
    return [
        ("uv run pytest -q", f"{failed} in 0.5s"),
        ("cat notes.txt", f"cat: notes.txt: No such file or directory ({name})"),
        ("uv run pytest -q", f"{failed} in 0.4s"),
    ]


def log(
    name: str,
    calls: Sequence[Call],
    ended_at: datetime,
    *,
    task: str = "Fix the guard and commit",
    last: str = "That is all.",
    extra: Iterable[dict[str, Any]] = (),
) -> bytes:
    """A log of this session alone: a task, each call with its result, and the last message."""
    turns = [("user", f"{task} ({name})\n" + prose(name, TASK_CHARACTERS)), *scratch.bash_turns(name, calls)]
    if last:
        turns.append(scratch.text_turn("assistant", last))
    return scratch.claude_log(name, turns, ended_at, seconds=4, extra=extra)


def api_error(name: str, ended_at: datetime) -> dict[str, Any]:
    """The record that Claude Code writes when the API has failed it."""
    text = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    return {
        "type": "assistant",
        "uuid": f"{name}-error",
        "timestamp": ended_at.isoformat(),
        "isApiErrorMessage": True,
        "message": {
            "role": "assistant",
            "id": f"{name}-error",
            "model": "<synthetic>",
            "content": [{"type": "text", "text": text}],
        },
    }


def patch(name: str, files: int = 12) -> bytes:
    """New small files of invented text in folders whose files count as work."""
    parts = []
    for number in range(files):
        folder = ("tasks", "knowledge", "posts/2026", "tasks")[number % 4]
        lines = [prose(f"{name}/{number}/{line}", 90) for line in range(4)]
        path = f"{folder}/{commit_hash(name)[:6]}-{number}.md"
        added = "".join(f"+{line}\n" for line in lines)
        parts.append(
            f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
            f"@@ -0,0 +1,{len(lines)} @@\n{added}"
        )
    return "".join(parts).encode()


def boastful_journal(name: str) -> bytes:
    """A journal that claims everything."""
    claims = [f"- Item {n} of {name}: committed, pushed, merged and verified; all tests passed." for n in range(12)]
    return "\n".join([f"# {name}", *claims, ""]).encode()


def prose(name: str, characters: int) -> str:
    """Words in an order that depends on the name alone."""
    chosen: list[str] = []
    length = number = 0
    while length < characters:
        digest = hashlib.sha256(f"{name}/{number}".encode()).digest()
        chosen += [WORDS[byte % len(WORDS)] for byte in digest]
        length, number = sum(len(word) + 1 for word in chosen), number + 1
    return " ".join(chosen)[:characters].strip()
