"""The chain's rules as tables."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.reward.chain import Resolution, resolve
from grading.reward.decide import ChainPolicy, GradeView, contests, current, decide, gap, is_claimed
from grading.reward.explain import StepState
from grading.vocabulary import Outcome, Reason, Source, Status
from grading.witness import Witness

pytestmark = pytest.mark.pure

POLICY = ChainPolicy(
    version="test",
    floor=0.1,
    threshold=0.1,
    veto_cap=0.2,
    weights={"human": 1, "judge": 1, "consumption": 1, "trajectory": 0.3, "journal": 0.3, "floor": 0},
)
MISSING = {
    Source.JUDGE: Reason.QUOTA_EXHAUSTED,
    Source.TRAJECTORY: Reason.STUB_NO_TOOL_CALLS,
    Source.JOURNAL: Reason.NO_JOURNAL,
    Source.CONSUMPTION: Reason.NO_ARTIFACTS,
}


def grade(number: int, source: Source, value: float | None, reason: Reason = Reason.NONE) -> GradeView:
    if value is None:
        return GradeView(id=number, source=source, status=Status.UNSCORED, reason=reason or MISSING[source])
    return GradeView(id=number, source=source, status=Status.SCORED, value=value)


def reward(
    *,
    judge_open: bool = True,
    outcome: Outcome = Outcome.COMPLETED,
    vetoes: Sequence[str] = (),
    **values: float | None,
) -> Resolution:
    grades = [grade(n, Source(name), value) for n, (name, value) in enumerate(values.items(), start=1)]
    return resolve(
        decide(grades, POLICY, judge_open=judge_open, outcome=outcome, outcome_reason="login expired", vetoes=vetoes)
    )


@pytest.mark.parametrize(
    ("judge", "trajectory", "journal", "expected", "by"),
    [
        (0.9, 0.1, 0.32, 0.9, Source.JUDGE),
        (0.05, 0.9, 0.32, 0.05, Source.JUDGE),  # an honest judge may say .05
        (None, 0.9, 0.32, 0.9, Source.TRAJECTORY),
        (None, 0.32, 0.9, 0.32, Source.TRAJECTORY),  # above the threshold the journal isn't asked
        (None, 0.1, 0.32, 0.32, Source.JOURNAL),  # seed 001: not .1
        (None, 0.1, 0.05, 0.1, Source.TRAJECTORY),  # the journal never downgrades
        (None, 0.05, None, 0.05, Source.TRAJECTORY),
        (None, None, 0.32, 0.32, Source.JOURNAL),
        (None, None, None, 0.1, Source.FLOOR),
    ],
)
def test_production_is_judge_then_trajectory_then_journal_then_floor(judge, trajectory, journal, expected, by):
    result = reward(judge=judge, trajectory=trajectory, journal=journal)
    assert (result.value, result.source) == (expected, by)
    assert result.final is (judge is not None)


def test_the_floor_is_displayed_and_carries_no_evidence():
    result = reward(judge=None, trajectory=None, journal=None)
    assert (result.value, result.source, result.weight, result.final) == (0.1, Source.FLOOR, 0, False)
    assert "floor" in result.sentence


@pytest.mark.parametrize(
    ("production", "consumption"), list(itertools.product([None, 0.05, 0.1, 0.3, 0.9], [None, 0.1, 0.3, 0.6]))
)
def test_consumption_and_production_never_lower_each_other(production, consumption):
    result = reward(judge=production, consumption=consumption)
    present = [value for value in (production, consumption) if value is not None]
    assert result.value == (max(present) if present else POLICY.floor)


def test_human_grade_outranks_judge_up_and_down():
    for value in (0.0, 0.2, 1.0):
        result = reward(judge=0.5, consumption=0.6, human=value)
        assert (result.value, result.source, result.final, result.weight) == (value, Source.HUMAN, True, 1)


def test_excluding_a_session_leaves_no_reward():
    grades = [grade(1, Source.JUDGE, 0.9), grade(2, Source.HUMAN, None, Reason.EXCLUDED)]
    result = resolve(decide(grades, POLICY, judge_open=False))
    assert (result.value, result.source, result.weight, result.final) == (None, Source.HUMAN, 0, True)


def test_undoing_a_correction_brings_back_the_one_before():
    undo = GradeView(id=4, source=Source.HUMAN, status=Status.SKIPPED, reason=Reason.WITHDRAWN, withdraws=3)
    grades = [grade(1, Source.JUDGE, 0.5), grade(2, Source.HUMAN, 0.8), grade(3, Source.HUMAN, 0.9), undo]
    assert resolve(decide(grades, POLICY, judge_open=False)).value == 0.8


def test_a_later_failure_of_the_judge_does_not_hide_its_verdict():
    grades = [grade(1, Source.JUDGE, 0.7), grade(2, Source.JUDGE, None)]
    assert resolve(decide(grades, POLICY, judge_open=True)).value == 0.7


@pytest.mark.parametrize("outcome", [Outcome.INFRASTRUCTURE, Outcome.REFUSED])
def test_a_session_that_died_of_infrastructure_gets_no_reward(outcome):
    result = reward(trajectory=0.9, journal=0.4, outcome=outcome)
    assert (result.value, result.source, result.weight) == (None, "", 0)
    assert "login expired" in result.sentence


def test_every_source_has_a_step_with_its_reason_in_words():
    result = reward(judge=None, trajectory=None, journal=0.32, consumption=None)
    steps = {step.source: step for step in result.steps}
    assert set(steps) == set(Source)
    assert steps[Source.JUDGE].why == "Quota exhausted"
    assert steps[Source.TRAJECTORY].state is StepState.FAILED
    assert steps[Source.JOURNAL].state is StepState.DECIDES
    assert steps[Source.JOURNAL].provisional
    assert steps[Source.CONSUMPTION].state is StepState.SKIPPED
    assert all(step.why for step in result.steps)


def test_beaten_sources_keep_their_number_and_say_why():
    steps = {step.source: step for step in reward(judge=0.22, trajectory=0.14, consumption=0.6).steps}
    assert (steps[Source.JUDGE].state, steps[Source.JUDGE].value) == (StepState.BEATEN, 0.22)
    assert "consumption" in steps[Source.JUDGE].why
    assert steps[Source.TRAJECTORY].why.startswith("Not used: the judge has scored")


optional_value = st.none() | st.floats(0, 1).map(lambda value: round(value, 6))


@given(st.permutations(range(6)), st.tuples(*[optional_value] * 6))
def test_the_order_in_which_rows_are_handed_over_changes_nothing(order, values):
    sources = [Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION, Source.JUDGE, Source.TRAJECTORY]
    rows = [grade(n, source, value) for n, (source, value) in enumerate(zip(sources, values, strict=True), start=1)]
    assert resolve(decide([rows[n] for n in order], POLICY, judge_open=True)) == resolve(
        decide(rows, POLICY, judge_open=True)
    )


@given(optional_value, optional_value, optional_value, optional_value)
def test_exactly_one_step_decides_and_missing_is_never_a_number(judge, trajectory, journal, consumption):
    result = reward(judge=judge, trajectory=trajectory, journal=journal, consumption=consumption)
    assert [step.source for step in result.steps if step.state is StepState.DECIDES] == [result.source]
    given_values = {Source.JUDGE: judge, Source.TRAJECTORY: trajectory, Source.JOURNAL: journal}
    for step in result.steps:
        if step.source in given_values:
            assert step.value == given_values[step.source]


def test_a_judge_that_was_not_asked_is_hollow_not_failed():
    skipped = GradeView(id=1, source=Source.JUDGE, status=Status.SKIPPED, reason=Reason.INFRASTRUCTURE)
    result = resolve(
        decide([skipped], POLICY, judge_open=False, outcome=Outcome.INFRASTRUCTURE, outcome_reason="no login")
    )
    assert (result.steps[0].state, result.steps[0].headline) == (StepState.SKIPPED, "Not asked")


# --- a mandatory check that failed (I45)


@pytest.mark.parametrize(
    ("values", "expected", "by"),
    [
        ({"judge": 0.9}, 0.2, Source.JUDGE),
        ({"judge": 0.9, "consumption": 0.6}, 0.2, Source.JUDGE),
        ({"judge": 0.1, "consumption": 0.6}, 0.2, Source.CONSUMPTION),
        ({"judge": None, "trajectory": 0.7}, 0.2, Source.TRAJECTORY),
        ({"trajectory": 0.1, "journal": 0.32}, 0.2, Source.JOURNAL),
        ({"consumption": 0.6}, 0.2, Source.CONSUMPTION),
        ({"judge": 0.15}, 0.15, Source.JUDGE),  # a cap raises nothing
        ({"judge": None}, 0.1, Source.FLOOR),
        ({"judge": 0.9, "human": 0.7}, 0.7, Source.HUMAN),
    ],
)
def test_a_failed_mandatory_check_caps_what_machines_say(values, expected, by):
    result, free = reward(**values, vetoes=["ci"]), reward(**values)
    assert (result.value, result.source) == (expected, by)
    assert (result.source, result.final, result.weight) == (free.source, free.final, free.weight)


def test_a_veto_rewards_no_session_that_died_of_infrastructure():
    assert reward(trajectory=0.9, outcome=Outcome.INFRASTRUCTURE, vetoes=["ci"]).value is None


def test_a_capped_grade_keeps_its_number_and_says_what_capped_it():
    result = reward(judge=0.9, consumption=0.6, vetoes=["ci"])
    (judge,) = (step for step in result.steps if step.state is StepState.DECIDES)
    assert (judge.source, judge.value) == (Source.JUDGE, 0.9)
    assert judge.why == "Capped at .20: the mandatory check ci failed. It has a score"
    assert result.sentence == (
        "Reward .20, final. The judge decides: max(.90, .60) = .90, at weight 1. "
        "The grade of .90 is capped at .20: the mandatory check ci failed."
    )


def test_the_weight_of_a_fallback_is_an_upper_bound_also_beside_artifacts():
    sentence = reward(trajectory=0.5, consumption=0.3).sentence
    assert "The trajectory decides: max(.50, .30) = .50, with a weight of at most .3." in sentence


def test_a_veto_is_named_where_it_takes_nothing_yet():
    assert reward(trajectory=0.15, vetoes=["ci"]).sentence == (
        "Reward .15, provisional. The trajectory decides, with a weight of at most .3. "
        "Automatic grades can give at most .20: the mandatory check ci failed. "
        "The judge's verdict can’t raise that cap."
    )


def test_many_failed_checks_are_counted_after_the_third():
    sentence = reward(judge=0.9, vetoes=["a", "b", "c", "d", "e"]).sentence
    assert sentence.endswith("capped at .20: the mandatory checks a, b, c and 2 more failed.")


@given(optional_value, optional_value, optional_value, optional_value)
def test_no_machine_lifts_a_vetoed_grade_above_the_cap(judge, trajectory, journal, consumption):
    values = {"judge": judge, "trajectory": trajectory, "journal": journal, "consumption": consumption}
    vetoed, free = reward(**values, vetoes=["ci"]), reward(**values)
    assert vetoed.value == min(free.value, POLICY.veto_cap)


@given(optional_value, st.floats(0, 1), st.sampled_from([Source.JUDGE, Source.TRAJECTORY, Source.CONSUMPTION]))
def test_a_better_grade_never_lowers_a_vetoed_one(value, more, source):
    worse = {"judge": value, source.value: min(value or 0.0, more)}
    better = {"judge": value, source.value: max(value or 0.0, more)}
    assert reward(**better, vetoes=["ci"]).value >= reward(**worse, vetoes=["ci"]).value


class TestComparedOnOneScale:
    """A trajectory's .2 may be worth .6 of a verdict: the chain's policy says what it is taken for."""

    policy = replace(POLICY, scale={"trajectory": (0.4, 1.0)})

    def ends(self, **values):
        grades = [grade(n, Source(name), value) for n, (name, value) in enumerate(values.items(), start=1)]
        return resolve(decide(grades, self.policy, judge_open=False))

    def test_what_was_left_behind_is_held_against_what_the_trajectory_is_worth(self):
        held = self.ends(trajectory=0.2, consumption=0.5)
        assert (held.value, held.source) == (0.2, Source.TRAJECTORY)
        assert "max(.20 taken for .60, .50) = .20" in held.sentence
        assert self.ends(trajectory=0.2, consumption=0.7).source is Source.CONSUMPTION

    def test_so_is_the_journal(self):
        assert self.ends(trajectory=0.05, journal=0.32).source is Source.TRAJECTORY

    def test_a_verdict_is_on_that_scale_already(self):
        assert self.ends(judge=0.4, trajectory=0.2, consumption=0.5).source is Source.CONSUMPTION

    def test_no_number_leaves_the_range(self):
        assert replace(POLICY, scale={"trajectory": (0.9, 2.5)}).compared(Source.TRAJECTORY, 0.8) == 1


def test_a_grade_row_says_nothing_that_nobody_said():
    row = GradeView(id=1, source=Source.JUDGE, status=Status.FAILED)
    assert (row.value, row.reason, row.detail, row.withdraws, row.stands, row.view) == (None, "", "", None, None, "")
    assert (row.stale, row.witness, row.sample_of, row.samples) == ("", Witness.UNKNOWN, None, ())
    assert (row.spread, row.readings_agree, row.is_verdict) == (0.0, False, False)


def test_readings_are_as_far_apart_as_the_highest_is_from_the_lowest():
    row = replace(grade(1, Source.JUDGE, 0.5), samples=(0.5, 1 / 3, 0.6))
    assert (row.spread, row.readings_agree) == (0.266667, True)
    assert replace(row, samples=(0.2, 0.5, 0.4)).readings_agree
    assert not replace(row, samples=(0.2, 0.500001, 0.4)).readings_agree


def decided(*rows: GradeView, **more):
    return decide(rows, POLICY, **{"judge_open": False, **more})


def test_what_was_left_behind_is_held_against_a_fresh_verdict_alone():
    judge, left = grade(1, Source.JUDGE, 0.25), grade(2, Source.CONSUMPTION, 0.75)
    apart = {Source.JUDGE: judge, Source.CONSUMPTION: left}
    assert (gap(apart), contests(apart)) == (0.5, True)
    near = {**apart, Source.CONSUMPTION: replace(left, value=0.55)}
    assert (gap(near), contests(near)) == (0.3, False)
    assert gap({**apart, Source.CONSUMPTION: replace(left, value=0.250001)}) == 0.000001
    assert gap({**apart, Source.JUDGE: replace(judge, value=1 / 3)}) == 0.416667
    for holds in (
        {Source.JUDGE: judge},
        {Source.CONSUMPTION: left},
        {**apart, Source.JUDGE: replace(judge, stale="the transcript came")},
        {**apart, Source.JUDGE: grade(1, Source.JUDGE, None)},
        {**apart, Source.CONSUMPTION: replace(left, value=0.2)},
    ):
        assert (gap(holds), contests(holds)) == (0.0, False)
    claimed = {**apart, Source.CONSUMPTION: replace(left, witness=Witness.CLAIMED)}
    assert (gap(claimed), contests(claimed), is_claimed(claimed)) == (0.5, False, True)


def test_a_gap_is_told_where_what_was_left_behind_decides():
    judge, left = grade(1, Source.JUDGE, 0.3), grade(2, Source.CONSUMPTION, 0.6)
    assert decided(judge, left).gap == 0.3
    assert decided(judge, left, grade(3, Source.HUMAN, 0.2)).gap == 0.0
    assert decided(judge).gap == 0.0


def test_three_readings_hold_what_is_more_than_may_be_added_to_them():
    readings = [replace(grade(n, Source.JUDGE, 0.3), sample_of=1 if n > 1 else None) for n in (1, 2, 3)]
    assert decided(*readings, grade(9, Source.CONSUMPTION, 0.65)).is_limited
    assert not decided(*readings, grade(9, Source.CONSUMPTION, 0.6)).is_limited
    assert not decided(*readings[:2], grade(9, Source.CONSUMPTION, 0.65)).is_limited


def test_the_row_that_decides_is_named():
    assert decided(grade(4, Source.JUDGE, 0.3), grade(7, Source.CONSUMPTION, 0.5)).grade.id == 7
    assert decided().grade is None
    assert decided(grade(4, Source.JUDGE, 0.3), outcome=Outcome.REFUSED).grade is None
    assert resolve(decide([grade(4, Source.JUDGE, 0.3)], POLICY, judge_open=False)).grade_id == 4
    assert resolve(decide([], POLICY, judge_open=False)).grade_id is None


def test_what_may_still_come_is_handed_on():
    found = decided(grade(1, Source.JUDGE, 0.3), judge_open=True, reading_open=True, vetoes=["ci"])
    assert (found.judge_open, found.reading_open, found.vetoes) == (True, True, ["ci"])
    assert not decided().reading_open
    lost = decided(outcome=Outcome.INFRASTRUCTURE, outcome_reason="no login")
    assert (lost.outcome, lost.outcome_reason) == (Outcome.INFRASTRUCTURE, "no login")
    assert (decided().outcome, decided().outcome_reason, decided().vetoes) == (Outcome.COMPLETED, "", ())


def test_nobody_reads_again_unless_it_is_said():
    grades = [grade(1, Source.JUDGE, 0.2), grade(2, Source.CONSUMPTION, 0.6)]
    assert resolve(decide(grades, POLICY, judge_open=False)).sentence.endswith("A person's grade would settle it.")


def test_the_steps_are_plain_json():
    steps = resolve(decide([grade(4, Source.JUDGE, 0.3)], POLICY, judge_open=False)).columns()["steps"]
    assert (steps[0]["source"], steps[0]["state"], steps[0]["value"], steps[0]["grade"]) == ("judge", "decides", 0.3, 4)
    assert [step["source"] for step in steps][1:] == ["trajectory", "journal", "floor", "consumption", "human"]


def test_a_row_that_does_not_hold_hides_none_that_comes_after_it():
    undo = GradeView(id=3, source=Source.HUMAN, status=Status.SKIPPED, reason=Reason.WITHDRAWN, withdraws=2)
    grades = [
        grade(1, Source.JUDGE, 0.4),
        grade(2, Source.HUMAN, 0.9),
        undo,
        grade(4, Source.JUDGE, None),
        grade(5, Source.CONSUMPTION, 0.6),
    ]
    held = current(grades)
    assert {source: row.id for source, row in held.items()} == {Source.JUDGE: 1, Source.CONSUMPTION: 5}
