"""The four parts of a difference: tables with their arithmetic, and what holds for any sessions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.insight.core.bridge import fit_scale
from grading.insight.core.cells import GraderIdentity
from grading.insight.core.day_effects import DayEffects
from grading.insight.core.decomposition import ChangeInputs, decompose
from grading.insight.core.period_model import MANY_MISSING, NO_BRIDGE, NO_COMMON_WORK, NO_WORK
from grading.insight.core.results import PartName, Span
from tests.insight.core.tables import JUDGE, NEW_JUDGE, day, table

pytestmark = pytest.mark.pure
BEFORE, AFTER = Span(first=day(0), last=day(6)), Span(first=day(7), last=day(13))
QUIET = DayEffects(variance=0.0, correlation=0.0, session_variance=0.04, days=14)
MIX, WITHIN, GRADERS, MISSING = PartName


def sessions(period, category, rewards, **fields):
    """Sessions of one week of a category, spread over its days."""
    return [
        {"day": 7 * period + number % 7, "category": category, "reward": reward, **fields}
        for number, reward in enumerate(rewards)
    ]


def split(rows, pairs=None, graders=(JUDGE, NEW_JUDGE), effects=QUIET):
    scale = fit_scale(graders, pairs or {})
    inputs = ChangeInputs(
        table=table(rows), before=BEFORE, after=AFTER, measure="reward", scale=scale, day_effects=effects
    )
    return decompose(inputs)


def values(result):
    return {part.names[0]: part.value for part in result.parts if part.is_identified}


def test_other_work_alone():
    """Half code at .8 and half news at .4, mean .6; then three quarters news, mean .5: other work takes .1."""
    before = sessions(0, "code", [0.8] * 20) + sessions(0, "news", [0.4] * 20)
    after = sessions(1, "code", [0.8] * 10) + sessions(1, "news", [0.4] * 30)
    assert values(split(before + after)) == pytest.approx({MIX: -0.1, WITHIN: 0, GRADERS: 0, MISSING: 0})


def test_other_results_alone():
    """Code falls from .8 to .7, news stays, each half of the work: −.1 · ½ = −.05."""
    before = sessions(0, "code", [0.8] * 20) + sessions(0, "news", [0.4] * 20)
    after = sessions(1, "code", [0.7] * 20) + sessions(1, "news", [0.4] * 20)
    result = split(before + after)
    assert values(result) == pytest.approx({MIX: 0, WITHIN: -0.05, GRADERS: 0, MISSING: 0})
    by_category = {change.name: change.parts[1].value for change in result.categories}
    assert by_category == pytest.approx({"code": -0.05, "news": 0})


def test_few_sessions_of_kinds_with_rubrics_of_their_own():
    """Small categories are pooled, and each keeps its rubric: that there is more of one kind is no other grader."""
    before = sessions(0, "code", [0.6] * 2) + sessions(0, "news", [0.6], grader=NEW_JUDGE)
    after = sessions(1, "code", [0.5] * 4) + sessions(1, "news", [0.5] * 5, grader=NEW_JUDGE)
    result = split(before + after)
    assert values(result) == pytest.approx({MIX: 0, WITHIN: -0.1, GRADERS: 0, MISSING: 0})


def test_other_graders_alone():
    """The new rubric reads the same sessions .1 higher, and results are .1 higher: nothing else changed."""
    before = sessions(0, "code", [0.5] * 20)
    after = sessions(1, "code", [0.6] * 20, grader=NEW_JUDGE)
    result = split(before + after, {(JUDGE, NEW_JUDGE): np.tile([0.05, 0.15], 20)})
    assert values(result) == pytest.approx({MIX: 0, WITHIN: 0, GRADERS: 0.1, MISSING: 0})


def test_other_gaps_alone():
    """Half of code loses its grade: ten of 20 · .8 beside 20 · .4. (10 · .8 + 20 · .4)/30 − .6 = −.0667."""
    before = sessions(0, "code", [0.8] * 20) + sessions(0, "news", [0.4] * 20)
    after = sessions(1, "code", [0.8] * 10 + [None] * 10) + sessions(1, "news", [0.4] * 20)
    assert values(split(before + after)) == pytest.approx({MIX: 0, WITHIN: 0, GRADERS: 0, MISSING: 16 / 30 - 0.6})


def test_two_parts_share_what_they_do_together():
    """Code falls by .2 and goes from half to all of the work, news is at .4.

    Mean .6 → .6. Within: −.2 · (½ + 1)/2 = −.15. Mix: ½ · ((.8 − .4) + (.6 − .4))/2 = +.15.
    """
    before = sessions(0, "code", [0.8] * 20) + sessions(0, "news", [0.4] * 20)
    after = sessions(1, "code", [0.6] * 40)
    assert values(split(before + after)) == pytest.approx({MIX: 0.15, WITHIN: -0.15, GRADERS: 0, MISSING: 0})


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        pytest.param({}, NO_BRIDGE, id="nothing compares them"),
        pytest.param({(JUDGE, NEW_JUDGE): np.full(29, 0.1)}, NO_BRIDGE, id="29 are too few"),
    ],
)
def test_graders_without_a_bridge_are_not_a_number(pairs, reason):
    """Within and graders have one sum, and no number of their own."""
    rows = sessions(0, "code", [0.5] * 20) + sessions(1, "code", [0.6] * 20, grader=NEW_JUDGE)
    result = split(rows, pairs)
    joint = next(part for part in result.parts if GRADERS in part.names)
    assert joint.names == (WITHIN, GRADERS)
    assert joint.value == pytest.approx(0.1)
    assert joint.why == reason
    assert not joint.is_identified


def test_work_without_names_is_not_told_apart():
    result = split(sessions(0, "", [0.5] * 20) + sessions(1, "", [0.4] * 20))
    assert [part.names for part in result.parts] == [(MIX, WITHIN), (GRADERS,), (MISSING,)]
    assert result.parts[0].why == NO_WORK


def test_work_without_anything_in_common_is_not_told_apart():
    result = split(sessions(0, "code", [0.5] * 20) + sessions(1, "news", [0.4] * 20))
    assert result.parts[0].names == (MIX, WITHIN)
    assert result.parts[0].why == NO_COMMON_WORK


def test_projects_that_come_and_go_are_compared_by_category():
    """No project is in both weeks, but their category is."""
    before = sessions(0, "code", [0.5] * 20, project="one")
    after = sessions(1, "code", [0.4] * 20, project="two")
    assert values(split(before + after))[WITHIN] == pytest.approx(-0.1)


def test_many_missing_grades_are_not_told_apart_from_results():
    """Of 40 sessions 16 lose their grade: which ones is unknown."""
    rows = sessions(0, "code", [0.5] * 40) + sessions(1, "code", [0.4] * 24 + [None] * 16)
    joint = next(part for part in split(rows).parts if MISSING in part.names)
    assert joint.names == (WITHIN, MISSING)
    assert joint.why == MANY_MISSING


def test_a_few_grades_by_an_unconnected_grader_widen_the_interval():
    """One of 40 sessions is graded by a person whom nothing compares: 2.5 % · .5 = .0125 more on either side."""
    person = GraderIdentity("human")
    before, after = sessions(0, "code", [0.5] * 40), sessions(1, "code", [0.5] * 39)
    alone = split(before + after + sessions(1, "code", [0.5]), graders=(JUDGE, person))
    mixed = split(before + after + sessions(1, "code", [0.5], grader=person), graders=(JUDGE, person))
    widths = [next(part.high - part.low for part in each.parts if part.names == (WITHIN,)) for each in (alone, mixed)]
    assert widths[1] - widths[0] == pytest.approx(2 * 0.0125)


def test_a_rubric_for_each_kind_of_work_is_no_change():
    """Reading has a rubric of its own, and there is more reading: nothing has to be compared."""
    before = sessions(0, "code", [0.8] * 30) + sessions(0, "news", [0.4] * 10, grader=NEW_JUDGE)
    after = sessions(1, "code", [0.8] * 10) + sessions(1, "news", [0.4] * 30, grader=NEW_JUDGE)
    assert values(split(before + after)) == pytest.approx({MIX: -0.2, WITHIN: 0, GRADERS: 0, MISSING: 0})


def test_interval_of_like_work():
    """40 + 40 sessions with variance .04, all of one kind: 1.645 · √(.04/40 + .04/40) = .0736."""
    rows = sessions(0, "code", [0.5] * 40) + sessions(1, "code", [0.5] * 40)
    within = next(part for part in split(rows).parts if part.names == (WITHIN,))
    assert within.high == pytest.approx(1.6449 * (2 * 0.04 / 40) ** 0.5, abs=1e-4)


def test_days_that_differ_widen_the_interval():
    """Days add 2 · .04²/7 if the sessions of 7 days are spread evenly, as 42 are."""
    rows = sessions(0, "code", [0.5] * 42) + sessions(1, "code", [0.5] * 42)
    within = next(
        part for part in split(rows, effects=replace(QUIET, variance=0.04**2)).parts if part.names == (WITHIN,)
    )
    assert within.high == pytest.approx(1.6449 * (2 * 0.04 / 42 + 2 * 0.0016 / 7) ** 0.5, abs=1e-4)


def test_missing_grades_bound_what_like_work_says():
    """The best fifth loses its grade, so .6 falls to .5: if those were 1, it would be .6 again."""
    before = sessions(0, "code", ([0.5] * 4 + [1.0]) * 8)
    after = sessions(1, "code", ([0.5] * 4 + [None]) * 8)
    result = split(before + after)
    assert values(result)[WITHIN] == pytest.approx(-0.1)
    assert result.within_most == pytest.approx(0)


rewards = st.one_of(st.none(), st.integers(0, 20).map(lambda number: number / 20))
rows_of_work = st.lists(
    st.builds(
        dict,
        day=st.integers(0, 13),
        category=st.sampled_from(["code", "news", "infra", ""]),
        project=st.sampled_from(["", "one", "two"]),
        grader=st.sampled_from([JUDGE, NEW_JUDGE]),
        reward=rewards,
    ),
    max_size=60,
)
ANCHORS = [{"day": number, "category": "code", "reward": 0.5} for number in (0, 13)]
BRIDGED = {(JUDGE, NEW_JUDGE): np.linspace(0, 0.2, 40)}


@given(rows_of_work, st.sampled_from([{}, BRIDGED]))
def test_parts_always_add_up(rows, pairs):
    """The parts, and the parts of all categories, add up to the difference of the means."""
    rows = [*rows, *ANCHORS]
    result = split(rows, pairs)
    means = []
    for period in (0, 1):
        known = [row["reward"] for row in rows if row["day"] // 7 == period and row["reward"] is not None]
        means.append(sum(known) / len(known))
    assert result.difference == pytest.approx(means[1] - means[0])
    assert sum(part.value for part in result.parts) == pytest.approx(result.difference)
    for number, part in enumerate(result.parts):
        in_categories = sum(change.parts[number].value for change in result.categories)
        assert in_categories == pytest.approx(part.value)
    assert sorted(itertools.chain(*(part.names for part in result.parts))) == sorted(PartName)


@given(rows_of_work, st.randoms(use_true_random=False))
def test_order_of_sessions_does_not_matter(rows, random):
    rows = [*rows, *ANCHORS]
    shuffled = random.sample(rows, len(rows))
    first, second = split(rows, BRIDGED), split(shuffled, BRIDGED)
    assert [part.names for part in first.parts] == [part.names for part in second.parts]
    assert [part.value for part in first.parts] == pytest.approx([part.value for part in second.parts])


@given(rows_of_work)
def test_there_and_back_is_the_opposite(rows):
    """With the two weeks exchanged, each part has the opposite sign: no order is preferred."""
    rows = [*rows, *ANCHORS]
    exchanged = [{**row, "day": (row["day"] + 7) % 14} for row in rows]
    there, back = split(rows, BRIDGED), split(exchanged, BRIDGED)
    for part, opposite in zip(there.parts, back.parts, strict=True):
        assert part.names == opposite.names
        assert part.value == pytest.approx(-opposite.value)
