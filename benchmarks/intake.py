"""What does an intake cost, beside a bare view that stores the same bytes and rows, and how does that grow with the
site? How long do eight uploaders wait for each other?

Real uploads of a log of 110 kB, a journal and a patch over HTTP, to two processes of eight threads that write to one
SQLite database, or to a PostgreSQL server of its own, whose processor time is not counted. `ratio` is the processor
time of the bare view and of reading the log, as a share of an intake's: 1 would mean that grading, settling and
inspecting are free. `statements` are those of one upload, the median of several: some uploads are drawn for the random
slice, or run the alarm rules.

`growth` is the cost of an upload to a site of 100,000 sessions (`benchmarks/large`), divided by that of one to a site
of 40. Each site has a process of its own. They take turns of a few uploads; the median counts. Here the processor time
of the PostgreSQL server counts, too.

    python benchmarks/intake.py [--quick | --smoke] [--database postgres]
"""

import datetime as dt
import io
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import pages, scratch
from benchmarks.scratch import Size
from tests import postgres

UPLOADERS, PROCESSES, THREADS = 8, 2, 8
# Uploads whose statements are counted.
COUNTED_UPLOADS = 5
# Uploads one after the other, and uploads by each of the uploaders; to each view.
SIZES = {Size.FULL: (200, 60), Size.QUICK: (60, 20), Size.SMOKE: (3, 1)}
# Sessions of an almost empty site and of a large one; how many turns each has, and of how many uploads.
GROWTH_SIZES = {
    Size.FULL: ((40, 100_000), 30, 10),
    Size.QUICK: ((40, 10_000), 10, 5),
    Size.SMOKE: ((4, 8), 1, 2),
}
BOUNDARY = "a-part-of-the-upload"
CONTENT_TYPE = f"multipart/form-data; boundary={BOUNDARY}"
INTAKE, BARE = "/api/v1/sessions", "/bare/"
CREATED = 201
Rows = dict[Any, list[dict[str, Any]]]  # columns by model
upload_numbers = itertools.count()


def main() -> None:
    parser = scratch.parser(__doc__, quick="60 uploads instead of 200", smoke="3 uploads")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite", help="where the rows go")
    options = parser.parse_args()
    server = nullcontext("")
    if options.database == "postgres":
        server = postgres.server([*postgres.FASTEST, pages.NOT_PARALLEL])
    session_counts, turns, uploads = GROWTH_SIZES[options.size]
    with tempfile.TemporaryDirectory() as folder, server as url:
        scratch.site(folder, database=url)
        sites = [copy_site(Path(folder), url, count) for count in session_counts]
        figures = measure_uploads(*SIZES[options.size])
        print(json.dumps(figures | {"growth": measure_growth(sites, turns, uploads)}))


def measure_uploads(one_by_one: int, by_uploader: int) -> dict[str, Any]:
    from django.db import connection

    from grading.models import Agent, ApiToken

    _row, secret = ApiToken.objects.issue(Agent.objects.create(name="bench"))
    statements, rows = first_uploads(secret)
    connection.close()
    cpu_ms = {}
    with served(rows) as (port, processes):
        for address in (INTAKE, BARE):
            client = HTTPConnection("127.0.0.1", port)
            for _warming in range(2 * PROCESSES):
                upload(client, address, secret)
            before = scratch.cpu_seconds(processes)
            statuses = {upload(client, address, secret) for _ in range(one_by_one)}
            cpu_ms[address] = (scratch.cpu_seconds(processes) - before) / one_by_one * 1000
            client.close()
            if statuses != {CREATED}:
                raise SystemExit(f"expected {CREATED} for every upload to {address}; got {sorted(statuses)}")
        waits_ms, errors = upload_together(port, secret, by_uploader)
    parse_ms = measure_parsing(one_by_one)
    p50, p95 = statistics.median(waits_ms), statistics.quantiles(waits_ms, n=20, method="inclusive")[-1]
    return {
        "ratio": round((cpu_ms[BARE] + parse_ms) / cpu_ms[INTAKE], 3),
        "intake_cpu_ms": round(cpu_ms[INTAKE], 2),
        "bare_cpu_ms": round(cpu_ms[BARE], 2),
        "parse_cpu_ms": round(parse_ms, 2),
        "statements": statements,
        "p50_ms": round(p50, 1),
        "p95_ms": round(p95, 1),
        "max_ms": round(max(waits_ms), 1),
        "p95_over_p50": round(p95 / p50, 2),
        "errors": errors,
    }


# Uploads


def session_log(name: str) -> bytes:
    """A Claude Code log of 40 reads, five edits and a commit."""
    calls = [({"command": f"cat src/mod{n}.py"}, "Bash", f"line {n} of {name} with words " * 90) for n in range(40)]
    calls += [({"file_path": f"/repo/src/mod{n}.py", "content": f"edit {n}"}, "Write", "ok") for n in range(5)]
    output = f"[main {scratch.commit_hash(name)[:7]}] Fix {name}\n 1 file changed, 1 insertion(+)"
    calls.append(({"command": f"git commit -am 'Fix {name}'"}, "Bash", output))
    turns = [scratch.text_turn("user", f"Fix {name}, please.")]
    for number, (arguments, tool, result) in enumerate(calls):
        turns.append(("assistant", [{"type": "tool_use", "id": f"t{number}", "name": tool, "input": arguments}]))
        turns.append(("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": result}]))
    turns.append(scratch.text_turn("assistant", "Fixed, and committed."))
    ended_at = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=13)
    return scratch.claude_log(name, turns, ended_at, seconds=30)


def session_patch(name: str) -> bytes:
    """Twelve new files of thirty lines."""
    files = []
    for path in (f"src/{name}{number}.py" for number in range(12)):
        head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,30 @@\n"
        files.append(head + "".join(f"+def {name}_{line}(): ...\n" for line in range(30)))
    return "".join(files).encode()


def upload_body(name: str) -> bytes:
    """The upload of a session, as multipart."""
    metadata = {"session_id": name, "category": "code", "harness": "claude-code"}
    parts = {
        'name="metadata"': json.dumps(metadata).encode(),
        'name="transcript"; filename="log.jsonl"': session_log(name),
        'name="journal"; filename="journal.md"': f"# Session {name}\nSubmitted the fix; all tests pass.\n".encode(),
        'name="patch"; filename="work.patch"': session_patch(name),
    }
    encoded = [
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + data
        for head, data in parts.items()
    ]
    return b"\r\n".join([*encoded, f"--{BOUNDARY}--\r\n".encode()])


def upload(client: HTTPConnection, address: str, secret: str) -> int:
    """Upload one more session. Returns the status."""
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": CONTENT_TYPE}
    client.request("POST", address, upload_body(f"s{next(upload_numbers)}x"), headers)
    reply = client.getresponse()
    reply.read()
    return reply.status


def upload_in_process(client: Any, body: bytes) -> None:
    reply = client.post(INTAKE, body, content_type=CONTENT_TYPE)
    if reply.status_code != CREATED:
        raise SystemExit(f"expected {CREATED}; got {reply.status_code}: {reply.content[:500]!r}")


# The site, and the bare view beside it


def first_uploads(secret: str) -> tuple[int, Rows]:
    """The number of statements of an upload to a site that has some, and the rows that the last of several added."""
    from django.apps import apps
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(headers={"Authorization": f"Bearer {secret}"})
    for name in ("first", "second"):
        upload_in_process(client, upload_body(name))
    models = [model for label in ("grading", "bandit") for model in apps.get_app_config(label).get_models()]
    counts, before = list[int](), dict[Any, list[Any]]()
    for number in range(COUNTED_UPLOADS):
        before = {model: list(model.objects.values_list("pk", flat=True)) for model in models}
        with CaptureQueriesContext(connection) as captured:
            upload_in_process(client, upload_body(f"counted{number}"))
        counts.append(len(captured))
    added = {model: list(model.objects.exclude(pk__in=before[model]).values()) for model in models}
    return statistics.median_low(counts), {model: rows for model, rows in added.items() if rows}


def bare_view(rows_by_model: Rows) -> Callable[[Any], Any]:
    """A view that stores the files of an upload and rows like these, and does nothing else."""
    from django.db import transaction
    from django.db.models import F
    from django.http import HttpResponse
    from django.views.decorators.csrf import csrf_exempt

    from bandit.models import Bandit, Bucket
    from grading.evidence import store
    from grading.models import ApiToken, Session

    (sample,) = rows_by_model[Session]

    def copy_row(model: Any, row: dict[str, Any], **columns: Any) -> Any:
        return model(**{name: columns.get(name, value) for name, value in row.items() if name != "id"})

    @csrf_exempt
    def view(request: Any) -> Any:
        if ApiToken.objects.authenticate(request.headers["Authorization"].removeprefix("Bearer ")) is None:
            return HttpResponse(status=401)
        for file in request.FILES.values():
            store.store(file)
        with transaction.atomic():
            session = copy_row(Session, sample, external_id=json.loads(request.POST["metadata"])["session_id"])
            session.save(force_insert=True)
            references = {"session_id": session.pk, "observation": session.observation}
            for model, rows in rows_by_model.items():
                if model is not Session:
                    created = model.objects.bulk_create(copy_row(model, row, **references) for row in rows)
                    references[f"{model.__name__.lower()}_id"] = created[0].pk
            Bucket.objects.filter(arm=sample["category_id"]).update(n=F("n") + 1)
            Bandit.objects.filter(name__in=["category", "harness"]).update(revision=next(upload_numbers))
        return HttpResponse(status=CREATED)

    return view


@contextmanager
def served(rows: Rows) -> Iterator[tuple[int, list[int]]]:
    """Serve the site and the bare view. Yields the port and the ids of the processes."""
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.urls import include, path
    from waitress import serve

    settings.ROOT_URLCONF = (path("bare/", bare_view(rows)), path("", include("gradingsite.urls")))
    application = get_wsgi_application()
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    listening.setblocking(False)  # noqa: FBT003 - as the socket module has it
    processes = []
    for _process in range(PROCESSES):
        pid = os.fork()
        if not pid:
            serve(application, sockets=[listening], threads=THREADS, _quiet=True)
            os._exit(0)
        processes.append(pid)
    try:
        yield listening.getsockname()[1], processes
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        listening.close()


def measure_parsing(times: int) -> float:
    """Milliseconds of processor time to read a log and a patch without storing anything."""
    from grading import formats, signals
    from grading.signals import patch as patches

    log, patch = session_log("parsed"), session_patch("parsed").decode()
    start = time.process_time()
    for _time in range(times):
        signals.extract(formats.read(io.BytesIO(log), "log.jsonl"))
        patches.parse(patch)
    return (time.process_time() - start) / times * 1000


def upload_together(port: int, secret: str, uploads: int) -> tuple[list[float], int]:
    """Milliseconds of each upload by uploaders that start together, and how many uploads failed."""
    waits_ms, errors, start_together = list[float](), list[int](), threading.Barrier(UPLOADERS)

    def work() -> None:
        client = HTTPConnection("127.0.0.1", port)
        start_together.wait()
        for _upload in range(uploads):
            started = time.perf_counter()
            status = upload(client, INTAKE, secret)
            waits_ms.append((time.perf_counter() - started) * 1000)
            if status != CREATED:
                errors.append(status)
        client.close()

    threads = [threading.Thread(target=work) for _uploader in range(UPLOADERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waits_ms, len(errors)


# Growth


def copy_site(folder: Path, url: str, sessions: int) -> tuple[Path, str, int]:
    """Copy the empty site in this folder. Returns its state, its database and the sessions that it should have."""
    from django.db import connection

    state = folder / f"of-{sessions}"
    state.mkdir(mode=0o700)
    if url:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE of_{sessions} TEMPLATE postgres")
    connection.close()
    if not url:
        shutil.copy(folder / "db.sqlite3", state)
    return state, url.replace("/postgres?", f"/of_{sessions}?"), sessions


def measure_growth(sites: list[tuple[Path, str, int]], turns: int, uploads: int) -> float:
    """The cost of an upload to the last of these sites, divided by that of one to the first."""
    spawn = multiprocessing.get_context("spawn")  # a process has the settings of one site
    with ExitStack() as stack:
        processes = [stack.enter_context(ProcessPoolExecutor(1, spawn)) for _site in sites]
        for building in [process.submit(pages.build, *site) for process, site in zip(processes, sites, strict=True)]:
            building.result()
        costs: list[list[float]] = [[] for _site in sites]
        for _turn in range(turns):
            for process, of_site in zip(processes, costs, strict=True):
                of_site.extend(process.submit(upload_costs, uploads).result())
    small, large = (statistics.median(of_site) for of_site in costs)
    print(f"one upload to a site of {sites[0][-1]:,} sessions: {small:.1f} ms; of {sites[-1][-1]:,}: {large:.1f}")
    return round(large / small, 3)


def upload_costs(count: int) -> list[float]:
    """Milliseconds of processor time of each of so many uploads to the site of this process."""
    client, costs = warmed_up_client(), []
    for body in [upload_body(f"grown{next(upload_numbers)}x") for _upload in range(count)]:
        started = pages.processor_ms()
        upload_in_process(client, body)
        costs.append(pages.processor_ms() - started)
    return costs


@cache
def warmed_up_client() -> Any:
    """An uploader's client for the site of this process, which has had some uploads by then."""
    from django.test import Client

    from grading.models import Agent, ApiToken

    _row, secret = ApiToken.objects.issue(Agent.objects.create(name="bench"))
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    for number in range(COUNTED_UPLOADS):
        upload_in_process(client, upload_body(f"warming{number}"))
    return client


if __name__ == "__main__":
    main()
