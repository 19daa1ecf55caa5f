"""Serves the site: `python -m gradingsite.web`. Loads the code once, binds a socket, forks WEB_CONCURRENCY processes.

With `--with-worker` it also forks a worker, like `celery worker --with-scheduler`: the code is then in memory only
once. The parent serves nothing. It restarts processes that die, and ends all of them at a signal.
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
from typing import Any

from gradingsite.ports import port_taken
from gradingsite.server import STOP_SECONDS, EarlyReply, Environ, SharedCounts, WebServer
from gradingsite.supervisor import die_with_parent

BACKLOG = 1024
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RESTART_SECONDS = 1.0  # before a process that died is started again


def main() -> None:
    """Serve until a signal.

    If the site can't start or the port is taken, `schema.begin_program` or `listen` exits with 1 and a line that says
    why.
    """
    parser = argparse.ArgumentParser(prog="python -m gradingsite.web", description="Serves the site.")
    parser.add_argument("--with-worker", action="store_true", help="run a worker with the scheduler, too")
    with_worker = parser.parse_args().with_worker
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gradingsite.settings")
    from django.conf import settings
    from django.db import connections

    from gradingsite import celery, schema
    from gradingsite.sqlite.base import use_durable_commits
    from gradingsite.wsgi import application  # sets up Django, without which models cannot be imported

    load_code()
    schema.begin_program()
    use_durable_commits()
    celery.app.finalize()  # requests send messages to workers
    connections.close_all()
    logging.getLogger("waitress").setLevel(logging.WARNING)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    tempfile.tempdir = str(settings.TEMP_DIR)
    sock = listen(settings.HOST, settings.PORT)
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    print(f"serving http://{host}:{settings.PORT}/", flush=True)  # noqa: T201  the supervisor's log reads it
    counts = SharedCounts(settings.WEB_CONCURRENCY)
    gc.freeze()
    programs = {
        f"web process {process}": partial(serve, process, application, sock, counts)
        for process in range(settings.WEB_CONCURRENCY)
    }
    if with_worker:
        programs["worker"] = partial(run_worker, sock)
    keep_running(programs)


def load_code() -> None:
    """Import all code of the site: errors show before anything is served, and forked processes share the memory.

    SciPy takes 0.3 s of CPU to import, which would be most of the first page that computes with it.
    """
    import scipy.special  # noqa: F401
    from django.urls import get_resolver

    _ = get_resolver().url_patterns
    import grading.api.gate
    import grading.monitoring.attending  # noqa: F401


def serve(process: int, application: Callable[..., Any], sock: socket.socket, counts: SharedCounts) -> None:
    """Serve until a stop signal. Runs in a forked process, where `keep_running` has left these signals blocked."""
    from grading.api.gate import refusal_of
    from grading.health import pulse
    from grading.health.liveness import Component
    from grading.housekeeping import Housekeeping
    from grading.monitoring.attending import attend
    from gradingsite import telemetry

    counts.clear(process)
    server = WebServer(application, partial(gate, refusal_of), sock, counts=counts, process=process)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: server.stop())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*STOP_SIGNALS, signal.SIGCHLD})
    telemetry.start("web")
    attend(Component.WEB)
    Housekeeping(is_worker=False).start()
    server.run()
    pulse.stop()


def gate(refusal_of: Callable[[Environ], Any], environ: Environ) -> EarlyReply | None:
    """The reply to a request whose body must not be read; None to read it (`server.Gate`)."""
    response = refusal_of(environ)
    if response is None:
        return None
    status = f"{response.status_code} {HTTPStatus(response.status_code).phrase}"
    return EarlyReply(status=status, headers=list(response.items()), body=response.content)


def run_worker(sock: socket.socket) -> None:
    """Run a Celery worker, without the web server's socket, until a stop signal. Called like `serve`."""
    from gradingsite import celery

    sock.close()
    for number in (*STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*STOP_SIGNALS, signal.SIGCHLD})
    # Celery gives this warning to root. It is meant for brokers that others can reach.
    warnings.filterwarnings("ignore", "You're running the worker")
    options = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
    worker = celery.app.Worker(loglevel=logging.WARNING, quiet=True, with_scheduler=True, **options)
    worker.start()
    sys.exit(worker.exitcode)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. If that is impossible, exits with a line that says why."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    is_dual_stack = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=is_dual_stack)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            sys.exit(port_taken(port))
        sys.exit(f"Cannot listen at {host}, port {port}: {error}")


def keep_running(programs: Mapping[str, Callable[[], None]]) -> None:
    """Fork a process for each program, by name. Restart those that end, and end all at one of STOP_SIGNALS.

    A process that hasn't ended a second after STOP_SECONDS is killed.
    """
    signal.signal(signal.SIGCHLD, lambda *_: None)  # on some systems sigwait misses a signal that is ignored
    signal.pthread_sigmask(signal.SIG_BLOCK, {*STOP_SIGNALS, signal.SIGCHLD})
    running = {fork(run): name for name, run in programs.items()}  # names by process id
    while signal.sigwait({*STOP_SIGNALS, signal.SIGCHLD}) == signal.SIGCHLD:
        for process, status in reap_children():
            name = running.pop(process)
            exit_code = os.waitstatus_to_exitcode(status)
            print(f"{name} FELL (status {exit_code}); starting it again", flush=True)  # noqa: T201
            time.sleep(RESTART_SECONDS)
            running[fork(programs[name])] = name
    for process in running:
        os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS + 1
    while running:
        for process, _ in reap_children():
            del running[process]
        if time.monotonic() > deadline:
            for process in running:
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def fork(run: Callable[[], None]) -> int:
    """Fork a process that calls `run` and exits. Returns its id."""
    parent = os.getpid()
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        die_with_parent()
        if os.getppid() == parent:  # otherwise the parent died before `die_with_parent` took effect
            run()
            status = 0
    except BaseException as error:  # noqa: BLE001  the child must not return into the parent's code
        if isinstance(error, SystemExit) and isinstance(error.code, int):  # a worker that was stopped
            status = error.code
        else:
            traceback.print_exc()
    finally:
        logging.shutdown()
        sys.stdout.flush()
        os._exit(status)


def reap_children() -> list[tuple[int, int]]:
    """The id and wait status of each child that has ended since the last call."""
    children: list[tuple[int, int]] = []
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # there are no children left
            return children
        if not process:
            return children
        children.append((process, status))


if __name__ == "__main__":
    main()
