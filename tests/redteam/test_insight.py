"""Who would hide that agents got worse, or make it look so, and what Insight (A54) says then."""

import numpy as np
import pytest

from benchmarks.compared import store
from benchmarks.compared.world import live, steady
from grading.insight import sentences, since
from grading.models import Alarm, SessionFacts
from grading.monitoring.rule import RULES
from grading.monitoring.watch import watch

pytestmark = pytest.mark.django_db
DAYS, CHANGE = 84, 56
NOW = store.end_of(DAYS - 1)
IS_AFTER = np.arange(DAYS) >= CHANGE


def live_site(**fields):
    rng = np.random.default_rng(3)
    plan = steady(DAYS, **{"new_version": IS_AFTER, "task_share": 0.5, "first_harness": 0.6, **fields})
    store.write(live(plan, rng), rng, 0)


def test_a_fall_since_a_version_is_an_advisory():
    """A54 opens with the page's sentence, and once however often it looks."""
    live_site(level=np.where(IS_AFTER, -0.2, 0.0))
    since.store(NOW)
    watch(NOW)
    alarm = Alarm.objects.get(rule="A54", resolved_at=None)
    assert "Since Claude Code 2.0" in alarm.detail
    assert [finding.about for finding in RULES["A54"].find(NOW)] == [alarm.about]


def test_leaving_the_best_sessions_ungraded_is_not_a_fall():
    """The best fifth has no grade since the mark, so the mean of the others falls. Nobody is called worse."""
    live_site(best_missing=np.where(IS_AFTER, 0.2, 0.0), first_harness=1.0)
    effect = since.read(NOW).effects[0]
    assert effect.effect < -0.02
    assert sentences.AGENTS_DID_WORSE not in sentences.write_effect(effect)


def test_many_claimed_versions_leave_no_more_room_for_false_advisories():
    """An agent that gives each ten sessions a version of their own makes marks, and no advisory."""
    live_site()
    rows = SessionFacts.objects.filter(harness_version="2.0").order_by("session__ended_at").values_list("pk", flat=True)
    for number, start in enumerate(range(0, len(rows), 10)):
        SessionFacts.objects.filter(pk__in=list(rows[start : start + 10])).update(harness_version=f"2.{number}")
    since.store(NOW)
    assert list(RULES["A54"].find(NOW)) == []
