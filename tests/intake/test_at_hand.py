"""While a session is taken in its rows are read once: what is at hand at the end is what the database has."""

import datetime as dt

import pytest

from grading import judging
from grading.intake.first_word import Speaker
from grading.models import ApiToken, Session, at_hand
from grading.models.judging import AttemptOutcome
from tests.casts import lesson as lesson_cast
from tests.casts import logs, shared_records
from tests.intake.test_intake import PR, SHA
from tests.site import NOON

pytestmark = pytest.mark.django_db


def columns(row) -> dict:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.fixture
def compared(monkeypatch) -> list[str]:
    """What was at hand of each session that was taken in, by name, and found to be what the database has."""
    seen: list[str] = []

    def let_go(session: Session) -> None:
        fresh = Session.objects.get(pk=session.pk)
        assert columns(session) == columns(fresh)
        for name in at_hand.NONE:
            held = at_hand.rows(session, name)
            if held is not None:
                known = {row.pk: columns(row) for row in getattr(fresh, name).all()}
                assert {row.pk: columns(row) for row in held} == known, name
                assert len(held) == len(known)
                seen.extend([name] if held else [])
        for name in at_hand.SINGLE:
            if name in session._state.fields_cache:
                held, kept = getattr(session, name, None), getattr(fresh, name, None)
                assert (held and columns(held)) == (kept and columns(kept)), name
                seen.extend([name] if held else [])
        really_let_go(session)

    really_let_go = at_hand.let_go
    monkeypatch.setattr(at_hand, "let_go", let_go)
    return seen


def test_what_is_at_hand_of_a_new_session_is_what_it_has(site, compared):
    facts = {"commits": [{"sha": SHA}], "checks": [{"name": "ci", "passed": False}]}
    site.upload("71a3", logs.claude("71a3", logs.COMMIT), journal="Submitted PR with the fix.", facts=facts)
    assert {"evidence", "grades", "artifacts", "settlements", "log", "state", "extracted", "traits"} <= {*compared}


def test_what_is_at_hand_of_a_session_that_grows_is_what_it_has(site, compared):
    site.upload("71a3", logs.claude("71a3", logs.COMMIT))
    site.upload("71a3", logs.claude("71a3", logs.COMMIT, logs.COMMIT), facts={"pull_requests": [PR]})
    site.upload("71a3", journal="One more word.", title="Another word")
    assert compared.count("grades") == 3


def test_so_it_is_of_one_whose_work_was_claimed_before(site, compared):
    site.upload("first", logs.claude("first", logs.COMMIT), agent="ann", facts={"pull_requests": [PR]})
    site.upload("second", logs.claude("second", logs.COMMIT), facts={"pull_requests": [PR]})
    assert "flags" in compared


def test_so_it_is_of_one_that_was_given_lessons_and_says_an_end_out_of_bounds(site, compared):
    lesson_cast.lesson("read-the-diff")
    agent = site.agent()
    token, _secret = ApiToken.objects.issue(agent)
    long_ago = NOON - dt.timedelta(days=365)
    said = {"ended_at": long_ago, "lessons": [{"name": "read-the-diff"}]}
    site.upload("s", journal="Done.", speaker=Speaker(token=token), **said)
    assert {"lessons", "proposals", "flags"} <= {*compared}


def test_so_it_is_of_one_that_the_judge_is_asked_about(site, compared, settings):
    settings.ANTHROPIC_API_KEY, settings.JUDGE_MODEL = "key", "claude-opus-4-6"
    site.upload("71a3", logs.claude("71a3", logs.COMMIT))
    site.upload("71a3", logs.claude("71a3", logs.COMMIT, logs.COMMIT))
    assert "judge_jobs" in compared


def test_so_it_is_of_one_whose_subagent_came_before(site, compared):
    site.upload("agent-a1", shared_records.log("parent", shared_records.steps("s", 1, 5), sidechain=True))
    parent = site.upload("parent", shared_records.log("parent", shared_records.steps("a", 1, 5))).session
    assert parent.parts.count() == 1
    assert compared.count("parts") == 1


def test_so_it_is_of_one_that_the_judge_answers(site, compared, sim):
    session = site.upload("71a3", logs.claude("71a3", logs.COMMIT), journal="Done.").session
    compared.clear()
    sim.script({"score": 0.9})
    assert judging.run(session.judge_jobs.get().pk) is AttemptOutcome.GRADED
    assert {"evidence", "grades", "judge_jobs", "log", "state"} <= {*compared}
