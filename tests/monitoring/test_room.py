"""A disk that is nearly full is told before it is full."""

from types import SimpleNamespace

import pytest

from grading import disk
from grading.models import Alarm
from grading.monitoring.rule import RULES
from grading.monitoring.watch import watch
from tests.site import NOON

pytestmark = pytest.mark.django_db


def test_too_little_room_is_an_alarm_until_there_is_more(settings):
    """The alarm (A43) of a disk that fills up."""
    settings.HOST_NAME, settings.FREE_SPACE_FLOOR = "", 2**60
    watch(NOON)
    told = Alarm.objects.get(rule="A43")
    assert told.resolved_at is None
    assert "No sessions are accepted until there is more space" in told.detail
    settings.FREE_SPACE_FLOOR = 0
    watch(NOON + RULES["A43"].every)
    told.refresh_from_db()
    assert told.resolved_at is not None


@pytest.mark.parametrize(
    ("total", "free", "floor", "is_short"),
    [(10 * 2**30, 2**30, 2**29, False), (10 * 2**30, 2**28, 2**29, True), (10**13, 2**29, 2**30, True)],
)
def test_the_floor_is_a_gibibyte_or_a_twentieth_of_a_small_disk(settings, monkeypatch, total, free, floor, is_short):
    settings.FREE_SPACE_FLOOR = None
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=total, free=free))
    assert (disk.floor(), disk.is_short()) == (floor, is_short)
    assert disk.is_short(coming=free - floor + 1)
