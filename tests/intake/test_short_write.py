"""Files are read before the transaction that writes; what came meanwhile counts too."""

import io
import threading
from functools import partial

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from psycopg.errors import DeadlockDetected

from grading.busy import retry_on_deadlock
from grading.models import Agent, Artifact, Evidence, Session
from tests.casts.intake import answered, called, claude, reward, says

pytestmark = pytest.mark.django_db

JOURNAL = "# Today\nSubmitted PR #5 with the fix; all tests pass.\n"


def log(name: str) -> bytes:
    turns = [
        ("user", "Look around and write down what is worth knowing. " + "x" * 6_000),
        ("assistant", [called(1, "Write", file_path="/repo/knowledge/other.md", content="Words. " * 60)]),
        ("user", [answered(1, "File created successfully at: /repo/knowledge/other.md")]),
        says("Done."),
    ]
    return claude(name, *turns)


def patch(text: str = "retries") -> str:
    lines = [f"What the guard of {text} number {number} does, and why it was needed then." for number in range(12)]
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/knowledge/{text}.md b/knowledge/{text}.md\nnew file mode 100644\n"
    return f"{head}--- /dev/null\n+++ b/knowledge/{text}.md\n@@ -0,0 +1,{len(lines)} @@\n{body}"


class SlowUpload(io.BytesIO):
    """Its first read waits until another thread has done its work."""

    def __init__(self, data: bytes, meanwhile) -> None:
        super().__init__(data)
        self.meanwhile = meanwhile

    def read(self, size: int | None = -1) -> bytes:
        if self.meanwhile is not None:
            thread = threading.Thread(target=self.work, args=[self.meanwhile])
            self.meanwhile = None
            thread.start()
            thread.join()
        return super().read(size)

    def work(self, meanwhile) -> None:
        meanwhile()
        connection.close()


def said(session: Session) -> list[tuple]:
    """What each source says last, of what, and what was left behind."""
    rows = {row.source: row for row in session.grades.order_by("pk")}
    grades = [(row.source, row.status, row.value, row.reason, row.detail, row.inputs_sha256) for row in rows.values()]
    found = Artifact.objects.filter(session=session).values_list("kind", "key", "origin", "rule", "left_out")
    settled = reward(session)
    return [sorted(grades), sorted(found), (settled.value, settled.source, settled.sentence), session.signals]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("late", ["patch", "log", "journal"])
def test_what_comes_between_the_reading_and_the_writing_is_graded(site, late):
    """Each part comes while the others are under way; in the end the session is what it is when all come at once."""
    files = {"log": log("s1"), "patch": patch().encode(), "journal": JOURNAL.encode()}
    with transaction.atomic():
        whole = site.upload("s1", **files).session
        whole.refresh_from_db()
        at_once = said(whole)
        transaction.set_rollback(True)
    rest = {name: data for name, data in files.items() if name != late}
    others = partial(site.upload, "s1", **rest)
    site.upload("s1", **{late: SlowUpload(files[late], others)})
    assert Evidence.objects.count() == len(files)
    assert said(Session.objects.get()) == at_once


@pytest.mark.django_db(transaction=True)
def test_two_transactions_that_wait_for_each_other_both_come_through():
    if connection.vendor == "sqlite":
        pytest.skip("SQLite's transactions come one after the other")
    one, two = (Agent.objects.create(name=name).pk for name in ("one", "two"))
    both, done = threading.Barrier(2), []

    def lock(first: int, second: int) -> None:
        tries = []

        @retry_on_deadlock
        @transaction.atomic
        def work() -> None:
            Agent.objects.select_for_update().get(pk=first)
            tries.append(1)
            if len(tries) == 1:
                both.wait()
            Agent.objects.select_for_update().get(pk=second)

        work()
        done.append(len(tries))
        connection.close()

    threads = [threading.Thread(target=lock, args=pair) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 2
    assert min(done) == 1
    assert max(done) > 1


@pytest.mark.django_db(transaction=True)
def test_a_transaction_may_deadlock_more_than_once():
    """The one that was ended can take its locks again before the other has woken up, on a busy machine."""
    tries = []

    @retry_on_deadlock
    def work() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OperationalError("deadlock detected") from DeadlockDetected()
        return "stored"

    assert work() == "stored"


def test_the_usual_intake_is_written_in_one_go(site):
    """Nothing is rolled back."""
    with CaptureQueriesContext(connection) as captured:
        site.upload("s1", io.BytesIO(log("s1")), patch=io.BytesIO(patch().encode()))
    assert not [query["sql"] for query in captured if query["sql"].startswith("ROLLBACK")]
