"""The sites that are attacked: the code in this process, or the site's own processes; each may be put back as it was.

Whoever sends anything does so over HTTP, whichever it is; only what became of it is read from the database.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import httpx2

from benchmarks.drill import site as processes
from tests import caches

PATIENCE = 90.0
# What people look at meanwhile.
PAGES = ("/", "/sessions/", "/bandits/category/", "/review/progress/", "/alarms/")


class Attacked(Protocol):
    """A site that can be put back as it was. `beside` says whether others can use it at the same time."""

    beside: bool

    def client(self) -> httpx2.Client:
        """A client of its web server."""
        ...

    def judge(self) -> None:
        """Returns once no job of the judge is open."""
        ...

    def restore(self) -> None:
        """Put the database back as it was when the history was written."""
        ...


class Database:
    """The site's database, and how it was when the history was written."""

    def __init__(self, state: Path, url: str) -> None:
        self.file, self.url = state / "db.sqlite3", url

    def keep(self) -> None:
        """What `restore` brings back."""
        from django.db import connection, connections

        if self.url:
            connections.close_all()
            self._admin('CREATE DATABASE redteam_kept TEMPLATE "{}"')
            return
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connections.close_all()
        shutil.copy(self.file, self.file.with_suffix(".kept"))

    def restore(self) -> None:
        from django.db import connections

        connections.close_all()
        caches.drop_all()  # they name rows of what is replaced
        if self.url:
            self._admin('DROP DATABASE "{}" WITH (FORCE)', 'CREATE DATABASE "{}" TEMPLATE redteam_kept')
            return
        for suffix in ("-wal", "-shm"):
            Path(f"{self.file}{suffix}").unlink(missing_ok=True)
        shutil.copy(self.file.with_suffix(".kept"), self.file)

    def _admin(self, *statements: str) -> None:
        import psycopg

        server, _, options = self.url.partition("?")
        before, _, name = server.rpartition("/")
        with psycopg.connect(f"{before}/postgres?{options}", autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.format(name))


def half_an_hour_later() -> None:
    """What waits until nothing more comes for its session has waited long enough."""
    from django.utils import timezone

    from grading.models import JudgeJob

    now = timezone.now()
    JudgeJob.objects.open().filter(next_attempt_at__gt=now).update(next_attempt_at=now)


class InProcess:
    """The site's code in this process, behind its own WSGI application."""

    beside = False

    def __init__(self, database: Database) -> None:
        from gradingsite.wsgi import application

        self.database = database
        self.transport = httpx2.WSGITransport(app=application)

    def client(self) -> httpx2.Client:
        return httpx2.Client(transport=self.transport, base_url="http://localhost", timeout=60)

    def judge(self) -> None:
        from grading import judging
        from grading.models import JudgeJob

        deadline = time.monotonic() + PATIENCE
        while JudgeJob.objects.open().exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the judge has not answered within {PATIENCE:g} s")
            half_an_hour_later()
            judging.pump()
            if JudgeJob.objects.open().exists():
                judging.sweep()
                time.sleep(0.02)

    def restore(self) -> None:
        self.database.restore()


class Processes:
    """The site as its own programs: broker, judge, web server, a worker. Web and worker start anew on each database."""

    beside = True
    FRESH = (processes.WEB, processes.WORKERS[0])

    def __init__(self, site: processes.Site, database: Database) -> None:
        self.site, self.database = site, database

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.site.web, timeout=60)

    def judge(self) -> None:
        from grading import judging
        from grading.models import JudgeJob
        from grading.wakeup import publish

        deadline = time.monotonic() + PATIENCE
        looked = time.monotonic()
        while JudgeJob.objects.open().exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the judge has not answered: {self.site.last_words(self.FRESH[1])}")
            if time.monotonic() - looked > 1:  # the sweep's work, whose clock does not run here
                looked = time.monotonic()
                half_an_hour_later()
                judging.sweep()
                publish()
            time.sleep(0.05)

    def restore(self) -> None:
        for name in self.FRESH:
            if name in self.site.running:
                self.site.kill(name)
        self.database.restore()
        for name in self.FRESH:
            self.site.start(name)
        deadline = time.monotonic() + PATIENCE
        while not (self._answers() and self.site.is_ready(self.FRESH[1])):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the site did not come up: {self.site.last_words(self.FRESH[0])}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        with suppress(httpx2.HTTPError):
            return httpx2.get(f"{self.site.web}/login/", timeout=5).is_success
        return False


@contextmanager
def in_process(database: Database) -> Iterator[InProcess]:
    """The code in this process as the site, with a judge that believes what it reads."""
    from django.conf import settings

    from grading.simulator import Simulator

    with Simulator(options={"credulous": True}) as judge:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-redteam", judge.url
        settings.JUDGE_BACKOFF_SECONDS = 0.01
        settings.ALLOWED_HOSTS = ["*"]
        yield InProcess(database)


@contextmanager
def as_processes(state: Path, ours: processes.Broker, database: Database) -> Iterator[Processes]:
    """The site's own programs, until the end, whatever comes."""
    wanted = {processes.BROKER, processes.JUDGE, processes.WEB, processes.WORKERS[0]}
    programs = {name: command for name, command in processes.commands(state, ours).items() if name in wanted}
    site = processes.Site(programs, state, ours)
    try:
        site.start(processes.BROKER)
        site.start(processes.JUDGE)
        ours.wait_until_up(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                site.order(mode="verdict", options={"credulous": True}, latency=0.01)
                break
            except httpx2.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield Processes(site, database)
    finally:
        site.stop()
