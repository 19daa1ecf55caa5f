"""What people are told outside the site: written with its cause, sent by a clock, once, over real sockets."""

import datetime as dt
import hashlib
import hmac
import json
import threading

import pytest
import time_machine
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.utils import timezone

from grading.models import Alarm, Notice
from grading.monitoring import notices
from grading.monitoring.alarms import run_rules
from grading.monitoring.notices import deadman
from grading.monitoring.rule import RULES, Finding, Rule, Severity
from gradingsite import settings as site_settings
from tests.casts.notice import MailServer, WebServer, serving
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

SECRET = "s3cret"
NOW = timezone.now


def found(*about: str, **fields) -> Rule:
    """A rule that finds these things."""
    names = {"id": "A2", "title": "The judge is out", "means": "Always", "todo": "Add credit.", **fields}
    findings = [Finding(about=name, detail=f"{name}: quota exhausted\nX-Header: no") for name in about]
    return Rule(find=lambda _now: findings, **names)


def advised(*about: str) -> Rule:
    return found(*about, id="A27", title="Graders at unlike levels", severity=Severity.ADVISORY)


@pytest.fixture
def mail(settings):
    with serving(MailServer()) as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address
        settings.NOTIFY_EMAIL = ["ops@example.test", "rita@example.test"]
        yield server


@pytest.fixture
def web(settings):
    with serving(WebServer()) as server:
        settings.NOTIFY_WEBHOOK, settings.NOTIFY_WEBHOOK_SECRET = server.url, SECRET
        settings.NOTIFY_TIMEOUT = 2
        settings.SITE_URL = "https://grades.example.test"
        yield server


def later(**by):
    return time_machine.travel(NOW() + dt.timedelta(**by), tick=True)


# --- what is written -------------------------------------------------------------------------------------------------


def test_nobody_is_told_where_no_channel_is_configured():
    run_rules([found("m")], NOW())
    assert Alarm.objects.count() == 1
    assert not Notice.objects.exists()


def test_an_alarm_is_told_once_a_channel_however_often_it_is_found_again(mail, web):
    rule = found("m")
    for _ in range(3):
        run_rules([rule], NOW())
    assert sorted(Notice.objects.values_list("channel", "about")) == [("email", "opened"), ("webhook", "opened")]


def test_the_news_and_the_alarm_are_one_transaction(web):
    with pytest.raises(Exception, match="no-such-page"), transaction.atomic():
        run_rules([found("m", page="admin:no-such-page")], NOW())
    assert not Alarm.objects.exists()


def test_its_end_is_told_once_and_only_to_whoever_heard_of_it(web, settings):
    rule = found("one")
    run_rules([rule], NOW())
    settings.NOTIFY_EMAIL = ["late@example.test"]
    rule = found()
    for _ in range(2):
        run_rules([rule], NOW())
    assert list(Notice.objects.order_by("pk").values_list("channel", "about")) == [
        ("webhook", "opened"),
        ("webhook", "resolved"),
    ]
    said = json.loads(Notice.objects.get(about="resolved").body)
    assert said["resolved_at"] >= said["opened_at"]


def test_advisories_are_not_told_except_of_a_queue_that_waits(site, web):
    rita = site.person("rita", "reviewer")
    run_rules([advised("m")], NOW())
    assert not Notice.objects.exists()
    waiting(site, hours=49)
    run_rules([RULES["A31"]], NOW())
    said = json.loads(Notice.objects.get().body)
    assert said["rule"] == "A31"
    assert said["link"] == "https://grades.example.test/review/"
    assert "1 session has been awaiting review for more than 48 hours" in said["detail"]
    assert "Nothing has been reviewed yet." in said["detail"]
    assert rita


def test_an_operator_may_choose_the_rules(web, settings):
    settings.NOTIFY_RULES = ["A27"]
    run_rules([found("m"), advised("m")], NOW())
    assert json.loads(Notice.objects.get().body)["rule"] == "A27"
    settings.NOTIFY_RULES = ["A28", "unheard-of"]  # A28 is part of A2 now
    run_rules([found("another")], NOW())
    assert Notice.objects.filter(body__contains='"rule": "A2"').count() == 1
    (error,) = [said for said in run_checks() if said.id == "grading.E002"]
    assert error.msg == "NOTIFY_RULES names unheard-of; expected ids of rules"


def test_a_webhook_is_http_and_a_wrong_one_is_not_repeated(monkeypatch):
    for wrong in ("file:///etc/passwd", "ftp://host/t0ken", "host/t0ken", "https://"):
        monkeypatch.setenv("NOTIFY_WEBHOOK", wrong)
        with pytest.raises(ImproperlyConfigured) as error:
            site_settings.env_url("NOTIFY_WEBHOOK")
        assert "t0ken" not in str(error.value)


# --- what is sent ----------------------------------------------------------------------------------------------------


def test_an_email_says_what_was_found_what_to_do_and_where(mail, settings):
    settings.SITE_URL = "https://grades.example.test/"
    run_rules([found("m")], NOW())
    assert notices.send_due() == 1
    (text,) = mail.messages
    head, _, body = text.partition("\n\n")
    assert "Subject: [gradingsite] The judge is out" in head
    assert "X-Header" not in head
    assert "m: quota exhausted" in body
    assert "What to do: Add credit." in body
    assert "https://grades.example.test/alarms/" in body
    assert mail.recipients == ["ops@example.test", "rita@example.test"]
    assert f"Message-ID: <{Notice.objects.get().key}@localhost>" in head


def test_a_webhook_gets_signed_json(web):
    run_rules([found("m")], NOW())
    assert notices.send_due() == 1
    ((path, headers, body),) = web.posts
    assert path == "/hooks/t0ken"
    expected = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert headers["X-Gradingsite-Signature"] == f"sha256={expected}"
    said = json.loads(body)
    assert (said["rule"], said["title"], said["what_to_do"]) == ("A2", "The judge is out", "Add credit.")
    assert said["notice"] == str(Notice.objects.get().key)
    assert said["text"].startswith("[gradingsite] The judge is out\nm: quota exhausted\n")
    assert "\nWhat to do: Add credit.\nhttps://" in said["text"]
    assert notices.send_due() == 0
    assert len(web.posts) == 1


def test_a_chat_that_gets_the_text_calls_nobody_and_links_nowhere_else(web):
    run_rules([found("<!channel> @all <https://bad.example|the quota page> a&b")], NOW())
    assert notices.send_due() == 1
    text = json.loads(web.posts[0][2])["text"]
    assert "&lt;!channel&gt; @\u200ball &lt;https://bad.example|the quota page&gt; a&amp;b" in text
    assert "<" not in text


def test_what_could_not_be_taken_is_tried_again_later_and_later(web):
    web.statuses = [503, 429, 500]
    run_rules([found("m")], NOW())
    assert notices.send_due() == 0
    row = Notice.objects.get()
    assert (row.state, row.attempts) == ("queued", 1)
    assert row.last_error == "127.0.0.1 answered 503; expected 2xx"
    assert row.next_attempt_at > NOW()
    assert notices.send_due() == 0
    assert len(web.posts) == 1
    for _ in range(3):
        with later(hours=1, minutes=len(web.posts)):
            notices.send_due()
            Notice.objects.update(next_attempt_at=NOW() - dt.timedelta(hours=2))
    notices.send_due()
    row.refresh_from_db()
    assert (row.state, row.attempts, row.last_error, len(web.posts)) == ("sent", 4, "", 4)


@pytest.mark.parametrize("status", [400, 401, 404, 410])
def test_what_is_refused_is_given_up_at_once_and_says_why(web, status):
    web.statuses = [status]
    run_rules([found("m")], NOW())
    notices.send_due()
    row = Notice.objects.get()
    assert (row.state, row.last_error) == ("failed", f"127.0.0.1 answered {status}; expected 2xx")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(web, status):
    web.statuses = [status]
    with serving(WebServer()) as other:
        web.location = other.url
        run_rules([found("m")], NOW())
        notices.send_due()
        assert other.posts == []
    row = Notice.objects.get()
    assert row.state == "failed"
    assert "a redirect" in row.last_error
    assert "t0ken" not in row.last_error


def test_news_waits_for_no_clock_that_was_wrong(web):
    with time_machine.travel(NOW() + dt.timedelta(minutes=20)):
        run_rules([found("m")], NOW())
    assert notices.send_due() == 1


def test_a_server_that_is_away_is_tried_twelve_times_and_then_given_up(web, settings):
    web.shutdown()
    web.socket.close()
    run_rules([found("m")], NOW())
    for attempt in range(1, 13):
        assert Notice.objects.get().state == "queued", attempt
        notices.send_due()
        Notice.objects.update(next_attempt_at=NOW())
    row = Notice.objects.get()
    assert (row.state, row.attempts) == ("failed", 12)
    assert "could not be reached" in row.last_error
    assert "t0ken" not in row.last_error
    assert SECRET not in row.last_error


@pytest.mark.parametrize(
    ("answers", "state", "said"),
    [
        ({"DATA": "451 try later"}, "queued", "451 try later"),
        ({"DATA": "554 spam"}, "failed", "554 spam"),
        ({"RCPT": "550 no such user"}, "failed", "550 no such user"),
        ({"RCPT": "450 greylisted"}, "queued", "450 greylisted"),
        ({"MAIL": "553 not your domain"}, "failed", "553 not your domain"),
    ],
)
def test_a_mail_server_says_whether_it_is_worth_another_try(mail, answers, state, said):
    mail.answers = answers
    run_rules([found("m")], NOW())
    assert notices.send_due() == 0
    row = Notice.objects.get()
    assert (row.state, said in row.last_error) == (state, True)


def test_a_channel_that_was_taken_away_is_given_up(mail, settings):
    run_rules([found("m")], NOW())
    settings.NOTIFY_EMAIL = []
    notices.send_due()
    assert "NOTIFY_EMAIL" in Notice.objects.get(state="failed").last_error


def test_a_fault_of_ours_is_on_the_row_and_stops_no_other(mail, web, settings):
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = True
    run_rules([found("m")], NOW())
    assert notices.send_due() == 1
    assert "ValueError" in Notice.objects.get(channel="email", state="queued").last_error


@pytest.mark.django_db(transaction=True)
def test_two_senders_send_one_message_once(web):
    run_rules([found(*[f"m{number}" for number in range(10)])], NOW())
    together = threading.Barrier(3)

    def send():
        together.wait()
        notices.send_due()
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    notices.send_due()
    assert len(web.posts) == len({body for _, _, body in web.posts}) == 10


@pytest.mark.django_db(transaction=True)
def test_nothing_is_sent_inside_a_transaction(web):
    run_rules([found("m")], NOW())
    with pytest.raises(RuntimeError), transaction.atomic():
        notices.send_due()
    assert web.posts == []


def test_a_sender_that_died_is_followed_by_another(web):
    run_rules([found("m")], NOW())
    Notice.objects.update(attempts=1, next_attempt_at=NOW() + dt.timedelta(minutes=10))
    assert notices.send_due() == 0
    with later(minutes=11):
        assert notices.send_due() == 1


# --- the queue that waits, and notices that fail ---------------------------------------------------------------------


def waiting(site, hours, **fields):
    at = NOW() - dt.timedelta(hours=hours)
    return site.session().in_queue(**{"entered_as": "rule", "entered_at": at, **fields}).item


def test_review_has_waited_too_long_only_for_what_a_rule_put_up(site, settings):
    """I139, a reviewer gone dark: alarm (A31). What a rule put up for review may wait for a set number of hours."""
    rule = RULES["A31"]
    for fields in ({"hours": 47}, {"hours": 500, "entered_as": "slice"}, {"hours": 500, "entered_as": "person"}):
        waiting(site, **fields)
    waiting(site, hours=500, state="dismissed", closed_at=NOW())
    assert list(rule.find(NOW())) == []
    waiting(site, hours=49)
    (found,) = rule.find(NOW())
    assert "1 session has been awaiting review for more than 48 hours" in found.detail
    assert "4 are in the queue" in found.detail
    settings.REVIEW_WAITS_HOURS = 46
    (found,) = rule.find(NOW())
    assert "2 sessions have been awaiting review for more than 46 hours" in found.detail


def test_notices_that_fail_are_an_advisory_until_one_arrives(web):
    """I124, the data knew and nobody was told: alarm (A32). A notice that was given up is told on the pages."""
    rule = RULES["A32"]
    web.statuses = [404]
    run_rules([found("m")], NOW())
    notices.send_due()
    run_rules([rule], NOW())
    alarm = Alarm.objects.get(rule="A32")
    assert "could not be delivered by webhook" in alarm.detail
    assert Notice.objects.count() == 1
    run_rules([found("m", "n")], NOW())
    notices.send_due()
    run_rules([rule], NOW())
    alarm.refresh_from_db()
    assert alarm.resolved_at is not None


# --- the page --------------------------------------------------------------------------------------------------------


def test_an_operator_sends_a_test_and_sees_what_became_of_it(site, mail, web, client):
    web.statuses = [404]
    client.force_login(site.person("olga", "operator"))
    html = flat(client.post("/settings/notices/test/", follow=True))
    assert "The test by e-mail was sent." in html
    assert "The test by webhook was refused" in html
    assert "127.0.0.1 answered 404; expected 2xx" in html
    assert "This is a test that olga sent" in mail.messages[0]
    assert json.loads(web.posts[0][2])["about"] == "test"


def test_the_page_names_the_channels_and_gives_no_secret_away(site, mail, web, client):
    run_rules([found("m")], NOW())
    notices.send_due()
    client.force_login(site.person("olga", "operator"))
    for path in ("/settings/", "/settings/notices/"):
        html = flat(client.get(path))
        assert "127.0.0.1, signed" in html
        assert "2 addresses" in html
        assert "The judge is out" in html
        for secret in (SECRET, "t0ken", "ops@example.test"):
            assert secret not in html


def test_others_may_look_but_not_send(site, web, client):
    client.force_login(site.person("vera", "viewer"))
    assert client.get("/settings/notices/").status_code == 200
    assert "Send a test" not in flat(client.get("/settings/notices/"))
    assert client.post("/settings/notices/test/").status_code == 403
    client.force_login(site.person("olga", "operator"))
    assert client.get("/settings/notices/test/").status_code == 405


def test_a_site_without_a_channel_says_how_to_get_one(site, client):
    client.force_login(site.person("olga", "operator"))
    html = flat(client.get("/settings/notices/"))
    assert "NOTIFY_EMAIL" in html
    assert "Send a test" not in html


# --- the dead man's switch -------------------------------------------------------------------------------------------


def test_the_switch_is_called_while_all_programs_work(web, settings):
    assert not deadman.call()
    settings.DEADMAN_URL = f"{web.url}/alive"
    assert deadman.call()
    alarm = Alarm.objects.create(rule="A46", about="web", detail="The web server has not responded yet.")
    assert not deadman.call()
    Alarm.objects.filter(pk=alarm.pk).update(resolved_at=NOW())
    assert deadman.call()
    assert [path for path, _headers, _body in web.posts] == ["/hooks/t0ken/alive"] * 2


def test_a_switch_that_cannot_be_called_is_in_the_log_without_its_secret(settings, caplog):
    settings.DEADMAN_URL = "http://127.0.0.1:1/s3cret"
    assert not deadman.call()
    assert "127.0.0.1 could not be called to report that the site works" in caplog.text
    assert "s3cret" not in caplog.text
