"""Other processes that share the test database. (Never import conftest: a second import is a second environment.)"""

import os
import subprocess
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
    process = subprocess.Popen(command, preexec_fn=die_with_parent, **options)
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
