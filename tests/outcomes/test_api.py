"""Reporting outcomes over HTTP: who may, what is stored once, and what a bad report is answered."""

import json

import pytest

from grading.models import ApiToken, OutcomeRecord
from grading.models.agents import TokenScope

pytestmark = pytest.mark.django_db
OBSERVED = "2026-04-01T10:00:00Z"


@pytest.fixture
def session(site):
    return site.session(external_id="s-1").settle()


@pytest.fixture
def post(client, session):
    """Sends JSON with a token of a scope; the reply's status and body."""

    def send(path, body, scope=TokenScope.OUTCOMES, agent=None):
        _, secret = ApiToken.objects.issue(agent or session.agent, scope=scope)
        headers = {"Authorization": f"Bearer {secret}"}
        reply = client.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json", headers=headers)
        return reply.status_code, reply.json()

    return send


def test_ci_reports_an_outcome(post, session):
    body = {
        "kind": "ci",
        "value": "pass",
        "observed_at": OBSERVED,
        "url": "https://ci.example/1",
        "detail": "all green",
    }
    status, stored = post("sessions/s-1/outcomes", body)
    assert status == 201
    assert stored.items() >= {"kind": "ci", "result": "pass", "number": None, "witness": "observed"}.items()
    status, _ = post(f"sessions/{session.pk}/outcomes", {**body, "kind": "score", "value": 0.75})
    assert status == 201
    assert session.outcomes.get(kind="score").number == 0.75


def test_sent_twice_it_is_stored_once(client, session):
    _, secret = ApiToken.objects.issue(session.agent, scope=TokenScope.RUNNER)
    body = json.dumps({"kind": "ci", "value": "fail", "observed_at": OBSERVED})
    options = {"content_type": "application/json", "headers": {"Authorization": f"Bearer {secret}"}}
    replies = [client.post("/api/v1/sessions/s-1/outcomes", body, **options).status_code for _ in range(2)]
    assert replies == [201, 200]
    assert OutcomeRecord.objects.count() == 1


def test_the_outcome_observed_last_is_in_force(post, session):
    post("sessions/s-1/outcomes", {"kind": "ci", "value": "pass", "observed_at": OBSERVED})
    post("sessions/s-1/outcomes", {"kind": "ci", "value": "fail", "observed_at": "2026-03-31T10:00:00Z"})
    assert session.outcomes.count() == 2
    assert session.outcomes.latest_per_kind()["ci"].result == "pass"


@pytest.mark.parametrize("scope", [TokenScope.AGENT, TokenScope.HOOK, TokenScope.READ, TokenScope.UNSCOPED])
def test_the_graded_agent_reports_nothing(post, scope):
    status, error = post("sessions/s-1/outcomes", {"kind": "ci", "value": "pass"}, scope)
    assert status == 403
    assert "token" in error["expected"]
    assert post("outcomes", {"outcomes": []}, scope)[0] == 403
    assert not OutcomeRecord.objects.exists()


@pytest.mark.postgresql
def test_an_id_that_no_session_can_have_is_refused_in_words(post):
    """PostgreSQL takes no NUL in a text."""
    status, error = post("sessions/a%00b/outcomes", {"kind": "ci", "value": "pass"})
    assert (status, error["error"]) == (422, "invalid path.session")


def test_a_token_for_outcomes_neither_reads_nor_submits(client, session):
    _, secret = ApiToken.objects.issue(session.agent, scope=TokenScope.OUTCOMES)
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.get(f"/api/v1/sessions/{session.pk}", headers=headers).status_code == 403
    assert client.get("/api/v1/bandits/category", headers=headers).status_code == 403
    assert client.post("/api/v1/sessions", {"metadata": "{}"}, headers=headers).status_code == 403
    assert client.post("/api/v1/selections", "{}", content_type="application/json", headers=headers).status_code == 403
    assert client.get("/api/v1/token", headers=headers).json()["scope"] == "outcomes"


def test_a_session_of_another_agent_is_not_found(post, site):
    status, _ = post("sessions/s-1/outcomes", {"kind": "ci", "value": "pass"}, agent=site.agent("alice"))
    assert status == 404


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "CI"},
        {"kind": ""},
        {"kind": "a" * 41},
        {"value": "passed"},
        {"value": 1.5},
        {"value": True},
        {"value": None},
        {"observed_at": "yesterday"},
        {"observed_at": "2026-04-01T10:00:00"},
        {"url": "x" * 501},
        {"verdict": 1},
    ],
)
def test_bad_reports_are_refused_in_words(post, change):
    status, error = post("sessions/s-1/outcomes", {"kind": "ci", "value": "pass", **change})
    assert status == 422
    assert error["expected"]
    assert error["todo"]
    assert not OutcomeRecord.objects.exists()


def test_many_at_once(post, session):
    outcomes = [
        {"session": "s-1", "kind": "tests", "value": "pass", "observed_at": OBSERVED},
        {"session": "nobody", "kind": "tests", "value": "pass", "observed_at": OBSERVED},
        {"session": str(session.pk), "kind": "resolved", "value": 1.0, "observed_at": OBSERVED},
    ]
    status, reply = post("outcomes", {"outcomes": outcomes})
    assert (status, reply["new"], reply["known"]) == (200, 2, 0)
    assert reply["problems"] == ["outcomes[1]: expected the id of a session of bob; got 'nobody'"]


def test_a_secret_in_a_report_is_not_stored(post, session):
    key = "sk-ant-api03-" + "a1B2" * 24
    post("sessions/s-1/outcomes", {"kind": "ci", "value": "fail", "detail": f"used {key}"})
    assert key not in session.outcomes.get().detail


def test_reading_a_session_shows_what_is_in_force(post, client, session):
    post("sessions/s-1/outcomes", {"kind": "ci", "value": "fail", "observed_at": OBSERVED})
    _, secret = ApiToken.objects.issue(session.agent, scope=TokenScope.READ)
    read = client.get(f"/api/v1/sessions/{session.pk}", headers={"Authorization": f"Bearer {secret}"}).json()
    assert [(each["kind"], each["result"]) for each in read["outcomes"]] == [("ci", "fail")]


def test_erasing_a_session_erases_its_outcomes(post, session):
    from grading.intake import erasing
    from grading.models import Session

    post("sessions/s-1/outcomes", {"kind": "ci", "value": "fail"})
    erasing.erase(Session.objects.filter(pk=session.pk), who="olga", why="asked to")
    assert not OutcomeRecord.objects.exists()
