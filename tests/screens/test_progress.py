"""How each person's reviewing goes: what is counted, what is measured against what, and what is left out."""

import datetime as dt

import pytest
import time_machine

from grading.models import ReviewItem
from grading.models.review import Answer
from grading.review import answers, notes, queue
from grading.review.progress import progress
from tests.casts.page import flat
from tests.site import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOON + dt.timedelta(days=1), tick=False) as traveller:
        yield traveller


def in_slice(site, value=0.5, probability=0.2):
    session = site.session().judged(value).settle()
    ReviewItem.objects.update_or_create(
        session=session, defaults={"entered_as": "slice", "slice_probability": probability}
    )
    return session


def grade(session, who, value, **fields):
    return answers.submit(session, who, answer=Answer.GRADE, value=value, reason="because", **fields)


def row(who):
    [found] = [each for each in progress().rows if each.reviewer == who]
    return found


def test_today_and_seven_days_count_answers_that_hold(site, rita, clock):
    grade(site.session().judged(0.5).settle(), rita, 0.6)
    clock.shift(dt.timedelta(days=6))
    grade(site.session().judged(0.5).settle(), rita, 0.6)
    answers.undo(grade(site.session().judged(0.5).settle(), rita, 0.6), rita, "a slip")
    answers.submit(site.session().judged(0.5).settle(), rita, answer=Answer.SKIP)
    assert (row(rita).today, row(rita).week) == (1, 2)
    clock.shift(dt.timedelta(days=1))
    assert (row(rita).today, row(rita).week) == (0, 1)
    clock.shift(dt.timedelta(days=30))
    assert progress().rows == ()


def test_the_time_is_the_median_of_single_answers(site, rita):
    for seconds in (4, 8, 100):
        grade(site.session().judged(0.5).settle(), rita, 0.6, seconds=seconds)
    grade(site.session().judged(0.5).settle(), rita, 0.6, seconds=900, bulk="a-bulk")
    assert row(rita).seconds == 8


def test_what_was_undone_or_overruled_by_another_is_counted_once(site, rita, omar):
    answers.undo(grade(site.session().judged(0.5).settle(), rita, 0.6), omar, "no")
    session = site.session().judged(0.5).settle()
    grade(session, rita, 0.6)
    grade(session, omar, 0.2)
    corrected = site.session().judged(0.5).settle()
    grade(corrected, rita, 0.6)
    grade(corrected, rita, 0.7)
    assert (row(rita).answers, row(rita).taken_back) == (4, 2)
    assert (row(omar).answers, row(omar).taken_back) == (1, 0)
    assert (progress().total.answers, progress().total.taken_back) == (5, 2)


def test_agreement_with_other_people_is_of_sessions_that_several_graded(site, rita, omar):
    for mine, theirs in ((0.6, 0.8), (0.5, 0.6)):
        session = site.session().judged(0.5).settle()
        grade(session, rita, mine)
        grade(session, omar, theirs)
    grade(site.session().judged(0.5).settle(), rita, 0.1)
    assert row(rita).people.n == row(omar).people.n == progress().total.people.n == 2
    assert row(rita).people.mean == pytest.approx((0.2 + 0.1) / 2)


def test_blind_agreement_is_of_the_random_slice_only(site, rita):
    grade(in_slice(site, 0.5), rita, 0.6)
    grade(in_slice(site, 0.5), rita, 0.2)
    grade(site.session().judged(0.5).settle(), rita, 1.0)
    assert row(rita).judge.n == 2
    assert row(rita).judge.mean == pytest.approx((0.1 + 0.3) / 2)
    assert row(rita).judge.bias == pytest.approx((0.1 - 0.3) / 2)


def test_what_was_seen_first_says_nothing_of_ones_own(site, rita):
    seen = in_slice(site, 0.5)
    notes.reveal(seen, rita, None)
    grade(seen, rita, 0.6)
    answers.submit(in_slice(site, 0.5), rita, answer=Answer.ACCEPT)
    assert row(rita).judge.n == 0
    assert row(rita).judge.mean is None


def test_anchoring_is_how_far_and_where_people_move_after_looking(site, rita):
    for blind, final in ((0.8, 0.6), (0.2, 0.1), (0.7, 0.7)):
        session = site.session().judged(0.5).settle()
        notes.reveal(session, rita, blind)
        grade(session, rita, final)
    found = row(rita).anchoring
    assert (found.n, found.changed, found.towards) == (3, 2, 1)
    assert found.mean == pytest.approx((0.2 + 0.1 + 0) / 3)


def test_whom_something_is_assigned_to_is_listed_before_they_answer(site, rita, omar):
    item = queue.add(site.session().judged(0.5).settle(), rita, "look")
    queue.assign(item, omar, rita)
    assert (row(omar).waits, row(omar).answers, progress().total.waits) == (1, 0, 1)


def test_people_stand_by_name_and_not_by_number(site, rita, omar):
    for _ in range(3):
        grade(site.session().judged(0.5).settle(), rita, 0.6)
    grade(site.session().judged(0.5).settle(), omar, 0.6)
    assert [each.reviewer for each in progress().rows] == [omar, rita]


def shown(client) -> str:
    response = client.get("/review/progress/")
    assert response.status_code == 200
    return flat(response)


def test_the_page_says_it_in_words_first(site, viewer, rita, omar):
    grade(in_slice(site, 0.5), rita, 0.6)
    grade(in_slice(site, 0.5), omar, 0.7)
    html = shown(viewer)
    assert "2 answered today, 2 in seven days" in html
    assert "2 answers in 30 days by 2 people." in html
    assert ".15 higher than the judge on average" in html
    assert 'href="/history/?person=rita"' in html


def test_without_a_pair_nothing_is_claimed(site, viewer, rita):
    grade(site.session().judged(0.5).settle(), rita, 0.6)
    assert "No session of the random check has both a judge’s grade and a person’s blind grade yet" in shown(viewer)


def test_the_empty_page_says_what_would_appear(viewer):
    html = shown(viewer)
    assert "No answers in the last 30 days" in html
    assert "Answers given in review are counted here for each person" in html
