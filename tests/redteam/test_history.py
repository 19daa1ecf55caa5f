"""What is handed in as history, by whom, and what whoever is graded cannot make of it."""

import datetime as dt
from io import BytesIO

import pytest
from django.utils import timezone

from bandit.models import LedgerEntry
from grading import intake
from grading.intake.first_word import HISTORY_UPLOAD_PERIOD, Speaker
from grading.judging.rubrics import rejudge
from grading.models import AbstentionDraw, ApiToken, Flag, Rubric, Session
from grading.models.agents import TokenScope
from grading.monitoring.sessions import impossible_pair
from grading.reward import rewards
from grading.vocabulary import Reason, Source, Status
from tests.casts import logs
from tests.casts import quota as quota_cast
from tests.site import Site

pytestmark = pytest.mark.django_db

ID = "5b1f3c52-7a0e-4c0f-9a34-0d1f5f2e71a3"
THEN = dt.datetime(2026, 3, 31, 11, 40, tzinfo=dt.UTC)  # what logs.claude says


@pytest.fixture(autouse=True)
def judge(settings):
    settings.ANTHROPIC_API_KEY = quota_cast.KEY
    settings.JUDGE_MODEL = "claude-sonnet-5-5"


@pytest.fixture
def token():
    return token_of(TokenScope.HOOK)


def token_of(scope: TokenScope) -> ApiToken:
    return ApiToken.objects.issue(Site().agent(), scope=scope)[0]


def hand_in(token, judge="none", *, log=None, session_id=ID, ended_at=THEN, **said):
    log = logs.claude(session_id, logs.COMMIT) if log is None else log
    metadata = {"session_id": session_id, "judge": judge, "ended_at": ended_at, "category": "code", **said}
    return intake.submit(
        agent=token.agent,
        metadata=intake.SubmittedSession.model_validate(metadata),
        transcript=BytesIO(log),
        speaker=Speaker(token=token),
    )


def codes(receipt) -> set[str]:
    return {problem.code for problem in receipt.problems}


def test_history_keeps_its_dates_and_nobody_asks_the_judge(token):
    receipt = hand_in(token)
    session = receipt.session
    assert (session.history, session.ended_at) == ("none", THEN)
    assert not session.judge_jobs.exists()
    said = session.grades.get(source=Source.JUDGE)
    assert (said.status, said.reason) == (Status.SKIPPED, Reason.DECLINED)
    assert (receipt.reward.source, receipt.reward.final) == ("trajectory", False)
    step = next(step for step in receipt.reward.steps if step["source"] == "judge")
    assert (step["headline"], step["reason"]) == ("Not asked", "declined")
    assert "until someone requests a verdict" in receipt.reward.sentence
    assert not session.proposals.exists()
    assert "not_history" not in codes(receipt)
    assert hand_in(token).added == ()  # the same again
    assert not Session.objects.get().judge_jobs.exists()


def test_history_may_be_judged_behind_new_sessions(token):
    session = hand_in(token, "backlog").session
    assert (session.history, session.ended_at) == ("backlog", THEN)
    assert session.judge_jobs.get().backlog


def test_without_the_choice_it_is_as_ever(token):
    session = hand_in(token, None).session
    assert session.history == ""
    assert session.ended_at > timezone.now() - dt.timedelta(days=8)  # no further back, by the word of the graded
    assert session.judge_jobs.exists()


def recently(log: bytes) -> bytes:
    return log.replace(b"2026-03-31T11:40:00.000Z", timezone.now().isoformat().encode())


@pytest.mark.parametrize(
    "lie", ["a new session", "a log that says so", "an old token", "the agent's token", "no token"]
)
def test_nobody_keeps_a_bad_session_from_the_judge_or_dates_it_away(lie):
    scope = TokenScope.AGENT if lie == "the agent's token" else TokenScope.HOOK
    token = token_of(scope)
    log, said = logs.claude(ID, logs.COMMIT), {}
    if lie == "a new session":
        said["ended_at"] = timezone.now()
    if lie == "a log that says so":
        log = recently(log)
    if lie == "an old token":
        made = timezone.now() - HISTORY_UPLOAD_PERIOD - dt.timedelta(hours=1)
        ApiToken.objects.filter(pk=token.pk).update(created_at=made)
        token.refresh_from_db()
    if lie == "no token":
        metadata = intake.SubmittedSession(session_id=ID, judge="none", ended_at=THEN)
        receipt = intake.submit(agent=token.agent, metadata=metadata, transcript=BytesIO(log))
    else:
        receipt = hand_in(token, log=log, **said)
        assert receipt.session.ended_at > timezone.now() - dt.timedelta(days=8)
    assert receipt.session.history == ""
    assert receipt.session.judge_jobs.exists()
    assert "not_history" in codes(receipt)
    assert not any(problem.is_error for problem in receipt.problems)


def test_a_new_token_opens_the_door_for_what_came_before_the_first_one_only(token):
    first = timezone.now() - dt.timedelta(days=90)
    ApiToken.objects.filter(pk=token.pk).update(created_at=first, revoked_at=first)
    later = token_of(TokenScope.HOOK)
    hidden = first + dt.timedelta(days=30)
    log = logs.claude(ID, logs.COMMIT).replace(b"2026-03-31T11:40:00.000Z", hidden.isoformat().encode())
    assert hand_in(later, log=log, ended_at=hidden).session.history == ""
    assert hand_in(later, session_id="another").session.history == "none"


def test_what_is_known_already_is_not_made_history(token):
    hand_in(token, None)
    receipt = hand_in(token)
    assert receipt.session.history == ""
    assert "not_history" in codes(receipt)
    assert receipt.session.judge_jobs.exists()


def test_a_session_that_goes_on_is_judged_as_any_other(token):
    hand_in(token)
    grown = logs.claude(ID, logs.COMMIT, ("ls", "a b"))
    session = hand_in(token, None, log=grown).session
    assert session.history == ""
    assert session.judge_jobs.open().count() == 1


def test_a_person_can_ask_for_the_verdict_later(token):
    session = hand_in(token).session
    olga = Site().person("olga", "operator")
    rejudge.start([session.pk], Rubric.objects.active(), by=olga, why="history", estimated_usd=0.1)
    assert session.judge_jobs.open().count() == 1
    assert "The judge's verdict will replace it exactly" in rewards.live(session).sentence


def test_what_was_kept_from_the_judge_counts_among_the_silent_and_among_ungraded_work(token):
    quiet = logs.gptme(("user", "hi"), ("assistant", "ho"))
    silent = hand_in(token, log=quiet, session_id="quiet").session
    assert AbstentionDraw.objects.filter(session=silent).exists()
    assert LedgerEntry.objects.filter(observation=silent.observation).exists()
    facts = BytesIO(b'{"pull_requests": ["https://github.com/o/r/pull/7"]}')
    metadata = intake.SubmittedSession(session_id="worked", judge="none", ended_at=THEN, category="code")
    log = logs.gptme(("user", "hey"), ("assistant", "ho"))
    worked = intake.submit(
        agent=token.agent, metadata=metadata, transcript=BytesIO(log), facts=facts, speaker=Speaker(token=token)
    ).session
    assert worked.history == "none"
    assert Flag.objects.filter(session=worked, rule=impossible_pair.id, cleared_at=None).exists()


def test_the_api_says_what_a_verdict_costs_and_what_is_history(client, token, settings):
    row, secret = ApiToken.objects.issue(token.agent, scope=TokenScope.HOOK)
    headers = {"authorization": f"Bearer {secret}"}
    said = client.get("/api/v1/judging", headers=headers).json()
    assert said["verdict_usd"] > 0
    assert said["measured"] == 0
    assert dt.datetime.fromisoformat(said["history_before"]) == token.created_at.replace(
        microsecond=token.created_at.microsecond // 1000 * 1000
    )
    assert dt.datetime.fromisoformat(said["history_until"]) > row.created_at + dt.timedelta(days=6)
    settings.ANTHROPIC_API_KEY = ""
    assert client.get("/api/v1/judging", headers=headers).json()["verdict_usd"] is None
    row.narrow(TokenScope.AGENT)
    said = client.get("/api/v1/judging", headers=headers).json()
    assert (said["history_before"], said["history_until"]) == (None, None)


def test_another_word_for_the_judge_is_refused(client, token):
    _row, secret = ApiToken.objects.issue(token.agent)
    data = {"metadata": '{"session_id": "x", "judge": "never"}'}
    reply = client.post("/api/v1/sessions", data, headers={"authorization": f"Bearer {secret}"})
    assert reply.status_code == 422
    assert "'none' or 'backlog'" in reply.json()["expected"]
