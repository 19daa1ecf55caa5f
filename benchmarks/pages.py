"""What does each page cost on a large site, and how does that grow with the site?

Sites of 10,000 and 100,000 sessions on SQLite, of 100,000 and a million on PostgreSQL: real ones, copied by SQL. Every
page is asked for in this process; its cost is the processor time of this process and of the database's, the least of
several. `growth` is the sum over all pages at a million, over that at 100,000.

    python benchmarks/pages.py [--quick | --smoke] [--only NAMES] [--queries]
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

# Sessions that are taken in before they are copied; and how many there are to be, by database.
SEED = 40
SIZES = {
    Size.FULL: {"sqlite": (10_000, 100_000), "postgres": (100_000, 1_000_000)},
    Size.QUICK: {"sqlite": (2_000, 10_000), "postgres": ()},
    Size.SMOKE: {"sqlite": (16,), "postgres": ()},
}
REPEATS = 3
ADDRESSES = {
    "dashboard": "/",
    "sessions": "/sessions/",
    "sessions, filtered": "/sessions/?state=final&source=judge&category=code",
    "sessions, stale": "/sessions/?stale=yes",
    "sessions, flagged": "/sessions/?flagged=yes",
    "sessions, searched": "/sessions/?q=s7x",
    "sessions, last page": "/sessions/?page=last",
    "sessions, behind a figure": "/sessions/?behind=holds",
    "session": "/sessions/{session}/",
    "session's judge": "/sessions/{session}/?tab=judge",
    "events": "/sessions/{session}/events/?from=1",
    "desk": "/review/{item}/",
    "desk's effect": "/review/{item}/effect/?value=.7",
    "progress": "/review/progress/",
    "bandit": "/bandits/category/",
    "bandit, travelled": "/bandits/category/?at={day}",
    "bandit harness": "/bandits/harness/",
    "lessons": "/bandits/lesson/",
    "arms": "/bandits/category/arms/",
    "arm": "/bandits/category/arms/{arm}/",
    "models": "/bandits/model/unnamed/",
    "policy": "/bandits/category/policy/",
    "policy, previewed": "/bandits/category/policy/?{policy}&preview=yes",
    "quota": "/quota/",
    "costs": "/quota/costs/?days=90",
    "rubrics": "/rubrics/",
    "runs": "/runs/",
    "plan": "/runs/plan/",
    "alarms": "/alarms/",
    "calibration": "/calibration/",
    "history": "/history/",
    "notices": "/settings/notices/",
    "settings": "/settings/",
    "connect": "/connect/",
    "ledger": "/bandit/ledgerentry/",
    "decisions": "/bandit/selection/",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What was measured: by page the milliseconds of processor time and how many queries it took."""

    sessions: int
    cpu_ms: dict[str, float]
    wall_ms: dict[str, float]
    queries: dict[str, int]
    bytes_per_session: float


def main() -> None:
    parser = scratch.parser(__doc__, quick="2,000 and 10,000 sessions on SQLite", smoke="16 sessions, on SQLite")
    parser.add_argument("--only", default="", help="the pages whose names contain this")
    parser.add_argument("--sessions", type=int, help="one site of so many sessions")
    parser.add_argument("--postgres", action="store_true", help="that site on PostgreSQL")
    parser.add_argument("--queries", action="store_true", help="also the slowest queries of each page")
    given = parser.parse_args()
    sizes = SIZES[given.size]
    if given.sessions:
        sizes = {"sqlite": (), "postgres": (), "postgres" if given.postgres else "sqlite": (given.sessions,)}
    repeats = 1 if given.size is Size.SMOKE else REPEATS
    measured: dict[str, list[Site]] = {}
    for database, counts in sizes.items():
        for count in counts:
            look = partial(measure, count, database == "postgres", repeats, given.only, slow=given.queries)
            with ProcessPoolExecutor(1) as pool:  # a site's settings are its process's
                measured.setdefault(database, []).append(pool.submit(look).result())
    print(json.dumps(figures(measured)))


def figures(measured: dict[str, list[Site]]) -> dict[str, Any]:
    """What the worst page costs on each site, how that grows, and how large a session is."""
    found: dict[str, Any] = {}
    for database, sites in measured.items():
        for site in sites:
            name = f"{short(site.sessions)}_{database}"
            worst = max(site.cpu_ms, key=lambda page: site.cpu_ms[page])
            found[f"worst_cpu_ms_{name}"] = round(site.cpu_ms[worst], 1)
            found[f"worst_page_{name}"] = worst
            found[f"bytes_per_session_{name}"] = round(site.bytes_per_session)
        if len(sites) > 1:
            small, large = sites[-2:]
            grown = sum(large.cpu_ms.values()) / sum(small.cpu_ms.values())
            found[f"growth_{short(small.sessions)}_{short(large.sessions)}"] = round(grown, 2)
    return found


def short(count: int) -> str:
    return f"{count // 10**6}m" if count >= 10**6 else f"{count // 1000}k" if count >= 1000 else str(count)  # noqa: PLR2004


def measure(count: int, on_postgres: bool, repeats: int, only: str, *, slow: bool) -> Site:  # noqa: FBT001
    """Build a site of so many sessions in this process, and look at its pages."""
    with tempfile.TemporaryDirectory() as state:
        if not on_postgres:
            return look(state, "", count, repeats, only, slow=slow)
        from tests import postgres

        with postgres.server() as url:
            return look(state, url, count, repeats, only, slow=slow)


def look(state: str, url: str, count: int, repeats: int, only: str, *, slow: bool) -> Site:
    scratch.site(state, database=url, ALLOWED_HOSTS="testserver")
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from benchmarks.large import copies, seed

    began = time.monotonic()
    seed.sow(min(count, SEED))
    copies.multiply(count)
    print(f"{count:,} sessions on {connection.vendor}, built in {time.monotonic() - began:.0f} s", flush=True)
    client = Client()
    client.force_login(User.objects.get(username="olga"))
    asked = {name: address for name, address in addresses().items() if only in name}
    cpu, wall, queries = dict[str, float](), dict[str, float](), dict[str, int]()
    for name, address in asked.items():
        with CaptureQueriesContext(connection) as captured:
            reply = client.get(address)
        if reply.status_code != 200:  # noqa: PLR2004
            raise SystemExit(f"expected a page at {address}; got {reply.status_code}: {reply.content[:300]!r}")
        queries[name] = len(captured)
        if slow:
            for query in sorted(captured.captured_queries, key=lambda query: -float(query["time"]))[:3]:
                print(f"    {query['time']} s  {query['sql'][:1500]}")
        times = [cost(partial(client.get, address)) for _repeat in range(repeats)]
        cpu[name] = min(spent for spent, _took in times)
        wall[name] = statistics.median(took for _spent, took in times)
        print(
            f"{name:28} {cpu[name]:8.1f} ms of processor {wall[name]:8.1f} by the clock {queries[name]:4} queries",
            flush=True,
        )
    return Site(sessions=count, cpu_ms=cpu, wall_ms=wall, queries=queries, bytes_per_session=size(state) / count)


def addresses() -> dict[str, str]:
    """The pages by name, each about the newest row of its kind."""
    from django.utils import timezone

    from bandit.models import Arm
    from benchmarks.large import copies
    from grading.models import ReviewItem, Session
    from grading.models.review import ItemState

    waiting = ReviewItem.objects.filter(state=ItemState.OPEN).order_by("pk").first()
    newest = Session.objects.filter(pk__lt=copies.STRIDE).latest("ended_at")  # copies have no files of their own
    about = {
        "session": newest.pk,
        "item": waiting.session_id if waiting else newest.pk,
        "arm": Arm.objects.get(bandit__name="category", name="code").pk,
        "day": timezone.localdate().isoformat(),
        "policy": "half_life_days=21",
    }
    return {name: address.format_map(about) for name, address in ADDRESSES.items()}


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of processor time, the database's own process included, and by the clock."""
    before, began = processor(), time.perf_counter()
    work()
    return processor() - before, (time.perf_counter() - began) * 1000


def processor() -> float:
    """Milliseconds of processor time of this process so far, and of the PostgreSQL process that works for it."""
    from django.db import connection

    spent = time.process_time() * 1000
    if connection.vendor == "postgresql" and connection.connection is not None:
        fields = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text().split()
        spent += int(fields[0]) / 1e6
    return spent


def size(state: str) -> float:
    """Bytes that the database takes."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return float(cursor.fetchone()[0])
    return float(sum(path.stat().st_size for path in Path(state).glob("db.sqlite3*")))


if __name__ == "__main__":
    main()
