"""Calibration versions: put in force, taken away, and what is read stays what the ledger's facts make of it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from bandit import audit, ledger, policies, versions
from bandit.core.calibration import fit
from bandit.core.posterior import fold
from bandit.core.recalibration import Offset
from bandit.ledger import Credit, GraderKey
from bandit.models import Bandit, Bucket, CalibrationVersion, Grader
from bandit.reading import effective_policy, policy_of, posterior_of, site_day
from bandit.versions import StaleVersion, effective_offsets, set_rectifier
from bandit.whatif import row_of, what_if_calibrated
from tests.bandit.helpers import DAY
from tests.bandit.test_calibration import START, on_a_line, silent
from tests.examples import examples

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
SCALES = [
    fit(on_a_line(each=8, arms=("code", "infra", "x")) + [silent("code", 0.2)] * 6, START),
    fit(on_a_line(each=8, level=0.4, slope=1.0, arms=("code", "infra", "x")), START),
    START,
]
KEYS = [
    GraderKey(source="judge", model="m", witness="unknown", standing="plain"),
    GraderKey(source="judge", model="m", witness="unknown", standing="stale"),
    GraderKey(source="trajectory", version="trajectory/2", view="full", witness="unknown", standing="plain"),
    GraderKey(source="trajectory", version="trajectory/2", view="failed", witness="unknown", standing="plain"),
    GraderKey(source="journal", version="journal/1", witness="unknown", standing="plain"),
    GraderKey(source="human", witness="unknown", standing="plain"),
    GraderKey(source="unscored", version="trajectory/2", view="nothing_observable"),
]


def category():
    return Bandit.objects.get(name="category")


def give(observation, arm=None, value=0.5, key=KEYS[0], day=DAY):
    with transaction.atomic():
        return ledger.set_reward(
            bandit="category",
            observation=observation,
            credits={} if arm is None else {arm: Credit(value=0.0 if key.source == "unscored" else value, grader=key)},
            effective_day=day,
            settlement="s",
            policy_version="test",
            renew=True,
        )


def put(scale, **more):
    held = versions.latest(CalibrationVersion, category())
    version = 1 if held is None else held.version + 1
    if scale is None:
        return versions.switch_off_calibration("category", version=version, by="otto")
    return versions.set_calibration("category", scale, version=version, by="otto", **more)


def bits(posterior):
    return posterior.alpha.tobytes() + posterior.beta.tobytes()


STEPS = st.one_of(
    st.tuples(
        st.just("give"),
        st.integers(0, 4),
        st.sampled_from(["code", "infra"]),
        st.integers(0, 100),
        st.sampled_from(KEYS),
        st.integers(0, 30),
    ),
    st.tuples(st.just("take"), st.integers(0, 4)),
    st.tuples(st.just("calibrate"), st.sampled_from([*SCALES, None])),
)


@given(st.lists(STEPS, max_size=14))
@examples(20)
def test_any_order_of_grades_corrections_and_versions_reads_as_their_end(steps):
    with transaction.atomic():
        facts = {}
        for step in steps:
            if step[0] == "calibrate":
                put(step[1])
            elif step[0] == "take":
                facts.pop(step[1], None)
                give(f"s{step[1]}")
            else:
                _, number, arm, percent, key, age = step
                facts[number] = (arm, percent / 100, key, DAY - timedelta(days=age))
                give(f"s{number}", *facts[number])
        policy = policy_of(category())
        reads_all = policy.scale is not None and policy.scale.reads_abstentions
        rows = [
            row_of(entry, sign=1)
            for number in facts
            for entry in ledger.live_entries("category", f"s{number}")
            if reads_all or not entry.is_abstention
        ]
        arms = list(category().arms.values_list("name", flat=True))
        expected = bits(fold(rows, arms=arms, policy=policy, today=site_day(NOW)))
        assert bits(posterior_of("category", NOW).posterior) == expected
        later = datetime.now(tz=UTC) + timedelta(minutes=1)
        assert bits(posterior_of("category", NOW, known_by=later).posterior) == expected
        assert audit.audit() == []
        transaction.set_rollback(True)


@pytest.mark.parametrize("name", [name for name in GraderKey.__slots__ if name != "salience"])
def test_rewards_whose_keys_differ_share_no_bucket(name):
    said = dict.fromkeys(GraderKey.__slots__, "same") | {"salience": 100}
    give("s1", "code", key=GraderKey(**said))
    give("s2", "code", key=GraderKey(**said | {name: "other"}))
    assert list(Bucket.objects.filter(n__gt=0).values_list("n", flat=True)) == [1, 1]
    assert Grader.objects.count() == 2


def test_a_new_site_starts_with_the_calibration_that_nobody_has_data_for():
    for bandit in Bandit.objects.that_learn():
        held = versions.current(CalibrationVersion, bandit)
        assert (held.version, held.accepted, versions.scale_of(held)) == (1, True, START)


def test_switching_off_reads_every_source_as_it_stands():
    give("s1", "code", 0.2, KEYS[2])
    give("s2", "infra", 0.8)
    put(None)
    plain = bits(posterior_of("category", NOW).posterior)
    put(SCALES[0])
    assert bits(posterior_of("category", NOW).posterior) != plain
    put(None)
    assert bits(posterior_of("category", NOW).posterior) == plain


def test_what_was_believed_by_the_version_of_then():
    give("s1", "code", 0.2, KEYS[2])
    before = posterior_of("category", NOW).posterior
    then = datetime.now(tz=UTC)
    put(SCALES[0])
    assert bits(posterior_of("category", NOW, known_by=then).posterior) == bits(before)
    assert posterior_of("category", NOW).posterior.policy.version.endswith("calibration/2")


def test_a_page_that_is_out_of_date_is_told():
    put(SCALES[0])
    with pytest.raises(StaleVersion):
        versions.set_calibration("category", SCALES[1], version=2, by="otto")


def test_a_version_is_never_changed():
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        CalibrationVersion.objects.update(note="no")


def test_a_version_keeps_its_scale_to_the_last_bit():
    put(SCALES[0])
    assert versions.scale_of(versions.current(CalibrationVersion, category())) == SCALES[0]


def test_what_would_be_is_what_then_is():
    give("s1", "code", 0.2, KEYS[2])
    give("s2", "code", 0.0, KEYS[6])
    said = what_if_calibrated(effective_policy(Bandit.objects.named("category")), [SCALES[0], None], NOW)
    for outlook, scale in zip(said, [SCALES[0], None], strict=True):
        put(scale)
        assert bits(posterior_of("category", NOW).posterior) == bits(outlook.posterior)


def test_before_any_verdict_a_cap_remembers_by_the_weights_of_the_policy():
    """Nothing is read through the scale then, so that no source counts what the start would have it count."""
    for number in range(20):
        give(f"s{number}", "code", 0.2 + number / 40, KEYS[2], DAY - timedelta(days=1 + number % 10))
    shown = policies.preview("category", {"evidence_cap": 500.0}, NOW)
    scale = shown.after.posterior.evidence_scale
    assert shown.memory.by_cap == pytest.approx(500 / (scale * 0.3 * 20 / 10))


class TestWithPeople:
    offset = Offset(arm="code", source="trajectory", stratum="", offset=-0.3, pairs=9, low=-0.4, high=-0.2)
    judges = Offset(arm="code", source="judge", stratum="", offset=-0.1, pairs=9, low=-0.2, high=0.0)

    def test_offsets_of_fallbacks_hold_under_the_calibration_that_they_were_fitted_under(self):
        put(SCALES[0])
        rectifier = set_rectifier("category", [self.offset, self.judges], version=1, by="otto")
        held = versions.current(CalibrationVersion, category())
        assert rectifier.calibration == held.version
        assert set(effective_offsets(rectifier, held)) == {self.offset.key, self.judges.key}

    @pytest.mark.parametrize("scale", [SCALES[1], None])
    def test_under_another_or_none_they_rest_and_those_of_judges_stay(self, scale):
        put(SCALES[0])
        rectifier = set_rectifier("category", [self.offset, self.judges], version=1, by="otto")
        put(scale)
        assert set(effective_offsets(rectifier, versions.current(CalibrationVersion, category()))) == {self.judges.key}

    def test_they_go_on_under_a_version_that_came_by_itself(self):
        put(SCALES[0])
        rectifier = set_rectifier("category", [self.offset], version=1, by="otto")
        put(SCALES[1], accepted=False)
        assert set(effective_offsets(rectifier, versions.current(CalibrationVersion, category()))) == {self.offset.key}
        put(SCALES[0])
        assert effective_offsets(rectifier, versions.current(CalibrationVersion, category())) == {}
