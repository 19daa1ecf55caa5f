"""What people say of a session, and what follows from it."""

import pytest

from grading import review, rewards
from grading.core.vocabulary import Source
from grading.models import Grade, ReviewItem
from grading.models.review import Answer, Entry, ItemState
from grading.review import answers, queue
from tests import cast
from tests.bandit.helpers import buckets

pytestmark = pytest.mark.django_db


@pytest.fixture
def rita():
    return cast.person("rita", "reviewer")


@pytest.fixture
def omar():
    return cast.person("omar", "reviewer")


def judged(value=0.5, **fields):
    session = cast.session(**fields)
    cast.grade(session, Source.JUDGE, value)
    rewards.settle(session)
    return session


def item_of(session):
    return ReviewItem.objects.get(session=session)


def test_a_grade_becomes_the_reward_and_closes_the_item(rita):
    session = judged()
    queue.add(session, rita, "look")
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.6)
    assert (rewards.live(session).value, rewards.live(session).source) == (0.6, "human")
    assert answer.grade == Grade.objects.get(source="human")
    assert item_of(session).state == ItemState.DONE


def test_undo_opens_the_item_again_and_gives_back_the_exact_buckets(rita):
    session = judged()
    queue.add(session, rita, "look")
    before = {name: buckets(name) for name in ("category", "harness")}
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.9, reason="it was merged")
    assert {name: buckets(name) for name in before} != before
    undone = answers.undo(answer, rita, "a slip")
    assert {name: buckets(name) for name in before} == before
    assert (undone.answer, undone.undoes) == (Answer.UNDO, answer)
    assert (item_of(session).state, item_of(session).entered_as) == (ItemState.OPEN, Entry.PERSON)
    with pytest.raises(review.CorrectionError, match="already"):
        answers.undo(answer, rita)
