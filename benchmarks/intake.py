"""What does taking a session in cost, beside a bare view that keeps the same bytes and writes the same rows? How does
that grow with the site? And how long do eight uploaders wait for each other?

Real uploads of a log of 110 kB, a journal and a patch over HTTP, to two processes of eight threads that write to one
SQLite database, or to a PostgreSQL server of its own, whose processor time is not counted. `ratio` is what the bare
view and reading the log take of processor time, as a share of what an intake takes: 1 would mean that grading, settling
and inspecting are free. `statements` are those of one upload, the median of several: now and then one is in the random
slice, or has the alarms look.

`growth` is what an upload costs on a site of 100,000 sessions (`benchmarks/large`), over what it costs on one of 40:
each in a process of its own, in turns of a few uploads, the median of them all. There the processor time of the
PostgreSQL server counts, too.

    python benchmarks/intake.py [--quick | --smoke] [--database postgres]
"""

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
# How many uploads have their statements counted.
COUNTED = 5
# How many uploads one after the other, and how many each of the uploaders makes; to each view.
SIZES = {Size.FULL: (200, 60), Size.QUICK: (60, 20), Size.SMOKE: (3, 1)}
# Sessions of an almost empty site and of a large one; and how many turns each has, of how many uploads.
GROWN = {Size.FULL: ((40, 100_000), 30, 10), Size.QUICK: ((40, 10_000), 10, 5), Size.SMOKE: ((4, 8), 1, 2)}
BOUNDARY = "a-part-of-the-upload"
INTAKE, BARE = "/api/v1/sessions", "/bare/"
CREATED = 201
Send = Callable[[HTTPConnection, str], int]
# The columns of rows, by their model.
Rows = dict[Any, list[dict[str, Any]]]


def main() -> None:
    parser = scratch.parser(__doc__, quick="60 uploads instead of 200", smoke="3 uploads")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite", help="where the rows go")
    given = parser.parse_args()
    database = postgres.server([*postgres.FASTEST, pages.ALONE]) if given.database == "postgres" else nullcontext("")
    sessions, turns, each = GROWN[given.size]
    with tempfile.TemporaryDirectory() as folder, database as url:
        scratch.site(folder, database=url)
        sites = [another(Path(folder), url, count) for count in sessions]
        figures = run(*SIZES[given.size])
        print(json.dumps(figures | {"growth": growth(sites, turns, each)}))


def run(one_by_one: int, each: int) -> dict[str, Any]:
    from django.db import connection

    from grading.models import Agent, ApiToken

    agent = Agent.objects.create(name="bench")
    _row, secret = ApiToken.objects.issue(agent)
    statements, left = first_uploads(secret)
    connection.close()
    with served(left) as (port, processes):

        def send(client: HTTPConnection, where: str) -> int:
            return upload(client, where, secret)

        measured = {}
        for where in (INTAKE, BARE):
            client = HTTPConnection("127.0.0.1", port)
            for _warming in range(2 * PROCESSES):
                send(client, where)
            before, statuses = scratch.cpu_seconds(processes), [send(client, where) for _ in range(one_by_one)]
            measured[where] = (scratch.cpu_seconds(processes) - before) / one_by_one * 1000
            client.close()
            if set(statuses) != {CREATED}:
                raise SystemExit(f"expected {CREATED} for every upload to {where}; got {sorted(set(statuses))}")
        waits, errors = together(port, send, each)
    parsing = parse_ms(one_by_one)
    p50, p95 = statistics.median(waits), statistics.quantiles(waits, n=20, method="inclusive")[-1]
    print(
        f"one upload: {measured[INTAKE]:.1f} ms of processor; the bare view {measured[BARE]:.1f}, reading {parsing:.1f}"
    )
    print(f"{UPLOADERS} uploaders: half of them done within {p50:.0f} ms, 95 of 100 within {p95:.0f}; errors: {errors}")
    return {
        "ratio": round((measured[BARE] + parsing) / measured[INTAKE], 3),
        "intake_cpu_ms": round(measured[INTAKE], 2),
        "bare_cpu_ms": round(measured[BARE], 2),
        "parse_cpu_ms": round(parsing, 2),
        "statements": statements,
        "p50_ms": round(p50, 1),
        "p95_ms": round(p95, 1),
        "max_ms": round(max(waits), 1),
        "p95_over_p50": round(p95 / p50, 2),
        "errors": errors,
    }


# --- what is uploaded ------------------------------------------------------------------------------------------------


def log(name: str) -> bytes:
    """A Claude Code log of 40 looks, five edits and a commit."""
    calls = [({"command": f"cat src/mod{n}.py"}, "Bash", f"line {n} of {name} with words " * 90) for n in range(40)]
    calls += [({"file_path": f"/repo/src/mod{n}.py", "content": f"edit {n}"}, "Write", "ok") for n in range(5)]
    made = f"[main {hash(name) % 16**7:07x}] Fix {name}\n 1 file changed, 1 insertion(+)"
    calls.append(({"command": f"git commit -am 'Fix {name}'"}, "Bash", made))
    turns: list[tuple[str, list[dict[str, Any]]]] = [("user", [{"type": "text", "text": f"Fix {name}, please."}])]
    for number, (given, tool, result) in enumerate(calls):
        turns.append(("assistant", [{"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}]))
        turns.append(("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": result}]))
    turns.append(("assistant", [{"type": "text", "text": "Fixed, and committed."}]))
    lines = []
    for number, (role, content) in enumerate(turns):
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            message |= {
                "id": f"m{number}",
                "model": "claude-opus-4-6",
                "usage": {"input_tokens": 9, "output_tokens": 5},
            }
        said = {"type": role, "uuid": f"{name}-{number}", "sessionId": name, "cwd": "/repo", "version": "2.1.0"}
        at = time.strftime("%Y-%m-%dT%H:%M:00.000Z", time.gmtime(time.time() - 3600 + 30 * number))
        lines.append({**said, "isSidechain": False, "timestamp": at, "message": message})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def patch(name: str) -> bytes:
    """Twelve new files of thirty lines."""
    files = []
    for path in (f"src/{name}{number}.py" for number in range(12)):
        head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,30 @@\n"
        files.append(head + "".join(f"+def {name}_{line}(): ...\n" for line in range(30)))
    return "".join(files).encode()


def body(name: str) -> bytes:
    """The upload of a session, as multipart."""
    metadata = {"session_id": name, "category": "code", "harness": "claude-code"}
    journal = f"# Session {name}\nSubmitted the fix; all tests pass.\n"
    parts = {
        'name="metadata"': json.dumps(metadata).encode(),
        'name="transcript"; filename="log.jsonl"': log(name),
        'name="journal"; filename="journal.md"': journal.encode(),
        'name="patch"; filename="work.patch"': patch(name),
    }
    said = [
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + data
        for head, data in parts.items()
    ]
    return b"\r\n".join([*said, f"--{BOUNDARY}--\r\n".encode()])


_numbers = iter(range(10**9))


def upload(client: HTTPConnection, where: str, secret: str) -> int:
    """The status of one more session's upload."""
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    client.request("POST", where, body(f"s{next(_numbers)}x"), headers)
    reply = client.getresponse()
    reply.read()
    return reply.status


# --- the site, and the bare view beside it ---------------------------------------------------------------------------


def first_uploads(secret: str) -> tuple[int, Rows]:
    """The statements of an upload to a site that has had some, and the rows that the last of several left."""
    from django.apps import apps
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(headers={"Authorization": f"Bearer {secret}"})
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    for name in ("first", "second"):
        client.post(INTAKE, body(name), content_type=kind)
    models = [model for label in ("grading", "bandit") for model in apps.get_app_config(label).get_models()]
    counts, before = list[int](), dict[Any, set[Any]]()
    for number in range(COUNTED):
        before = {model: set(model.objects.values_list("pk", flat=True)) for model in models}
        with CaptureQueriesContext(connection) as captured:
            reply = client.post(INTAKE, body(f"counted{number}"), content_type=kind)
        if reply.status_code != CREATED:
            raise SystemExit(f"expected {CREATED}; got {reply.status_code}: {reply.content[:500]!r}")
        counts.append(len(captured))
    left = {model: list(model.objects.exclude(pk__in=list(before[model])).values()) for model in models}
    return statistics.median_low(counts), {model: rows for model, rows in left.items() if rows}


def bare_view(left: Rows) -> Callable[[Any], Any]:
    """A view that keeps the files of an upload and writes rows like these, and nothing else."""
    from django.db import transaction
    from django.db.models import F
    from django.http import HttpResponse
    from django.views.decorators.csrf import csrf_exempt

    from bandit.models import Bandit, Bucket
    from grading.evidence import store
    from grading.models import ApiToken, Session

    (sample,) = left[Session]

    def fresh(model: Any, row: dict[str, Any], **columns: Any) -> Any:
        return model(**{name: columns.get(name, value) for name, value in row.items() if name != "id"})

    @csrf_exempt
    def bare(request: Any) -> Any:
        if ApiToken.objects.authenticate(request.headers["Authorization"].removeprefix("Bearer ")) is None:
            return HttpResponse(status=401)
        for file in request.FILES.values():
            store.store(file)
        with transaction.atomic():
            session = fresh(Session, sample, external_id=json.loads(request.POST["metadata"])["session_id"])
            session.save(force_insert=True)
            own = {"session_id": session.pk, "observation": session.observation}
            for model, rows in left.items():
                if model is not Session:
                    made = model.objects.bulk_create(fresh(model, row, **own) for row in rows)
                    own[f"{model.__name__.lower()}_id"] = made[0].pk
            Bucket.objects.filter(arm=sample["category_id"]).update(n=F("n") + 1)
            Bandit.objects.filter(name__in=["category", "harness"]).update(revision=next(_numbers))
        return HttpResponse(status=CREATED)

    return bare


@contextmanager
def served(left: Rows) -> Iterator[tuple[int, list[int]]]:
    """The port of the site with the bare view beside it, and the keys of its processes."""
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.urls import include, path
    from waitress import serve

    settings.ROOT_URLCONF = (path("bare/", bare_view(left)), path("", include("gradingsite.urls")))
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


# --- what is measured ------------------------------------------------------------------------------------------------


def parse_ms(times: int) -> float:
    """Milliseconds of processor time to read a log and a patch, without keeping anything."""
    import io

    from grading import formats, signals
    from grading.signals import patch as patches

    data, diff = log("parsed"), patch("parsed").decode()
    start = time.process_time()
    for _time in range(times):
        signals.extract(formats.read(io.BytesIO(data), "log.jsonl"))
        patches.parse(diff)
    return (time.process_time() - start) / times * 1000


def together(port: int, send: Send, each: int) -> tuple[list[float], int]:
    """Milliseconds of each upload by uploaders that start together, and how many were refused or broke."""
    waits, errors, begin = list[float](), list[int](), threading.Barrier(UPLOADERS)

    def work() -> None:
        client = HTTPConnection("127.0.0.1", port)
        begin.wait()
        for _upload in range(each):
            start = time.perf_counter()
            status = send(client, INTAKE)
            waits.append((time.perf_counter() - start) * 1000)
            if status != CREATED:
                errors.append(status)
        client.close()

    threads = [threading.Thread(target=work) for _uploader in range(UPLOADERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waits, len(errors)


# --- and on a large site ---------------------------------------------------------------------------------------------


def another(folder: Path, url: str, sessions: int) -> tuple[Path, str, int]:
    """The state, the database and the sessions that it is to have, of a copy of the site that is in this folder."""
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


def growth(sites: list[tuple[Path, str, int]], turns: int, each: int) -> float:
    """What an upload costs on the last of these sites, over what it costs on the first."""
    anew = multiprocessing.get_context("spawn")  # a site's settings are its process's
    with ExitStack() as stack:
        processes = [stack.enter_context(ProcessPoolExecutor(1, anew)) for _site in sites]
        built = [process.submit(pages.build, *site) for process, site in zip(processes, sites, strict=True)]
        for site in built:
            site.result()
        costs = [[process.submit(uploads_ms, each).result() for process in processes] for _turn in range(turns)]
    small, large = (statistics.median(ms for turn in of for ms in turn) for of in zip(*costs, strict=True))
    print(f"one upload to a site of {sites[0][-1]:,} sessions: {small:.1f} ms; of {sites[-1][-1]:,}: {large:.1f}")
    return round(large / small, 3)


def uploads_ms(count: int) -> list[float]:
    """Milliseconds of processor time that each of so many uploads takes, to the site of this process."""
    bodies = [body(f"grown{next(_numbers)}x") for _upload in range(count)]
    send, each = _sender(), []
    for content in bodies:
        began = pages.processor()
        send(content)
        each.append(pages.processor() - began)
    return each


@cache
def _sender() -> Callable[[bytes], None]:
    """What uploads to the site of this process, which has had some uploads by then."""
    from django.test import Client

    from grading.models import Agent, ApiToken

    _row, secret = ApiToken.objects.issue(Agent.objects.create(name="bench"))
    client = Client(headers={"Authorization": f"Bearer {secret}"})

    def send(content: bytes) -> None:
        reply = client.post(INTAKE, content, content_type=f"multipart/form-data; boundary={BOUNDARY}")
        if reply.status_code != CREATED:
            raise SystemExit(f"expected {CREATED}; got {reply.status_code}: {reply.content[:500]!r}")

    for number in range(COUNTED):
        send(body(f"warming{number}"))
    return send


if __name__ == "__main__":
    main()
