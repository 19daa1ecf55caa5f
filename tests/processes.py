"""Other processes that share the test database. (Never import conftest: a second import is a second environment.)"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gradingsite.supervisor import die_with_parent


def for_the_site() -> dict[str, str]:
    """The environment in which another process of the site works on the test database."""
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "gradingsite.settings", "DATABASE_URL": database_url()}


def database_url() -> str:
    """The test database, as a DATABASE_URL for another process."""
    from django.db import connection

    config = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{config['NAME']}"
    server, _, options = os.environ["DATABASE_URL"].partition("?")
    return f"{server.rpartition('/')[0]}/{config['NAME']}?{options}"


@contextmanager
def started(command: list[str], **options) -> Iterator[subprocess.Popen]:
    """A process that is ended afterwards."""
    process = subprocess.Popen(command, preexec_fn=_begin, **options)
    try:
        yield process
    finally:
        stop(process)


def _begin() -> None:
    """Tests that run in the background may have been told to ignore a Ctrl-C, and would hand that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent()


def wait_for(condition, seconds: float = 90) -> None:
    """Returns once `condition()` is true; fails the test where it never is. Generous: test machines are shared."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain; see the worker's output"
        time.sleep(0.1)


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
