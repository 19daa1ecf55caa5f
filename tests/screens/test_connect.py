"""The buttons of a token on the connect page."""

import pytest
from django.utils import timezone

from grading.intake import SubmittedSession, submit
from grading.intake.first_word import Speaker
from grading.models import Agent, ApiToken
from grading.models.agents import TokenScope
from tests.casts.page import flat

pytestmark = pytest.mark.django_db
PAGE = "/connect/"


@pytest.fixture
def token():
    row, _secret = ApiToken.objects.issue(Agent.objects.create(name="bob"), scope=TokenScope.RUNNER)
    return row


def messages(response):
    return [str(message) for message in response.context["messages"]]


def test_a_token_is_narrowed_rotated_and_revoked(operator, token):
    (narrowed,) = messages(operator.post(PAGE, {"token": token.pk, "do": "narrow hook"}))
    assert "is now used by a hook on the agent’s machine" in narrowed
    token.refresh_from_db()
    assert token.scope == TokenScope.HOOK
    assert 'id="token">gs_' in flat(operator.post(PAGE, {"token": token.pk, "do": "rotate"}))
    assert ApiToken.objects.filter(revoked_at=None).count() == 2
    (revoked,) = messages(operator.post(PAGE, {"token": token.pk, "do": "revoke"}))
    assert "no longer works" in revoked
    assert operator.post(PAGE, {"token": token.pk, "do": "rotate"}).status_code == 404


@pytest.mark.parametrize("act", ["", "delete", "narrow ", "narrow root"])
def test_an_unknown_button_changes_nothing(operator, token, act):
    (refused,) = messages(operator.post(PAGE, {"token": token.pk, "do": act}))
    assert refused == "Nothing was changed: expected rotate, revoke or narrow."


def arrival(client, token):
    return flat(client.get(f"/connect/{token.pk}/arrival/"))


def test_the_page_shows_the_first_event_and_the_first_session_of_a_new_token(operator, site):
    html = flat(operator.post(PAGE, {"agent": "bob"}))
    token = ApiToken.objects.get(agent__name="bob")
    assert f'data-arrival="/connect/{token.pk}/arrival/"' in html
    assert "Nothing yet" in html
    assert "Nothing yet" in arrival(operator, token)
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=timezone.now())
    assert "reached this site" in arrival(operator, token)
    assert "/hooks" in arrival(operator, token)
    metadata = SubmittedSession(session_id="other", title="From another token")
    submit(agent=token.agent, metadata=metadata, speaker=Speaker(token=ApiToken.objects.issue(token.agent)[0]))
    assert "reached this site" in arrival(operator, token)
    submit(agent=token.agent, metadata=SubmittedSession(session_id="s", title="Fix it"), speaker=Speaker(token=token))
    html = arrival(operator, token)
    assert "data-over" in html
    assert "Fix it" in html
    assert "From another token" not in html


@pytest.mark.parametrize(("harness", "verb"), [("claude-code", "plugin"), ("codex", "plugin"), ("gptme", "install")])
def test_one_command_connects(operator, harness, verb):
    html = flat(operator.get(PAGE))
    assert f"--{verb} {harness} --token-file -" in html


def test_a_token_is_never_widened_here(operator, token):
    token.narrow(TokenScope.AGENT)
    (refused,) = messages(operator.post(PAGE, {"token": token.pk, "do": "narrow runner"}))
    assert "a token is never widened" in refused


@pytest.mark.parametrize("pk", ["", "x", "999999", "9" * 40])
def test_a_token_that_is_not_there_is_a_404(operator, pk):
    assert operator.post(PAGE, {"token": pk, "do": "revoke"}).status_code == 404
