"""How sessions come before a person, in which order, and how they leave by themselves."""

import datetime as dt

import pytest
from django.http import QueryDict

from bandit.models import Bandit
from bandit.reading import version_of
from grading import tasks
from grading.agent import samples
from grading.models import Comment, Evidence, Flag, ReviewItem
from grading.models.review import Answer, ItemState, QueueEntry
from grading.models.sessions import Whose
from grading.review import answers, claims, priority, queue
from grading.review.filters import QueueFilters, waiting
from grading.review.impact import Corrections, Stratum, first_guess, prior, prioritise
from grading.reward import rewards
from grading.vocabulary import Outcome, Source
from tests.casts.review import flagged, item, name
from tests.site import NOON

pytestmark = pytest.mark.django_db
NOW = NOON + dt.timedelta(hours=1)


def order(reviewer, **filters):
    return [each.session for each in waiting(reviewer, QueueFilters(**filters))]


def prioritised():
    prioritise(NOW)
    return dict(ReviewItem.objects.values_list("session", "impact"))


# --- coming in -------------------------------------------------------------------------------------------------------


def test_a_flag_brings_a_session_in_with_its_reason():
    held = item(flagged())
    assert (held.entered_as, held.slice_probability) == (QueueEntry.RULE, None)
    assert held.why.startswith("1 pull request, but no reliable grade")


def test_a_session_of_the_random_slice_comes_in_whatever_it_looks_like(site):
    inside, outside = (site.session(external_id=name(inside=inside)).judged(0.5).recheck() for inside in (True, False))
    assert (item(inside).entered_as, item(inside).slice_probability, item(inside).why) == (QueueEntry.SLICE, 0.2, "")
    assert not ReviewItem.objects.filter(session=outside).exists()


def test_a_flagged_session_of_the_slice_keeps_its_probability():
    held = item(flagged(external_id=name(inside=True)))
    assert (held.entered_as, held.slice_probability) == (QueueEntry.RULE, 0.2)


def test_the_slice_is_as_large_as_the_settings_say(site, settings):
    settings.REVIEW_SLICE = 0.5
    for number in range(60):
        site.session(external_id=f"named {number}").judged(0.5).recheck()
    assert 20 <= ReviewItem.objects.filter(slice_probability=0.5).count() <= 40
    settings.REVIEW_SLICE = 0
    before = ReviewItem.objects.count()
    site.session(external_id=name(inside=True)).judged(0.5).recheck()
    assert ReviewItem.objects.count() == before


def test_a_death_by_infrastructure_never_comes_in(site):
    (
        site.session(external_id=name(inside=True), outcome=Outcome.INFRASTRUCTURE, outcome_reason="login expired")
        .with_pull_request()
        .recheck()
    )
    assert not ReviewItem.objects.exists()


def test_a_session_that_turns_out_to_have_died_of_infrastructure_leaves(site):
    session = site.session(external_id=name(inside=True)).judged(0.5).recheck()
    session.outcome, session.outcome_reason = Outcome.INFRASTRUCTURE, "login expired"
    session.save()
    site.on(session).recheck()
    assert item(session).state == ItemState.DONE


def test_looking_twice_changes_nothing(site):
    session = flagged()
    before = ReviewItem.objects.values().get()
    site.on(session).recheck()
    assert ReviewItem.objects.values().get() == before


def test_a_rules_item_leaves_when_its_flags_cleared_themselves(site):
    session = flagged()
    site.on(session).judged(0.7).recheck()
    assert item(session).state == ItemState.DONE
    Flag.objects.create(session=session, rule="other", detail="another rule speaks")
    site.on(session).recheck()
    assert (item(session).state, item(session).why) == (ItemState.OPEN, "another rule speaks")


def test_a_rules_item_of_the_slice_stays_for_the_slice(site):
    session = flagged(external_id=name(inside=True))
    site.on(session).judged(0.7).recheck()
    assert (item(session).state, item(session).entered_as, item(session).why) == (ItemState.OPEN, QueueEntry.SLICE, "")


def test_a_sliced_item_that_a_rule_flags_becomes_the_rules(site):
    session = site.session(external_id=name(inside=True)).graded(Source.JOURNAL, 0.32).recheck()
    site.on(session).with_pull_request().recheck()
    assert item(session).entered_as == QueueEntry.RULE


def test_an_item_of_a_person_waits_for_a_person(site, rita):
    session = site.session().judged(0.5).recheck()
    queue.add(session, rita, "look at the tests")
    site.on(session).recheck()
    assert (item(session).state, item(session).why) == (ItemState.OPEN, "rita: look at the tests")


def test_a_late_verdict_does_not_bring_back_what_a_person_graded(site, rita):
    session = flagged()
    answers.submit(session, rita, answer=Answer.GRADE, value=0.4)
    site.on(session).judged(0.9).recheck()
    assert item(session).state == ItemState.DONE
    assert rewards.live(session).value == 0.4


def test_evidence_after_a_grade_from_before_hashes_were_kept_counts_by_its_arrival(site, rita):
    session = site.session().judged(0.5).recheck()
    site.on(session).graded(Source.HUMAN, 0.4, author=rita, created_at=NOON).recheck()
    assert not ReviewItem.objects.exists()
    Evidence.objects.create(session=session, kind="patch", sha256="b" * 64, size=1, received_at=NOW)
    site.on(session).recheck()
    assert item(session).entered_as == QueueEntry.EVIDENCE


# --- order -----------------------------------------------------------------------------------------------------------


def test_what_a_rule_brought_comes_first_then_by_impact(site, rita):
    sliced = [site.session(external_id=name(inside=True, number=number)).judged(0.5).recheck() for number in range(2)]
    ruled = [flagged(), flagged()]
    for session, impact in zip(sliced + ruled, (0.9, 0.8, 0.01, 0.02), strict=True):
        ReviewItem.objects.filter(session=session).update(impact=impact)
    assert order(rita) == [ruled[1], ruled[0], *sliced]


def test_impact_is_discount_times_expected_correction():
    half_life = version_of(Bandit.objects.named("category")).half_life_days
    session = flagged(ended_at=NOW - dt.timedelta(days=half_life))
    # 1/2 for its age; flagged, nobody corrected yet: .4
    assert prioritised()[session.pk] == priority.rounded(0.5 * 0.4)


def test_an_answer_in_the_slice_is_worth_half_as_much_again_for_what_it_teaches():
    outside, inside = flagged(), flagged(external_id=name(inside=True))
    impacts = prioritised()
    assert impacts[inside.pk] == pytest.approx(1.5 * impacts[outside.pk])


def test_an_arm_that_is_never_chosen_is_not_asked_about_last(site):
    """The founding incident: what wrong rewards have poisoned is never chosen, so nobody would ever look at it."""
    for _ in range(30):
        site.session("code").judged(0.95).recheck()
        site.session("cross-repo").judged(0.05).recheck()
    poisoned, chosen = flagged(0.05, category="cross-repo"), flagged(0.05, category="code")
    impacts = prioritised()
    assert impacts[poisoned.pk] == impacts[chosen.pk]


def test_newer_flagged_and_ungraded_sessions_come_before_older_and_judged_ones(site, rita):
    queued = {
        "judged": site.session().judged(0.5).recheck(),
        "journal": site.session().graded(Source.JOURNAL, 0.3).recheck(),
        "flagged": flagged(),
        "old": site.session(ended_at=NOW - dt.timedelta(days=40)).judged(0.5).recheck(),
        "floor": site.session().recheck(),
    }
    for session in queued.values():
        queue.add(session, rita, "look")
    impacts = prioritised()
    ranked = sorted(queued, key=lambda key: -impacts[queued[key].pk])
    assert set(ranked[:2]) == {"flagged", "floor"}
    assert ranked[2:] == ["journal", "judged", "old"]


def test_what_people_corrected_far_is_expected_to_be_far_off_again():
    # prior .2 for a journal: source (.2·5 + 10·.5)/15 = .4; source × flag the same towards .4: (2 + 5)/15 = .4667;
    # the stratum itself: (.46667·5 + 5)/15 = .4889
    moved = Corrections({Stratum(1, "journal", flagged=False): (10, 5.0)})
    assert moved.expected_size(Stratum(1, "journal", flagged=False)) == pytest.approx(0.48889, rel=1e-4)
    assert moved.expected_size(Stratum(2, "journal", flagged=False)) == pytest.approx(0.46667, rel=1e-4)
    # flagged ones share the source only: (.4·5 + 5)/15
    assert moved.expected_size(Stratum(2, "journal", flagged=True)) == pytest.approx(0.46667, rel=1e-4)
    assert moved.expected_size(Stratum(1, "judge", flagged=False)) == 0.1


@pytest.mark.parametrize(
    ("source", "is_flagged", "expected"),
    [
        ("judge", True, 0.4),
        ("floor", False, 0.4),
        ("", False, 0.4),
        ("journal", False, 0.2),
        ("trajectory", False, 0.2),
        ("consumption", False, 0.2),
        ("judge", False, 0.1),
        ("human", False, 0.1),
    ],
)
def test_before_anybody_corrected_the_kind_decides(source, is_flagged, expected):
    assert prior(source, flagged=is_flagged) == expected


def test_answers_teach_the_order_and_undone_ones_do_not(site, rita):
    waiting, *others = (site.session().graded(Source.JOURNAL, 0.3).recheck() for _ in range(4))
    queue.add(waiting, rita, "look")
    before = prioritised()[waiting.pk]
    given = [answers.submit(each, rita, answer=Answer.GRADE, value=0.9, reason="merged") for each in others]
    assert prioritised()[waiting.pk] > before
    for answer in given:
        answers.undo(answer, rita)
    assert prioritised()[waiting.pk] == before


def test_a_new_item_starts_with_the_impact_of_its_arms_weightiest(rita):
    first = flagged()
    prioritised()
    assert first_guess(first) == item(first).impact > 0
    assert item(flagged()).impact == item(first).impact


def test_items_are_written_once(site):
    sessions = [
        site.session(arm, ended_at=NOW - dt.timedelta(days=day)).session
        for arm in ("code", "infra", "news", None)
        for day in range(25)
    ]
    ReviewItem.objects.bulk_create(ReviewItem(session=session, entered_as=QueueEntry.SLICE) for session in sessions)
    assert prioritise(NOW) == 100
    assert prioritise(NOW) == 0


def test_the_sweep_keeps_the_order():
    session = flagged()
    tasks.prioritise()
    assert item(session).impact > 0


# --- who sees what ---------------------------------------------------------------------------------------------------


def test_an_item_assigned_to_another_is_not_handed_out(rita, omar):
    session = flagged()
    queue.assign(item(session), omar, rita)
    assert claims.next_for(rita, "page") is None
    assert claims.next_for(omar, "his").session == session
    assert Comment.objects.get().text == "Assigned to omar"
    queue.assign(item(session), None, rita)
    claims.release(item(session), "his")
    assert claims.next_for(rita, "page").session == session


def test_filters_narrow_the_queue(site, rita, omar):
    rule, journal = (
        flagged(category="code"),
        site.session(external_id=name(inside=True)).graded(Source.JOURNAL, 0.3).recheck(),
    )
    queue.assign(item(rule), omar, rita)
    assert order(rita, arm="code") == order(rita, rule="A1") == order(rita, assigned="omar") == [rule]
    assert order(rita, entered_as="slice") == order(rita, assigned="nobody") == [journal]
    assert order(omar, assigned="me") == [rule]
    assert order(rita, source="journal") == order(rita, agent="bob") == [rule, journal]
    assert order(rita, agent="alice") == order(rita, source="nonsense") == []
    answers.submit(rule, rita, answer=Answer.GRADE, value=0.3)
    assert order(rita, state="done") == [rule]
    assert claims.next_for(rita, "page", QueueFilters(arm="code", state="done")) is None


def test_filters_come_from_an_address_and_go_back_into_one():
    filters = QueueFilters.parse(QueryDict("arm=code&rule=&page=3&assigned=me&agent=a%00b"))
    assert filters == QueueFilters(arm="code", assigned="me", agent="a�b")
    assert QueueFilters.parse(QueryDict(filters.query)) == filters
    assert not QueueFilters.parse(QueryDict("page=3"))
    assert QueueFilters().query == ""


def test_waiting_items_carry_people_and_rewards(rita):
    flagged()
    (held,) = waiting(rita)
    assert (held.session.category.name, held.session.agent.name) == ("cross-repo", "bob")
    session = held.session
    assert (session.reward_value, session.reward_source, session.reward_final) == (0.32, "journal", False)


def test_the_count_says_how_many_wait_why_and_since_when(site, rita, omar):
    assert queue.count() == queue.Counts(open=0, rule=0, slice=0, blind=0, oldest=None)
    rule = flagged()
    site.session(external_id=name(inside=True)).judged(0.5).recheck()
    queue.assign(item(rule), omar, rita)
    assert queue.count() == queue.Counts(open=2, rule=1, slice=1, blind=1, oldest=item(rule).entered_at)


def test_an_item_wants_one_person_at_least():
    with pytest.raises(ValueError, match="at least"):
        queue.require_answers(item(flagged()), 0)


def test_the_samples_fill_a_queue_of_their_own():
    assert len(list(samples.load(dt.datetime.now(dt.UTC)))) == 14
    found = queue.count(whose=Whose.SAMPLES)
    assert found.rule >= 2
    assert found.slice >= 1
    assert queue.count().open == 0
