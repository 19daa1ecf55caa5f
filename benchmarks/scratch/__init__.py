"""What the benchmarks share: sizes, a throw-away site, session logs, processor times and tables."""

import argparse
import datetime as dt
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
# A migrated SQLite file that is copied instead of migrating a new one, which takes seconds.
TEMPLATE = "BENCHMARK_TEMPLATE"
YARDSTICK_ROUNDS, YARDSTICK_REPEATS = 100_000, 5
FIRST_CHARACTERS_OF_NUMBERS = "+-–.0123456789"


class Size(StrEnum):
    """How much is run. The figures of a smoke run mean nothing: it shows that the benchmark still runs."""

    FULL = "full"
    QUICK = "quick"
    SMOKE = "smoke"


def parser(doc: str, *, quick: str, smoke: str) -> argparse.ArgumentParser:
    """A benchmark's command-line options. `size` is a `Size`, FULL by default."""
    options = argparse.ArgumentParser(description=doc.splitlines()[0])
    sizes = options.add_mutually_exclusive_group()
    sizes.add_argument("--quick", dest="size", action="store_const", const=Size.QUICK, default=Size.FULL, help=quick)
    smoke = f"a few seconds, to see that it runs: {smoke}"
    sizes.add_argument("--smoke", dest="size", action="store_const", const=Size.SMOKE, help=smoke)
    return options


# Sites


def code(state: str | Path, *, database: str = "", **environment: str) -> None:
    """Set up Django in this process for a site whose state would be in this folder. Import the site's code after it."""
    os.environ.pop("DATABASE_URL", None)
    os.environ |= {
        "GRADINGSITE_STATE": str(state),
        "DJANGO_SETTINGS_MODULE": "gradingsite.settings",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "LOG_LEVEL": "ERROR",
        "ALLOWED_HOSTS": "localhost,127.0.0.1,testserver",  # the last is what django.test.Client sends
        **({"DATABASE_URL": database} if database else {}),
        **environment,
    }
    import django

    django.setup()


def site(state: str | Path, *, database: str = "", **environment: str) -> None:
    """Make a new site in this process: on SQLite in this folder, or on this empty database. It has no broker."""
    code(state, database=database, **environment)
    from django.core.management import call_command

    template = os.environ.get(TEMPLATE)
    if template and not database:
        shutil.copy(template, Path(state) / "db.sqlite3")
    else:
        call_command("migrate", verbosity=0)


def data_folder() -> Path:
    """The folder of real logs: GRADING_DATA_DIR, else `../shared/data` beside the checkout. It may not exist."""
    return Path(os.environ.get("GRADING_DATA_DIR") or ROOT.parent / "shared" / "data")


# Session logs

Turn = tuple[str, list[dict[str, Any]] | str]  # role, content


def commit_hash(name: str) -> str:
    """A commit hash that depends on the name alone."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def bash_turns(session_id: str, calls: Iterable[tuple[str, str]]) -> list[Turn]:
    """Two turns for each (command, output): the call and its result."""
    turns: list[Turn] = []
    for number, (command, output) in enumerate(calls):
        call_id = f"{session_id}-{number}"
        is_error = "FAILED" in output or "No such file" in output
        call = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": output, "is_error": is_error}
        turns += [("assistant", [call]), ("user", [result])]
    return turns


def claude_log(
    session_id: str,
    turns: Sequence[Turn],
    ended_at: dt.datetime,
    *,
    seconds: float = 10,
    extra: Iterable[dict[str, Any]] = (),
) -> bytes:
    """A Claude Code log of these turns, so many seconds apart, and then the `extra` records. No other session has a
    record with the same id.
    """
    records = []
    for number, (role, content) in enumerate(turns):
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            usage = {"input_tokens": 900, "output_tokens": 80}
            message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "type": "message", "usage": usage}
        at = ended_at - dt.timedelta(seconds=seconds * (len(turns) - number))
        records.append(
            {"type": role, "uuid": f"{session_id}-{number}", "timestamp": at.isoformat(), "message": message}
        )
    common = {"sessionId": session_id, "cwd": "/repo", "version": "2.1.0", "isSidechain": False}
    return "".join(json.dumps({**record, **common}) + "\n" for record in [*records, *extra]).encode()


def text_turn(role: str, text: str) -> Turn:
    return role, [{"type": "text", "text": text}]


# Processor times


def cpu_seconds(pids: Iterable[int]) -> float:
    """The user and system time that these processes have used, from /proc. A process that has ended counts as 0."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def process_tree(pid: int) -> list[int]:
    """A process and all its descendants; none for one that has ended."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(descendant for child in children for descendant in process_tree(int(child)))]


def yardstick_seconds() -> float:
    """Processor seconds of a fixed piece of pure Python, the least of several.

    Times divided by it can be compared between machines, and between hours of a machine that others use too.
    """
    times = []
    for _ in range(YARDSTICK_REPEATS):
        start = time.thread_time()
        _yardstick()
        times.append(time.thread_time() - start)
    return min(times)


def _yardstick() -> int:
    counts: dict[str, int] = {}
    total = 0
    for number in range(YARDSTICK_ROUNDS):
        word = f"word {number * 7919 % 1009}".split()[1]
        counts[word] = counts.get(word, 0) + len(word)
        total += (number ^ len(counts)) & 1
    return total + sum(map(len, sorted(counts)))


# Tables


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as text. Columns of numbers are aligned to the right."""
    lines = [list(headings), *([str(value) for value in row] for row in rows)]
    columns = []
    for column in zip(*lines, strict=True):
        width = max(map(len, column))
        is_numeric = all(cell[:1] in FIRST_CHARACTERS_OF_NUMBERS for cell in column[1:])
        columns.append([cell.rjust(width) if is_numeric else cell.ljust(width) for cell in column])
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent; a dash if it is None."""
    return "–" if share is None else f"{share:.{digits}%}"
