"""One more copy of a log takes as much work as the one before, however many sessions share its records."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from grading.evidence import ownership
from grading.models import Session
from tests.casts.shared_records import log, steps
from tests.spending import logs

pytestmark = pytest.mark.django_db
COPIES, RANDOM = 16, 6


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """The number of SQL statements, and of the rows that they return."""
    counts = Counter[str]()

    def count(execute, sql, params, many, context):
        counts["statements"] += 1
        if sql.startswith("SELECT"):
            cursor = context["cursor"].cursor  # of the driver, so that this is not counted itself
            execute(f"SELECT COUNT(*) FROM ({sql}) AS answer", params, False, context)  # noqa: FBT003, S608 - a test
            counts["rows"] += cursor.fetchone()[0]
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield counts


def copied_records(name: str) -> bytes:
    """A log with the same records in every session."""
    return log(name, steps("a", 1, 4))


def copied_messages(name: str) -> bytes:
    """A log with the same messages in every session, under other record ids."""
    return logs.claude(name, *(logs.message(name, each) for each in "abc"))


def copied_commits(name: str) -> bytes:
    """A log with the same records and the same commit in every session."""
    return log(name, steps("a", 1, 5))


# All claims of a commit are loaded, so that the rows do grow with its copies.
@pytest.mark.parametrize(
    ("make_log", "counters"),
    [
        (copied_records, ("statements", "rows")),
        (copied_messages, ("statements", "rows")),
        (copied_commits, ("statements",)),
    ],
)
@pytest.mark.parametrize("is_last_first", [False, True], ids=["first owns", "last owns"])
def test_each_copy_takes_as_much_work_as_the_last(site, monkeypatch, make_log, counters, is_last_first):
    """Of equal logs the session that sorts first owns: either the first one that came, or each new one takes over."""
    monkeypatch.setattr(ownership, "MAX_COMPARED", 3)
    numbers = range(COPIES, 0, -1) if is_last_first else range(COPIES)
    work = []
    for number in numbers:
        with counted() as counts:
            site.upload(f"s-{number:02}", make_log(f"s-{number:02}"))
        work.append(counts)
    assert Session.objects.count() == COPIES
    few, many = work[6], work[-1]  # by then there are more copies than are compared
    # Some sessions are drawn at random for people, which takes a few statements.
    assert {name: (few[name], many[name]) for name in counters if many[name] > few[name] + RANDOM} == {}
