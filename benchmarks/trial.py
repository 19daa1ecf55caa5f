"""How long `gradingsite try` takes on a home with many logs: to its first page, until all are read, and the next time.

The logs are copies of those in GRADING_DATA_DIR, or of the sample sessions, with ids of their own. Also how much the
process holds in memory, and how large its folder is.

    python benchmarks/trial.py [--quick | --smoke]
"""

import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
STATE = tempfile.TemporaryDirectory()  # of this process; the trials have their own
os.environ |= {"DJANGO_SETTINGS_MODULE": "gradingsite.settings", "GRADINGSITE_STATE": STATE.name + "/state"}
import django  # noqa: E402

django.setup()  # the tests' builders import models

from benchmarks import scratch  # noqa: E402
from benchmarks.scratch import Size  # noqa: E402
from grading import formats  # noqa: E402
from tests.trial.homes import KEPT_IN, SAMPLES, RunningTrial, trial  # noqa: E402

SIZES = {Size.FULL: 500, Size.QUICK: 100, Size.SMOKE: 12}
FIRST_PAGE_LIMIT = 120.0
MOST_BYTES = 8_000_000  # of one log
UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def sources() -> list[tuple[str, Path]]:
    """Each log to copy, with its harness."""
    folder = Path(os.environ.get("GRADING_DATA_DIR", "")) / "transcripts"
    paths = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else SAMPLES
    found = []
    for path in paths:
        try:
            with path.open("rb") as file:
                found.append((formats.recognise(file).format, path))
        except (formats.UnknownFormat, formats.EmptyTranscript):
            continue
    return [(harness, path) for harness, path in found if harness in KEPT_IN and path.stat().st_size < MOST_BYTES]


def fill(home: Path, count: int) -> int:
    """Put `count` logs into the home, each a session of its own. Returns their bytes."""
    logs, size = sources(), 0
    for number in range(count):
        harness, source = logs[number % len(logs)]
        end = b"%012x" % number
        text = UUID.sub(lambda match, end=end: match[0][:-12] + end, source.read_bytes())
        log = home / KEPT_IN[harness].format(name=f"{source.stem[:40]}-{number}")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(text)
        size += len(text)
    return size


def run(home: Path) -> dict[str, float]:
    """Seconds to the first page and until all is read, and the peak memory in MB."""
    began = time.monotonic()
    with trial(home, command=(sys.executable, scratch.ROOT / "manage.py")) as running, running.sign_in() as client:
        first, first_cpu = time.monotonic() - began, cpu_seconds(running)
        while "<progress" in client.get("/try/").text:
            time.sleep(1)
        return {
            "first_page_s": first,
            "first_page_cpu_s": first_cpu,
            "all_read_s": time.monotonic() - began,
            "all_read_cpu_s": cpu_seconds(running),
            "peak_mb": peak(running),
        }


def cpu_seconds(running: RunningTrial) -> float:
    """The processor time of the process, which other programs on the machine change little."""
    fields = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(running: RunningTrial) -> float:
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1000


def main() -> None:
    size = scratch.parser(__doc__, quick="100 logs", smoke="12 logs").parse_args().size
    count = SIZES[size]
    home = Path(tempfile.mkdtemp(prefix="trial-"))
    try:
        total = fill(home, count)
        first = run(home)
        print(first, flush=True)
        second = run(home)
        stored = sum(path.stat().st_size for path in (home / "state").rglob("*") if path.is_file())
    finally:
        shutil.rmtree(home)
    print(f"{count} logs of {len({harness for harness, _ in sources()})} harnesses, {total / 1e6:.0f} MB")
    print(
        json.dumps(
            {
                **{name: round(value, 1) for name, value in first.items()},
                "again_s": round(second["all_read_s"], 1),
                "again_cpu_s": round(second["all_read_cpu_s"], 1),
                "stored_mb": round(stored / 1e6, 1),
                "limit_first_page_s": FIRST_PAGE_LIMIT,
            }
        )
    )


if __name__ == "__main__":
    main()
