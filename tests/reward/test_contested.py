"""What a session left behind is worth far more than the judge says: who is believed, and what it counts meanwhile."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.reward.chain import Resolution, resolve
from grading.reward.decide import MAX_ADDED, GradeView, current, decide
from grading.reward.explain import StepState
from grading.reward.standing import CLAIMED, PLAIN, STALE, contested, standing_weight
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Source, Status
from grading.witness import Witness, weakest
from tests.reward.test_chain import POLICY

pytestmark = pytest.mark.pure

VOUCHED = [Witness.UNKNOWN, Witness.HOOK, Witness.OBSERVED, Witness.VERIFIED]


def row(number: int, source: Source, value: float, **fields) -> GradeView:
    return GradeView(id=number, source=source, status=Status.SCORED, value=value, **fields)


def rows(
    judge: float | tuple[float, ...] | None = None,
    left: float | None = None,
    witness: Witness = Witness.HOOK,
    trajectory: float | None = None,
    stale: str = "",
) -> list[GradeView]:
    """A verdict or several readings of one, what was left behind and who vouches for it, and a full trajectory."""
    readings = (judge,) if isinstance(judge, float) else judge or ()
    found = [
        row(10 + n, Source.JUDGE, value, sample_of=10 if n else None, stale=stale) for n, value in enumerate(readings)
    ]
    if left is not None:
        found.append(row(1, Source.CONSUMPTION, left, witness=witness))
    if trajectory is not None:
        found.append(row(2, Source.TRAJECTORY, trajectory, view=EvidenceView.FULL, stands=True))
    return found


def settled(grades: list[GradeView], *, reading_open: bool = False) -> Resolution:
    return resolve(decide(grades, POLICY, judge_open=False, reading_open=reading_open))


def tile(result: Resolution, source: Source):
    return next(step for step in result.steps if step.source is source)


# --- contested --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "left", "standing", "weight"),
    [
        (0.30, 0.60, PLAIN, 1.0),  # .30 apart is not yet too far
        (0.30, 0.600001, "contested/31", 0.95),
        (0.30, 0.61, "contested/31", 0.95),
        (0.30, 0.65, "contested/35", 0.75),
        (0.20, 0.60, "contested/40", 0.5),
        (0.10, 0.59, "contested/49", 0.05),
        (0.10, 0.60, "contested/50", 0.0),
        (0.05, 1.00, "contested/50", 0.0),
    ],
)
@pytest.mark.parametrize("witness", VOUCHED)
def test_the_further_artifacts_are_above_a_fresh_verdict_the_less_they_count(judge, left, standing, weight, witness):
    result = settled(rows(judge, left, witness))
    assert (result.value, result.source) == (left, Source.CONSUMPTION)
    assert (result.standing, result.weight) == (standing, weight)
    assert result.final is (standing == PLAIN)


def test_a_contested_reward_says_so_in_words():
    result = settled(rows(0.2, 0.75))
    assert result.sentence == (
        "Reward .75, contested. The session’s artifacts would earn .75, which is .55 more than the judge's .20. Until "
        "it is clear which is right, the reward has weight 0. A person's grade would settle it."
    )
    left, judge, human = (tile(result, each) for each in (Source.CONSUMPTION, Source.JUDGE, Source.HUMAN))
    assert (left.state, left.provisional) == (StepState.DECIDES, True)
    assert left.why.startswith("Contested: .55 above the judge’s verdict, so the reward has weight 0.")
    assert (judge.state, judge.value) == (StepState.BEATEN, 0.2)
    assert judge.why.startswith("Lower than consumption by .55, which contests it")
    assert (human.state, human.headline) == (StepState.WAITING, "Awaiting review")


def test_it_says_where_the_judge_is_asked_to_read_it_again():
    result = settled(rows(0.2, 0.6), reading_open=True)
    assert "the reward has weight .5. The judge will read the session again." in result.sentence
    assert tile(result, Source.HUMAN).state is StepState.SKIPPED


def test_nothing_contests_a_verdict_that_has_not_read_everything():
    result = settled(rows(0.1, 0.9, stale="the transcript came"))
    assert (result.value, result.weight, result.final, result.standing) == (0.9, 1.0, False, PLAIN)


def test_a_person_settles_it():
    grades = [*rows(0.05, 1.0), row(30, Source.HUMAN, 0.2)]
    result = settled(grades)
    assert (result.value, result.weight, result.final, result.standing) == (0.2, 1.0, True, PLAIN)


def test_a_failed_check_caps_a_contested_reward_too():
    result = resolve(decide(rows(0.05, 1.0), POLICY, judge_open=False, vetoes=["ci"]))
    assert (result.value, result.final, result.weight) == (0.2, False, 0.0)


# --- three readings ---------------------------------------------------------------------------------------------------


def test_the_median_of_three_readings_counts_and_two_change_nothing():
    assert settled(rows((0.2, 0.7))).value == 0.2
    result = settled(rows((0.2, 0.7, 0.5)))
    assert (result.value, result.source, result.final, result.grade_id) == (0.5, Source.JUDGE, True, 12)
    judge = current(rows((0.2, 0.7, 0.5)))[Source.JUDGE]
    assert (judge.samples, judge.spread, judge.readings_agree) == ((0.2, 0.7, 0.5), 0.5, False)
    assert tile(result, Source.JUDGE).why.startswith("The median of .20, .70, .50, .50 apart. ")


def test_readings_of_an_earlier_verdict_are_no_part_of_a_later_one():
    grades = [*rows((0.2, 0.3, 0.4)), row(20, Source.JUDGE, 0.9), row(21, Source.JUDGE, 0.1, sample_of=10)]
    assert current(grades)[Source.JUDGE].value == 0.9


def test_three_readings_near_what_was_left_behind_end_the_contest():
    result = settled(rows((0.1, 0.5, 0.4), 0.6))
    assert (result.value, result.final, result.weight, result.standing) == (0.6, True, 1.0, PLAIN)


def test_three_readings_that_agree_hold_and_artifacts_add_at_most_a_little():
    result = settled(rows((0.05, 0.1, 0.05), 1.0))
    assert (result.value, result.final, result.weight, result.standing) == (0.35, True, 1.0, PLAIN)
    assert result.sentence == (
        "Reward .35, final. The judge’s three readings agree (.05, .10 and .05; median .05). The session’s artifacts, "
        "worth 1 by their rules, add at most .30 to that, at weight 1."
    )
    assert tile(result, Source.CONSUMPTION).why.startswith("Held at .35: three readings agree")


def test_three_readings_that_do_not_agree_leave_it_contested():
    result = settled(rows((0.05, 0.5, 0.15), 0.6))
    assert (result.value, result.final, result.standing) == (0.6, False, "contested/45")


def test_inventing_artifacts_neither_lifts_a_bad_session_far_nor_gets_it_out_of_the_way():
    """A liar whose sessions are worth .05 and who leaves a made-up artifact worth 1 in each."""
    contest, answered = settled(rows(0.05, 1.0)), settled(rows((0.05, 0.05, 0.05), 1.0))
    assert contest.weight == 0
    assert (answered.value, answered.weight) == (0.35, 1.0)
    # No more than it would have got by leaving just as little as contests nothing.
    assert answered.value == settled(rows(0.05, 0.35)).value


def test_an_honest_reading_session_keeps_most_of_what_a_biased_judge_would_take():
    answered = settled(rows((0.3, 0.25, 0.3), 0.7))
    assert (answered.value, answered.final, answered.weight) == (0.6, True, 1.0)


# --- what the agent alone vouches for ---------------------------------------------------------------------------------

values = st.integers(0, 100).map(lambda hundredths: hundredths / 100)
maybe = st.none() | values


@given(
    judge=values | st.tuples(values, values, values),
    left=values,
    trajectory=maybe,
    stale=st.sampled_from(["", "the transcript came"]),
    vetoes=st.sampled_from([(), ("ci",)]),
    person=maybe,
)
def test_a_claimed_artifact_never_changes_a_verdicts_reward_or_weight(judge, left, trajectory, stale, vetoes, person):
    more = [] if person is None else [row(30, Source.HUMAN, person)]
    with_claim = rows(judge, left, Witness.CLAIMED, trajectory, stale) + more
    without = rows(judge, None, trajectory=trajectory, stale=stale) + more
    claimed, free = (resolve(decide(each, POLICY, judge_open=False, vetoes=vetoes)) for each in (with_claim, without))
    assert [claimed.value, claimed.weight, claimed.source, claimed.final, claimed.standing, claimed.grade_id] == [
        free.value, free.weight, free.source, free.final, free.standing, free.grade_id,
    ]  # fmt: skip


def test_a_verdict_stands_over_a_claim_and_says_so():
    result = settled(rows(0.05, 1.0, Witness.CLAIMED))
    assert (result.value, result.source, result.final, result.weight) == (0.05, Source.JUDGE, True, 1.0)
    assert result.sentence == (
        "Reward .05, final. The judge decides, at weight 1. The session’s artifacts would earn 1, but only the agent "
        "itself vouches for them, so they can’t raise the verdict."
    )
    assert tile(result, Source.CONSUMPTION).why.startswith(
        "Only the agent itself vouches for it, so it can’t raise the verdict"
    )


def test_without_a_verdict_a_claim_joins_and_counts_little():
    result = settled(rows(None, 0.9, Witness.CLAIMED, trajectory=0.4))
    assert (result.value, result.source, result.final) == (0.9, Source.CONSUMPTION, False)
    assert (result.weight, result.standing) == (0.3, CLAIMED)
    assert "Only the agent itself vouches for its artifacts." in result.sentence
    assert settled(rows(None, 0.9, trajectory=0.4)).weight == 1.0


# --- one direction ----------------------------------------------------------------------------------------------------


@given(
    judge=values | st.tuples(values, values, values),
    left=st.tuples(values, values).map(sorted),
    witness=st.sampled_from(list(Witness)),
    trajectory=maybe,
    stale=st.sampled_from(["", "the transcript came"]),
)
def test_more_left_behind_never_lowers_a_reward_and_none_lowers_a_verdict(judge, left, witness, trajectory, stale):
    less, more = (settled(rows(judge, each, witness, trajectory, stale)) for each in left)
    none = settled(rows(judge, None, witness, trajectory, stale))
    assert none.value <= less.value <= more.value


@given(st.tuples(values, values, values), values)
def test_three_readings_that_agree_bound_what_artifacts_add(readings, left):
    judge = current(rows(readings))[Source.JUDGE]
    result = settled(rows(readings, left))
    if judge.readings_agree:
        assert result.value == pytest.approx(max(judge.value, min(left, judge.value + MAX_ADDED)))
        assert result.final


@given(judge=values, left=values, witness=st.sampled_from(VOUCHED))
def test_what_a_hook_saw_counts_like_what_nobody_has_said(judge, left, witness):
    assert settled(rows(judge, left, witness)) == settled(rows(judge, left, Witness.UNKNOWN))


# --- standings and witnesses ------------------------------------------------------------------------------------------


def test_a_standing_says_what_its_reward_counts():
    expected = [round((50 - hundredths) / 20, 6) for hundredths in range(31, 51)]
    assert [standing_weight(f"contested/{hundredths}") for hundredths in range(31, 51)] == expected
    assert [standing_weight(each) for each in ("", PLAIN, STALE, CLAIMED)] == [1, 1, 0.3, 0.3]
    assert [contested(gap) for gap in (0.300001, 0.31, 0.4, 0.41, 0.99)] == [
        f"contested/{hundredths}" for hundredths in (31, 31, 40, 41, 50)
    ]


@pytest.mark.parametrize("said", ["contested", "contested/", "contested/30", "contested/51", "contested/x", "plane"])
def test_a_standing_that_is_none_is_refused(said):
    with pytest.raises(ValueError, match="expected plain"):
        standing_weight(said)


@given(judge=values | st.tuples(values, values, values), left=maybe, witness=st.sampled_from(list(Witness)))
def test_a_settlements_weight_is_what_its_standing_says(judge, left, witness):
    result = settled(rows(judge, left, witness))
    assert result.weight == POLICY.weights[result.source] * standing_weight(result.standing)


def test_a_chain_of_evidence_is_as_strong_as_its_weakest_witness():
    order = [Witness.CLAIMED, Witness.UNKNOWN, Witness.HOOK, Witness.OBSERVED, Witness.VERIFIED]
    for each in itertools.product(order, repeat=3):
        assert weakest(each) is min(each, key=order.index)
    assert Witness.HOOK.strength == Witness.UNKNOWN.strength
    assert (weakest([]), Witness.parse(None), Witness.parse("nobody"), Witness.parse("claimed")) == (
        Witness.UNKNOWN, Witness.UNKNOWN, Witness.UNKNOWN, Witness.CLAIMED,
    )  # fmt: skip
