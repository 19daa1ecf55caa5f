"""Does a transcript of 100 MB and 50,000 events open at once? Pages of it, and a search, before and after its index.

The ratio of a page at the end to one at the start is the figure: near 1 where the length doesn't matter.

    python benchmarks/transcript.py [--quick | --smoke]
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client

    from grading.models import Evidence

# Events of the transcript, and how often a page is opened.
SIZES = {Size.FULL: (50_000, 15), Size.QUICK: (5_000, 15), Size.SMOKE: (200, 2)}
WORDS = "the guard retries a failed call once and tells the caller why it was refused so that nothing is ever lost"
NEEDLE = "Prüfsumme"


def main() -> None:
    parser = scratch.parser(__doc__, quick="10 MB and 5,000 events", smoke="200 events")
    with tempfile.TemporaryDirectory() as state:
        scratch.site(state)
        run(*SIZES[parser.parse_args().size])


def run(events: int, repeats: int) -> None:
    from grading.evidence import transcripts

    client, row = site(events)
    address, last = row.session.get_absolute_url(), events
    held = memory()
    building = clocked(lambda: transcripts.build(row)) / 1000
    grown, size = memory() - held, index_size()
    transcripts.forget(row.sha256)
    cold = clocked(lambda: client.get(address))
    pending = client.get(f"{address}events/?from={last}").content.decode()
    waited = clocked(lambda: wait(row)) / 1000
    pages = {
        name: median(lambda number=number: client.get(f"{address}events/?from={number}"), repeats)
        for name, number in {"start": 1, "middle": last // 2, "end": last}.items()
    }
    search, requests, hits = searched(client, f"{address}events/find/")
    print(
        f"a transcript of {row.size / 1e6:.0f} MB and {last:,} events: opened cold in {cold:.0f} ms; indexed in "
        f"{building:.1f} s, {grown:.0f} MB more memory, {size / 1e6:.0f} MB on disk; a page {pages['start']:.1f} ms at "
        f"the start, {pages['middle']:.1f} in the middle, {pages['end']:.1f} at the end; {hits} hits in {requests} "
        f"requests of at most {search:.0f} ms"
    )
    figures = {f"{name}_ms": round(value, 2) for name, value in {"cold": cold, **pages, "search": search}.items()}
    figures |= {"ratio": round(pages["end"] / pages["start"], 3), "hits": hits, "requests": requests}
    figures |= {"index_s": round(building, 2), "index_behind_pages_s": round(waited, 2), "grown_mb": round(grown, 1)}
    figures |= {"waits": "eading the transcript" in pending, "bytes": row.size, "index_bytes": size, "events": last}
    print(json.dumps(figures))


def site(events: int) -> tuple[Client, Evidence]:
    """A signed-in viewer, and the transcript of a session."""
    from django.contrib.auth.models import Group, User
    from django.test import Client
    from django.utils import timezone

    from grading.evidence import store
    from grading.models import Agent, Evidence, Session

    with tempfile.TemporaryFile() as file:
        for line in transcript(events):
            file.write(line)
        file.seek(0)
        stored = store.store(file)
    agent = Agent.objects.create(name="bench")
    session, empty = [
        Session.objects.create(agent=agent, external_id=name, ended_at=timezone.now()) for name in ("long", "empty")
    ]
    row = Evidence.objects.create(session=session, kind="transcript", sha256=stored.sha256, size=stored.size)
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.groups.add(Group.objects.get(name="viewer"))
    client = Client()
    client.force_login(viewer)
    client.get(empty.get_absolute_url())  # what a process loads once
    return client, row


def transcript(events: int, lines: int = 62) -> Iterator[bytes]:
    """A Claude Code log: asked once, then commands, each with so many lines of output: 2 kB an event."""
    rng = Random(1)
    yield line(0, "user", "Make the guard safe.")
    for number in range(1, events // 2):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"make check-{number}"}}
        text = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output(rng, number, lines)}
        yield line(2 * number, "assistant", [call])
        yield line(2 * number + 1, "user", [text])
    yield line(events, "assistant", [{"type": "text", "text": "Done."}])


def output(rng: Random, number: int, lines: int) -> str:
    words = WORDS.split()
    said = "\n".join(" ".join(rng.choices(words, k=12)) for _ in range(lines))
    return f"{said}\n{NEEDLE if number % 1000 == 0 else 'ok'} {number}"


def line(number: int, kind: str, content: object) -> bytes:
    at = f"2026-03-31T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
    message = {"role": kind, "content": content}
    record = {"type": kind, "uuid": f"u{number}", "sessionId": "long", "timestamp": at, "message": message}
    return json.dumps(record).encode() + b"\n"


def wait(row: Evidence) -> None:
    from grading.evidence.transcripts import cache

    while cache.held(row) is None:
        time.sleep(0.01)


def searched(client: Client, address: str) -> tuple[float, int, int]:
    """The slowest request of one search through everything, how many there were, and what they found."""
    slowest, requests, hits, after, more = 0.0, 0, 0, 0, True
    while more:
        start = time.perf_counter()
        answer = client.get(address, {"q": NEEDLE.upper(), "after": after}).json()
        slowest, requests = max(slowest, (time.perf_counter() - start) * 1000), requests + 1
        hits, after, more = hits + len(answer["hits"]), answer["searched"], answer["more"]
    return slowest, requests, hits


def median(work: Callable[[], object], repeats: int) -> float:
    return statistics.median(clocked(work) for _ in range(repeats))


def clocked(work: Callable[[], object]) -> float:
    """Milliseconds that one call takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def memory() -> float:
    """The most that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def index_size() -> int:
    from django.conf import settings

    return sum(path.stat().st_size for path in settings.TRANSCRIPT_CACHE.rglob("*.sqlite3"))


if __name__ == "__main__":
    main()
