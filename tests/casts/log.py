"""A log of decisions: sessions that were drawn, finished and graded, one after another."""

from datetime import UTC, datetime, timedelta

import time_machine

from bandit.models import Bandit
from bandit.reading import site_day, version_of
from bandit.selection import complete, select
from tests.bandit.helpers import reward

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
NOW = START + timedelta(days=60)
WORTH = {"code": 0.75, "infra": 0.55, "triage": 0.35, "news": 0.6}


def session(name, now, **fields):
    """One decision, finished and graded an hour later, by what its arm is worth."""
    selection = select(bandit="category", decision_id=name, supply=dict.fromkeys(WORTH, 1), now=now, **fields)
    arm, later = selection.arm.name, now + timedelta(hours=1)
    complete(selection, observation=f"session:{name}", executed_arm=arm, now=later)
    with time_machine.travel(later, tick=False):
        grade(name, arm, now)


def grade(name, arm, now, *, worth=None):
    value = WORTH[arm] if worth is None else worth
    value += (sum(name.encode()) % 5 - 2) / 20
    reward(f"session:{name}", day=site_day(now), **{arm: value})


def live(count, *, each=6, start=START):
    """So many sessions, a few a day."""
    for i in range(count):
        session(f"{start:%j}-{i}", start + timedelta(days=i // each, hours=2 * (i % each)))


def variant(**numbers):
    """The policy in force, with other numbers; not saved."""
    found = version_of(Bandit.objects.get(name="category"))
    found.pk, found.version = None, found.version + 1
    for name, number in numbers.items():
        setattr(found, name, number)
    return found
