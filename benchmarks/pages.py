"""What does each page cost on a large site, and each minute's work, and how does that grow with the site?

Sites of 20,000 and 200,000 sessions on SQLite and on PostgreSQL: real ones, copied by SQL. Every page is requested in
this process. Its cost is the processor time of this process and of the database's. Each page is requested several times
and the least counts; then again just after a session has come in and been rewarded, so that no cached posterior is
current. The larger of the two is its cost. The same for the jobs that run every minute. Some of them compute figures
that pages show from a stored row, and have run before the pages are requested. The first view is the same in a process
that has imported the site's code and answered nothing. `growth` is the sum over all pages at 200,000, divided by that
at 20,000.

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

# Sessions that come in before they are copied; and how many there should be, by database.
SEED_SESSIONS = 40
SIZES = {
    Size.FULL: {"sqlite": (20_000, 200_000), "postgres": (20_000, 200_000)},
    Size.QUICK: {"sqlite": (2_000, 10_000)},
    Size.SMOKE: {"sqlite": (16,)},
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
    "session's transcript": "/sessions/{session}/?tab=transcript",
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
    "insight": "/insight/",
    "insight, by day and version": "/insight/?step=day&split=version",
    "insight, a vital of half a year": "/insight/?weeks=26&measure=failed_share",
    "letter": "/insight/letter/",
    "spending": "/costs/?days=90",
    "spending, of half a year": "/costs/?days=180",
    "spending, by arm": "/costs/?days=180&by=arm",
    "prices": "/costs/prices/",
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
# The jobs that run every few seconds or every minute.
READINGS = ("read lessons", "read calibration", "read costs", "read insight")
JOBS = ("sweep", "judge again", "notices", "batches", "prioritise", "catch up", "name models", *READINGS)
FORK = multiprocessing.get_context("fork")
# Parallel processes of the database would not be counted.
NOT_PARALLEL = "max_parallel_workers_per_gather=0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Milliseconds of processor time on one site: of pages, of their first views and of jobs, by name."""

    sessions: int
    cpu_ms: dict[str, float]
    first_ms: dict[str, float]
    jobs_ms: dict[str, float]
    bytes_per_session: float


def main() -> None:
    parser = scratch.parser(__doc__, quick="2,000 and 10,000 sessions on SQLite", smoke="16 sessions, on SQLite")
    parser.add_argument("--only", default="", help="the pages and jobs whose names contain this")
    parser.add_argument("--queries", action="store_true", help="also the slowest queries of each page")
    parser.add_argument("--keep", type=Path, help="a folder where sites are stored, and found by the next run")
    options = parser.parse_args()
    names = [name for name in (*ADDRESSES, *JOBS) if options.only in name]
    if not names:
        parser.error(
            f"argument --only: expected part of the name of a page or a job; got {options.only!r}. "
            f"Names: {'; '.join([*ADDRESSES, *JOBS])}"
        )
    repeats = 1 if options.size is Size.SMOKE else REPEATS
    measurements: dict[str, list[Measurement]] = {}
    for database, counts in SIZES[options.size].items():
        for count in counts:
            keep = options.keep and options.keep / f"{database}-{count}"
            work = partial(measure, count, database == "postgres", keep, repeats, names, show_queries=options.queries)
            with ProcessPoolExecutor(1) as process:  # a process has the settings of one site
                measurements.setdefault(database, []).append(process.submit(work).result())
    print(json.dumps(figures(measurements)))


def figures(measurements: dict[str, list[Measurement]]) -> dict[str, Any]:
    """The cost of the worst page on each site, how the sum grows, and the size of a session."""
    result: dict[str, Any] = {}
    for database, sites in measurements.items():
        for site in sites:
            name = f"{abbreviate(site.sessions)}_{database}"
            if site.cpu_ms:
                worst = max(site.cpu_ms, key=lambda page: site.cpu_ms[page])
                result[f"worst_cpu_ms_{name}"] = round(site.cpu_ms[worst], 1)
                result[f"worst_page_{name}"] = worst
                result[f"worst_first_ms_{name}"] = round(max(site.first_ms.values()), 1)
            if site.jobs_ms:
                result[f"worst_job_ms_{name}"] = round(max(site.jobs_ms.values()), 1)
            result[f"bytes_per_session_{name}"] = round(site.bytes_per_session)
        if len(sites) > 1 and sites[-1].cpu_ms:
            small, large = sites[-2:]
            growth = sum(large.cpu_ms.values()) / sum(small.cpu_ms.values())
            result[f"growth_{abbreviate(small.sessions)}_{abbreviate(large.sessions)}"] = round(growth, 2)
    return result


def abbreviate(count: int) -> str:
    return f"{count // 1000}k" if count >= 1000 else str(count)  # noqa: PLR2004


def measure(
    count: int,
    on_postgres: bool,  # noqa: FBT001
    keep: Path | None,
    repeats: int,
    names: Collection[str],
    *,
    show_queries: bool,
) -> Measurement:
    """Build a site of so many sessions in this process, or take the one in `keep`, and measure its pages and jobs."""
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        state.mkdir(parents=True, exist_ok=True)
        Path(folder).chmod(0o711)  # the server may be another user's
        if not on_postgres:
            return measure_site(state, "", count, repeats, names, show_queries=show_queries)
        from tests import postgres

        with postgres.kept(Path(folder) / "server", [*postgres.FASTEST, NOT_PARALLEL]) as url:
            return measure_site(state, url, count, repeats, names, show_queries=show_queries)


def measure_site(
    state: Path, url: str, count: int, repeats: int, names: Collection[str], *, show_queries: bool
) -> Measurement:
    build(state, url, count)
    from django.contrib.auth.models import User
    from django.test import Client

    from grading import tasks
    from grading.models import StoredReading
    from gradingsite.web import load_code

    client = Client()
    client.force_login(User.objects.get(username="olga"))
    cpu_in_new_process(store_readings)
    # What a server does when it starts: import the site's code, and make its middleware.
    load_code()
    client.handler.load_middleware()
    pages = {name: partial(request_page, client, url) for name, url in page_addresses().items() if name in names}
    first_ms = {name: cpu_in_new_process(work) for name, work in pages.items()}
    for name, milliseconds in first_ms.items():
        print(f"{name:28} {milliseconds:8.1f} ms of processor for the first view", flush=True)
    jobs = {name: tasks.PERIODIC[name] for name in JOBS if name in names}
    cpu_ms = {name: repeated_cost(name, work, repeats, show_queries=show_queries) for name, work in pages.items()}
    jobs_ms = {name: repeated_cost(name, work, repeats, show_queries=show_queries) for name, work in jobs.items()}
    for row in StoredReading.objects.all():
        print(f"{row.name}: read by the worker in {row.seconds:.1f} s", flush=True)
    return Measurement(
        sessions=count,
        cpu_ms=cpu_ms,
        first_ms=first_ms,
        jobs_ms=jobs_ms,
        bytes_per_session=database_bytes(state) / count,
    )


def build(state: Path, url: str, count: int) -> None:
    """Set up the site in this process that is stored in this folder; otherwise a new one."""
    judge_address = state / "judge.txt"  # of a judge that doesn't run any more
    if judge_address.exists():
        scratch.code(state, database=url, ANTHROPIC_API_KEY="sk-pages", ANTHROPIC_BASE_URL=judge_address.read_text())
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        return
    scratch.site(state, database=url)
    from django.conf import settings
    from django.db import connection

    from benchmarks.large import copies, seed

    started = time.monotonic()
    seed.create_sessions(min(count, SEED_SESSIONS))
    copies.multiply(count)
    judge_address.write_text(settings.ANTHROPIC_BASE_URL)
    print(f"{count:,} sessions on {connection.vendor}, built in {time.monotonic() - started:.0f} s", flush=True)


def request_page(client: Any, address: str) -> None:
    reply = client.get(address)
    if reply.status_code != 200:  # noqa: PLR2004
        raise SystemExit(f"expected a page at {address}; got {reply.status_code}: {reply.content[:300]!r}")


def page_addresses() -> dict[str, str]:
    """The pages by name, each about the newest row of its kind."""
    from django.utils import timezone

    from bandit.models import Arm
    from benchmarks.large import copies
    from grading.models import ReviewItem, Session
    from grading.models.review import ItemState

    waiting = ReviewItem.objects.filter(state=ItemState.OPEN).order_by("pk").first()
    newest = Session.objects.filter(pk__lt=copies.STRIDE).latest("ended_at")  # copies have no files of their own
    values = {
        "session": newest.pk,
        "item": waiting.session_id if waiting else newest.pk,
        "arm": Arm.objects.get(bandit__name="category", name="code").pk,
        "day": timezone.localdate().isoformat(),
        "policy": "half_life_days=21",
    }
    return {name: address.format_map(values) for name, address in ADDRESSES.items()}


def cpu_in_new_process(work: Callable[[], object]) -> float:
    """Milliseconds of processor time that `work` takes in a process that has answered nothing yet."""
    from django.db import connections

    connections.close_all()
    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=lambda: sender.send(cpu_of(work)))
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


def repeated_cost(name: str, work: Callable[[], object], repeats: int, *, show_queries: bool) -> float:
    """Milliseconds of processor time: the least of several, or the least just after a session came in, if larger."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        work()
    queries = list(captured.captured_queries)
    if show_queries:
        for query in sorted(queries, key=lambda query: -float(query["time"]))[:3]:
            print(f"    {query['time']} s  {query['sql'][:1500]}")
    again = min(cpu_of(work) for _repeat in range(repeats))
    after_news = []
    for _repeat in range(repeats):
        take_in_session()
        after_news.append(cpu_of(work))
    news = min(after_news)
    print(f"{name:28} {again:8.1f} ms of processor {news:8.1f} after news {len(queries):4} queries", flush=True)
    return max(again, news)


def cpu_of(work: Callable[[], object]) -> float:
    """Milliseconds of processor time that `work` takes, the database's process included."""
    started = processor_ms()
    work()
    return processor_ms() - started


def take_in_session() -> None:
    """One more session comes in, with a reward in each bandit."""
    from django.utils import timezone

    from benchmarks.large import seed

    seed.take_in(1 + 4 * time.time_ns(), timezone.now())  # one with lessons


def processor_ms() -> float:
    """Processor time of this process so far, and of the PostgreSQL process that works for it."""
    from django.db import connection

    milliseconds = time.process_time() * 1000
    if connection.vendor == "postgresql" and connection.connection is not None:
        fields = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text().split()
        milliseconds += int(fields[0]) / 1e6
    return milliseconds


def database_bytes(state: Path) -> float:
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return float(cursor.fetchone()[0])
    return float(sum(path.stat().st_size for path in state.glob("db.sqlite3*")))


if __name__ == "__main__":
    main()
