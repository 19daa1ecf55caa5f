"""How reviewing goes, in figures."""

import datetime as dt

import pytest
import time_machine

from grading.models.review import Answer
from grading.review import answers, queue
from grading.review.progress import Agreement, progress
from tests import cast
from tests.grading.review_cast import item, judged

pytestmark = pytest.mark.django_db
# A Thursday.
NOW = dt.datetime(2026, 4, 2, 12, tzinfo=dt.UTC)


@pytest.fixture
def rita():
    return cast.person("rita", "reviewer")


@pytest.fixture
def omar():
    return cast.person("omar", "reviewer")


def graded(session, reviewer, value, *, days_ago=0, seconds=None):
    with time_machine.travel(NOW - dt.timedelta(days=days_ago), tick=False):
        return answers.submit(session, reviewer, answer=Answer.GRADE, value=value, reason="r", seconds=seconds)


def test_without_answers_there_is_nothing_to_say(rita):
    assert progress(now=NOW).rows == ()
    total = progress(rita, NOW).total
    assert (total.today, total.week, total.answers, total.seconds, total.undone) == (0, 0, 0, None, None)
    assert total.people == total.judge == Agreement(n=0, mean=None)


def test_today_and_this_week_are_counted_in_the_sites_days(rita):
    for days_ago in (0, 1, 3, 4, 40):
        graded(judged(), rita, 0.5, days_ago=days_ago)
    total = progress(rita, NOW).total
    assert (total.today, total.week, total.answers) == (1, 3, 4)


def test_the_median_is_of_those_that_were_timed(rita):
    for seconds in (4.0, 9.0, None, 30.0):
        graded(judged(), rita, 0.5, seconds=seconds)
    assert progress(rita, NOW).total.seconds == 9.0


def test_what_was_taken_back_counts_as_undone_only(rita):
    *_kept, answer = (graded(judged(), rita, 0.5) for _ in range(4))
    with time_machine.travel(NOW, tick=False):
        answers.undo(answer, rita)
    total = progress(rita, NOW).total
    assert (total.today, total.undone) == (3, 0.25)


def test_a_skip_is_no_work_done(rita):
    with time_machine.travel(NOW, tick=False):
        answers.submit(judged(), rita, answer=Answer.SKIP)
    assert progress(rita, NOW).rows == ()


def test_two_people_are_compared_on_the_sessions_that_both_graded(rita, omar):
    both = judged()
    queue.add(both, rita, "look")
    queue.want(item(both), 2)
    graded(both, rita, 0.5)
    graded(both, omar, 0.8)
    graded(judged(), omar, 0.1)
    found = progress(now=NOW)
    assert [row.reviewer for row in found.rows] == [omar, rita]
    assert found.total.people == Agreement(n=1, mean=pytest.approx(0.3))
    assert found.rows[1].people == Agreement(n=1, mean=pytest.approx(0.3))


def test_the_judge_is_compared_with_what_was_said_blind(rita):
    graded(judged(0.7), rita, 0.5)
    looked = judged(0.7)
    answers.reveal(looked, rita)
    graded(looked, rita, 0.7)
    assert progress(rita, NOW).total.judge == Agreement(n=1, mean=pytest.approx(0.2))


def test_the_figures_of_many_cost_one_query(rita, omar, django_assert_num_queries):
    for person in (rita, omar):
        for _ in range(5):
            graded(judged(), person, 0.5)
    with django_assert_num_queries(1):
        assert len(progress(now=NOW).rows) == 2
