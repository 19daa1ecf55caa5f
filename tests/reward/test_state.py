"""What lists and counts read of a session: always what its rewards, verdicts and flags say."""

import datetime as dt

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from grading import monitoring, review, tasks
from grading.models import SessionState
from grading.models.review import Answer
from grading.models.state import question_of
from grading.review import notes
from grading.reward import rewards, state
from grading.roles import REVIEWER
from grading.vocabulary import Source

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
    held, settlement = SessionState.objects.get(session=session), session.settlements.latest("revision")
    assert (held.settlement, held.value, held.source, held.final) == (settlement, 0.5, "judge", True)
    assert (held.weight, held.reason, held.flags, held.ended_at) == (1, "", 0, session.ended_at)
    verdict = session.grades.verdicts().get()
    assert (held.verdict, held.question) == (verdict, question_of("4e1c", verdict.version))
    assert differing() == []


def test_it_follows_verdicts_corrections_undos_and_flags(site):
    rita = site.person("rita", REVIEWER)
    session = graded(site, journal=0.3)
    seen = [SessionState.objects.get().source]
    site.on(session).judged(0.5, rubric="4e1c").settle()
    seen.append(SessionState.objects.get().source)
    notes.flag(session, rita, "look at this")
    assert SessionState.objects.get().flags == 1
    review.submit(session, rita, answer=Answer.GRADE, value=0.9, reason="merged")
    seen.append(SessionState.objects.get().source)
    review.undo(session.grades.get(source=Source.HUMAN), rita, reason="not so")
    seen.append(SessionState.objects.get().source)
    assert seen == ["journal", "judge", "human", "judge"]
    assert differing() == []


def test_a_session_settled_again_to_the_same_end_is_not_written_again(site):
    session = graded(site, journal=0.3)
    with CaptureQueriesContext(connection) as captured:
        rewards.settle(session)
    assert not [query for query in captured.captured_queries if query["sql"].startswith(("INSERT", "UPDATE"))]


def test_a_state_that_is_not_what_the_rewards_say_is_told_at_night_and_put_right(site):
    sessions = [graded(site, journal=0.3) for _number in range(3)]
    tasks.at_night()
    assert not monitoring.open_alarms().filter(rule="A49").exists()
    SessionState.objects.filter(session=sessions[0]).update(value=0.9, flags=2)
    SessionState.objects.filter(session=sessions[1]).delete()
    tasks.at_night()
    detail = monitoring.open_alarms().get(rule="A49").detail
    assert detail.startswith("2 sessions have a wrong state")
    assert f"session {sessions[0].pk}: value, flags; session {sessions[1].pk}: the row is missing" in detail
    assert "`manage.py rebuild --repair`" in detail
    call_command("rebuild", repair=True, verbosity=0)
    tasks.at_night()
    assert not monitoring.open_alarms().filter(rule="A49").exists()


def test_what_nothing_happened_to_is_looked_at_within_a_hundred_nights(site):
    session = graded(site, journal=0.3)
    type(session).objects.filter(pk=session.pk).update(received_at=timezone.now() - dt.timedelta(days=9))
    SessionState.objects.update(weight=0.9)
    later = timezone.now() + dt.timedelta(days=5)
    nights = [night for night in range(100) if state.audit(later + dt.timedelta(days=night))]
    assert len(nights) == 1
