"""The feed that open pages ask: what it says, to whom, and what it costs."""

import datetime as dt

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from grading.models import Alarm, JudgeAttempt, Quota, Settlement
from grading.models.judging import AttemptOutcome
from grading.models.quota import QuotaState
from grading.reward import rewards
from grading.vocabulary import Reason, Source
from tests.casts import quota as quota_cast

pytestmark = pytest.mark.django_db


def asked(client, **query):
    return client.get("/feed/", query)


def test_it_says_what_the_top_bar_says(viewer, settings):
    quota_cast.use(settings)
    quota_cast.quota()
    said = asked(viewer).json()
    assert said["judge"] == {
        "text": "Judge open",
        "short": "Open",
        "title": "Verdicts come in as sessions arrive.",
        "mark": "open",
    }
    assert said["counts"] == {"Review": 0, "Alarms": 0}
    assert said["stopped"] == ""
    page = viewer.get("/sessions/").content.decode()
    assert "data-version" not in page  # FEED_SECONDS is 0 in tests: no script
    settings.FEED_SECONDS = 2.5
    page = viewer.get("/sessions/").content.decode()
    assert f'data-version="{said["version"]}"' in page
    assert f'data-mark="{said["top"]}"' in page


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_an_unchanged_answer_is_not_sent_again(site, viewer, encoding):
    """The entity tag also matches after compression has weakened it."""
    with time_machine.travel(timezone.now(), tick=False):
        first = viewer.get("/feed/", headers={"Accept-Encoding": encoding})
        headers = {"Accept-Encoding": encoding, "If-None-Match": first.headers["ETag"]}
        again = viewer.get("/feed/", headers=headers)
        assert (again.status_code, again.content) == (304, b"")
        assert all("no-store" in each.headers["Cache-Control"] for each in (first, again))
        site.session()
        changed = viewer.get("/feed/", headers=headers)
    assert changed.status_code == 200
    assert changed.headers["ETag"] != first.headers["ETag"]


def test_a_call_to_the_judge_that_ends_is_news_whatever_came_of_it(viewer):
    """A session that was refused before is refused again: nothing but the attempt's row says so."""
    now = timezone.now()
    attempt = quota_cast.attempt(quota_cast.job(now), now, outcome=AttemptOutcome.RUNNING)
    before = asked(viewer).json()["version"]
    JudgeAttempt.objects.filter(pk=attempt.pk).update(outcome=AttemptOutcome.DEFERRED, finished_at=now)
    assert asked(viewer).json()["version"] != before


def test_what_ends_while_a_page_is_made_is_news_to_it(site, viewer, settings):
    """The page shows what was read before, so its marks must be of before as well."""
    settings.FEED_SECONDS = 2.5
    now = timezone.now()
    attempt = quota_cast.attempt(quota_cast.job(now), now, outcome=AttemptOutcome.RUNNING)
    ended = []

    def end_after_the_list_was_read(execute, sql, *rest):
        answer = execute(sql, *rest)
        if not ended and sql.startswith('SELECT "grading_session"'):
            running = JudgeAttempt.objects.filter(pk=attempt.pk)
            ended.append(running.update(outcome=AttemptOutcome.DEFERRED, finished_at=now))
            site.session()
        return answer

    with connection.execute_wrapper(end_after_the_list_was_read):
        page = viewer.get("/sessions/").content.decode()
    assert ended == [1]
    said = asked(viewer).json()
    assert 'data-version="' in page
    assert f'data-version="{said["version"]}"' not in page
    assert f'data-live-newer="{said["newest"]}"' not in page


def test_a_reward_that_changes_while_its_page_is_made_is_news_to_it(site, viewer, settings):
    settings.FEED_SECONDS = 2.5
    session, person, settled = site.session().judged(0.5).recheck(), site.person("rita", "reviewer"), []

    def settle_after_the_reward_was_read(execute, sql, *rest):
        answer = execute(sql, *rest)
        if not settled and sql.startswith("SELECT") and 'FROM "grading_grade"' in sql:
            settled.append(site.on(session).graded(Source.HUMAN, 0.9, author=person).grade)
            rewards.settle(session)
        return answer

    with connection.execute_wrapper(settle_after_the_reward_was_read):
        page = viewer.get(f"/sessions/{session.pk}/").content.decode()
    assert settled
    assert 'data-told=".90 (human)"' not in page
    assert f'data-feed="/feed/?session={session.pk}"' in page
    assert f'data-version="{asked(viewer, session=session.pk).json()["version"]}"' not in page


def test_an_outage_and_its_end_change_the_state_and_the_top(viewer, settings):
    quota_cast.use(settings)
    quota = quota_cast.quota()
    first = asked(viewer).json()
    Quota.objects.filter(pk=quota.pk).update(state=QuotaState.EXHAUSTED, reason=Reason.BUDGET_SPENT)
    out = asked(viewer).json()
    assert (out["judge"]["mark"], out["judge"]["text"]) == ("trouble", "Budget spent")
    assert len({first["top"], out["top"]}) == len({first["version"], out["version"]}) == 2
    Quota.objects.filter(pk=quota.pk).update(state=QuotaState.OPEN, reason=quota.reason)
    over = asked(viewer).json()
    assert (over["judge"], over["top"]) == (first["judge"], first["top"])


def test_the_page_of_a_session_follows_its_reward_and_the_lines_at_the_top(site, viewer, settings):
    settings.FEED_SECONDS = 2.5
    session = site.session().judged(0.5).recheck()

    def version():
        return asked(viewer, session=session.pk).json()["version"]

    first = version()
    assert f'data-version="{first}"' in viewer.get(f"/sessions/{session.pk}/").content.decode()
    site.session().judged(0.4).settle()
    assert version() == first
    site.on(session).graded(Source.HUMAN, 0.9, author=site.person("rita", "reviewer")).settle()
    corrected = version()
    Alarm.objects.create(rule="A2", about="code", detail="Ten of ten are out.")
    assert len({first, corrected, version()}) == 3


def test_a_session_that_is_not_there_has_a_version_too(viewer):
    assert asked(viewer, session=10**30).status_code == 200


def test_a_session_that_is_no_number_is_refused(viewer):
    reply = asked(viewer, session="twelve")
    assert reply.status_code == 400
    assert "whole number" in reply.json()["error"]


def test_nobody_posts_to_it(viewer):
    assert viewer.post("/feed/").status_code == 405


def test_strangers_get_nothing(client):
    assert client.get("/feed/").status_code == 403
    client.force_login(User.objects.create_user("sam", is_staff=True))
    assert client.get("/feed/").status_code == 403


def test_who_is_signed_out_is_refused(viewer):
    assert asked(viewer).status_code == 200
    User.objects.update(is_active=False)
    assert asked(viewer).status_code == 403


def test_asking_keeps_nobody_signed_in(viewer):
    with time_machine.travel(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), tick=False):
        before = viewer.session.get("seen")
        assert asked(viewer).status_code == 200
        assert viewer.session.get("seen") == before


def test_the_top_of_the_pages_can_be_had_alone(viewer):
    Alarm.objects.create(rule="A2", about="code", detail="Ten of ten <b>are</b> out.")
    html = viewer.get("/feed/top/").content.decode()
    assert "Ten of ten &lt;b&gt;are&lt;/b&gt; out." in html
    assert "<html" not in html


def test_the_version_follows_every_settlement(site, viewer):
    session = site.session().judged(0.5).recheck()
    before, count = asked(viewer).json()["version"], Settlement.objects.count()
    site.on(session).graded(Source.HUMAN, 0.2, author=site.person("rita", "reviewer")).settle()
    assert Settlement.objects.count() == count + 1
    assert asked(viewer).json()["version"] != before
