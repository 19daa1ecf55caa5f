"""What sessions that read are worth: the numbers of the consumption grade."""

import pytest

from grading.reward import consumption
from grading.signals.artifacts import ArtifactDefinition, FoundArtifact
from tests import golden

pytestmark = pytest.mark.pure

VERSION = "consumption/2"
AT = "grading/reward/consumption.py"
TABLE = [
    # ideas, tasks, posts, notes: grade
    (1, 0, 0, 0, 0.3),
    (2, 0, 0, 0, 0.416993),
    (3, 0, 0, 0, 0.5),
    (10, 0, 0, 0, 0.5),
    (0, 1, 0, 0, 0.2),
    (0, 2, 0, 0, 0.258496),
    (0, 0, 1, 0, 0.2),
    (0, 0, 3, 0, 0.3),
    (0, 0, 0, 1, 0.15),
    (0, 0, 0, 2, 0.179248),
    (0, 0, 0, 9, 0.2),
    (1, 1, 1, 1, 0.55),
    (3, 1, 1, 0, 0.7),
    (3, 3, 3, 3, 1.0),
    (9, 9, 9, 9, 1.0),
]
DIMINISHING = [
    # how many, scale of the rule: share of full marks
    (-1, 1.0, 0.0),
    (0, 1.0, 0.0),
    (1, 1.0, 0.5),
    (2, 1.0, 0.792481),
    (3, 1.0, 1.0),
    (10, 1.0, 1.0),
    (1, 0.5, 0.442507),
    (1, 4.0, 0.627474),
    (2, 4.0, 0.856635),
]


def test_the_version():
    golden.hold_version(consumption.VERSION, VERSION, at=AT)


@pytest.mark.parametrize(("ideas", "tasks", "posts", "notes", "expected"), TABLE)
def test_the_grade(ideas, tasks, posts, notes, expected):
    counts = {"idea": ideas, "task": tasks, "engagement": posts, "knowledge": notes}
    left = [
        FoundArtifact(kind=kind, key=str(number), where="", origin="patch")
        for kind, count in counts.items()
        for number in range(count)
    ]
    found = consumption.grade(left, is_consumption=True, readable=True)
    assert found.version == VERSION
    golden.hold(found.value, expected, version=VERSION, at=AT)


@pytest.mark.parametrize(("count", "scale", "expected"), DIMINISHING)
def test_the_diminishing_return(count, scale, expected):
    found = consumption.diminishing(count, scale)
    golden.hold(round(found, 6), expected, version=VERSION, at=AT)


def test_rules_that_sum_to_more_than_1_give_1_and_a_rules_scale_is_its_own():
    rules = [ArtifactDefinition(kind="big", weight=0.9, scale=4.0), ArtifactDefinition(kind="other", weight=0.9)]
    left = [FoundArtifact(kind=kind, key="1", where="", origin="patch") for kind in ("big", "other")]
    both, one = (consumption.grade(some, is_consumption=True, readable=True, rules=rules) for some in (left, left[:1]))
    golden.hold((both.value, one.value), (1.0, 0.564726), version=VERSION, at=AT)
    assert [term["diminishing"] for term in one.evidence["terms"]] == [0.627474, 0.0]
