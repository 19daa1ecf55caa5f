"""Six reviewers, one queue, a hundred items: none handed out twice, none lost; and a claim that ran out returns."""

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import time_machine
from django.db import IntegrityError, connection

from bandit import audit
from grading.models import Grade, ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, QueueEntry
from grading.review import answers, claims, queue
from grading.review.corrections import StaleReview
from grading.reward import rewards
from grading.vocabulary import Source
from tests.casts.review import claim, item
from tests.site import NOON

ITEMS, REVIEWERS = 50, 6


def many(site, count):
    """Items of sessions that a judge graded, in few statements."""
    sessions = [site.session().session for _ in range(count)]
    return ReviewItem.objects.bulk_create(
        ReviewItem(session=session, entered_as=QueueEntry.SLICE, slice_probability=0.2, impact=1 / (1 + number))
        for number, session in enumerate(sessions)
    )


def at_once(work, people):
    """Run `work(person)` in a thread each, which start together on connections of their own; their results."""
    start = threading.Barrier(len(people))

    def run(person):
        start.wait()
        try:
            return work(person)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(people)) as pool:
        return list(pool.map(run, people))


@pytest.mark.django_db(transaction=True)
def test_six_reviewers_empty_the_queue_and_no_item_is_handed_out_twice_or_lost(site):
    many(site, ITEMS)
    people = [site.person(f"reviewer-{number}", "reviewer") for number in range(REVIEWERS)]

    def work(person):
        mine = []
        while (found := claims.next_for(person, name := claim())) is not None:
            answers.submit(found.session, person, answer=Answer.GRADE, value=0.5, claim=name)
            mine.append(found.session_id)
        return mine

    handed = [pk for mine in at_once(work, people) for pk in mine]
    assert len(handed) == len(set(handed)) == ITEMS
    assert set(ReviewItem.objects.values_list("state", flat=True)) == {ItemState.DONE}
    assert ReviewAnswer.objects.count() == Grade.objects.filter(source=Source.HUMAN).count() == ITEMS
    assert audit.audit() == []


@pytest.mark.django_db(transaction=True)
def test_reviewers_who_only_look_hold_different_items(site):
    many(site, ITEMS)
    people = [site.person(f"reviewer-{number}", "reviewer") for number in range(REVIEWERS)]
    held = at_once(lambda person: [claims.next_for(person, claim()).pk for _ in range(ITEMS // 10)], people)
    assert len({pk for mine in held for pk in mine}) == REVIEWERS * (ITEMS // 10)


@pytest.mark.django_db(transaction=True)
def test_two_people_who_submit_at_once_leave_one_grade_and_one_refusal(site):
    session = site.session().judged(0.5).recheck()
    seen = rewards.live(session).revision
    people = [site.person(name, "reviewer") for name in ("rita", "omar")]

    def work(person):
        try:
            return answers.submit(session, person, answer=Answer.GRADE, value=0.6, seen_revision=seen)
        except StaleReview as error:
            return str(error)

    one, other = sorted(at_once(work, people), key=str)
    assert Grade.objects.filter(source=Source.HUMAN).count() == 1
    assert {type(one), type(other)} == {str, ReviewAnswer}


@pytest.mark.django_db
def test_a_claim_that_ran_out_returns_by_itself(site, rita, omar):
    (only,) = many(site, 1)
    with time_machine.travel(NOON, tick=False) as clock:
        assert claims.next_for(rita, "her page") == only
        clock.shift(claims.CLAIM - dt.timedelta(seconds=1))
        assert claims.next_for(omar, "his page") is None
        clock.shift(1)
        assert claims.next_for(omar, "his page") == only
        assert not claims.take(only, rita, "her page")


@pytest.mark.django_db
def test_a_claim_that_ran_out_may_be_renewed_while_nobody_took_it(site, rita, omar):
    (only,) = many(site, 1)
    with time_machine.travel(NOON, tick=False) as clock:
        claims.next_for(rita, "her page")
        clock.shift(2 * claims.CLAIM)
        assert claims.take(only, rita, "her page")
        assert claims.next_for(omar, "his page") is None


@pytest.mark.django_db
def test_nobody_renews_another_persons_claim(site, rita, omar):
    (only,) = many(site, 1)
    claims.next_for(rita, "her page")
    assert not claims.take(only, omar, "her page")
    assert claims.take(only, rita, "her page")


@pytest.mark.django_db
def test_one_persons_two_pages_are_two(site, rita):
    many(site, 2)
    first, second = claims.next_for(rita, "one"), claims.next_for(rita, "two")
    assert first != second
    assert claims.next_for(rita, "three") is None


@pytest.mark.django_db
def test_a_closed_page_gives_its_item_back(site, rita, omar):
    (only,) = many(site, 1)
    claims.next_for(rita, "her page")
    assert not claims.release(only, "another page")
    assert claims.release(only, "her page")
    assert claims.next_for(omar, "his page") == only


@pytest.mark.django_db
def test_a_claim_needs_a_name(site, rita):
    (only,) = many(site, 1)
    with pytest.raises(ValueError, match="random string"):
        claims.take(only, rita, "")


@pytest.mark.django_db
def test_a_closed_item_cannot_be_taken(site, rita):
    session = site.session().judged(0.5).recheck()
    queue.add(session, rita, "look")
    answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    assert not claims.take(item(session), rita, "page")


@pytest.mark.django_db
def test_the_database_refuses_a_claim_on_a_closed_item(site, rita):
    (only,) = many(site, 1)
    claims.next_for(rita, "her page")
    with pytest.raises(IntegrityError, match="review_item_claimed_only_open"):
        ReviewItem.objects.filter(pk=only.pk).update(state=ItemState.DONE, closed_at=NOON)


@pytest.mark.django_db
def test_who_lost_their_claim_to_another_cannot_submit(site, rita, omar):
    (only,) = many(site, 1)
    with time_machine.travel(NOON, tick=False) as clock:
        claims.next_for(rita, "her page")
        clock.shift(claims.CLAIM)
        claims.next_for(omar, "his page")
        with pytest.raises(answers.ClaimLost, match="omar has claimed this session until 12:10:00"):
            answers.submit(only.session, rita, answer=Answer.GRADE, value=0.5, claim="her page")
        assert not ReviewAnswer.objects.exists()
        clock.shift(claims.CLAIM)
        assert answers.submit(only.session, rita, answer=Answer.GRADE, value=0.5, claim="her page").grade


@pytest.mark.django_db
def test_a_persons_newest_page_takes_over_from_their_older_one_in_one_step(site):
    """Given back first and taken then, it was another person's in between, and the page came up read-only."""
    many(site, 1)
    rita, olga = site.person("rita", "reviewer"), site.person("olga", "reviewer")
    found = claims.next_for(rita, "older")
    assert not claims.take(found, olga, "hers", from_own_page=True)
    assert claims.take(found, rita, "newer", from_own_page=True)
    assert not claims.take(found, rita, "older")
    assert claims.next_for(olga, "hers") is None
    assert claims.take(found, rita, "newer")
