"""What does each page cost on a large site, and each minute's work, and how does that grow with the site?

Sites of 20,000 and 200,000 sessions on SQLite and on PostgreSQL: real ones, copied by SQL. Every page is asked for in
this process; its cost is the processor time of this process and of the database's. Each is looked at again and again,
the least of several; and each time just after a session has come in and been rewarded, so that nothing that was
remembered of the bandits holds: the dearer of the two counts. So it is with the jobs that run every minute; some of
them compute figures that pages show from a stored row, and have run before the pages are asked for. The first view is
the same in a process that has imported the site's code and answered nothing. `growth` is the sum over all pages at
200,000, over that at 20,000.

    python benchmarks/pages.py [--quick | --smoke] [--only NAMES] [--queries] [--keep FOLDER]
"""

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
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
    Size.FULL: {"sqlite": (20_000, 200_000), "postgres": (20_000, 200_000)},
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
# What is done every few seconds or every minute, whatever happens.
READINGS = ("read lessons", "read calibration", "read costs")
JOBS = ("sweep", "judge again", "notices", "batches", "prioritise", "catch up", "name models", *READINGS)
FORK = multiprocessing.get_context("fork")
# Parallel processes of the database would not be counted.
ALONE = "max_parallel_workers_per_gather=0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What was measured: by page and by job the milliseconds of processor time, and by page those of the first view."""

    sessions: int
    cpu_ms: dict[str, float]
    first_ms: dict[str, float]
    jobs_ms: dict[str, float]
    bytes_per_session: float


def main() -> None:
    parser = scratch.parser(__doc__, quick="2,000 and 10,000 sessions on SQLite", smoke="16 sessions, on SQLite")
    parser.add_argument("--only", default="", help="the pages and jobs whose names contain this")
    parser.add_argument("--sessions", type=int, help="one site of so many sessions")
    parser.add_argument("--postgres", action="store_true", help="that site on PostgreSQL")
    parser.add_argument("--queries", action="store_true", help="also the slowest queries of each page")
    parser.add_argument("--keep", type=Path, help="a folder where sites are left for the next run, and found again")
    given = parser.parse_args()
    if not (found := named(given.only)):
        known = "; ".join([*ADDRESSES, *JOBS])
        parser.error(
            f"argument --only: expected part of the name of a page or a job; got {given.only!r}. Names: {known}"
        )
    sizes = SIZES[given.size]
    if given.sessions:
        sizes = {"sqlite": (), "postgres": (), "postgres" if given.postgres else "sqlite": (given.sessions,)}
    repeats = 1 if given.size is Size.SMOKE else REPEATS
    measured: dict[str, list[Site]] = {}
    for database, counts in sizes.items():
        for count in counts:
            keep = given.keep and given.keep / f"{database}-{count}"
            look = partial(measure, count, database == "postgres", keep, repeats, found, slow=given.queries)
            with ProcessPoolExecutor(1) as pool:  # a site's settings are its process's
                measured.setdefault(database, []).append(pool.submit(look).result())
    print(json.dumps(figures(measured)))


def named(only: str) -> list[str]:
    """The pages and jobs whose names contain this."""
    return [name for name in (*ADDRESSES, *JOBS) if only in name]


def figures(measured: dict[str, list[Site]]) -> dict[str, Any]:
    """What the worst page costs on each site, how that grows, and how large a session is."""
    found: dict[str, Any] = {}
    for database, sites in measured.items():
        for site in sites:
            name = f"{short(site.sessions)}_{database}"
            if site.cpu_ms:
                worst = max(site.cpu_ms, key=lambda page: site.cpu_ms[page])
                found[f"worst_cpu_ms_{name}"] = round(site.cpu_ms[worst], 1)
                found[f"worst_page_{name}"] = worst
                found[f"worst_first_ms_{name}"] = round(max(site.first_ms.values()), 1)
            if site.jobs_ms:
                found[f"worst_job_ms_{name}"] = round(max(site.jobs_ms.values()), 1)
            found[f"bytes_per_session_{name}"] = round(site.bytes_per_session)
        if len(sites) > 1 and sites[-1].cpu_ms:
            small, large = sites[-2:]
            grown = sum(large.cpu_ms.values()) / sum(small.cpu_ms.values())
            found[f"growth_{short(small.sessions)}_{short(large.sessions)}"] = round(grown, 2)
    return found


def short(count: int) -> str:
    return f"{count // 10**6}m" if count >= 10**6 else f"{count // 1000}k" if count >= 1000 else str(count)  # noqa: PLR2004


def measure(
    count: int,
    on_postgres: bool,  # noqa: FBT001
    keep: Path | None,
    repeats: int,
    only: Collection[str],
    *,
    slow: bool,
) -> Site:
    """Build a site of so many sessions in this process, or take the one that was kept, and look at its pages."""
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        state.mkdir(parents=True, exist_ok=True)
        Path(folder).chmod(0o711)  # the server may be another user's
        if not on_postgres:
            return look(state, "", count, repeats, only, slow=slow)
        from tests import postgres

        with postgres.kept(Path(folder) / "server", [*postgres.FASTEST, ALONE]) as url:
            return look(state, url, count, repeats, only, slow=slow)


def look(state: Path, url: str, count: int, repeats: int, only: Collection[str], *, slow: bool) -> Site:
    build(state, url, count)
    from django.contrib.auth.models import User
    from django.test import Client
    from django.urls import get_resolver

    from grading.models import StoredReading

    client = Client()
    client.force_login(User.objects.get(username="olga"))
    in_new_process(store_readings)
    # What a server does when it starts: import the site's code, and make its middleware.
    _ = get_resolver().url_patterns
    client.handler.load_middleware()
    pages = {name: partial(page, client, address) for name, address in addresses().items() if name in only}
    first_ms = {name: in_new_process(work) for name, work in pages.items()}
    for name, milliseconds in first_ms.items():
        print(f"{name:28} {milliseconds:8.1f} ms of processor for the first view", flush=True)
    from grading import tasks

    jobs = {name: tasks.PERIODIC[name] for name in JOBS if name in only}
    cpu, jobs_ms = (
        {name: cost(name, work, repeats, slow=slow) for name, work in all_.items()} for all_ in (pages, jobs)
    )
    for row in StoredReading.objects.all():
        print(f"{row.name}: read by the worker in {row.seconds:.1f} s", flush=True)
    return Site(sessions=count, cpu_ms=cpu, first_ms=first_ms, jobs_ms=jobs_ms, bytes_per_session=size(state) / count)


def build(state: Path, url: str, count: int) -> None:
    """The site in this process, as it was kept in this folder; else a new one."""
    done = state / "judge.txt"  # where its judge was; nobody asks it any more
    if done.exists():
        judge = {"ANTHROPIC_API_KEY": "sk-pages", "ANTHROPIC_BASE_URL": done.read_text()}
        scratch.code(state, database=url, **judge)
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        return
    scratch.site(state, database=url)
    from django.conf import settings
    from django.db import connection

    from benchmarks.large import copies, seed

    began = time.monotonic()
    seed.sow(min(count, SEED))
    copies.multiply(count)
    done.write_text(settings.ANTHROPIC_BASE_URL)
    print(f"{count:,} sessions on {connection.vendor}, built in {time.monotonic() - began:.0f} s", flush=True)


def page(client: Any, address: str) -> None:
    reply = client.get(address)
    if reply.status_code != 200:  # noqa: PLR2004
        raise SystemExit(f"expected a page at {address}; got {reply.status_code}: {reply.content[:300]!r}")


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


def in_new_process(work: Callable[[], object]) -> float:
    """Milliseconds of processor time that `work` takes in a process that has answered nothing yet."""
    from django.db import connections

    connections.close_all()
    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=lambda: sender.send(spent(work, None)))
    child.start()
    sender.close()  # so that a child that fails is not waited for
    milliseconds: float = receiver.recv()
    child.join()
    return milliseconds


def store_readings() -> None:
    """Compute what pages show from stored rows, as the worker does."""
    from grading import tasks

    for name in READINGS:
        tasks.PERIODIC[name]()


def cost(name: str, work: Callable[[], object], repeats: int, *, slow: bool) -> float:
    """Milliseconds of processor time: again and again, or just after a session came in, whichever is more."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        work()
    queries = list(captured.captured_queries)
    if slow:
        for query in sorted(queries, key=lambda query: -float(query["time"]))[:3]:
            print(f"    {query['time']} s  {query['sql'][:1500]}")
    again, news = (min(spent(work, before) for _repeat in range(repeats)) for before in (None, rewarded))
    print(
        f"{name:28} {again:8.1f} ms of processor {news:8.1f} after news {len(queries):4} queries",
        flush=True,
    )
    return max(again, news)


def spent(work: Callable[[], object], before: Callable[[], object] | None) -> float:
    """Milliseconds of processor time, the database's own process included, that `work` takes."""
    if before is not None:
        before()
    began = processor()
    work()
    return processor() - began


def rewarded() -> None:
    """Take in one more session, with a reward in each bandit."""
    from django.utils import timezone

    from benchmarks.large import seed

    seed.take_in(1 + 4 * time.time_ns(), timezone.now())  # one with lessons


def processor() -> float:
    """Milliseconds of processor time of this process so far, and of the PostgreSQL process that works for it."""
    from django.db import connection

    spent = time.process_time() * 1000
    if connection.vendor == "postgresql" and connection.connection is not None:
        fields = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text().split()
        spent += int(fields[0]) / 1e6
    return spent


def size(state: Path) -> float:
    """Bytes that the database takes."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return float(cursor.fetchone()[0])
    return float(sum(path.stat().st_size for path in state.glob("db.sqlite3*")))


if __name__ == "__main__":
    main()
