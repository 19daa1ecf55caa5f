"""Does intake stay quick as the site fills? The same session taken in by a small and by a large database, in one run.

The ratio of the medians is the figure: near 1 where intake is O(log n). Queries per intake are counted too.

    python benchmarks/intake.py [--quick | --smoke]
"""

import io
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

# How many sessions fill the site, and how many are taken in to measure.
SIZES = {Size.FULL: (20_000, 40), Size.QUICK: (2_000, 40), Size.SMOKE: (20, 2)}


def main() -> None:
    parser = scratch.parser(__doc__, quick="2,000 sessions instead of 20,000", smoke="20 sessions")
    large, sample = SIZES[parser.parse_args().size]
    with tempfile.TemporaryDirectory() as state:
        scratch.site(state)
        run(large, sample)


def run(large: int, sample: int) -> None:
    small_ms, queries = measure("small", sample)
    fill(large)
    large_ms, _queries = measure("large", sample)
    print(
        f"intake of one session, median of {sample}: {small_ms:.1f} ms empty, {large_ms:.1f} ms at {large:,} sessions"
    )
    figures = {"ratio": round(large_ms / small_ms, 3), "queries": queries, "small_ms": round(small_ms, 2)}
    print(json.dumps({**figures, "large_ms": round(large_ms, 2), "sessions": large}))


def submit(name: str) -> None:
    from django.utils import timezone

    from grading import intake
    from grading.models import Agent

    agent, _created = Agent.objects.get_or_create(name="bench")
    metadata = intake.SubmittedSession(session_id=name, category="code", harness="gptme", ended_at=timezone.now())
    journal = f"# Session {name}\nSubmitted PR with the fix; tests completed.\n"
    intake.submit(agent=agent, metadata=metadata, journal=io.BytesIO(journal.encode()))


def measure(label: str, sample: int) -> tuple[float, int]:
    """Median milliseconds of one intake, and the number of queries of the last."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    times = []
    for number in range(sample):
        start = time.perf_counter()
        submit(f"{label}-{number}")
        times.append((time.perf_counter() - start) * 1000)
    with CaptureQueriesContext(connection) as captured:
        submit(f"{label}-counted")
    return statistics.median(times), len(captured)


def fill(count: int) -> None:
    """Rows as many sessions would leave them, written in bulk: what the indexes have to cope with."""
    from datetime import timedelta

    from django.utils import timezone

    from bandit.models import Arm, LedgerEntry
    from grading.models import Agent, Grade, Session, Settlement

    agent = Agent.objects.get(name="bench")
    arm = Arm.objects.resolve("category", "code")
    grader = LedgerEntry.objects.filter(arm=arm)[0].grader  # of those taken in just now
    now = timezone.now()
    sessions = Session.objects.bulk_create(
        [
            Session(agent=agent, external_id=f"fill-{n}", category=arm, ended_at=now - timedelta(minutes=20 * n))
            for n in range(count)
        ],
        batch_size=500,
    )
    Grade.objects.bulk_create(
        [
            Grade(
                session=s, source="journal", status="scored", value=0.32, version="fill", inputs_sha256=f"{s.pk:064d}"
            )
            for s in sessions
        ],
        batch_size=500,
    )
    Settlement.objects.bulk_create(
        [
            Settlement(
                session=s,
                revision=1,
                value=0.32,
                source="journal",
                final=False,
                weight=0.3,
                steps=[],
                policy_version="fill",
            )
            for s in sessions
        ],
        batch_size=500,
    )
    LedgerEntry.objects.bulk_create(
        [
            LedgerEntry(
                bandit=arm.bandit,
                arm=arm,
                observation=s.observation,
                revision=1,
                op="apply",
                grader=grader,
                value_micro=320_000,
                effective_day=s.ended_at.date(),
                settlement="fill",
                policy_version="fill",
            )
            for s in sessions
        ],
        batch_size=500,
    )


if __name__ == "__main__":
    main()
