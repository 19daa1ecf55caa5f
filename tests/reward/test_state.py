"""What lists and counts read of a session: always what its rewards, verdicts and flags say."""

import datetime as dt

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from grading import tasks
from grading.evidence.receiving import EvidenceReading
from grading.intake import fields
from grading.intake.submission import SubmittedSession
from grading.models import Grade, Session
from grading.models.grades import question_of
from grading.models.review import Answer
from grading.models.sessions import CategoryOrigin
from grading.monitoring.alarms import open_alarms
from grading.review import answers, corrections, notes
from grading.reward import outcomes, rewards, state
from grading.roles import REVIEWER
from grading.vocabulary import Outcome, Reason, Source, Status
from grading.witness import Witness

pytestmark = pytest.mark.django_db


def graded(site, **grades):
    builder = site.session().with_work()
    for source, value in grades.items():
        builder.graded(source, value, rubric="4e1c" if source == "judge" else "")
    return builder.settle()


def differing():
    return [str(each) for each in state.audit(timezone.now())]


def test_a_settled_session_has_the_columns_of_its_settlement_and_verdict(site):
    session = graded(site, judge=0.5, journal=0.3)
    row, settlement = Session.objects.get(), session.settlements.latest("revision")
    assert (row.settlement, row.reward_value, row.reward_source, row.reward_final) == (settlement, 0.5, "judge", True)
    assert (row.reward_weight, row.reward_reason, row.open_flags) == (1, "", 0)
    verdict = session.grades.verdicts().get()
    assert (row.verdict, row.verdict_question) == (verdict, question_of("4e1c", verdict.version))
    assert differing() == []


def test_it_follows_verdicts_corrections_undos_and_flags(site):
    rita = site.person("rita", REVIEWER)
    session = graded(site, journal=0.3)
    seen = [Session.objects.get().reward_source]
    site.on(session).judged(0.5, rubric="4e1c").settle()
    seen.append(Session.objects.get().reward_source)
    notes.flag(session, rita, "look at this")
    assert Session.objects.get().open_flags == 1
    answers.submit(session, rita, answer=Answer.GRADE, value=0.9, reason="merged")
    seen.append(Session.objects.get().reward_source)
    corrections.undo(session.grades.get(source=Source.HUMAN), rita, reason="not so")
    seen.append(Session.objects.get().reward_source)
    assert seen == ["journal", "judge", "human", "judge"]
    assert differing() == []


def test_a_session_settled_again_to_the_same_end_is_not_written_again(site):
    session = graded(site, journal=0.3)
    with CaptureQueriesContext(connection) as captured:
        rewards.settle(session)
    assert not [query for query in captured.captured_queries if query["sql"].startswith(("INSERT", "UPDATE"))]


def test_a_state_that_is_not_what_the_rewards_say_is_told_at_night_and_put_right(site):
    """I56, broken rows that a repair skips: alarm (A33). Rows are compared with the rewards."""
    sessions = [graded(site, journal=0.3) for _number in range(3)]
    tasks.at_night()
    assert not open_alarms().filter(rule="A33").exists()
    Session.objects.filter(pk=sessions[0].pk).update(reward_value=0.9, open_flags=2)
    Session.objects.filter(pk=sessions[1].pk).update(settlement=None)
    tasks.at_night()
    detail = open_alarms().get(rule="A33").detail
    assert detail.startswith("Sessions that lists show incorrectly: 2.")
    assert f"session {sessions[0].pk}: reward_value, open_flags; session {sessions[1].pk}: settlement_id" in detail
    call_command("rebuild", repair=True, verbosity=0)
    tasks.at_night()
    assert not open_alarms().filter(rule="A33").exists()


def test_what_nothing_happened_to_is_looked_at_within_a_hundred_nights(site):
    session = graded(site, journal=0.3)
    type(session).objects.filter(pk=session.pk).update(received_at=timezone.now() - dt.timedelta(days=9))
    Session.objects.update(reward_weight=0.9)
    later = timezone.now() + dt.timedelta(days=5)
    nights = [night for night in range(100) if state.audit(later + dt.timedelta(days=night))]
    assert len(nights) == 1


def test_settling_an_instance_from_before_another_settlement_corrects_the_row(site):
    """The row is compared, not the instance that the caller has loaded."""
    session = graded(site, journal=0.3)
    with transaction.atomic():
        earlier = Session.objects.for_settling().get()
        site.on(session).judged(0.5).settle()
        Grade.objects.create(session=session, source=Source.JUDGE, status=Status.FAILED, reason=Reason.AWAITING_JUDGE)
        assert earlier.reward_value == 0.3
        rewards.settle_locked(earlier)
    assert earlier.reward_value == Session.objects.get().reward_value == rewards.live(session).value
    assert differing() == []


def test_intake_that_saves_a_session_loaded_before_a_settlement_keeps_the_new_reward(site):
    """Whatever part of a submission saves the session, it writes its own columns alone."""
    session = graded(site, journal=0.3)
    earlier = Session.objects.get()
    site.on(session).judged(0.5).settle()
    metadata = SubmittedSession(
        session_id=earlier.external_id, title="Fix the build", outcome=Outcome.FAILED, outcome_reason="Out of time"
    )
    fields.apply(earlier, metadata, EvidenceReading(), witness=Witness.OBSERVED, origin=CategoryOrigin.RUNNER)
    outcomes.conclude(earlier, None, Witness.OBSERVED)
    row = Session.objects.get()
    assert (row.title, row.outcome, row.reward_value, row.reward_source) == ("Fix the build", "failed", 0.5, "judge")
    assert differing() == []
