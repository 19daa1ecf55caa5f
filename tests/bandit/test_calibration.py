"""What pairs teach of unjudged sessions, and how the posterior then reads them."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.calibration import (
    MAX_PSEUDO,
    PRIOR_PAIRS,
    VERDICT_DAYS,
    FallbackCalibration,
    JudgedSession,
    fallback_share,
    fit,
)
from bandit.core.evidence import EvidenceTable
from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.table import ABSTAINED, RewardRow
from tests.examples import examples

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
WEIGHTS = {"judge": 1.0, "human": 1.0, "consumption": 1.0, "trajectory": 0.3, "journal": 0.3}
SOURCES = ("journal", "trajectory")
START = FallbackCalibration(sources=SOURCES)
ARMS = ("a", "b", "c")


def pair(arm, fallback, judge, *, source="trajectory", day=TODAY):
    return JudgedSession(arm=arm, source=source, fallback=fallback, judge=judge, day=day)


def silent(arm, judge, *, reason="nothing_observable"):
    return JudgedSession(arm=arm, source=ABSTAINED, reason=reason, fallback=0.0, judge=judge, day=TODAY)


def row(arm, value=0.0, *, n=1, source="trajectory", view="", age=1, **more):
    micro = round(value * 1e6)
    day = TODAY - timedelta(days=age)
    return RewardRow(arm=arm, source=source, view=view, day=day, n=n, s=n * micro, q=n * micro**2, **more)


def unscored(arm, n, *, age=1, reason="nothing_observable"):
    return row(arm, n=n, source=ABSTAINED, view=reason, age=age)


def read(rows, calibration, *, arms=ARMS, **policy):
    return fold(rows, arms=arms, policy=Policy(weights=WEIGHTS, calibration=calibration, **policy), today=TODAY)


def evidence(posterior, arm):
    return {each.source: each for each in posterior.arms[arm].evidence}


def amount(posterior, arm):
    """The arm's evidence in grades of weight 1."""
    at = posterior.names.index(arm)
    return (posterior.alpha[at] + posterior.beta[at] - 12) / posterior.evidence_scale


class TestFitting:
    def test_without_pairs_nothing_is_known(self):
        assert fit([], SOURCES) == START
        assert not START.reads_abstentions

    def test_the_shift_is_the_mean_difference_shrunk_towards_none(self):
        (kind,) = fit([pair("a", 0.2, 0.6)] * 15, SOURCES).kinds
        assert kind.shift == pytest.approx(0.4 * 15 / (15 + PRIOR_PAIRS))
        assert kind.read(0.2) == pytest.approx(0.2 + kind.shift)

    def test_a_grade_stays_in_range(self):
        (kind,) = fit([pair("a", 0.2, 0.9)] * 100, SOURCES).kinds
        assert kind.read(0.9) == 1
        (kind,) = fit([pair("a", 0.9, 0.2)] * 100, SOURCES).kinds
        assert kind.read(0.1) == 0

    def test_the_deviation_is_that_of_verdicts_about_the_shifted_grade(self):
        rng = np.random.default_rng(1)
        pairs = [pair("a", 0.3, float(np.clip(0.6 + rng.normal(0, 0.1), 0, 1))) for _ in range(400)]
        assert fit(pairs, SOURCES).kinds[0].deviation == pytest.approx(0.1, abs=0.01)

    def test_a_difference_is_from_the_arms_mean_verdict(self):
        """Arm a is better than b, and in both silent sessions are worth .4 less than the others."""
        pairs = [pair("a", 0.4, 0.9), pair("b", 0.4, 0.6)] * 20 + [silent("a", 0.5), silent("b", 0.2)] * 20
        silence = fit(pairs, SOURCES).by_kind[ABSTAINED, "nothing_observable"]
        assert silence.difference == pytest.approx(-0.2 * 40 / 45)
        assert silence.difference_in("a") == pytest.approx(silence.difference_in("b"))
        assert silence.difference_in("never judged") == silence.difference

    def test_kinds_are_compared_within_arms(self):
        """Both kinds are judged .8 in arm a and .2 in b; only their numbers differ."""
        pairs = [pair("a", 0.4, 0.8), silent("b", 0.2)] * 30 + [silent("a", 0.8), pair("b", 0.4, 0.2)] * 2
        assert [kind.difference for kind in fit(pairs, SOURCES).kinds] == pytest.approx([0, 0], abs=1e-6)

    def test_each_reason_is_a_kind_of_its_own(self):
        pairs = [pair("a", 0.4, 0.6)] * 8 + [silent("a", 0.2)] * 8 + [silent("a", 0.8, reason="format_blind")] * 8
        kinds = fit(pairs, SOURCES).by_kind
        assert kinds[ABSTAINED, "nothing_observable"].difference < 0 < kinds[ABSTAINED, "format_blind"].difference

    def test_the_order_of_pairs_changes_no_bit(self):
        pairs = [pair("a", 0.1 * i, 0.05 * i) for i in range(10)] + [silent("b", 0.3)] * 6
        assert fit(pairs, SOURCES) == fit(pairs[::-1], SOURCES)

    def test_json_keeps_every_bit(self):
        calibration = fit([pair("a", 0.3, 0.7), silent("b", 0.1), pair("b", 0.2, 0.5, source="journal")], SOURCES)
        assert FallbackCalibration.from_json(calibration.as_json()) == calibration
        assert FallbackCalibration.from_json(START.as_json()) == START

    @pytest.mark.parametrize(("fallback", "judge"), [(1.2, 0.5), (-0.1, 0.5), (0.5, 1.2), (0.5, -0.1)])
    def test_numbers_out_of_range_are_refused(self, fallback, judge):
        with pytest.raises(ValueError, match="two grades in"):
            pair("a", fallback, judge)

    def test_the_share_of_a_fallback_falls_with_each_verdict(self):
        assert [fallback_share(n) for n in (0, 1, 4, 5, 50)] == pytest.approx([1, 0.8, 0.2, 0, 0])


class TestFallbacks:
    PAIRS = [pair(arm, 0.2, 0.8) for arm in "ab" for _ in range(20)]

    def test_without_a_calibration_they_are_read_as_given(self):
        found = evidence(read([row("a", 0.2, n=5)], None), "a")["trajectory"]
        assert (found.mean, found.counts) == (pytest.approx(0.2), pytest.approx(0.3))

    def test_twenty_of_them_no_longer_sink_an_arm_that_is_just_as_good(self):
        rows = [row(arm, 0.8, source="judge", n=20) for arm in "ab"] + [row("a", 0.2, n=20)]
        assert read(rows, None, arms=("a", "b")).chance_of_best("ab")["a"] < 0.05
        assert read(rows, fit(self.PAIRS, SOURCES), arms=("a", "b")).chance_of_best("ab")["a"] == pytest.approx(0.5)

    @pytest.mark.parametrize("n", [1, 10, 1_000, 100_000])
    def test_in_an_arm_without_a_verdict_they_count_for_at_most_three_observations(self, n):
        posterior = read([row("a", 0.2, n=n, age=0), row("b", 0.8, source="judge", n=30)], START)
        found = evidence(posterior, "a")["trajectory"]
        assert found.pseudo == pytest.approx(min(0.3 * n * posterior.evidence_scale, MAX_PSEUDO))

    def test_both_sources_share_the_cap(self):
        rows = [row("a", 0.2, n=500), row("a", 0.4, n=500, source="journal")]
        assert sum(each.pseudo for each in evidence(read(rows, START), "a").values()) == pytest.approx(MAX_PSEUDO)

    def test_each_verdict_takes_a_fifth_of_their_weight(self):
        for verdicts in range(7):
            rows = [row("a", 0.2, age=0), row("a", 0.5, source="judge", n=verdicts)]
            found = evidence(read(rows, START, evidence_scale=1.0), "a").get("trajectory")
            assert (0 if found is None else found.counts) == pytest.approx(0.3 * fallback_share(verdicts))

    def test_a_persons_grade_counts_as_a_verdict_and_artifacts_do_not(self):
        for source, counts in (("human", 0.0), ("judge", 0.0), ("consumption", 0.3)):
            rows = [row("a", 0.2, age=0), row("a", 0.5, source=source, n=5)]
            found = evidence(read(rows, START, evidence_scale=1.0), "a").get("trajectory")
            assert (0 if found is None else found.counts) == pytest.approx(counts), source

    def test_verdicts_of_a_source_without_weight_do_not_take_their_weight(self):
        policy = Policy(weights={**WEIGHTS, "judge": 0.0}, calibration=START, evidence_scale=1.0)
        rows = [row("a", 0.2, age=0), row("a", 0.5, source="judge", n=9)]
        assert evidence(fold(rows, arms=ARMS, policy=policy, today=TODAY), "a")["trajectory"].counts == pytest.approx(
            0.3
        )

    def test_old_verdicts_do_not_count_beside_a_new_one(self):
        old = row("a", 0.5, source="judge", n=20, age=VERDICT_DAYS + 3)
        rows = [old, row("a", 0.5, source="judge", age=2), row("a", 0.2, n=1, age=0)]
        found = evidence(read(rows, START, evidence_scale=1.0), "a")["trajectory"]
        assert found.counts == pytest.approx(0.3 * fallback_share(1))

    def test_a_verdict_of_today_counts_from_tomorrow_on(self):
        rows = [row("a", 0.2, age=0), row("a", 0.5, source="judge", n=9, age=0)]
        assert evidence(read(rows, START, evidence_scale=1.0), "a")["trajectory"].counts == pytest.approx(0.3)

    @pytest.mark.parametrize("days", [1, 30, 90, 400])
    def test_a_judge_that_fell_silent_does_not_bring_them_back(self, days):
        rows = [row("a", 0.8, source="judge", n=5, age=days), row("a", 0.1, n=300, age=0)]
        assert "trajectory" not in evidence(read(rows, START), "a")

    def test_they_are_read_on_the_judges_scale(self):
        calibration = fit(self.PAIRS, SOURCES)
        rows = [row("c", 0.2, n=2), row("a", 0.8, source="judge", n=30)]
        assert evidence(read(rows, calibration), "c")["trajectory"].mean == pytest.approx(
            calibration.kinds[0].read(0.2), abs=1e-6
        )

    def test_a_source_that_is_switched_off_stays_off(self):
        policy = Policy(weights={**WEIGHTS, "trajectory": 0.0}, calibration=fit(self.PAIRS, SOURCES))
        off = fold([row("c", 0.2, n=20)], arms=ARMS, policy=policy, today=TODAY)
        assert evidence(off, "c")["trajectory"].pseudo == 0

    def test_an_offset_of_people_and_a_baseline_are_added(self):
        calibration = fit(self.PAIRS, SOURCES)
        rows = [row("c", 0.2, n=2, context="news")]
        plain = evidence(read(rows, calibration), "c")["trajectory"].mean
        moved = read(rows, calibration, offsets={("c", "trajectory", ""): -0.1}, baseline={"news": -0.2})
        assert evidence(moved, "c")["trajectory"].mean == pytest.approx(plain - 0.3, abs=1e-6)


class TestEstimates:
    """Sessions whose grade is not read: the arm's mean plus what judged sessions of their kind differ from it."""

    PAIRS = [pair("a", 0.4, 0.8)] * 40 + [silent("a", 0.1)] * 40
    ROWS = [row("a", 0.8, source="judge", n=40), row("a", 0.1, source="judge", n=40)]

    def test_abstentions_are_worth_what_judged_ones_were(self):
        """40 of 160 sessions are worth .8, the others .1."""
        calibration = fit(self.PAIRS, SOURCES)
        table = self.table([*self.ROWS, unscored("a", 80)], calibration)
        assert float(table.means()[0]) == pytest.approx(0.45)  # of the judged ones alone
        mean = self.mean(table)
        assert mean == pytest.approx((40 * 0.8 + 120 * 0.1) / 160, abs=0.03)

    def test_unread_fallbacks_stand_for_their_kind_too(self):
        """Otherwise the abstentions beside them would pull the mean too far."""
        calibration = fit(self.PAIRS, SOURCES)
        rows = [*self.ROWS, unscored("a", 40), row("a", 0.0, n=40)]
        assert self.mean(self.table(rows, calibration)) == pytest.approx(0.45, abs=0.02)

    def test_they_add_no_evidence_of_their_own(self):
        calibration = fit(self.PAIRS, SOURCES)
        alone, both = (read(rows, calibration) for rows in (self.ROWS, [*self.ROWS, unscored("a", 60), row("a", n=60)]))
        assert amount(both, "a") <= amount(alone, "a") * (1 + 1e-9)
        found = evidence(both, "a")
        assert found["judge"].pseudo == pytest.approx(sum(each.pseudo for each in found.values()))
        assert (found["trajectory"].is_estimated, found[ABSTAINED].is_estimated) == (True, True)

    def test_fallbacks_do_not_move_the_mean_that_estimates_start_from(self):
        """An agent that reports .95 of itself gains nothing from sessions that nobody judged."""
        calibration = fit(self.PAIRS, SOURCES)
        rows = [row("b", 0.3, source="judge", n=2), row("b", 0.95, n=200), unscored("b", 50)]
        assert self.table(rows, calibration).means()[1] == pytest.approx(0.3)

    def test_an_arm_that_was_never_judged_is_where_its_fallbacks_are(self):
        calibration = fit(self.PAIRS, SOURCES)
        rows = [row("b", 0.3, source="judge", n=20), row("c", 0.2, n=4), unscored("c", 4)]
        expected = calibration.by_kind["trajectory", ""].read(0.2)
        assert self.table(rows, calibration).means()[2] == pytest.approx(expected, abs=1e-6)

    def test_an_evidence_cap_is_not_shared_with_estimates(self):
        calibration = fit(self.PAIRS, SOURCES)
        alone, both = (
            read(rows, calibration, evidence_cap=12.0) for rows in (self.ROWS, [*self.ROWS, unscored("a", 400)])
        )
        assert amount(both, "a") == pytest.approx(amount(alone, "a"))

    def test_an_arm_with_abstentions_alone_has_no_evidence(self):
        calibration = fit(self.PAIRS, SOURCES)
        rows = [row("b", 0.8, source="judge", n=40)]
        with_them, without = (read(each, calibration) for each in ([*rows, unscored("c", 100)], rows))
        assert with_them.alpha.tobytes() == without.alpha.tobytes()

    def test_kinds_that_no_judged_session_has_are_left_out(self):
        calibration = fit([pair("a", 0.4, 0.8)] * 40, SOURCES)
        rows = [*self.ROWS, unscored("a", 60), row("a", 0.1, source="journal", n=60)]
        assert read(rows, calibration).alpha.tobytes() == read(self.ROWS, calibration).alpha.tobytes()
        assert read(rows, START).alpha.tobytes() == read(self.ROWS, START).alpha.tobytes()

    def test_the_arms_other_grades_decide_where_it_stands(self):
        """Of an arm in which no silent session was judged, they are worth what it is worth less the usual."""
        pairs = [pair(arm, 0.4, 0.8) for arm in "ab"] * 20 + [silent("a", 0.4)] * 20
        calibration = fit(pairs, SOURCES)
        low, high = (
            self.mean(self.table([row("b", value, source="judge", n=20), unscored("b", 20)], calibration), arm=1)
            for value in (0.5, 0.8)
        )
        assert high - low == pytest.approx(0.3)
        assert high < 0.8

    @staticmethod
    def table(rows, calibration):
        return EvidenceTable.read(rows, ARMS, Policy(weights=WEIGHTS, calibration=calibration), TODAY)

    @staticmethod
    def mean(table, arm=0):
        n, s, _ = table.sums(table.weights(half_life=1e6, scale=1.0))
        return float(s[arm] / n[arm])


PLACES = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(
        [
            ("trajectory", "full"),
            ("trajectory", "failed"),
            ("journal", ""),
            (ABSTAINED, "nothing_observable"),
            (ABSTAINED, "format_blind"),
            ("judge", ""),
            ("human", ""),
        ]
    ),
    st.integers(0, 90),
    st.sampled_from(["", "flagged"]),
    st.sampled_from(["plain", "stale", "contested/40"]),
    st.sampled_from(["alice", "bob"]),
)
FITTED = fit(
    [pair(arm, 0.1 * i, 0.05 * i) for arm in "abc" for i in range(8)] + [silent(arm, 0.2) for arm in "ab"] * 4, SOURCES
)
STANDINGS = {"stale": 0.3, "contested/40": 0.5}


@given(
    held=st.lists(st.tuples(PLACES, st.lists(st.integers(0, 1_000_000), min_size=1, max_size=4)), max_size=12),
    order=st.randoms(use_true_random=False),
    calibration=st.sampled_from([FITTED, START, None]),
)
@examples(60)
def test_how_rows_are_split_and_ordered_changes_no_bit(held, order, calibration):
    whole, single = [], []
    for (arm, (source, view), age, stratum, standing, agent), said in held:
        values = [0 for _ in said] if source == ABSTAINED else said
        key = {
            "arm": arm,
            "source": source,
            "view": view,
            "day": TODAY - timedelta(days=age),
            "stratum": stratum,
            "standing": standing,
        }
        whole.append(RewardRow(**key, agent=agent, n=len(values), s=sum(values), q=sum(v * v for v in values)))
        single += [RewardRow(**key, agent=f"{agent}{n}", n=1, s=v, q=v * v) for n, v in enumerate(values)]
    order.shuffle(single)
    numbers = {"offsets": {("a", "trajectory", "flagged"): -0.2}, "standings": STANDINGS, "caps": {"journal": 3.0}}
    one, other = (read(rows, calibration, **numbers) for rows in (whole, single))
    assert one.alpha.tobytes() == other.alpha.tobytes()
    assert one.beta.tobytes() == other.beta.tobytes()
    assert np.all(one.alpha > 0)
    assert np.all(one.beta > 0)


def test_a_reward_of_today_changes_its_own_arm_alone():
    rows = [row(arm, 0.6, source="judge", n=6) for arm in "ab"] + [row("c", 0.3, n=4), unscored("a", 5)]
    before, after = (read(held, FITTED) for held in (rows, [*rows, row("c", 0.9, source="judge", age=0)]))
    for arm in (0, 1):
        assert (before.alpha[arm], before.beta[arm]) == (after.alpha[arm], after.beta[arm])
    assert before.alpha[2] != after.alpha[2]


def test_a_verdict_that_is_taken_back_leaves_no_trace():
    rows = [row("a", 0.6, source="judge", n=4), row("a", 0.3, n=4), unscored("a", 5)]
    extra = row("a", 0.9, source="judge", age=3)
    undone = replace(extra, n=-extra.n, s=-extra.s, q=-extra.q)
    assert read([*rows, extra, undone], FITTED).alpha.tobytes() == read(rows, FITTED).alpha.tobytes()


def test_what_a_standing_leaves_is_a_policy():
    plain, contested = (
        read([row("a", 1.0, source="judge", n=10, standing=standing)], None, standings=STANDINGS, evidence_scale=1.0)
        for standing in ("plain", "contested/40")
    )
    counted = [each.arms["a"].evidence[0].counts for each in (plain, contested)]
    assert counted == pytest.approx([1.0, 0.5])
