"""Offsets of a calibration: appended with a name, read by every posterior, switched off by one more row."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from bandit.core.machine_human import Offset
from bandit.models import Bandit, CalibrationVersion
from bandit.reading import effective_policy, posterior_of
from bandit.selection import select
from bandit.versions import StaleVersion, current_calibration, set_calibration, switch_off_calibration
from bandit.whatif import what_if_calibrated, what_if_changed
from tests.bandit.helpers import DAY, buckets, hypothetical, reward

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def offset(value=0.4, *, arm="code", source="journal", stratum="flagged"):
    return Offset(arm=arm, source=source, stratum=stratum, offset=value, pairs=5, low=value - 0.1, high=value + 0.1)


def teach():
    for i in range(6):
        reward(f"f{i}", day=DAY - timedelta(days=i), source="journal", stratum="flagged", code=0.32)
        reward(f"g{i}", day=DAY - timedelta(days=i), source="journal", code=0.5)
        reward(f"h{i}", day=DAY - timedelta(days=i), infra=0.6)


def test_one_grader_has_a_bucket_for_each_stratum():
    reward("s1", stratum="flagged", code=0.5)
    reward("s2", code=0.5)
    assert [(each[1], each[4]) for each in buckets()] == [("judge", 1), ("judge", 1)]
    reward("s1", code=0.5)
    assert [(each[1], each[4]) for each in buckets()] == [("judge", 2)]


def test_putting_a_version_in_force_moves_the_named_stratum_and_no_other():
    teach()
    before = posterior_of("category", NOW)
    set_calibration("category", None, [offset()], version=2, by="otto")
    after = posterior_of("category", NOW)
    assert after.arms["code"].mean > before.arms["code"].mean
    assert after.arms["infra"].evidence == before.arms["infra"].evidence
    assert after.posterior.version != before.posterior.version
    assert after.posterior.policy.version == "category/1 calibration/2"


def test_switching_off_gives_every_bit_back():
    teach()
    switch_off_calibration("category", version=2, by="otto")
    before = posterior_of("category", NOW).posterior
    set_calibration("category", None, [offset()], version=3, by="otto")
    switch_off_calibration("category", version=4, by="rita", note="the journal parser is mended")
    after = posterior_of("category", NOW).posterior
    assert (after.alpha.tobytes(), after.version) == (before.alpha.tobytes(), before.version)
    category = Bandit.objects.named("category")
    rows = list(category.calibrations.values_list("version", "enabled", "by", "note"))[:2]
    assert rows == [(4, False, "rita", "the journal parser is mended"), (3, True, "otto", "")]
    assert current_calibration(category) is None


def test_a_decision_says_by_which_version_it_was_made():
    teach()
    set_calibration("category", None, [offset()], version=2, by="otto")
    selection = select(bandit="category", decision_id="d1", supply=None, now=NOW)
    assert selection.explanation["policy"] == "category/1 calibration/2"
    assert selection.posterior_version == posterior_of("category", NOW).posterior.version


def test_another_bandits_calibration_is_its_own():
    set_calibration("harness", None, [offset(arm="gptme")], version=2, by="otto")
    assert posterior_of("category", NOW).posterior.policy.offsets == {}


def test_two_operators_cannot_put_the_same_version_in_force():
    set_calibration("category", None, [offset()], version=2, by="otto")
    with pytest.raises(StaleVersion, match="the next version is 3, not"):
        set_calibration("category", None, [offset(0.1)], version=2, by="rita")
    with pytest.raises(StaleVersion):
        switch_off_calibration("category", version=5, by="rita")
    assert Bandit.objects.named("category").calibrations.count() == 2


def test_what_would_move_people_is_refused():
    with pytest.raises(ValueError, match="human grades are never moved"):
        set_calibration("category", None, [offset(source="human")], version=2, by="otto")
    assert Bandit.objects.named("category").calibrations.count() == 1


def test_a_version_is_never_changed_or_deleted_and_has_a_name():
    held = set_calibration("category", None, [offset()], version=2, by="otto")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        CalibrationVersion.objects.update(enabled=False)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        held.delete()
    with pytest.raises(IntegrityError), transaction.atomic():
        set_calibration("category", None, [offset()], version=3, by="")


def test_what_if_is_exact_under_offsets_too():
    """A person's grade takes a flagged journal reward out of its stratum, offset and all."""
    teach()
    set_calibration("category", None, [offset(), offset(-0.1, stratum="")], version=2, by="otto")
    day = DAY - timedelta(days=3)
    given = [
        hypothetical("f3", "code", 0.9, source="human", day=day),
        hypothetical("g3", "code", 0.4, source="journal", stratum="flagged", day=day),
    ]
    before, after = what_if_changed("category", {"category": given}, NOW)
    assert before.posterior.version == posterior_of("category", NOW).posterior.version
    reward("f3", day=day, source="human", code=0.9)
    reward("g3", day=day, source="journal", stratum="flagged", code=0.4)
    assert after.posterior.version == posterior_of("category", NOW).posterior.version


def test_the_outlook_without_and_with_is_what_switching_does():
    teach()
    proposed = CalibrationVersion(offsets=[offset().as_json()])
    current = effective_policy(Bandit.objects.named("category"))
    without, with_it = what_if_calibrated(current, [None, proposed], NOW)
    set_calibration("category", None, [offset()], version=2, by="otto")
    now = posterior_of("category", NOW)
    assert (now.posterior.alpha.tobytes(), now.chances) == (with_it.posterior.alpha.tobytes(), with_it.chances)
    switch_off_calibration("category", version=3, by="otto")
    assert posterior_of("category", NOW).posterior.alpha.tobytes() == without.posterior.alpha.tobytes()
