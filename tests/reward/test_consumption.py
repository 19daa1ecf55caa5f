"""Seed 000's numbers, exactly."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.reward.consumption import NAMED, diminishing, grade
from grading.signals.artifacts import DEFAULT_RULES, SHOWED_UP, FoundArtifact
from grading.vocabulary import Reason, Status

pytestmark = pytest.mark.pure

KINDS = [rule.kind for rule in DEFAULT_RULES if rule.kind != SHOWED_UP]
COUNTS = st.dictionaries(st.sampled_from(KINDS), st.integers(0, 12))


def left(**counts: int) -> list[FoundArtifact]:
    return [
        FoundArtifact(kind=kind, key=str(number), where="", origin="patch", rule=kind)
        for kind, count in counts.items()
        for number in range(count)
    ]


def reading(**counts: int):
    return grade(left(**counts), is_consumption=True, readable=True)


@pytest.mark.parametrize(
    ("counts", "value"),
    [
        ({"idea": 1}, 0.3),
        ({"idea": 2}, 0.416993),
        ({"idea": 3}, 0.5),
        ({"idea": 10}, 0.5),
        ({"idea": 3, "engagement": 1}, 0.6),
        ({"idea": 3, "engagement": 1, "task": 1}, 0.7),
        ({"idea": 3, "engagement": 3, "task": 3, "knowledge": 3}, 1.0),
        ({"knowledge": 1}, 0.15),
    ],
)
def test_the_founding_table(counts, value):
    assert reading(**counts).value == value


def test_diminishing_returns_follow_the_formula():
    assert [round(diminishing(count), 3) for count in (-1, 0, 1, 2, 3, 10)] == [0, 0, 0.5, 0.792, 1, 1]
    assert diminishing(1, scale=4) == pytest.approx(0.627, abs=1e-3)


def test_the_evidence_is_the_sum():
    result = reading(idea=3, task=1)
    assert sum(term["adds"] for term in result.evidence["terms"]) == pytest.approx(result.value)
    assert result.evidence["terms"][0] == {"kind": "idea", "count": 3, "diminishing": 1.0, "weight": 0.4, "adds": 0.4}


def test_another_category_is_scored_only_for_what_it_left():
    empty = grade([], is_consumption=False, readable=True)
    assert (empty.status, empty.reason, empty.value) == (Status.UNSCORED, Reason.NOT_CONSUMPTION, None)
    assert grade(left(task=1), is_consumption=False, readable=True).value == 0.2


def test_what_cannot_be_read_is_unscored_with_the_reason():
    result = grade([], is_consumption=True, readable=False, why_unreadable="the log belongs to another session")
    assert (result.value, result.reason, result.detail) == (
        None,
        Reason.UNREADABLE,
        "the log belongs to another session",
    )


@given(COUNTS, st.sampled_from(KINDS))
def test_one_more_artifact_never_lowers(counts, kind):
    more = {**counts, kind: counts.get(kind, 0) + 1}
    assert (reading(**counts).value or 0.1) <= reading(**more).value <= 1


def test_a_reading_session_that_left_nothing_is_not_graded():
    result = reading()
    assert (result.status, result.reason, result.value) == (Status.UNSCORED, Reason.NO_ARTIFACTS, None)


@pytest.mark.parametrize("is_consumption", [True, False])
def test_an_artifact_without_substance_counts_nothing_and_is_named_with_the_reason(is_consumption):
    short = replace(left(task=1)[0], key="tasks/a.md", left_out="1 characters of text; 200 are asked for")
    alone = grade([short], is_consumption=is_consumption, readable=True)
    assert alone.value is None
    assert "1 left out for want of substance" in alone.detail
    assert alone.evidence["left_out"] == [{"kind": "task", "key": "tasks/a.md", "why": short.left_out}]
    beside = grade([short, *left(idea=1)], is_consumption=is_consumption, readable=True)
    assert beside.value == 0.3
    assert (beside.evidence["left_out"], beside.evidence["left_out_count"]) == (alone.evidence["left_out"], 1)


def test_the_evidence_names_a_bounded_number_of_what_does_not_count():
    many = [replace(artifact, left_out="no call shows its text; 200 are asked for") for artifact in left(task=500)]
    result = grade(many, is_consumption=True, readable=True)
    assert (len(result.evidence["left_out"]), result.evidence["left_out_count"]) == (NAMED, 500)
