"""What watches the site asks whether it lives, whether it is ready, and for figures."""

import datetime as dt

import pytest
from django.utils import timezone

from grading.health import pulse
from grading.health.liveness import Component
from grading.judging import judges
from grading.models import Alarm, ApiToken, PeriodicJob, Quota
from grading.models.agents import TokenScope
from grading.models.judging import JudgeRole
from grading.models.quota import QuotaState

pytestmark = pytest.mark.django_db
LOCAL = {"HTTP_HOST": "127.0.0.1:8000"}


def token(site, scope):
    return {"HTTP_AUTHORIZATION": f"Bearer {ApiToken.objects.issue(site.agent(), scope=scope)[1]}"}


def test_a_process_that_answers_lives(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/healthz/live").json() == {"live": True}


def test_a_site_that_works_is_ready_and_says_how_old_its_heartbeats_are(client):
    pulse.beat(Component)
    reply = client.get("/healthz/ready")
    body = reply.json()
    assert (reply.status_code, body["ready"], body["problems"]) == (200, True, [])
    assert set(body["checks"]["heartbeats"]) == set(Component)
    assert body["checks"]["database"] == {"writable": True}


def test_a_full_disk_and_a_job_that_nobody_does_make_it_unready_in_words(site, client, settings):
    settings.FREE_SPACE_FLOOR = 2**60
    settings.ANTHROPIC_API_KEY = "sk-of-a-test"
    site.session().with_judge_job(next_attempt_at=timezone.now() - dt.timedelta(hours=1))
    reply = client.get("/healthz/ready")
    assert (reply.status_code, reply["Retry-After"]) == (503, "10")
    said = " ".join(reply.json()["problems"])
    assert "are to stay free" in said
    assert "A job has been due for 360" in said


@pytest.mark.parametrize("other", ["another key, long gone", "the second judge"])
def test_a_judge_that_is_out_hides_no_job_of_another(site, client, settings, other):
    settings.ANTHROPIC_API_KEY, settings.JUDGE_SECOND_MODEL = "sk-of-a-test", "gpt-of-a-test"
    key = "of a key that was replaced" if "key" in other else judges.configured().get("second").fingerprint
    Quota.objects.create(key=key, model=settings.JUDGE_SECOND_MODEL, state=QuotaState.EXHAUSTED)
    site.session().with_judge_job(next_attempt_at=timezone.now() - dt.timedelta(hours=1))
    body = client.get("/healthz/ready").json()
    assert any(said.startswith("A job has been due for 360") for said in body["problems"])
    assert body["checks"]["jobs"]["oldest_due_seconds"]["first"] >= 3600


def test_what_waits_for_a_judge_that_is_out_or_has_no_key_is_not_stuck(site, client, settings):
    site.session().with_judge_job(next_attempt_at=timezone.now() - dt.timedelta(hours=1))
    assert not any("due" in said for said in client.get("/healthz/ready").json()["problems"])
    settings.ANTHROPIC_API_KEY = "sk-of-a-test"
    first = judges.configured()[JudgeRole.FIRST]
    Quota.objects.create(key=first.fingerprint, model=first.model, state=QuotaState.EXHAUSTED)
    assert not any("due" in said for said in client.get("/healthz/ready").json()["problems"])


def test_figures_say_of_each_judge_whether_it_may_be_asked_though_two_share_a_model(client, settings):
    settings.ANTHROPIC_API_KEY, settings.JUDGE_SECOND_API_KEY = "sk-of-a-test", "sk-of-another-test"
    settings.JUDGE_SECOND_MODEL = settings.JUDGE_MODEL
    second = judges.configured()["second"]
    Quota.objects.create(key=second.fingerprint, model=settings.JUDGE_MODEL, state=QuotaState.EXHAUSTED)
    lines = client.get("/metrics", **LOCAL).content.decode().splitlines()
    for role, value in (("first", "1.0"), ("second", "0.0")):
        assert f'gradingsite_judge_open{{judge="{role}",model="{settings.JUDGE_MODEL}"}} {value}' in lines


def test_figures_are_for_this_machine_and_for_a_token_for_reading_only(site, client, settings):
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", **token(site, TokenScope.HOOK)).status_code == 401
    assert client.get("/metrics", **token(site, TokenScope.READ)).status_code == 200
    assert client.get("/metrics", **LOCAL).status_code == 200
    for said in ("X_FORWARDED_FOR", "FORWARDED", "VIA", "X_REAL_IP"):
        assert client.get("/metrics", **LOCAL, **{f"HTTP_{said}": "203.0.113.9"}).status_code == 401
    assert client.get("/metrics", **LOCAL, REMOTE_ADDR="203.0.113.9").status_code == 401
    settings.SITE_URL = "https://grading.example.org"
    assert client.get("/metrics", **LOCAL).status_code == 401, "a proxy on this machine need not say so"


def test_figures_are_read_from_the_database(site, client):
    pulse.beat([Component.WORKER])
    Alarm.objects.create(rule="A2", about="x", detail="out")
    PeriodicJob.objects.create(name="sweep", turns=7)
    site.session().with_judge_job()
    lines = client.get("/metrics", **LOCAL).content.decode().splitlines()
    for line in (
        'gradingsite_alarms_open{rule="A2"} 1.0',
        'gradingsite_periodic_turns_total{job="sweep"} 7.0',
        'gradingsite_judge_jobs{state="queued"} 1.0',
    ):
        assert line in lines
    assert any(line.startswith('gradingsite_heartbeat_age_seconds{host="",program="worker"} ') for line in lines)
