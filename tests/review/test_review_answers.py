"""What people say of a session, and what follows from it."""

import datetime as dt

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from bandit.reading import posterior_of
from grading.models import Alarm, Evidence, Flag, Grade, Reveal, ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState, QueueEntry
from grading.review import answers, claims, notes, promises, queue
from grading.review.corrections import CorrectionError, StaleReview
from grading.review.effects import moves_of
from grading.review.seen import evidence_version, hides_judge
from grading.reward import rewards
from tests.casts.review import claim, flagged, item, learned, name
from tests.site import NOON

pytestmark = pytest.mark.django_db


def waits(site, value=0.5, **fields):
    """A judged session that a person put into the queue."""
    session = site.session(**fields).judged(value).recheck()
    queue.add(session, User.objects.get_or_create(username="the operator")[0], "look")
    return session


def reward(session):
    held = rewards.live(session)
    return held.value, held.source


def arrives(site, session, digest="a" * 64):
    """New evidence for a session, which is then settled and looked at again."""
    Evidence.objects.create(session=session, kind="journal", sha256=digest, size=1, filename="late.md")
    site.on(session).recheck()


# --- grades ----------------------------------------------------------------------------------------------------------


def test_a_grade_becomes_the_reward_and_closes_the_item(site, rita):
    session = waits(site)
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.6, seconds=8.5)
    assert reward(session) == (0.6, "human")
    assert answer.grade == Grade.objects.get(source="human")
    assert (answer.seconds, item(session).state) == (8.5, ItemState.DONE)


def test_accepting_puts_a_name_on_the_reward(site, rita):
    session = waits(site, 0.44)
    answer = answers.submit(session, rita, answer=Answer.ACCEPT)
    assert (answer.value, reward(session)) == (0.44, (0.44, "human"))
    assert rewards.live(session).final


def test_the_floor_is_no_grade_to_accept(site, rita):
    session = site.session().settle()
    with pytest.raises(CorrectionError, match="no grade to accept"):
        answers.submit(session, rita, answer=Answer.ACCEPT)
    assert not ReviewAnswer.objects.exists()


def test_excluding_takes_the_reward_away_and_closes_the_item(site, rita):
    session = waits(site)
    answers.submit(session, rita, answer=Answer.EXCLUDE, reason="another session's log")
    assert reward(session)[0] is None
    assert learned() == []
    assert item(session).state == ItemState.DONE


@pytest.mark.parametrize("value", [None, -0.1, 1.01, float("nan")])
def test_a_grade_must_be_a_number_from_0_to_1(site, rita, value):
    session = waits(site)
    with pytest.raises(CorrectionError):
        answers.submit(session, rita, answer=Answer.GRADE, value=value, reason="r")
    assert item(session).state == ItemState.OPEN


@pytest.mark.parametrize("answer", [Answer.SKIP, Answer.CANNOT_JUDGE])
def test_what_says_no_grade_brings_none(site, rita, answer):
    with pytest.raises(CorrectionError, match="says no grade"):
        answers.submit(waits(site), rita, answer=answer, value=0.5, reason="r")


def test_an_answer_keeps_what_was_on_the_screen(site, rita, settings):
    session = flagged(external_id=name(inside=True))
    arrives(site, session)
    seen = rewards.live(session)
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.4)
    assert answer.settlement == seen
    assert answer.evidence_sha256 == evidence_version(session)
    assert (answer.stratum, answer.slice_probability) == ("flagged", settings.REVIEW_SLICE)
    assert answer.grade.evidence["evidence_sha256"] == answer.evidence_sha256


def test_answers_are_never_changed(site, rita):
    answers.submit(waits(site), rita, answer=Answer.GRADE, value=0.5)
    for change in (lambda rows: rows.update(reason="rewritten"), lambda rows: rows._raw_delete(rows.db)):
        with pytest.raises(DatabaseError), transaction.atomic():
            change(ReviewAnswer.objects.all())


# --- twice, late and stale -------------------------------------------------------------------------------------------


def test_a_double_submit_returns_the_first_answer_and_changes_nothing(site, rita):
    session, page = waits(site), claim()
    given = {"answer": Answer.GRADE, "value": 0.6, "claim": page, "seen_revision": rewards.live(session).revision}
    first = answers.submit(session, rita, **given)
    before = learned()
    assert answers.submit(session, rita, **given) == first
    assert (ReviewAnswer.objects.count(), learned()) == (1, before)


def test_another_grade_from_the_same_page_is_stale(site, rita):
    session, page = waits(site), claim()
    given = {"answer": Answer.GRADE, "claim": page, "seen_revision": rewards.live(session).revision}
    answers.submit(session, rita, value=0.6, **given)
    with pytest.raises(StaleReview, match=r"\.50 by judge .*\.60 by human"):
        answers.submit(session, rita, value=0.4, **given)


def test_a_page_may_answer_again_after_an_undo(site, rita):
    session, page = waits(site), claim()
    first = answers.submit(session, rita, answer=Answer.GRADE, value=0.6, claim=page)
    answers.undo(first, rita)
    assert answers.submit(session, rita, answer=Answer.GRADE, value=0.6, claim=page) != first


# --- undo ------------------------------------------------------------------------------------------------------------


def test_undo_opens_the_item_again_and_gives_back_the_exact_buckets(site, rita):
    session = waits(site)
    before = learned()
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.9, reason="it was merged")
    assert learned() != before
    undone = answers.undo(answer, rita, "a slip")
    assert learned() == before
    assert (undone.answer, undone.undoes, undone.reason) == (Answer.UNDO, answer, "a slip")
    assert (item(session).state, item(session).entered_as) == (ItemState.OPEN, QueueEntry.PERSON)
    with pytest.raises(CorrectionError, match="already"):
        answers.undo(answer, rita)
    with pytest.raises(CorrectionError, match="can’t be undone"):
        answers.undo(undone, rita)


def test_undoing_an_older_grade_leaves_the_one_that_holds(site, rita, omar):
    session = waits(site)
    older = answers.submit(session, rita, answer=Answer.GRADE, value=0.6)
    answers.submit(session, omar, answer=Answer.GRADE, value=0.7)
    answers.undo(older, rita)
    assert reward(session) == (0.7, "human")
    assert item(session).state == ItemState.DONE


def test_undoing_a_grade_raises_its_flags_again(rita):
    session = flagged()
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.4)
    assert answer.effects["flags_cleared"] == ["A1"]
    undone = answers.undo(answer, rita)
    assert undone.effects["flags_raised"] == ["A1"]
    assert item(session).state == ItemState.OPEN


def test_undoing_a_grade_of_a_flagged_session_outside_the_queue_puts_it_there(rita):
    session = flagged()
    ReviewItem.objects.all().delete()
    answers.undo(answers.submit(session, rita, answer=Answer.GRADE, value=0.4), rita)
    assert (item(session).state, item(session).entered_as) == (ItemState.OPEN, QueueEntry.RULE)


def test_the_last_answer_is_what_undo_takes_back(site, rita, omar):
    assert answers.last_of(rita) is None
    first, second = (answers.submit(waits(site), rita, answer=Answer.GRADE, value=0.5) for _ in range(2))
    answers.submit(waits(site), omar, answer=Answer.GRADE, value=0.5)
    assert answers.last_of(rita) == second
    answers.undo(second, rita)
    assert answers.last_of(rita) == first


# --- skip, cannot judge, dismissal -----------------------------------------------------------------------------------


def test_a_skipped_item_is_not_offered_to_the_same_person_today(site, rita, omar):
    session = waits(site)
    with time_machine.travel(NOON, tick=False) as clock:
        assert claims.next_for(rita, "page").session == session
        answers.submit(session, rita, answer=Answer.SKIP, claim="page")
        assert claims.next_for(rita, "page") is None
        assert claims.next_for(omar, "his") == item(session)
        clock.shift(dt.timedelta(days=1))
        assert claims.next_for(rita, "page") == item(session)


def test_a_skip_can_be_taken_back(site, rita):
    session = waits(site)
    answers.undo(answers.submit(session, rita, answer=Answer.SKIP), rita)
    assert claims.next_for(rita, "page").session == session


def test_taking_a_skip_back_leaves_others_their_claims(site, rita, omar):
    skip = answers.submit(waits(site), rita, answer=Answer.SKIP)
    held = claims.next_for(omar, "his")
    answers.undo(skip, rita)
    held.refresh_from_db()
    assert (held.claimed_by, held.claim) == (omar, "his")


def test_cannot_judge_needs_a_reason_and_dismisses(rita):
    session = flagged()
    with pytest.raises(CorrectionError, match="Give a short reason"):
        answers.submit(session, rita, answer=Answer.CANNOT_JUDGE)
    answers.submit(session, rita, answer=Answer.CANNOT_JUDGE, reason="needs the customer's data")
    assert item(session).state == ItemState.DISMISSED
    assert not Flag.objects.open().exists()
    assert reward(session) == (0.32, "journal")


def test_a_dismissed_item_is_never_entered_again_by_a_rule(site, rita, settings):
    settings.REVIEW_SLICE = 1
    session = flagged()
    answers.submit(session, rita, answer=Answer.CANNOT_JUDGE, reason="not ours")
    Flag.objects.create(session=session, rule="other", detail="another rule")
    arrives(site, session)
    assert item(session).state == ItemState.DISMISSED


def test_undoing_a_dismissal_brings_item_and_flags_back(rita):
    session = flagged()
    answer = answers.submit(session, rita, answer=Answer.CANNOT_JUDGE, reason="not ours")
    answers.undo(answer, rita)
    assert item(session).state == ItemState.OPEN
    assert Flag.objects.open().filter(session=session).exists()


def test_undoing_a_dismissal_leaves_what_another_has_cleared(rita, omar):
    session = flagged()
    answers.submit(session, rita, answer=Answer.CANNOT_JUDGE, reason="not ours")
    notes.flag(session, omar, "ours after all")
    answer = answers.submit(session, omar, answer=Answer.CANNOT_JUDGE, reason="too long")
    answers.undo(answer, omar)
    assert [flag.rule for flag in Flag.objects.open().filter(session=session)] == [Flag.BY_A_PERSON]


def test_who_cannot_judge_a_session_outside_the_queue_keeps_it_out(site, rita, settings):
    session = site.session().judged(0.5).recheck()
    answers.submit(session, rita, answer=Answer.CANNOT_JUDGE, reason="no idea")
    settings.REVIEW_SLICE = 1
    site.on(session).recheck()
    assert item(session).state == ItemState.DISMISSED


# --- several people --------------------------------------------------------------------------------------------------


def test_the_second_of_two_people_gives_an_opinion_that_changes_nothing(site, rita, omar):
    session = waits(site)
    queue.require_answers(item(session), 2)
    first = answers.submit(session, rita, answer=Answer.GRADE, value=0.6)
    before = learned()
    assert item(session).state == ItemState.OPEN
    second = answers.submit(session, omar, answer=Answer.GRADE, value=0.2)
    assert (first.grade is None, second.grade, second.effects) == (False, None, {})
    assert (reward(session), learned()) == ((0.6, "human"), before)
    assert item(session).state == ItemState.DONE


def test_an_item_for_several_is_not_offered_twice_to_one_of_them(site, rita, omar):
    session = waits(site)
    queue.require_answers(item(session), 2)
    answers.submit(session, rita, answer=Answer.GRADE, value=0.6)
    assert claims.next_for(rita, "page") is None
    assert claims.next_for(omar, "his").session == session


def test_an_opinion_can_be_made_the_authoritative_grade(site, rita, omar):
    olga = site.person("olga", "operator")
    session = site.session().judged(0.5).recheck()
    queue.add(session, olga, "look")
    queue.require_answers(item(session), 2)
    answers.submit(session, rita, answer=Answer.GRADE, value=0.6)
    opinion = answers.submit(session, omar, answer=Answer.GRADE, value=0.2)
    held = answers.adopt(opinion, olga, "he knows the project")
    assert reward(session) == (0.2, "human")
    assert held.grade.author == olga
    assert (opinion.blind_value, held.blind_value, held.revealed) == (0.2, None, True)
    assert held.reason == "omar's answer holds: he knows the project"
    with pytest.raises(CorrectionError, match="already in force"):
        answers.adopt(held, olga)
    answers.undo(held, olga)
    assert reward(session) == (0.6, "human")


def test_only_a_grade_can_hold(site, rita):
    session = waits(site)
    skip = answers.submit(session, rita, answer=Answer.SKIP)
    undone = answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    answers.undo(undone, rita)
    for answer in (skip, undone):
        with pytest.raises(CorrectionError, match="not undone"):
            answers.adopt(answer, rita)


def test_who_changes_their_own_grade_while_others_are_asked_changes_the_reward(site, rita):
    session = waits(site)
    queue.require_answers(item(session), 2)
    answers.submit(session, rita, answer=Answer.GRADE, value=0.6)
    answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    assert reward(session) == (0.5, "human")
    assert item(session).state == ItemState.OPEN


def test_nobody_of_several_could_judge_it(site, rita, omar):
    session = waits(site)
    queue.require_answers(item(session), 2)
    for person in (rita, omar):
        answers.submit(session, person, answer=Answer.CANNOT_JUDGE, reason="no idea")
    assert item(session).state == ItemState.DISMISSED


def test_wanting_fewer_people_closes_an_item_that_has_its_answers(site, rita):
    session = waits(site)
    queue.require_answers(item(session), 2)
    answers.submit(session, rita, answer=Answer.GRADE, value=0.6)
    queue.require_answers(item(session), 1)
    assert item(session).state == ItemState.DONE
    queue.require_answers(item(session), 3)
    assert item(session).state == ItemState.OPEN


# --- blind first -----------------------------------------------------------------------------------------------------


def test_the_judge_is_hidden_until_one_answers_or_looks(site, rita, omar):
    session = waits(site)
    assert hides_judge(session, rita)
    notes.reveal(session, rita, 0.3)
    assert not hides_judge(session, rita)
    assert hides_judge(session, omar)
    answers.submit(session, omar, answer=Answer.SKIP)
    assert hides_judge(session, omar)
    answers.submit(session, omar, answer=Answer.GRADE, value=0.5)
    assert not hides_judge(session, omar)


def test_nothing_is_hidden_where_no_judge_spoke(rita):
    session = flagged()
    assert not hides_judge(session, rita)


def test_what_one_said_before_looking_is_kept_and_the_first_counts(site, rita):
    session = waits(site)
    first = notes.reveal(session, rita, 0.35)
    assert notes.reveal(session, rita, 0.5) == first
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    assert (answer.blind_value, answer.revealed, answer.judge) == (0.35, True, first.judge)
    assert Reveal.objects.count() == 1


def test_who_looked_first_said_nothing_blind(site, rita):
    session = waits(site)
    notes.reveal(session, rita)
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    assert (answer.blind_value, answer.revealed) == (None, True)


def test_a_grade_given_without_looking_is_blind(site, rita):
    answer = answers.submit(waits(site), rita, answer=Answer.GRADE, value=0.5)
    assert (answer.blind_value, answer.revealed) == (0.5, False)


def test_who_accepts_what_the_judge_decided_said_nothing_of_their_own(site, rita):
    assert answers.submit(waits(site), rita, answer=Answer.ACCEPT).blind_value is None


def test_the_second_answer_of_one_person_is_not_blind_and_the_first_stays(site, rita):
    session = waits(site)
    first = answers.submit(session, rita, answer=Answer.GRADE, value=0.4)
    answers.undo(first, rita)
    second = answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    assert (second.value, second.blind_value, second.revealed) == (0.5, 0.4, True)


def test_one_of_many_at_once_is_not_blind(site, rita):
    answer = answers.submit(waits(site), rita, answer=Answer.GRADE, value=0.5, bulk="b1")
    assert (answer.blind_value, answer.bulk) == (None, "b1")


def test_a_typed_guess_must_be_a_grade(site, rita):
    with pytest.raises(CorrectionError):
        notes.reveal(waits(site), rita, 1.5)


# --- what it does ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 0.37, 1.0, None])
def test_the_preview_is_what_saving_does_to_every_bandit_to_the_last_bit(site, rita, value):
    for judged_value in (0.3, 0.5, 0.9):
        site.session("code", harness="gptme").judged(judged_value).recheck()
    session = waits(site, 0.45)
    with time_machine.travel(NOON, tick=False):
        promised = list(promises.outlooks([(session, value)]))
        touched = [move for move in promises.arm_moves([(session, value)]) if move.touched]
        answer = answers.submit(
            session, rita, answer=Answer.EXCLUDE if value is None else Answer.GRADE, value=value, reason="r"
        )
        answer.refresh_from_db()
        now = {name: posterior_of(name, NOON) for name in ("category", "harness")}
    assert [(bandit, set(ran)) for bandit, _before, _after, ran in promised] == [
        ("category", {"cross-repo"}),
        ("harness", {"claude-code"}),
    ]
    for (bandit, before, after, (arm,)), told in zip(promised, answer.effects["bandits"], strict=True):
        held = now[bandit]
        assert after.arms == held.arms
        assert told == {
            "bandit": bandit,
            "arm": arm,
            "sessions": after.arms[arm].sessions,
            "observations_before": before.arms[arm].observations,
            "observations_after": after.arms[arm].observations,
            "mean_before": before.arms[arm].mean,
            "mean_after": held.arms[arm].mean,
            "share_before": before.next_100(arm),
            "share_after": held.next_100(arm),
        }
        assert before.arms[arm].mean != after.arms[arm].mean
    assert moves_of(answer.effects) == touched


def test_the_previews_of_several_grades_are_those_of_each(site, rita):
    """A grade that counts is replaced, and the arm that ran is the category's; another grade costs no more queries."""
    for judged_value in (0.3, 0.5, 0.9):
        site.session("code", harness="gptme").judged(judged_value).recheck()
    session = waits(site, 0.45)
    each_alone = [
        next(move for move in promises.arm_moves([(session, value)]) if move.touched and move.bandit == "category")
        for value in (0.2, 0.5, 1.0)
    ]
    assert promises.answer_moves(session, (0.2, 0.5, 1.0)) == each_alone
    assert len({move.mean_after for move in each_alone}) == 3
    counts = []
    for values in ((0.2,), (0.2, 0.5, 0.8)):
        with CaptureQueriesContext(connection) as queries:
            promises.answer_moves(session, values)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_without_a_category_the_previews_are_of_the_harness(site, rita):
    session = site.session(None, harness="gptme").judged(0.3).recheck()
    (alone,) = [move for move in promises.arm_moves([(session, 0.7)]) if move.touched]
    assert promises.answer_moves(session, (0.7,)) == [alone]
    assert (alone.bandit, alone.arm) == ("harness", "gptme")


def test_a_session_without_arms_teaches_nobody(site, rita):
    session = site.session(None, harness=None).judged(0.5).recheck()
    assert list(promises.arm_moves([(session, 0.5)])) == []
    assert promises.answer_moves(session, (0.5,)) == []
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    assert answer.effects["bandits"] == []
    assert answer.effects["reward"] == {"before": 0.5, "after": 0.5, "source_before": "judge"}


def test_an_alarm_that_ends_with_an_answer_is_among_its_effects(site, rita):
    session = waits(site)
    Alarm.objects.create(rule="A1", detail="3 sessions")
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    assert answer.effects["alarms"] == [{"rule": "A1", "about": "", "before": "3 sessions", "after": None}]


# --- comments and flags ----------------------------------------------------------------------------------------------


def test_a_comment_says_something_of_bearable_length(site, rita):
    session = site.session().judged(0.5).recheck()
    assert notes.comment(session, rita, " looks like the wrong log ").text == "looks like the wrong log"
    for text in ("", "x" * 4001):
        with pytest.raises(CorrectionError, match="1 to 4000"):
            notes.comment(session, rita, text)


def test_a_persons_flag_puts_a_session_into_the_queue_and_taking_it_back_takes_it_out(site, rita, omar):
    session = site.session().judged(0.5).recheck()
    row = notes.flag(session, rita, "the log is another's")
    assert (item(session).entered_as, item(session).why) == (QueueEntry.PERSON, "rita: the log is another's")
    with pytest.raises(CorrectionError, match="rita has already flagged"):
        notes.flag(session, omar, "mine too")
    notes.unflag(row, rita)
    assert item(session).state == ItemState.DONE
    notes.flag(session, omar, "after all")
    assert item(session).state == ItemState.OPEN


def test_a_flag_taken_back_leaves_what_else_speaks_for_the_session(rita):
    session = flagged()
    notes.unflag(notes.flag(session, rita, "odd"), rita)
    assert (item(session).state, item(session).entered_as) == (ItemState.OPEN, QueueEntry.RULE)


def test_a_rules_flag_is_not_a_persons_to_take_back(rita):
    session = flagged()
    with pytest.raises(CorrectionError, match="No real grade for a pull request or commit"):
        notes.unflag(Flag.objects.get(session=session), rita)


def test_a_flag_says_why(site, rita):
    with pytest.raises(CorrectionError, match="reason"):
        notes.flag(site.session().judged(0.5).recheck(), rita, " ")


def test_a_person_may_flag_what_was_dismissed(rita):
    session = flagged()
    answers.submit(session, rita, answer=Answer.CANNOT_JUDGE, reason="not ours")
    notes.flag(session, rita, "ours after all")
    assert item(session).state == ItemState.OPEN


def test_a_grade_clears_a_persons_flag_too(site, rita):
    session = site.session().judged(0.5).recheck()
    notes.flag(session, rita, "odd")
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.5)
    assert answer.effects["flags_cleared"] == ["person"]
