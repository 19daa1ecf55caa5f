"""Whether an arm is still what it was: breaks, drift, and judges that changed their minds."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.change import DecidedBreak
from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.table import MICRO, RewardRow
from tests.examples import examples

pytestmark = pytest.mark.pure

TODAY = date(2026, 3, 31)
ARMS = ("a", "b", "c")
POLICY = Policy(
    weights={"judge": 1.0, "human": 1.0, "journal": 0.3},
    half_life=45,
    follows_change=True,
    standings={"stale": 0.3, "contested/50": 0.0},
)
# How grades of one day differ.
SPREAD = (-0.25, -0.15, -0.05, 0.05, 0.15, 0.25)


def day(age):
    return TODAY - timedelta(days=age)


def graded(arm, value, *, age, n=6, source="judge", **rest):
    """A day of `n` grades around `value`, one of the spread after the other."""
    values = [round(MICRO * (value + SPREAD[(age + i) % len(SPREAD)])) for i in range(n)]
    q = sum(each**2 for each in values)
    return RewardRow(arm=arm, source=source, day=day(age), n=n, s=sum(values), q=q, **rest)


def stretch(arm, value, *ages, **rest):
    return [graded(arm, value, age=age, **rest) for age in range(*ages)]


def broken(arm="a", *, age=10, before=0.65, after=0.35, **rest):
    """An arm that was `before` for a month and is `after` since `age` days."""
    return stretch(arm, before, age + 1, 41, **rest) + stretch(arm, after, 1, age + 1, **rest)


def read(rows, *, policy=POLICY, today=TODAY):
    return fold(rows, arms=ARMS, policy=policy, today=today)


def bits(posterior, arm="a"):
    i = posterior.names.index(arm)
    return posterior.alpha[i].tobytes() + posterior.beta[i].tobytes()


STEADY = stretch("b", 0.5, 1, 41) + stretch("c", 0.4, 1, 41, n=1)


BY_DAY = replace(POLICY, varies_by_day=True)


def lucky(arm, value, days, *, spread, n=30, **rest):
    """Days whose means are above and below `value` by `spread`, in an order that repeats only after seven."""
    signs = (1, -1, -1, 1, 1, -1, 1)
    return [graded(arm, value + spread * signs[age % 7], age=age, n=n, **rest) for age in range(1, days + 1)]


class TestDays:
    def test_steady_days_are_taken_for_steady(self):
        assert read(stretch("a", 0.6, 1, 41) + STEADY, policy=BY_DAY).changes.day_variance < 0.01

    def test_the_variance_between_days_is_found_and_shared_by_all_arms(self):
        rows = lucky("a", 0.6, 40, spread=0.08) + lucky("b", 0.5, 40, spread=0.08)
        # Rewards of a day are spread by .17: 0.08² ÷ 0.17² = .22.
        assert read(rows, policy=BY_DAY).changes.day_variance == pytest.approx(0.2, abs=0.05)

    def test_thirty_sessions_of_one_bad_day_say_less_than_thirty_of_thirty_days(self):
        others = lucky("b", 0.6, 40, spread=0.1) + lucky("c", 0.4, 40, spread=0.1)
        one_day = [graded("a", 0.2, age=1, n=30)]
        many_days = [graded("a", 0.2, age=age, n=1) for age in range(1, 31)]
        posterior = {name: read(rows + others, policy=BY_DAY) for name, rows in (("one", one_day), ("many", many_days))}
        assert posterior["one"].arms["a"].mean > posterior["many"].arms["a"].mean + 0.05
        width = {name: each.arms["a"].high - each.arms["a"].low for name, each in posterior.items()}
        assert width["one"] > 1.3 * width["many"]

    def test_good_and_bad_days_are_neither_breaks_nor_drift(self):
        rows = lucky("a", 0.6, 40, spread=0.1) + lucky("b", 0.5, 40, spread=0.1)
        changes = read(rows, policy=BY_DAY).changes
        assert changes.breaks == {}
        assert changes.drift.max() < read(rows).changes.drift.max() / 5

    def test_a_break_among_good_and_bad_days_is_found(self):
        rows = lucky("a", 0.65, 40, spread=0.06)[9:] + lucky("a", 0.3, 9, spread=0.06)
        changes = read(rows + lucky("b", 0.5, 40, spread=0.06), policy=BY_DAY).changes
        assert changes.breaks["a"].day == day(9)

    def test_an_arm_whose_agent_alone_vouches_for_it_breaks_too(self):
        claimed = {"witness": "claimed", "standing": "stale"}
        rows = broken(age=12, n=12, **claimed) + stretch("b", 0.5, 1, 41, **claimed)
        assert read(rows).changes.breaks == {}
        found = read(rows, policy=BY_DAY).changes.breaks["a"]
        assert found.day == day(12)
        assert found.n_after == int(12 * 12 * 0.3)

    def test_but_claims_break_no_arm_that_others_vouch_for(self):
        rows = stretch("a", 0.65, 11, 41) + stretch("a", 0.1, 1, 11, n=30, witness="claimed")
        assert read(rows + STEADY, policy=BY_DAY).changes.breaks == {}

    def test_todays_rewards_leave_other_arms_bit_for_bit_and_a_correction_leaves_no_trace(self):
        rows = lucky("a", 0.6, 20, spread=0.08) + lucky("b", 0.5, 20, spread=0.08)
        before, after = (read(each, policy=BY_DAY) for each in (rows, [*rows, graded("a", 0.1, age=0, n=30)]))
        assert bits(after, "b") == bits(before, "b")
        wrong = graded("b", 0.05, age=5, n=40)
        undo = replace(wrong, n=-wrong.n, s=-wrong.s, q=-wrong.q)
        corrected = read([*rows, wrong, undo], policy=BY_DAY)
        assert [bits(corrected, arm) for arm in ARMS] == [bits(before, arm) for arm in ARMS]

    def test_how_a_days_rows_are_split_changes_no_bit(self):
        rows = lucky("a", 0.6, 20, spread=0.08) + lucky("b", 0.5, 20, spread=0.08)
        split = [half for row in rows for half in halves(row)]
        assert bits(read(split[::-1], policy=BY_DAY)) == bits(read(rows, policy=BY_DAY))


def halves(row):
    """The row as two that add up to it."""
    first = {name: getattr(row, name) // 2 for name in ("n", "s", "q")}
    rest = {name: getattr(row, name) - value for name, value in first.items()}
    return replace(row, **first), replace(row, **rest)


class TestBreaks:
    def test_what_an_arm_was_before_it_broke_counts_no_more(self):
        posterior = read(broken() + STEADY)
        found = posterior.changes.breaks["a"]
        assert found.day == day(10)
        assert (found.before, found.after) == (pytest.approx(0.65, abs=0.01), pytest.approx(0.35, abs=0.01))
        assert (found.n_before, found.n_after) == (180, 60)
        assert posterior.arms["a"].mean == pytest.approx(0.36, abs=0.02)
        assert posterior.arms["a"].evidence[0].n == 60
        assert posterior.changes.breaks.keys() == {"a"}

    def test_short_and_long_sums_are_those_of_an_arm_that_began_at_its_break(self):
        began = [row for row in broken() if row.day >= day(10)] + STEADY
        posterior, alone = read(broken() + STEADY), read(began)
        assert posterior.long_run_mean[0] == pytest.approx(alone.long_run_mean[0], abs=0.002)

    def test_steady_arms_have_none(self):
        posterior = read(stretch("a", 0.65, 1, 61) + STEADY)
        assert posterior.changes.breaks == {}
        assert (posterior.changes.drift < 0.0005).all()

    def test_an_arm_that_gets_better_breaks_too(self):
        assert read(broken(before=0.35, after=0.65) + STEADY).arms["a"].mean > 0.6

    def test_the_last_of_several_counts(self):
        rows = stretch("a", 0.7, 31, 61) + stretch("a", 0.35, 13, 31) + stretch("a", 0.7, 1, 13)
        assert read(rows + STEADY).changes.breaks["a"].day == day(12)

    def test_fewer_than_eight_rewards_since_are_not_enough(self):
        found = read([*stretch("a", 0.65, 2, 41), graded("a", 0.05, age=1, n=7), *STEADY]).changes.breaks["a"]
        assert (found.day, found.n_after) == (day(2), 13)
        found = read([*stretch("a", 0.65, 2, 41), graded("a", 0.05, age=1, n=8), *STEADY]).changes.breaks["a"]
        assert (found.day, found.n_after) == (day(1), 8)

    def test_one_bad_day_among_good_ones_is_none(self):
        rows = [row for row in stretch("a", 0.65, 1, 41) if row.day != day(8)]
        assert read([*rows, graded("a", 0.3, age=8), *STEADY]).changes.breaks == {}

    def test_todays_rewards_move_their_own_arm_alone_and_break_nothing_yet(self):
        rows = stretch("a", 0.65, 1, 41) + STEADY
        before, after = read(rows), read([*rows, graded("a", 0.1, age=0, n=30)])
        assert after.changes.breaks == {}
        assert bits(after, "b") == bits(before, "b")
        assert bits(after, "a") != bits(before, "a")

    def test_wrong_grades_that_made_a_break_leave_nothing_behind_once_corrected(self):
        right, wrong = stretch("a", 0.65, 1, 41), broken(before=0.65, after=0.2)
        assert read(wrong + STEADY).changes.breaks
        as_if_never = read(right + STEADY)
        moves = [replace(row, n=-row.n, s=-row.s, q=-row.q) for row in wrong]
        corrected = read([*wrong, *moves, *right, *STEADY])
        assert [bits(corrected, arm) for arm in ARMS] == [bits(as_if_never, arm) for arm in ARMS]
        assert corrected.changes.breaks == {}

    @pytest.mark.parametrize(
        "doubtful",
        [
            {"witness": "claimed"},
            {"standing": "stale"},
            {"standing": "contested/50"},
            {"source": "journal"},
        ],
        ids=lambda each: next(iter(each.values())),
    )
    def test_what_the_graded_says_itself_or_something_speaks_against_breaks_nothing(self, doubtful):
        rows = stretch("a", 0.65, 11, 41) + stretch("a", 0.1, 1, 11, **doubtful)
        assert read(rows + STEADY).changes.breaks == {}

    @pytest.mark.parametrize("witness", ["", "unknown", "hook", "observed", "verified"])
    def test_any_better_witness_counts(self, witness):
        assert read(broken(witness=witness) + STEADY).changes.breaks.keys() == {"a"}

    def test_a_policy_that_does_not_follow_change_keeps_every_bit(self):
        plain = replace(POLICY, follows_change=False)
        posterior = read(broken() + STEADY, policy=plain)
        assert posterior.changes is None
        assert posterior.arms["a"].mean > 0.5

    def test_without_rewards_nothing_changed(self):
        changes = read([]).changes
        assert (changes.breaks, changes.drift.tolist()) == ({}, [0, 0, 0])


class TestJudges:
    def test_another_judge_moves_no_arms_past(self):
        """The new one is harsher by .2, to all."""
        held = [each for arm, level in (("a", 0.65), ("b", 0.5)) for each in stretch(arm, level, 11, 41, judge="one")]
        held += [each for arm, level in (("a", 0.45), ("b", 0.3)) for each in stretch(arm, level, 1, 11, judge="two")]
        found = read(held).changes
        assert found.breaks == {}
        assert (found.drift[:2] < 0.0005).all()

    def test_a_judge_that_changes_its_mind_breaks_no_arm(self):
        """Nearly all of the traffic is one arm's, so that the others say little, but they say the same."""
        rows = broken(age=6, before=0.65, after=0.4, n=12)
        rows += broken("b", age=6, before=0.5, after=0.25, n=2) + broken("c", age=6, before=0.4, after=0.15, n=1)
        found = read(rows).changes
        assert found.breaks == {}
        assert (found.drift < 0.001).all()

    def test_an_arm_that_breaks_alone_is_not_its_judges_doing(self):
        found = read(broken(n=12) + stretch("b", 0.5, 1, 41, n=2)).changes
        assert found.breaks.keys() == {"a"}

    def test_judges_and_people_are_not_compared(self):
        rows = stretch("a", 0.65, 11, 41) + stretch("a", 0.3, 1, 11, source="human")
        assert read(rows + STEADY).changes.breaks == {}


class TestDecisions:
    def decided(self, *said):
        return replace(POLICY, decisions=said)

    def test_a_break_that_is_taken_back_gives_the_arm_its_past_again(self):
        rows = broken() + STEADY
        took = DecidedBreak(arm="a", day=day(10), is_confirmed=False, decided=day(1))
        found = read(rows, policy=self.decided(took))
        assert found.changes.breaks == {}
        assert found.arms["a"].evidence[0].n == 240
        assert found.arms["a"].mean > 0.5

    def test_and_none_is_found_in_what_the_person_had_seen(self):
        rows = broken(age=20) + STEADY
        took = DecidedBreak(arm="a", day=day(20), is_confirmed=False, decided=day(1))
        for later in range(10):
            assert read(rows, policy=self.decided(took), today=TODAY + timedelta(days=later)).changes.breaks == {}

    def test_but_what_breaks_later_is_found(self):
        rows = stretch("a", 0.65, 31, 61) + stretch("a", 0.45, 9, 31) + stretch("a", 0.1, 1, 9)
        took = DecidedBreak(arm="a", day=day(30), is_confirmed=False, decided=day(12))
        assert read(rows + STEADY, policy=self.decided(took)).changes.breaks["a"].day == day(8)

    def test_an_earlier_break_counts_again(self):
        rows = stretch("a", 0.7, 41, 71) + stretch("a", 0.3, 16, 41) + stretch("a", 0.7, 1, 16)
        took = DecidedBreak(arm="a", day=day(15), is_confirmed=False, decided=TODAY)
        assert read(rows + STEADY, policy=self.decided(took)).changes.breaks["a"].day == day(40)

    def test_a_break_that_is_kept_stands_whatever_the_grades_become(self):
        kept = DecidedBreak(arm="a", day=day(10), is_confirmed=True, decided=day(1))
        found = read(stretch("a", 0.65, 1, 41) + STEADY, policy=self.decided(kept))
        assert (found.changes.breaks["a"].day, found.changes.breaks["a"].is_confirmed) == (day(10), True)
        assert found.arms["a"].evidence[0].n == 60

    def test_a_decision_on_an_arm_that_is_not_there_says_nothing(self):
        gone = DecidedBreak(arm="gone", day=day(10), is_confirmed=True, decided=day(1))
        assert read(STEADY, policy=self.decided(gone)).changes.breaks == {}


class TestDrift:
    def wandering(self, step, seed=1):
        rng, level, rows = np.random.default_rng(seed), 0.5, []
        for age in range(60, 0, -1):
            level = min(max(level + rng.normal(0, step), 0.1), 0.9)
            rows.append(graded("a", level, age=age, n=24))
        return rows

    def test_an_arm_that_wanders_is_remembered_for_less_long(self):
        steady, wandering = read(self.wandering(0) + STEADY), read(self.wandering(0.03) + STEADY)
        assert wandering.changes.breaks == {}
        assert wandering.changes.drift[0] > 0.004 > steady.changes.drift[0]
        strength = [float(each.alpha[0] + each.beta[0]) for each in (wandering, steady)]
        assert strength[0] < strength[1] / 4

    def test_what_is_forgotten_does_not_depend_on_the_days_between(self):
        """Two halves of a gap forget as much as the whole."""
        wandering = self.wandering(0.03)
        split = [*wandering, RewardRow(arm="b", source="judge", day=day(30), n=1, s=500_000, q=250_000_000_000)]
        one, other = read(wandering), read(split)
        assert one.alpha[0] == pytest.approx(other.alpha[0], rel=0.02)


@examples(30)
@given(st.data())
def test_how_rows_are_split_and_ordered_changes_no_bit(data):
    rows = broken() + STEADY
    pieces = []
    for row in rows:
        if row.n > 1 and data.draw(st.booleans()):
            agent = data.draw(st.sampled_from(["x", "y"]))
            one = replace(row, n=1, s=500_000, q=250_000_000_000, agent=agent)
            pieces += [one, replace(row, n=row.n - 1, s=row.s - one.s, q=row.q - one.q, agent="z")]
        else:
            pieces.append(row)
    whole, split = read(rows), read(data.draw(st.permutations(pieces)))
    assert [bits(split, arm) for arm in ARMS] == [bits(whole, arm) for arm in ARMS]
    assert split.changes.breaks == whole.changes.breaks
