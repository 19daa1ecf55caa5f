"""A site with thousands of sessions is upgraded, from the first version that had migrations and from the last release:
its ledger is the same, letter by letter, and what is derived from it is right.

`test_old_databases` takes over what those versions wrote themselves; here are many rows, in the tables of that time.
"""

import datetime as dt
import hashlib
from collections import Counter

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from bandit.audit import audit, doubled
from grading.models import Session
from grading.reward import state
from tests.databases import database, migrate_by_old_files

THEN = {
    "first": [("bandit", "0003_first_arms"), ("grading", "0002_append_only")],
    "last": [("bandit", "0018_pooling"), ("grading", "0027_random_order")],
}
SESSIONS, AT_A_TIME = 3000, 500
MORNING = dt.datetime(2026, 1, 1, 6, 0, tzinfo=dt.UTC)
ROWS = ("bandit.LedgerEntry", "grading.Settlement", "grading.Grade")


@pytest.mark.slow
@pytest.mark.database
@pytest.mark.parametrize("then", THEN)
def test_thousands_of_sessions_keep_their_ledger(then, tmp_path, django_db_blocker):
    with django_db_blocker.unblock(), database(f"thousands_{then}", tmp_path):
        targets = THEN[then]
        migrate_by_old_files(targets)
        old = MigrationLoader(connection, replace_migrations=False).project_state(targets).apps
        fill(old)
        before = {label: hashed(old.get_model(label), fields_of(old.get_model(label))) for label in ROWS}
        call_command("migrate", verbosity=0)
        after = {label: hashed(apps.get_model(label), fields_of(old.get_model(label))) for label in ROWS}
        assert after == before
        assert Session.objects.count() == SESSIONS
        assert audit() == doubled() == list(state.audit_all()) == []


def fill(old) -> None:
    """Sessions of many days on all arms; of each third the first grade was corrected since."""
    get = old.get_model
    arms = list(get("bandit.Arm").objects.filter(bandit__name="category").order_by("pk"))
    agent = get("grading.Agent").objects.create(name="bob")
    graders = [get("bandit.Grader").objects.create(source=source) for source in ("trajectory", "judge")]
    sums: Counter[tuple] = Counter()
    for start in range(0, SESSIONS, AT_A_TIME):
        numbers = range(start, start + AT_A_TIME)
        sessions = get("grading.Session").objects.bulk_create(
            get("grading.Session")(
                agent=agent,
                external_id=f"s-{number}",
                category=arms[number % len(arms)],
                ended_at=moment(number),
                received_at=moment(number),
                **({"model": "a-model"} if number % 2 else {}),
            )
            for number in numbers
        )
        entries, settlements, grades = [], [], []
        for number, session in zip(numbers, sessions, strict=True):
            for revision in range(1, 3 if number % 3 == 0 else 2):
                value = number * 7919 * revision % 1_000_001
                grades.append(grade_of(get, session, revision, value))
                settlements.append(settlement_of(get, session, revision, value))
                arm, grader = arms[number % len(arms)], graders[revision - 1]
                said = {"arm": arm, "grader": grader, "value_micro": value, "effective_day": moment(number).date()}
                said |= {"bandit_id": arm.bandit_id, "observation": f"session:{session.pk}", "revision": revision}
                said |= {"recorded_at": moment(number + revision)}
                entries.append(get("bandit.LedgerEntry")(op="apply", **said))
                if revision == 1 and number % 3 == 0:
                    entries.append(get("bandit.LedgerEntry")(op="reverse", **said))
                else:
                    key = (arm.pk, arm.bandit_id, grader.pk, said["effective_day"])
                    sums.update({(*key, "n"): 1, (*key, "s"): value, (*key, "q"): value * value})
        for rows in (grades, settlements, entries):
            type(rows[0]).objects.bulk_create(rows)
    buckets = {key[:4] for key in sums}
    get("bandit.Bucket").objects.bulk_create(
        get("bandit.Bucket")(
            arm_id=arm,
            bandit_id=bandit,
            grader_id=grader,
            effective_day=day,
            **{moment: sums[arm, bandit, grader, day, moment] for moment in "nsq"},
        )
        for arm, bandit, grader, day in sorted(buckets)
    )


def moment(number: int) -> dt.datetime:
    return MORNING + dt.timedelta(minutes=37 * number)


def grade_of(get, session, revision: int, value: int):
    source = ("trajectory", "judge")[revision - 1]
    said = {"source": source, "status": "scored", "value": value / 1_000_000, "version": "1"}
    return get("grading.Grade")(session=session, created_at=session.received_at, **said)


def settlement_of(get, session, revision: int, value: int):
    said = {"value": value / 1_000_000, "source": ("trajectory", "judge")[revision - 1], "final": revision == 2}
    said |= {"weight": 1.0, "steps": [], "policy_version": "1", "created_at": session.received_at}
    return get("grading.Settlement")(session=session, revision=revision, **said)


def fields_of(model) -> list[str]:
    """Of the fields of then those that are still there by the same name."""
    now = {field.attname for field in apps.get_model(model._meta.label)._meta.concrete_fields}
    return [field.attname for field in model._meta.concrete_fields if field.attname in now]


def hashed(model, fields: list[str]) -> str:
    digest = hashlib.sha256()
    for row in model.objects.order_by("pk").values_list(*fields).iterator():
        digest.update(repr(row).encode())
    return digest.hexdigest()
