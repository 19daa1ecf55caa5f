"""Short sessions to be judged, no two alike: prose, code, logs and another script, so that no two have the same
number of characters to a token.
"""

import datetime as dt
import hashlib
import json
from random import Random

WORDS = (
    "the guard retries a failed call once and then tells the caller why it was refused so that nothing is lost when "
    "a worker ends before its lease does the migration adds an index for pending jobs and the page shows how many "
    "wait which tests still fail after reading configuration from environment variables instead of a local file"
)
NAMES = ("retry", "lease", "quota", "parser", "ledger", "intake", "digest", "bucket", "settle", "render")
UKRAINIAN = "тести проходять після виправлення черги завдань і сторінка показує скільки роботи ще чекає на оцінку"
BEGAN = dt.datetime(2026, 3, 31, 11, tzinfo=dt.UTC)
ENDED = BEGAN + dt.timedelta(minutes=40)
# Of a session's outputs, so many are of its own kind.
ALIKE = 0.8


def prose(rng: Random) -> str:
    return " ".join(rng.choices(WORDS.split(), k=rng.randrange(30, 150))).capitalize() + "."


def code(rng: Random) -> str:
    lines = [
        f"def {rng.choice(NAMES)}_{rng.choice(NAMES)}(x: int, *, n={rng.randrange(99)}) -> dict[str, float]:"
        f"\n    return {{k[{rng.randrange(9)}]: (v / {rng.random():.3f}) for k, v in x.items() if v != n}}"
        for _ in range(rng.randrange(3, 14))
    ]
    return "\n".join(lines)


def log(rng: Random) -> str:
    return "\n".join(_log_line(rng) for _ in range(rng.randrange(4, 18)))


def _log_line(rng: Random) -> str:
    at = f"2026-03-31T11:{rng.randrange(60):02d}:{rng.randrange(60):02d}.{rng.randrange(1000):03d}Z"
    digest = hashlib.sha256(rng.randbytes(4)).hexdigest()[:24]
    return f"{at} 10.0.{rng.randrange(256)}.{rng.randrange(256)} {digest} {rng.randrange(10**6)} ok"


def ukrainian(rng: Random) -> str:
    return " ".join(rng.choices(UKRAINIAN.split(), k=rng.randrange(15, 70)))


OUTPUTS = (prose, code, log, ukrainian)


def transcript(name: str, rng: Random) -> bytes:
    """A Claude Code log: asked, some commands with their output of mostly one kind, a closing message."""
    mostly = rng.choice(OUTPUTS)
    lines = [_line(name, 0, "user", prose(rng))]
    for number in range(1, rng.randrange(2, 7)):
        output = (mostly if rng.random() < ALIKE else rng.choice(OUTPUTS))(rng)
        command = {"command": f"uv run {rng.choice(NAMES)} --{rng.choice(NAMES)} {rng.randrange(1000)}"}
        used = {"type": "tool_use", "id": f"{name}-t{number}", "name": "Bash", "input": command}
        got = {"type": "tool_result", "tool_use_id": f"{name}-t{number}", "content": output}
        lines += [_line(name, 2 * number, "assistant", [used]), _line(name, 2 * number + 1, "user", [got])]
    lines.append(_line(name, 50, "assistant", [{"type": "text", "text": prose(rng)}]))
    return "\n".join(lines).encode() + b"\n"


def journal(name: str, rng: Random) -> bytes:
    return f"# {name}\n\n{prose(rng)}\n".encode()


def _line(name: str, number: int, kind: str, content: object) -> str:
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "type": "message"}
    at = (BEGAN + dt.timedelta(seconds=40 * number)).isoformat()
    common = {"sessionId": name, "cwd": "/repo", "version": "2.1.0", "isSidechain": False}
    return json.dumps({"type": kind, "uuid": f"{name}-{number}", "timestamp": at, "message": message, **common})
