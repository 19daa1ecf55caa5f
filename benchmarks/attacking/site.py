"""The site that is attacked: its code in this process, behind its WSGI application. All attacks come over HTTP."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests import caches

JUDGE_SECONDS = 90.0


class AttackedSite:
    """A site on SQLite that can be put back as it was when it was saved under a name."""

    def __init__(self, state: Path) -> None:
        from gradingsite.wsgi import application

        self.database = state / "db.sqlite3"
        self.transport = httpx2.WSGITransport(app=application)

    def client(self) -> httpx2.Client:
        return httpx2.Client(transport=self.transport, base_url="http://localhost", timeout=60)

    def judge_all(self) -> None:
        """Judge until no job is open. Jobs that wait for more evidence wait no longer."""
        from django.utils import timezone

        from grading.judging import sweeper, worker
        from grading.models import JudgeJob

        deadline = time.monotonic() + JUDGE_SECONDS
        while JudgeJob.objects.open().exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the judge has not answered within {JUDGE_SECONDS:g} s")
            now = timezone.now()
            JudgeJob.objects.open().filter(next_attempt_at__gt=now).update(next_attempt_at=now)
            worker.pump()
            if JudgeJob.objects.open().exists():
                sweeper.sweep()
                time.sleep(0.02)

    def save(self, name: str) -> None:
        from django.db import connection, connections

        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connections.close_all()
        shutil.copy(self.database, self.database.with_suffix(f".{name}"))

    def restore(self, name: str) -> None:
        from django.db import connections

        connections.close_all()
        caches.drop_all()  # they refer to rows of the database that is replaced
        for suffix in ("-wal", "-shm"):
            Path(f"{self.database}{suffix}").unlink(missing_ok=True)
        shutil.copy(self.database.with_suffix(f".{name}"), self.database)


@contextmanager
def attacked_site(state: Path) -> Iterator[AttackedSite]:
    """The site whose database is in this folder, with a judge that believes what it reads."""
    from django.conf import settings

    from grading.simulator import Simulator

    with Simulator(options={"credulous": True}) as judge:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-redteam", judge.url
        settings.JUDGE_BACKOFF_SECONDS = 0.01
        settings.ALLOWED_HOSTS = ["*"]
        yield AttackedSite(state)
