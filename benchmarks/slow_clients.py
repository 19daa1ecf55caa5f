"""How quickly do pages come while slow clients hold connections? The real server, with and without them, in one run.

Beside the pages: half-sent headers, half-sent uploads with a live token, bodies that trickle, and replies that nobody
reads. Each page is asked for over a connection of its own. Those that the server closes are opened again.

    python benchmarks/slow_clients.py [--quick | --smoke]
"""

import http.client
import io
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Self

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size
from gradingsite import broker

PATHS = ("/", "/sessions/", "/alarms/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many times each page is asked for, and how many slow clients of each kind there are."""

    pages: int
    headers: int
    uploads: int
    trickles: int
    readers: int


LOADS = {
    Size.FULL: Load(pages=100, headers=200, uploads=50, trickles=10, readers=10),
    Size.QUICK: Load(pages=25, headers=200, uploads=50, trickles=10, readers=10),
    Size.SMOKE: Load(pages=1, headers=20, uploads=5, trickles=1, readers=1),
}


def main() -> None:
    parser = scratch.parser(__doc__, quick="75 pages instead of 300", smoke="three pages beside 27 slow clients")
    load, port = LOADS[parser.parse_args().size], broker.free_port()
    with tempfile.TemporaryDirectory() as state:
        scratch.site(state, PORT=str(port))
        cookie, token = visitors()
        with served(port):
            run(port, load, cookie, token)


def run(port: int, load: Load, cookie: str, token: str) -> None:
    asked = [(path, cookie) for path in PATHS] * load.pages
    for path, _ in asked[: len(PATHS)]:
        page(port, path, cookie)  # what the first request of a process does is nobody's figure
    alone = sorted(page(port, *each) for each in asked)
    with SlowClients(port, load, token) as slow:
        beside = []
        for each in asked:
            slow.go_on()
            beside.append(page(port, *each))
        beside.sort()
    figures = {
        f"{name}_p{share}_ms": round(statistics.quantiles(times, n=100, method="inclusive")[share - 1] * 1000, 1)
        for name, times in (("alone", alone), ("beside", beside))
        for share in (50, 95)
    }
    print(
        f"{len(asked)} pages: p50 {figures['alone_p50_ms']} ms, p95 {figures['alone_p95_ms']} ms; beside "
        f"{len(slow.clients)} slow clients: p50 {figures['beside_p50_ms']} ms, p95 {figures['beside_p95_ms']} ms"
    )
    print(json.dumps({**figures, "slow_clients": len(slow.clients), "pages": len(asked)}))


def page(port: int, path: str, cookie: str) -> float:
    """Seconds for one page, connecting included."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Cookie": cookie})
    reply = connection.getresponse()
    reply.read()
    connection.close()
    if reply.status != HTTPStatus.OK:
        raise RuntimeError(f"{path} replied {reply.status}")
    return time.perf_counter() - began


class SlowClients:
    """So many connections of each kind, kept open."""

    def __init__(self, port: int, load: Load, token: str) -> None:
        upload = (
            f"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 2000000\r\n\r\n"
        ).encode()
        headers = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
        self.port = port
        self.begin = {
            "headers": headers,
            "uploads": upload + b"x" * 20_000,
            "trickles": upload,
            "readers": b"GET /static/admin/css/base.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
        }
        self.clients = [(kind, self.connect(kind)) for kind in self.begin for _ in range(getattr(load, kind))]

    def connect(self, kind: str) -> socket.socket:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", self.port))
        client.settimeout(0)
        client.sendall(self.begin[kind])
        return client

    def go_on(self) -> None:
        """A byte more from those that trickle; and those that the server has closed come again."""
        for place, (kind, client) in enumerate(self.clients):
            try:
                if kind in {"headers", "trickles"}:
                    client.send(b"x")
            except BlockingIOError:
                pass
            except OSError:
                client.close()
                self.clients[place] = (kind, self.connect(kind))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _, client in self.clients:
            client.close()


def visitors() -> tuple[str, str]:
    """The cookie of somebody who is signed in, and an agent's token; and the bundled sessions to look at."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from grading.models import Agent, ApiToken

    call_command("load_samples", verbosity=0, stdout=io.StringIO())
    browser = Client()
    browser.force_login(User.objects.create_superuser("bench"))
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={browser.cookies[name].value}", ApiToken.objects.issue(Agent.objects.create(name="bench"))[1]


@contextmanager
def served(port: int) -> Iterator[subprocess.Popen]:
    """The site's web processes, in this process' environment."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gradingsite.web"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if not (process.stdout and process.stdout.readline().startswith("serving")):
            raise RuntimeError("the site did not start")
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


if __name__ == "__main__":
    main()
