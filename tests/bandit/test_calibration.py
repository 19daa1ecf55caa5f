"""One scale: what pairs teach of a fallback, and what the posterior then makes of its grades."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.calibration import ANY, STALE_AFTER, STALE_FACTOR, JudgedSession, Scale, fit
from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.table import ABSTAINED, RewardRow
from tests.examples import examples

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
WEIGHTS = {"judge": 1.0, "human": 1.0, "trajectory": 0.3, "journal": 0.3}
START = Scale(sources=("journal", "trajectory"), floored=("failed",))
ARMS = ("a", "b", "c", "d", "e", "f")


def pair(arm, fallback, judge, *, source="trajectory", version="trajectory/2", view="full", day=TODAY):
    return JudgedSession(arm=arm, source=source, version=version, view=view, fallback=fallback, judge=judge, day=day)


def silent(arm, judge, *, reason="nothing_observable"):
    return pair(arm, 0.0, judge, source=ABSTAINED, view=reason)


def row(arm, value, *, n=1, source="trajectory", version="trajectory/2", view="full", age=1, **more):
    micro = round(value * 1e6)
    if source in {"judge", "human"}:
        version = view = ""
    day = TODAY - timedelta(days=age)
    return RewardRow(
        arm=arm, source=source, version=version, view=view, day=day, n=n, s=n * micro, q=n * micro**2, **more
    )


def read(rows, scale, *, arms=ARMS, **policy):
    return fold(rows, arms=arms, policy=Policy(weights=WEIGHTS, scale=scale, **policy), today=TODAY)


def line_of(scale, view="full", source="trajectory"):
    return scale.by_key[source, "trajectory/2", view]


def on_a_line(*, slope=2.0, level=0.2, each=40, noise=0.1, seed=0, arms=ARMS):
    """Arms whose mean verdict is level + slope·(mean trajectory), with noise in each session."""
    rng = np.random.default_rng(seed)
    found = []
    for number, arm in enumerate(arms):
        centre = 0.1 + 0.04 * number
        for _ in range(each):
            off = rng.normal(0, noise)
            fallback = np.clip(centre + off / slope + rng.normal(0, 0.03), 0, 1)
            found.append(pair(arm, float(fallback), float(np.clip(level + slope * centre + off, 0, 1))))
    return found


class TestFitting:
    def test_without_pairs_it_is_the_start(self):
        assert fit([], START) == START
        assert START.is_start

    def test_the_slope_is_that_between_arms_not_that_between_sessions(self):
        line = line_of(fit(on_a_line(), START))
        assert line.slope == pytest.approx(2.0, abs=0.35)
        assert line.low < 2.0 < line.high

    def test_an_arm_that_was_never_judged_is_read_where_its_line_says(self):
        """A regression over sessions would read it near the middle of the others."""
        line = line_of(fit(on_a_line(arms=ARMS[:5]), START))
        assert line.value("f", 0.30) == pytest.approx(0.2 + 2 * 0.30, abs=0.06)

    def test_an_arm_off_the_line_has_an_offset_of_its_own_pairs(self):
        pairs = on_a_line() + [pair("z", 0.2, value) for value in np.linspace(0.1, 0.3, 40)]
        line = line_of(fit(pairs, START))
        assert line.value("z", 0.2) == pytest.approx(0.2, abs=0.06)

    def test_few_pairs_of_its_own_leave_an_arm_near_the_line(self):
        line = line_of(fit([*on_a_line(), pair("z", 0.2, 0.1)], START))
        assert 0.3 < line.value("z", 0.2) < 0.6

    def test_a_source_that_ranks_the_arms_backwards_weighs_nothing(self):
        pairs = on_a_line(noise=0.02)
        turned = [replace(each, judge=1 - each.judge) for each in pairs]
        scale = fit(turned, START)
        assert line_of(scale).backwards
        rows = [row("a", 0.9, n=20), row("a", 0.5, n=5, source="judge")]
        counted = {each.source: each.pseudo for each in read(rows, scale).arms["a"].evidence}
        assert counted["trajectory"] == 0

    def test_alike_arms_say_nothing_of_a_slope(self):
        rng = np.random.default_rng(3)
        pairs = [pair(arm, 0.2 + rng.normal(0, 0.05), 0.8 + rng.normal(0, 0.1) / 2) for arm in "ab" for _ in range(30)]
        clipped = [replace(each, fallback=min(max(each.fallback, 0), 1), judge=min(each.judge, 1.0)) for each in pairs]
        assert not line_of(fit(clipped, START)).backwards

    def test_a_session_weighs_what_it_explains(self):
        exact, loose = (fit(on_a_line(noise=noise), START).weights["trajectory"] for noise in (0.2, 0.02))
        assert exact > 0.6
        assert loose < 0.4

    def test_a_grade_of_a_view_without_pairs_is_read_by_its_source_with_more_doubt(self):
        scale = fit(on_a_line(), START)
        line = scale.line(("trajectory", "trajectory/3", "full"))
        assert line is not None
        assert line.view == ANY

    def test_another_source_without_pairs_counts_nothing(self):
        scale = fit(on_a_line(), START)
        rows = [row("a", 0.5, source="judge", n=5), row("a", 0.9, source="journal", n=50)]
        assert read(rows, scale).alpha.tobytes() == read(rows[:1], scale).alpha.tobytes()

    def test_the_order_of_pairs_changes_no_bit(self):
        pairs = on_a_line(each=10) + [silent("a", 0.3)] * 6
        assert fit(pairs, START) == fit(pairs[::-1], START)

    def test_json_keeps_every_bit(self):
        scale = fit(on_a_line(each=10) + [silent("a", 0.3)] * 6, START)
        assert Scale.from_json(scale.as_json()) == scale

    def test_the_start_goes_through_json(self):
        assert Scale.from_json(START.as_json()) == START

    def test_pairs_are_counted_in_whole_numbers(self):
        line = line_of(fit(on_a_line(each=10), START))
        assert {type(n) for n in line.pairs.values()} == {int}

    @pytest.mark.parametrize(("fallback", "judge"), [(1.2, 0.5), (-0.1, 0.5), (0.5, 1.2), (0.5, -0.1)])
    def test_numbers_out_of_range_are_refused(self, fallback, judge):
        with pytest.raises(ValueError, match="two grades in"):
            pair("a", fallback, judge)

    def test_the_ends_of_the_range_are_grades(self):
        assert (pair("a", 1, 0).fallback, pair("a", 0, 1).judge) == (1, 1)


class TestReading:
    def test_twenty_fallbacks_no_longer_sink_an_arm_that_is_just_as_good(self):
        rng = np.random.default_rng(1)
        judged = [
            pair(arm, float(rng.normal(0.2, 0.05)), float(np.clip(rng.normal(0.8, 0.1), 0, 1))) for arm in "ab" * 20
        ]
        rows = [row(each.arm, each.judge, source="judge") for each in judged] + [row("a", 0.2, n=20)]
        raw = read(rows, None, arms=("a", "b")).chance_of_best("ab")["a"]
        scaled = read(rows, fit(judged, START), arms=("a", "b")).chance_of_best("ab")["a"]
        assert raw < 0.05
        assert 0.2 < scaled < 0.8

    def test_however_many_there_are_they_amount_to_no_more_than_they_may(self):
        scale = fit(on_a_line(), START)
        most = scale.cap("a", "trajectory", 0.01)
        for n in (10, 1_000, 100_000):
            evidence = read([row("a", 0.2, n=n, age=0)], scale)
            assert evidence.arms["a"].evidence[0].pseudo <= evidence.evidence_scale * most * (1 + 1e-9)

    def test_without_pairs_of_its_own_the_doubt_of_the_line_is_the_cap(self):
        scale = fit(on_a_line(arms=ARMS[:5]), START)
        near, far = (line_of(scale).level_variance_at("f", fallback) for fallback in (0.2, 0.9))
        assert far > near
        assert scale.cap("f", "trajectory", near) > scale.cap("f", "trajectory", far)

    def test_a_sum_beyond_the_scale_is_clipped_once_and_not_row_by_row(self):
        """Some r' below 0 beside others above it keep their sum."""
        scale = fit(on_a_line(level=-0.15), START)
        line = line_of(scale)
        assert line.value("a", 0.0) < 0
        both = read([row("a", 0.0, n=2), row("a", 0.3, n=2)], scale).arms["a"].evidence[0]
        assert both.mapped == pytest.approx((line.value("a", 0.0) + line.value("a", 0.3)) / 2)

    def test_pairs_that_stop_coming_halve_the_weight(self):
        scale = fit(on_a_line(), START)
        later = replace(scale, latest=TODAY - STALE_AFTER - timedelta(days=1))
        fresh, stale = (each.weights_on(TODAY)["trajectory"] for each in (scale, later))
        assert stale == STALE_FACTOR * fresh

    def test_a_source_that_is_switched_off_stays_off(self):
        rows = [row("a", 0.2, n=20), row("a", 0.5, source="judge", n=5)]
        policy = Policy(weights={**WEIGHTS, "trajectory": 0.0}, scale=fit(on_a_line(), START))
        off = fold(rows, arms=ARMS, policy=policy, today=TODAY)
        assert {each.source: each.pseudo for each in off.arms["a"].evidence}["trajectory"] == 0

    def test_an_offset_of_people_is_added_to_what_the_line_says(self):
        scale = fit(on_a_line(), START)
        rows = [row("a", 0.2, n=20)]
        moved = read(rows, scale, rectifier={("a", "trajectory", ""): 0.1}).arms["a"].evidence[0].mapped
        assert moved == pytest.approx(read(rows, scale).arms["a"].evidence[0].mapped + 0.1)

    def test_a_baseline_is_added_to_what_the_line_says(self):
        scale = fit(on_a_line(), START)
        rows = [row("a", 0.2, n=20, context="news")]
        moved = read(rows, scale, baseline={"news": 0.1}).arms["a"].evidence[0].mapped
        assert moved == pytest.approx(read(rows, scale).arms["a"].evidence[0].mapped + 0.1)

    def test_the_evidence_scale_counts_what_the_line_leaves_unexplained(self):
        """Without it trajectories that hardly scatter would make every session worth many throws of a coin."""
        pairs = on_a_line(noise=0.2)
        rows = [row(each.arm, each.fallback) for each in pairs]
        assert read(rows, fit(pairs, START)).evidence_scale < 8


class TestTheStart:
    def test_without_a_verdict_sources_are_read_as_they_stand(self):
        rows = [row(arm, 0.2 + number / 20, n=20) for number, arm in enumerate(ARMS)]
        found = read(rows, START).arms["a"].evidence[0]
        assert (found.mean, found.mapped) == (0.2, None)
        assert found.counts == pytest.approx(0.3)

    def test_with_verdicts_they_are_moved_to_the_verdicts_mean_and_count_a_tenth(self):
        rows = [row("a", 0.8, source="judge", n=10), row("b", 0.2, n=1)]
        found = read(rows, START).arms["b"].evidence[0]
        assert found.mapped == pytest.approx(0.8)
        assert found.counts == pytest.approx(0.1)

    def test_nobody_knows_how_far_that_holds_for_one_arm(self):
        rows = [row("a", 0.8, source="judge", n=10), row("b", 0.2, n=1_000, age=0)]
        found = read(rows, START)
        assert found.arms["b"].evidence[0].pseudo <= found.evidence_scale * (1 + 1e-9)

    def test_own_scale_is_bounded(self):
        assert read([row(arm, 0.2, n=100) for arm in ARMS], START).evidence_scale == pytest.approx(8.0)


class TestSilence:
    def pairs(self):
        return [pair("a", 0.4, 0.8)] * 40 + [silent("a", 0.1)] * 12 + on_a_line(arms=ARMS[1:])

    def test_abstentions_stand_at_what_judged_ones_were_worth(self):
        rows = [row("a", 0.8, source="judge", n=40), row("a", 0, source=ABSTAINED, view="nothing_observable", n=60)]
        scale = fit(self.pairs(), START)
        without = read(rows[:1], scale).arms["a"].mean
        assert without > 0.75
        assert read(rows, scale).arms["a"].mean == pytest.approx(0.4 * 0.8 + 0.6 * 0.1, abs=0.07)

    def test_they_add_no_evidence_of_their_own(self):
        rows = [row("a", 0.8, source="judge", n=40), row("a", 0, source=ABSTAINED, view="nothing_observable", n=60)]
        scale = fit(self.pairs(), START)
        alone, both = (read(held, scale) for held in (rows[:1], rows))
        at = alone.names.index("a")
        amount = [(each.alpha[at] + each.beta[at] - 12) / each.evidence_scale for each in (alone, both)]
        assert amount[1] <= amount[0] * (1 + 1e-9)

    def test_too_few_judged_ones_say_nothing(self):
        scale = fit([each for each in self.pairs() if each.source != ABSTAINED] + [silent("a", 0.1)] * 4, START)
        assert not scale.reads_abstentions
        assert fit(self.pairs(), START).reads_abstentions
        rows = [row("a", 0.8, source="judge", n=40), row("a", 0, source=ABSTAINED, view="nothing_observable", n=60)]
        assert read(rows, scale).alpha.tobytes() == read(rows[:1], scale).alpha.tobytes()

    def test_of_an_arm_that_was_never_judged_they_are_worth_what_its_others_are_less_the_usual(self):
        judged = [silent(arm, 0.3) for arm in "bcd" for _ in range(6)]
        scale = fit(on_a_line(arms=ARMS[:5]) + judged, START)
        rows = [row("f", 0.30, n=20), row("f", 0, source=ABSTAINED, view="nothing_observable", n=20)]
        without, both = (read(held, scale).arms["f"].mean for held in (rows[:1], rows))
        assert both < without

    def test_a_failure_that_shows_is_never_read_below_one_that_does_not(self):
        pairs = self.pairs() + [pair(arm, 0.1, 0.02, view="failed") for arm in ARMS for _ in range(5)]
        pairs += [silent(arm, 0.3) for arm in ARMS for _ in range(6)]
        scale = fit(pairs, START)
        assert scale.failure_floor > 0.15
        found = read([row("b", 0.1, n=20, view="failed")], scale)
        raw = line_of(scale, view="failed").value("b", 0.1)
        assert raw < 0.15
        assert (
            found.arms["b"].mean > read([row("b", 0.1, n=20, view="failed")], replace(scale, floored=())).arms["b"].mean
        )


PLACES = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(
        [
            ("trajectory", "trajectory/2", "full"),
            ("trajectory", "trajectory/2", "failed"),
            ("trajectory", "trajectory/9", "part"),
            ("journal", "journal/1", ""),
            (ABSTAINED, "trajectory/2", "nothing_observable"),
            ("judge", "", ""),
            ("human", "", ""),
        ]
    ),
    st.integers(0, 40),
    st.sampled_from(["", "flagged"]),
    st.sampled_from(["plain", "stale", "contested/40"]),
    st.sampled_from(["alice", "bob"]),
)
SCALE = fit(
    on_a_line(each=8)
    + [silent(arm, 0.2) for arm in "abc" for _ in range(4)]
    + [pair(arm, 0.1, 0.15, view="failed") for arm in "abc" for _ in range(4)],
    START,
)
STANDINGS = {"stale": 0.3, "contested/40": 0.5}


@given(
    held=st.lists(st.tuples(PLACES, st.lists(st.integers(0, 1_000_000), min_size=1, max_size=4)), max_size=12),
    order=st.randoms(use_true_random=False),
    scale=st.sampled_from([SCALE, START, None]),
)
@examples(60)
def test_how_rows_are_split_and_ordered_changes_no_bit(held, order, scale):
    whole, single = [], []
    for (arm, (source, version, view), age, stratum, standing, agent), said in held:
        values = [0 for _ in said] if source == ABSTAINED else said
        key = {
            "arm": arm,
            "source": source,
            "version": version,
            "view": view,
            "day": TODAY - timedelta(days=age),
            "stratum": stratum,
            "standing": standing,
        }
        whole.append(RewardRow(**key, agent=agent, n=len(values), s=sum(values), q=sum(v * v for v in values)))
        single += [RewardRow(**key, agent=f"{agent}{n}", n=1, s=v, q=v * v) for n, v in enumerate(values)]
    order.shuffle(single)
    numbers = {"rectifier": {("a", "trajectory", "flagged"): -0.2}, "standings": STANDINGS, "caps": {"journal": 3.0}}
    one, other = (read(rows, scale, arms="abc", **numbers) for rows in (whole, single))
    assert one.alpha.tobytes() == other.alpha.tobytes()
    assert one.beta.tobytes() == other.beta.tobytes()
    assert np.all(one.alpha > 0)
    assert np.all(one.beta > 0)


def test_what_a_standing_leaves_is_a_policy():
    plain, contested = (
        read([row("a", 1.0, source="judge", n=10, standing=standing)], None, standings=STANDINGS, evidence_scale=1.0)
        for standing in ("plain", "contested/40")
    )
    counted = [each.arms["a"].evidence[0].counts for each in (plain, contested)]
    assert counted == pytest.approx([1.0, 0.5])
