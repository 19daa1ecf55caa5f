"""What journals claim: the numbers of the journal grade."""

import pytest

from grading.reward import journal
from tests import golden

pytestmark = pytest.mark.pure

VERSION = "journal/1"
AT = "grading/reward/journal.py"
TABLE = [
    # what the session says of itself: grade
    ("Merged PR #5.", 0.354369),
    ("Submitted PR #5.", 0.320269),
    ("Fixed the race.", 0.268433),
    ("Pushed the branch.", 0.251434),
    ("Completed the docs.", 0.233562),
    ("Fixed a.\nFixed b.", 0.34517),
    ("Fixed a.\nFixed b.\nFixed c.", 0.388584),
    ("Fixed a.\nFixed b.\nFixed c.\nFixed d.", 0.388584),
    ("Submitted PR #5. Fixed the race.", 0.421636),
    ("Merged PR #5, submitted PR #6, fixed the race, pushed the branch, completed the docs.", 0.560202),
    ("Blocked on the key.", 0.04),
    ("Blocked on the key. Blocked on the door.", 0.04),
    ("Fixed the race. Blocked on the key.", 0.228433),
    ("Nothing to do.", 0.08),
    ("It rained.", None),
    ("", None),
]


def test_the_version():
    golden.hold_version(journal.VERSION, VERSION, at=AT)


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_the_grade(text, expected):
    found = journal.grade(text)
    assert found.version == VERSION
    golden.hold(found.value, expected, version=VERSION, at=AT)
