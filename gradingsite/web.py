"""Serves the site: `python -m gradingsite.web`. Loads it once, binds a socket, keeps WEB_CONCURRENCY processes on it.

With `--with-worker` it keeps a worker, too, the same that `celery worker --with-scheduler` runs: what all of them have
loaded is in memory once. The parent serves nothing. It starts a process again that died, and ends all at a signal.
"""

import argparse
import errno
import gc
import logging
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

from gradingsite.ports import taken
from gradingsite.server import STOP_SECONDS, EarlyReply, Environ, SharedCounts, WebServer
from gradingsite.supervisor import die_with_parent

BACKLOG = 1024
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A process that dies at once is started again no more often than this.
PAUSE_SECONDS = 1.0


def main() -> None:
    """Serve until a signal. Exits with 1 and a line that says why where the site cannot start or the port is taken."""
    parser = argparse.ArgumentParser(prog="python -m gradingsite.web", description="Serves the site.")
    parser.add_argument("--with-worker", action="store_true", help="keep a worker with the scheduler, too")
    with_worker = parser.parse_args().with_worker
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gradingsite.settings")
    from django.conf import settings
    from django.db import connections
    from django.urls import get_resolver

    from gradingsite import celery, running, telemetry
    from gradingsite.sqlite.base import durably
    from gradingsite.wsgi import application

    # All of the site's code now: what is wrong with it is said before anything is served, and the processes share it.
    _ = get_resolver().url_patterns
    from grading import monitoring
    from grading.api.gate import refusal_of
    from grading.health.liveness import Component

    def gate(environ: Environ) -> EarlyReply | None:
        response = refusal_of(environ)
        if response is None:
            return None
        status = f"{response.status_code} {HTTPStatus(response.status_code).phrase}"
        return EarlyReply(status=status, headers=list(response.items()), body=response.content)

    running.begin_program()
    durably()
    celery.app.finalize()  # workers are woken by it
    connections.close_all()
    logging.getLogger("waitress").setLevel(logging.WARNING)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    tempfile.tempdir = str(settings.TEMP_DIR)
    sock = listen(settings.HOST, settings.PORT)
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    print(f"serving http://{host}:{settings.PORT}/", flush=True)  # noqa: T201  the supervisor's log reads it
    counts = SharedCounts(settings.WEB_CONCURRENCY)
    gc.freeze()

    def serve(process: int) -> None:
        counts.clear(process)
        server = WebServer(application, gate, sock, counts=counts, process=process)
        for number in STOPS:
            signal.signal(number, lambda *_: server.stop())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*STOPS, signal.SIGCHLD})
        telemetry.start("web")
        monitoring.attend(Component.WEB)
        server.run()

    def work() -> None:
        sock.close()
        for number in (*STOPS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*STOPS, signal.SIGCHLD})
        warnings.filterwarnings(
            "ignore", "You're running the worker"
        )  # as root: meant for brokers that strangers reach
        options = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        worker = celery.app.Worker(loglevel=logging.WARNING, quiet=True, with_scheduler=True, **options)
        worker.start()
        sys.exit(worker.exitcode)

    programs = {f"web process {process}": partial(serve, process) for process in range(settings.WEB_CONCURRENCY)}
    keep_running(programs | ({"worker": work} if with_worker else {}))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Ends the program with a line that says why where there is none to be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        sys.exit(taken(port) if error.errno == errno.EADDRINUSE else f"Cannot listen at {host}, port {port}: {error}")


def keep_running(programs: Mapping[str, Callable[[], None]]) -> None:
    """Fork a process for each of these, by name; start one again that ends; at a signal, end all."""
    signal.signal(signal.SIGCHLD, lambda *_: None)  # one that is ignored would not be waited for everywhere
    signal.pthread_sigmask(signal.SIG_BLOCK, {*STOPS, signal.SIGCHLD})
    running = {fork(run): name for name, run in programs.items()}
    while signal.sigwait({*STOPS, signal.SIGCHLD}) == signal.SIGCHLD:
        for process, status in ended():
            name = running.pop(process)
            how = os.waitstatus_to_exitcode(status)
            print(f"{name} FELL (status {how}); starting it again", flush=True)  # noqa: T201
            time.sleep(PAUSE_SECONDS)
            running[fork(programs[name])] = name
    for process in running:
        os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS + 1
    while running:
        for process, _ in ended():
            del running[process]
        if time.monotonic() > deadline:
            for process in running:
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def fork(run: Callable[[], None]) -> int:
    """A new process that runs this and ends with it; its id."""
    parent = os.getpid()
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        die_with_parent()
        if os.getppid() == parent:
            run()
            status = 0
    except BaseException as error:  # noqa: BLE001  nothing of the parent's may run on in the child
        if isinstance(error, SystemExit) and isinstance(error.code, int):  # a worker that was asked to end
            status = error.code
        else:
            traceback.print_exc()
    finally:
        logging.shutdown()
        sys.stdout.flush()
        os._exit(status)


def ended() -> list[tuple[int, int]]:
    """The processes that ended since, each with its status."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if not process:
            return found
        found.append((process, status))


if __name__ == "__main__":
    main()
