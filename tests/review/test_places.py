"""Of ten places in the queue three are by chance, whatever is flagged, filtered, skipped or assigned."""

import datetime as dt

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from grading.models import ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, Place, QueueEntry
from grading.review import answers, claims, places, queue, random_slice, shares
from grading.review.filters import QueueFilters, waiting
from tests.casts.review import claim, flagged, item, name
from tests.examples import examples
from tests.site import NOON, Site

pytestmark = pytest.mark.django_db
NOW = NOON + dt.timedelta(hours=1)


def waits(site, entry=QueueEntry.SLICE, **fields):
    """A judged session in the queue; of the slice where it has a rank."""
    fields = {"slice_probability": 0.2, **fields} if "rank" in fields else fields
    session = site.session(fields.pop("arm", "code")).judged(0.5).recheck()
    return ReviewItem.objects.create(session=session, entered_as=entry, **fields)


def answered(person, held, page):
    return answers.submit(held.session, person, answer=Answer.GRADE, value=0.5, claim=page)


def handed_out(person, count, filters=None):
    """So many places, each answered: their items and whether they were by chance."""
    found = []
    for _ in range(count):
        held = claims.next_for(person, page := claim(), filters)
        found.append((held.pk, answered(person, held, page).place == Place.CHANCE))
    return found


def listed(person, size=100, **filters):
    filters = QueueFilters(**filters)
    found = claims.in_order(person, waiting(person, filters), filters, size=size)
    return [(each.pk, place == Place.CHANCE) for each, place in found.items if place]


# ---- the order of places


@given(st.lists(st.booleans(), max_size=30))
@examples(20)
def test_whatever_was_handed_out_of_the_next_ten_three_at_most_and_of_the_ten_after_them_three_are_by_chance(before):
    given_ = list(before)
    for _ in range(20):
        given_.append(places.is_by_chance(given_))
    assert sum(given_[-20:-10]) <= 3
    assert sum(given_[-10:]) == 3


def test_each_is_handed_out_once_and_none_is_left_out():
    found = list(places.in_order(range(10), [9, 3, 0, 7], []))
    assert [key for key, _ in found] == [0, 1, 9, 2, 3, 7, 4, 5, 6, 8]
    assert [key for key, by_chance in found if by_chance] == [9, 7]


def test_where_one_of_the_two_has_nothing_left_the_other_has_its_places():
    assert [key for key, _ in places.in_order([], [3, 1, 2], [])] == [3, 1, 2]
    assert [key for key, _ in places.in_order([3, 1, 2], [], [])] == [3, 1, 2]


# ---- the queue


def test_a_flagged_session_of_the_slice_has_its_turn_by_chance_as_any_other(rita):
    held = flagged(external_id=name(inside=True))
    assert listed(rita, entered_as="slice") == [(item(held).pk, True)]


def test_what_is_not_for_a_reviewer_stands_last_on_their_list(site, rita, omar):
    first, second = waits(site, rank=0.1, impact=0.9), waits(site, rank=0.2)
    queue.assign(first, omar, rita)
    filters = QueueFilters()
    found = claims.in_order(rita, waiting(rita, filters), filters, size=10)
    assert found.items == ((second, Place.IMPACT), (first, None))
    assert found.all == 2
    assert claims.next_for(rita, claim()) == second


def test_what_is_opened_by_hand_is_no_place_of_the_queue(site, rita):
    held = waits(site, rank=0.1)
    assert claims.take(held, rita, page := claim())
    assert answered(rita, held, page).place == ""


def test_a_claim_renewed_keeps_its_place_and_one_taken_over_does_not(site, rita, omar):
    waits(site, rank=0.1)
    with time_machine.travel(NOW, tick=False) as clock:
        held = claims.next_for(rita, "hers", QueueFilters(entered_as="slice"))
        assert claims.take(held, rita, "her other page", from_own_page=True)
        assert item(held.session).place == Place.CHANCE
        clock.shift(dt.timedelta(minutes=6))
        assert claims.take(held, omar, "his")
        assert item(held.session).place == ""


# ---- whose turn has come


def drawn():
    random_slice.take_turns(NOW + dt.timedelta(days=1))
    return set(ReviewItem.objects.filter(drawn_at__isnull=False).values_list("rank", flat=True))


def test_what_was_answered_for_its_impact_counts_when_all_before_it_are_answered(site, rita):
    items = [waits(site, rank=number / 10) for number in range(5)]
    answered(rita, items[3], claim())
    assert drawn() == set()
    answered(rita, items[0], claim())
    assert drawn() == {0.0}
    answered(rita, items[1], claim())
    answered(rita, items[2], claim())
    assert drawn() == {0.0, 0.1, 0.2, 0.3}


def test_a_skip_holds_up_what_comes_after_it_and_cannot_judge_does_not(site, rita):
    first, second = waits(site, rank=0.1), waits(site, rank=0.2)
    answers.submit(first.session, rita, answer=Answer.SKIP)
    answered(rita, second, claim())
    assert drawn() == set()
    answers.submit(first.session, rita, answer=Answer.CANNOT_JUDGE, reason="an empty log")
    assert drawn() == {0.1, 0.2}
    assert ReviewAnswer.objects.blind().drawn().count() == 1


def test_what_comes_after_an_answer_takes_nothing_back_and_holds_nothing_up(site, rita):
    answered(rita, waits(site, rank=0.5), claim())
    ReviewItem.objects.update(closed_at=NOW)
    waits(site, rank=0.1, entered_at=NOW + dt.timedelta(hours=1))
    assert drawn() == {0.5}
    waits(site, rank=0.05, entered_at=NOW - dt.timedelta(hours=1))
    assert drawn() == {0.5}


def test_an_answer_taken_back_is_next_in_the_random_order_again(site, rita):
    held = waits(site, rank=0.1)
    waits(site, rank=0.2)
    answers.undo(answered(rita, held, claim()), rita)
    assert item(held.session).state == ItemState.OPEN
    assert listed(rita, entered_as="slice")[0] == (held.pk, True)


def test_membership_and_order_are_drawn_with_the_sites_key(site, settings):
    session = site.session(external_id=name(inside=True)).judged(0.5).recheck()
    before = random_slice.rank(session)
    assert random_slice.rank(session) == before == item(session).rank
    settings.CHANCE_KEY = bytes(32)
    assert random_slice.rank(session) != before
    names = [f"session {number}" for number in range(200)]
    inside = {each for each in names if shares.keyed_number(shares.SLICE, "bob", each) < 0.2}
    settings.CHANCE_KEY = bytes(range(32))
    assert {each for each in names if shares.keyed_number(shares.SLICE, "bob", each) < 0.2} != inside


def test_what_once_was_in_the_slice_stays_there_whatever_the_key_says(site, settings):
    session = site.session(external_id=name(inside=True)).judged(0.5).recheck()
    settings.REVIEW_SLICE = 0
    queue.recheck(session)
    assert (item(session).state, item(session).entered_as) == (ItemState.OPEN, QueueEntry.SLICE)


# ---- many sessions of one agent


@pytest.fixture
def three_agents(site):
    """What a rule flagged: thirty sessions of bob with the highest impact, then 25 of alice, then 25 of carol."""
    with time_machine.travel(NOW):
        for agent, count, impact in (("bob", 30, 0.5), ("alice", 25, 0.2), ("carol", 25, 0.1)):
            for _ in range(count):
                session = site.session("code", agent=agent).session
                ReviewItem.objects.create(session=session, entered_as=QueueEntry.RULE, impact=impact)
        yield


def agents_of(listing):
    by_item = dict(ReviewItem.objects.values_list("pk", "session__agent__name"))
    return [by_item[pk] for pk, _ in listing]


def test_of_the_first_sixty_places_one_agent_has_a_third_while_others_wait(three_agents, rita):
    first = agents_of(listed(rita)[:60])
    assert first == ["bob"] * 20 + ["alice"] * 20 + ["carol"] * 20
    assert agents_of(listed(rita)[60:])[:3] == ["bob", "alice", "carol"]


def test_what_was_answered_today_counts_towards_an_agents_share_and_what_is_listed_is_handed_out(three_agents, rita):
    expected = listed(rita)[:25]
    assert handed_out(rita, 25) == expected
    assert agents_of(expected)[20:] == ["alice"] * 5
    assert agents_of(listed(rita)[:16]) == ["alice"] * 15 + ["carol"]
    with time_machine.travel(NOW + dt.timedelta(days=1)):
        assert agents_of(listed(rita)[:1]) == ["bob"]


def test_an_agent_that_is_alone_in_the_queue_has_all_places_by_impact(site, rita):
    for number in range(25):
        ReviewItem.objects.create(session=site.session("code").session, entered_as=QueueEntry.RULE, impact=number / 100)
    by_impact = list(ReviewItem.objects.order_by("-impact").values_list("pk", flat=True))
    assert [pk for pk, _ in listed(rita)] == by_impact


# ---- a long queue


@pytest.fixture(scope="module")
def long_queue(django_db_setup, django_db_blocker):
    """Fifteen flagged items, and ten of the slice whose ranks say nothing of their impact.

    Built once: tests of other queues are in front.
    """
    site = Site()
    with django_db_blocker.unblock(), site.rolled_back():
        for _ in range(15):
            waits(site, QueueEntry.RULE, impact=0.4)
        for number in range(10):
            waits(site, rank=number * 7 % 10 / 10, impact=0.1 + number / 100)
        yield


def test_three_of_ten_are_by_chance_in_the_order_of_their_ranks_while_flags_abound(long_queue, rita):
    expected = listed(rita)[:20]
    assert handed_out(rita, 20) == expected
    by_rank = list(ReviewItem.objects.in_slice().order_by("rank").values_list("pk", flat=True))
    assert [pk for pk, by_chance in expected if by_chance] == by_rank[:6]


def test_of_two_reviewers_each_has_three_of_ten_by_chance(long_queue, rita, omar):
    found = [handed_out(person, 1)[0] for _ in range(10) for person in (rita, omar)]
    assert sum(by_chance for _, by_chance in found[::2]) == sum(by_chance for _, by_chance in found[1::2]) == 3


def test_who_opens_many_pages_at_once_has_three_of_ten_by_chance(long_queue, rita):
    expected = listed(rita)[:10]
    assert [claims.next_for(rita, claim()).pk for _ in range(10)] == [pk for pk, _ in expected]


def test_who_skips_a_place_by_chance_has_another_of_its_kind_next(long_queue, rita):
    handed_out(rita, 2)
    for _ in range(3):
        held = claims.next_for(rita, page := claim())
        assert item(held.session).place == Place.CHANCE
        answers.submit(held.session, rita, answer=Answer.SKIP, claim=page)
    assert handed_out(rita, 1)[0][1]


def test_a_filter_has_places_by_chance_too_and_the_slice_itself_nothing_else(long_queue, site, rita):
    for number in range(6):
        waits(site, rank=number / 10, arm="infra")
    assert sum(by_chance for _, by_chance in handed_out(rita, 6, QueueFilters(arm="infra"))) == 2
    assert all(by_chance for _, by_chance in handed_out(rita, 4, QueueFilters(entered_as="slice")))
