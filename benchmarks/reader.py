"""How fast are real logs read and imported, and how much memory does reading a long one take?

The logs are Claude Code's of GRADING_DATA_DIR, else of `../shared/data` beside the checkout, else the few in the
repository. Megabytes are 10⁶ bytes, and speeds are by processor time, the best of several rounds in which everything
that is compared takes turns.

`mb_per_s`: all that the site derives from a log's bytes (`grading.evidence.receiving.parse`): events, records, usage,
traits and signals. `events_mb_per_s`: the events alone. `limit_mb_per_s`: decoding each line as JSON and nothing else,
with msgspec where it is installed, else with `json`; `ratio` is `mb_per_s` divided by it. `peer_mb_per_s`: signals by
`gptme_sessions.extract_from_path`, null where that package is not installed; `peer_ratio` is `mb_per_s` divided by it.

`peak_mb`: how much more memory a process takes at most while it reads a log of 100 MB, made of the same logs' records,
than after it has read a short one. `sessions_per_s`: logs that `manage.py import_sessions` takes in a second on two
processors, by the clock and without the command's start; `import_cpu_ms`: its processor time for one of them, which
says more on a machine that does other things as well.

    python benchmarks/reader.py [--quick | --smoke]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import facts, scratch, start
from benchmarks.scratch import Size

# Rounds of reading, megabytes of the long log, and logs imported.
SIZES = {Size.FULL: (7, 100, 300), Size.QUICK: (3, 100, 60), Size.SMOKE: (1, 2, 2)}
MEGABYTE = 1_000_000
PEER = "gptme_sessions"
ID = re.compile(rb'"(?:uuid|parentUuid|id|tool_use_id)" ?: ?"')
SESSION_ID = re.compile(rb'"sessionId" ?: ?"[^"]*"')


def main() -> None:
    parser = scratch.parser(__doc__, quick="fewer rounds and imports", smoke="a few small logs")
    size = parser.parse_args().size
    rounds, megabytes, imports = SIZES[size]
    real = facts.real_logs(Size.SMOKE if size is Size.SMOKE else Size.FULL)
    logs = [log.path for log in real if log.harness == "claude-code"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scratch.code(folder / "code")
        readers = available_readers()
        speeds = measure_speeds(logs, readers, rounds)
        peak = measure_peak(logs, folder / "long.jsonl", megabytes * MEGABYTE)
        sessions_per_s, import_cpu_ms = measure_import(logs, folder, imports)
    print(f"{len(logs)} logs of {sum(path.stat().st_size for path in logs) / MEGABYTE:.1f} MB")
    print(scratch.table(["reader", "MB/s"], [[name, round(speed, 1)] for name, speed in speeds.items()]))
    ours, limit, peer = speeds["site"], speeds["limit"], speeds.get("peer")
    print(
        json.dumps(
            {
                "mb_per_s": round(ours, 1),
                "events_mb_per_s": round(speeds["events"], 1),
                "limit_mb_per_s": round(limit, 1),
                "ratio": round(ours / limit, 4),
                "peer_mb_per_s": peer and round(peer, 1),
                "peer_ratio": peer and round(ours / peer, 3),
                "peak_mb": round(peak, 1),
                "sessions_per_s": round(sessions_per_s, 1),
                "import_cpu_ms": round(import_cpu_ms, 1),
                "yardstick_ms": round(scratch.yardstick_seconds() * 1000, 2),
            }
        )
    )


# Speed


def available_readers() -> dict[str, Callable[[Path], object]]:
    """What is compared, by name: each reads the log at a path."""
    from grading import formats
    from grading.evidence import receiving

    def read_all(path: Path) -> None:
        with path.open("rb") as stream:
            receiving.parse(stream, path.name)

    def read_events(path: Path) -> None:
        with path.open("rb") as stream:
            for _batch in formats.read(stream, path.name).batches():
                pass

    decode = import_module("msgspec.json").decode if find_spec("msgspec") else json.loads

    def decode_lines(path: Path) -> None:
        with path.open("rb") as stream:
            for line in stream:
                with suppress(ValueError):  # a line of two objects, say
                    decode(line)

    readers: dict[str, Callable[[Path], object]] = {"site": read_all, "events": read_events, "limit": decode_lines}
    if find_spec(PEER):
        readers["peer"] = import_module(PEER).extract_from_path
    return readers


def measure_speeds(logs: Sequence[Path], readers: dict[str, Callable[[Path], object]], rounds: int) -> dict[str, float]:
    """Megabytes a second of each reader, in its best round."""
    total = sum(path.stat().st_size for path in logs)
    best = dict.fromkeys(readers, float("inf"))
    for _round in range(rounds):
        for name, read in readers.items():
            started_at = time.process_time()
            for path in logs:
                read(path)
            best[name] = min(best[name], time.process_time() - started_at)
    return {name: total / MEGABYTE / seconds for name, seconds in best.items()}


# Memory


def measure_peak(logs: Sequence[Path], long_log: Path, size: int) -> float:
    """Megabytes that a new process needs at most for a log of that many bytes, beside what it needs for a short one."""
    with long_log.open("wb") as stream:
        for number, path in enumerate(cycle(logs)):
            stream.write(renamed(path.read_bytes(), "long", f"{number}-"))
            if stream.tell() >= size:
                break
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(peak_of, str(min(logs, key=lambda path: path.stat().st_size)), str(long_log)).result()


def peak_of(short_log: str, long_log: str) -> float:
    """The same, in this process."""
    scratch.code(Path(long_log).parent / "peak")
    read = available_readers()["site"]
    read(Path(short_log))
    Path("/proc/self/clear_refs").write_text("5")  # the peak becomes what is in use now
    before = resident_megabytes("VmHWM")
    read(Path(long_log))
    return resident_megabytes("VmHWM") - before


def resident_megabytes(field: str) -> float:
    """A figure of this process's memory in /proc/self/status."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024 / MEGABYTE


def renamed(log: bytes, session: str, prefix: str) -> bytes:
    """A log of that session whose records and messages have other ids: the old ones after a prefix."""
    other_session = b'"sessionId":' + json.dumps(session).encode()
    return ID.sub(lambda match: match[0] + prefix.encode(), SESSION_ID.sub(other_session, log))


# Importing


def measure_import(logs: Sequence[Path], folder: Path, count: int) -> tuple[float, float]:
    """(logs imported in a second by the clock, milliseconds of processor time for one), without the command's start.

    Each log is a session of its own.
    """
    log_folder = folder / "logs"
    log_folder.mkdir()
    for number, path in zip(range(count), cycle(logs)):
        name = f"session-{number}"
        (log_folder / f"{name}.jsonl").write_bytes(renamed(path.read_bytes(), name, f"{number}-"))
    env = start.environment(folder / "importing", REDIS_URL="redis://127.0.0.1:1/0", LOG_LEVEL="ERROR")
    subprocess.run([*start.MANAGE, "migrate", "--verbosity=0"], check=True, env=env)
    processors = ",".join(map(str, sorted(os.sched_getaffinity(0))[: start.PROCESSORS]))
    times = []
    for path in (folder / "none", log_folder):
        path.mkdir(exist_ok=True)
        cpu_before, started_at = start.children_cpu(), time.monotonic()
        command = ["taskset", "-c", processors, *start.MANAGE, "import_sessions", str(path)]
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        times.append((time.monotonic() - started_at, start.children_cpu() - cpu_before))
    print(done.stdout)
    (start_seconds, start_cpu), (seconds, cpu) = times
    return count / (seconds - start_seconds), (cpu - start_cpu) / count * 1000


if __name__ == "__main__":
    main()
