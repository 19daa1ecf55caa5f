"""Channels for notices in the browser: added, tested, changed, removed; sealed, and sent no further than meant."""

import json
import socket

import pytest
from django.core import serializers
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from grading.models import Alarm, AuditEvent, Notice, NoticeChannel
from grading.models.notices import PURPOSE, Mail, Webhook
from grading.monitoring import notices
from grading.monitoring.alarms import run_rules
from grading.monitoring.notices import webhook
from grading.monitoring.operation import notices_fail
from grading.monitoring.rule import Finding, Rule
from gradingsite.sealing import seal, unseal
from tests.casts.notice import MailServer, WebServer, serving
from tests.casts.page import flat
from tests.databases import database

pytestmark = pytest.mark.django_db

PAGE, ADD = "/settings/notices/", "/settings/notices/add/"
SECRET, PASSWORD = "s3cret-of-the-signature", "p4ssw0rd-of-the-mailbox"
NOW = timezone.now


def judge_out(*about) -> Rule:
    findings = [Finding(about=name, detail="quota exhausted") for name in about]
    return Rule(id="A2", title="The judge is out", means="Always", todo="Add credit.", find=lambda _now: findings)


@pytest.fixture
def web(settings):
    with serving(WebServer()) as server:
        settings.NOTIFY_TIMEOUT = 2
        yield server


@pytest.fixture
def post(settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.NOTIFY_TIMEOUT = 2
    with serving(MailServer()) as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address
        yield server


@pytest.fixture
def olga(site, client):
    client.force_login(site.person("olga", "operator"))
    return client


def add_webhook(olga, url, **fields):
    return olga.post(ADD, {"kind": "webhook", "name": "on call", "url": url, **fields}, follow=True)


def add_mail(olga, **fields):
    fields = {"kind": "email", "name": "team", "addresses": "ops@example.test, rita@example.test", **fields}
    return olga.post(ADD, fields, follow=True)


def change(olga, **fields):
    row = NoticeChannel.objects.get()
    return olga.post(f"{PAGE}{row.pk}/", {"do": "save", "name": row.name, **fields}, follow=True)


def do(olga, act):
    return olga.post(f"{PAGE}{NoticeChannel.objects.get().pk}/", {"do": act}, follow=True)


def told(response) -> list[tuple[str, str]]:
    return [(message.level_tag, str(message)) for message in response.context["messages"]]


def audited() -> list[str]:
    return list(AuditEvent.objects.filter(kind="token").order_by("pk").values_list("what", flat=True))


# --- webhooks --------------------------------------------------------------------------------------------------------


def test_a_webhook_is_added_tested_and_told_of_alarms(olga, web):
    saved, tested = told(add_webhook(olga, web.url, secret=SECRET, then="test"))
    assert saved == ("success", "Saved the webhook “on call”: 127.0.0.1, signed.")
    assert tested == ("success", "The test by webhook “on call” was sent.")
    run_rules([judge_out("judge")], NOW())
    assert notices.send_due() == 1
    run_rules([judge_out()], NOW())
    assert notices.send_due() == 1
    said = [json.loads(body) for _path, _headers, body in web.posts]
    assert [each["about"] for each in said] == ["test", "opened", "resolved"]
    assert all("X-Gradingsite-Signature" in headers for _path, headers, _body in web.posts)
    assert audited() == ["added the webhook “on call”"]


def test_neither_address_nor_key_is_stored_readably_or_shown_again(olga, web):
    add_webhook(olga, web.url, secret=SECRET)
    row = NoticeChannel.objects.get()
    assert row.unseal() == Webhook(url=web.url, secret=SECRET)
    kept = serializers.serialize("json", [row, *AuditEvent.objects.all(), *Notice.objects.all()])
    pages = [flat(olga.get(path)) for path in (PAGE, f"{PAGE}{row.pk}/", "/settings/", "/history/?access=on")]
    for text in (kept, *pages):
        assert SECRET not in text
        assert "t0ken" not in text
    assert "127.0.0.1, signed" in pages[0]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///etc/passwd",
        "ftp://host/t0ken",
        "host/t0ken",
        "https://",
        "http://me:t0ken@host/",
        "http://h:99999/",
    ],
)
def test_only_http_addresses_are_taken_and_a_wrong_one_is_not_repeated(olga, url):
    response = add_webhook(olga, url)
    assert not NoticeChannel.objects.exists()
    assert 'role="alert"' in (html := flat(response))
    assert "t0ken" not in html


def test_another_address_clears_the_key_and_the_same_one_keeps_it(olga, web):
    add_webhook(olga, web.url, secret=SECRET)
    assert told(change(olga, name="night", url="")) == [("success", "Saved the webhook “night”: 127.0.0.1, signed.")]
    assert NoticeChannel.objects.get().unseal() == Webhook(url=web.url, secret=SECRET)
    ((_level, words),) = told(change(olga, url="https://elsewhere.example/x"))
    assert words == (
        "Saved the webhook “night”: elsewhere.example, not signed. "
        "The stored key was removed, because it was entered for another address."
    )
    assert NoticeChannel.objects.get().unseal() == Webhook(url="https://elsewhere.example/x")
    change(olga, secret="another")
    assert NoticeChannel.objects.get().unseal() == Webhook(url="https://elsewhere.example/x", secret="another")
    assert audited() == ["added the webhook “on call”", *["changed the webhook “night”"] * 3]


def test_a_test_says_whether_it_was_refused_or_found_nobody(olga, web):
    add_webhook(olga, web.url)
    web.statuses = [404, 503]
    assert told(do(olga, "test")) == [
        ("error", "The test by webhook “on call” was refused: 127.0.0.1 answered 404; expected 2xx.")
    ]
    assert "given up" in flat(olga.get(PAGE))
    ((_level, words),) = told(do(olga, "test"))
    assert words == (
        "The test by webhook “on call” could not be delivered and will be retried: "
        "127.0.0.1 answered 503; expected 2xx."
    )
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        change(olga, url=f"http://127.0.0.1:{unused.getsockname()[1]}/")
        ((_level, words),) = told(do(olga, "test"))
    assert "127.0.0.1 could not be reached" in words
    assert "Connection refused" in words


def test_a_paused_channel_is_sent_nothing_and_goes_on_when_resumed(olga, web):
    add_webhook(olga, web.url)
    run_rules([judge_out("before")], NOW())
    do(olga, "pause")
    assert "This channel is paused." in flat(olga.get(PAGE))
    run_rules([judge_out("before", "meanwhile")], NOW())
    notices.send_due()
    assert (web.posts, Notice.objects.get().last_error) == ([], "the channel was paused")
    do(olga, "resume")
    run_rules([judge_out("before", "meanwhile", "after")], NOW())
    assert notices.send_due() == 1
    assert audited()[1:] == ["paused the webhook “on call”", "resumed the webhook “on call”"]


def test_a_removed_channel_forgets_its_address_and_keeps_what_it_sent(olga, web):
    add_webhook(olga, web.url, secret=SECRET, then="test")
    ((_level, words),) = told(do(olga, "remove"))
    assert "its settings are deleted" in words
    row = NoticeChannel.objects.get()
    assert (row.sealed, row.state) == ("", "removed")
    html = flat(olga.get(PAGE))
    assert "There is no channel yet" in html
    assert "[gradingsite] A test" in html
    assert olga.get(f"{PAGE}{row.pk}/").status_code == 404
    run_rules([judge_out("judge")], NOW())
    assert Notice.objects.filter(about="opened").count() == 0


def test_several_channels_are_each_told_once_and_each_of_the_end(olga, web):
    for name in ("first", "second"):
        add_webhook(olga, f"{web.url}/{name}", name=name)
    for about in (("judge",), ("judge",), ()):
        run_rules([judge_out(*about)], NOW())
    assert notices.send_due() == 4
    assert sorted(path.rpartition("/")[2] for path, _headers, _body in web.posts) == ["first"] * 2 + ["second"] * 2


def test_a_channel_that_gave_up_is_an_advisory_until_it_is_removed(olga, web):
    web.statuses = [404]
    add_webhook(olga, web.url, then="test")
    run_rules([notices_fail], NOW())
    assert "could not be delivered by webhook “on call”" in Alarm.objects.get(rule="A32").detail
    do(olga, "remove")
    run_rules([notices_fail], NOW())
    assert Alarm.objects.get(rule="A32").resolved_at is not None


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "fd00:ec2::254", "100.100.100.200", "224.0.0.1"],
)
def test_addresses_that_no_webhook_has_are_never_called(address):
    with pytest.raises(webhook.ForbiddenAddress):
        webhook.check_address(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "192.168.0.9", "::1", "93.184.216.34", "2001:db8::1"])
def test_a_network_of_one_s_own_may_be_called(address):
    webhook.check_address(address)


def test_the_address_is_looked_at_after_connecting_whatever_its_name_led_to_before(olga, web, monkeypatch):
    add_webhook(olga, web.url.replace("127.0.0.1", "localhost"))
    monkeypatch.setattr(webhook, "METADATA", frozenset({webhook.ip_address("127.0.0.1")}))
    ((_level, words),) = told(do(olga, "test"))
    assert "localhost was not called: notices are never sent to 127.0.0.1" in words
    assert web.posts == []


def test_no_redirect_of_a_typed_webhook_is_followed(olga, web):
    web.statuses = [302]
    with serving(WebServer()) as other:
        web.location = other.url
        ((_, _), (_level, words)) = told(add_webhook(olga, web.url, then="test"))
        assert "a redirect" in words
        assert other.posts == []


# --- e-mail ----------------------------------------------------------------------------------------------------------


def test_people_are_mailed_by_the_sites_server(olga, post):
    saved, tested = told(add_mail(olga, sender="grades@example.test", then="test"))
    assert saved == ("success", "Saved the e-mail “team”: 2 addresses, by 127.0.0.1.")
    assert tested == ("success", "The test by e-mail “team” was sent.")
    assert post.recipients == ["ops@example.test", "rita@example.test"]
    assert "From: grades@example.test" in post.messages[0]


def test_what_a_mail_server_refuses_is_said_in_its_words(olga, post):
    post.answers = {"RCPT": "550 no such user"}
    (_saved, (_level, words)) = told(add_mail(olga, then="test"))
    assert "was refused" in words
    assert "550 no such user" in words


def test_form_says_that_no_mail_server_is_configured(olga, post, settings):
    add_mail(olga)
    for path in (f"{PAGE}{NoticeChannel.objects.get().pk}/", f"{ADD}?kind=email"):
        settings.MAIL_WORKS = True
        assert "Sent by 127.0.0.1, the mail server in" in flat(olga.get(path))
        assert "No mail server is configured" not in flat(olga.get(PAGE))
        settings.MAIL_WORKS = False
        assert 'No mail server is configured. Set <code class="mono">EMAIL_HOST</code>' in flat(olga.get(path))
        assert "No mail server is configured. Set EMAIL_HOST." in flat(olga.get(PAGE))


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_upgrade_removes_mail_servers_of_channels_and_says_so_in_history(tmp_path):
    """Addresses stay. A channel that was encrypted with another secret stays as it is."""
    server = {"host": "smtp.example.test", "port": 587, "user": "ops", "password": PASSWORD, "encryption": "starttls"}
    mail = {"kind": "email", "addresses": ["ops@example.test"], "sender": ""}
    with database("channels", tmp_path):
        executor = MigrationExecutor(connection)
        others = [node for node in executor.loader.graph.leaf_nodes() if node[0] != "grading"]
        old = executor.migrate([("grading", "0073_delete_person_zones"), *others]).apps
        rows = old.get_model("grading", "NoticeChannel").objects
        for name, target in (("own server", {**mail, "server": server}), ("site's server", {**mail, "server": None})):
            rows.create(kind="email", name=name, sealed=seal(json.dumps(target), purpose=PURPOSE))
        webhook = {"kind": "webhook", "url": "https://hooks.example/x", "secret": SECRET}
        rows.create(kind="webhook", name="on call", sealed=seal(json.dumps(webhook), purpose=PURPOSE))
        rows.create(kind="email", name="unreadable", sealed="gAAAA")
        rows.create(kind="email", name="removed", state="removed")
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
        channels = {row.name: row for row in NoticeChannel.objects.all()}
        events = list(AuditEvent.objects.values_list("kind", "what", "detail"))
    for name in ("own server", "site's server"):
        assert channels[name].unseal() == Mail(addresses=("ops@example.test",))
        assert "server" not in json.loads(unseal(channels[name].sealed, purpose=PURPOSE))
    assert channels["on call"].unseal() == Webhook(url="https://hooks.example/x", secret=SECRET)
    assert channels["unreadable"].sealed == "gAAAA"
    assert events == [
        (
            "token",
            "removed the mail server of the e-mail “own server”",
            "It was smtp.example.test. Since this upgrade EMAIL_HOST sets the mail server for all channels.",
        )
    ]


def test_wrong_addresses_are_named_and_not_kept(olga):
    page = flat(add_mail(olga, addresses="ops@example.test not-an-address"))
    assert "“not-an-address” is not an e-mail address" in page
    assert "Enter at least one e-mail address." in flat(add_mail(olga, addresses=" "))
    assert not NoticeChannel.objects.exists()


# --- beside the environment ------------------------------------------------------------------------------------------


def test_what_the_environment_names_too_is_told_once_and_by_it(olga, web, post, settings):
    add_webhook(olga, web.url, secret=SECRET)
    add_mail(olga, addresses="Ops@example.test")
    settings.NOTIFY_WEBHOOK, settings.NOTIFY_EMAIL = web.url, ["ops@example.test"]
    html = flat(olga.get(PAGE))
    assert 'from the environment: <code class="mono">NOTIFY_WEBHOOK</code>' in html
    assert "NOTIFY_WEBHOOK has the same target and takes precedence" in html
    assert "NOTIFY_EMAIL has the same target and takes precedence" in html
    run_rules([judge_out("judge")], NOW())
    assert notices.send_due() == 2
    assert (len(web.posts), len(post.messages)) == (1, 1)
    assert "X-Gradingsite-Signature" not in web.posts[0][1]


def test_a_channel_sealed_with_another_secret_says_so_and_can_be_typed_again(site, olga, web, settings):
    add_webhook(olga, web.url, secret=SECRET)
    settings.SECRET_KEY = "another-secret-of-the-site-that-is-long-enough-for-it"
    olga.force_login(site.person("olaf", "operator"))
    assert "can’t be read any more" in flat(olga.get(PAGE))
    ((_level, words),) = told(do(olga, "test"))
    assert "was refused: The stored settings can’t be read any more" in words
    change(olga, url=web.url)
    assert NoticeChannel.objects.get().unseal() == Webhook(url=web.url)


def test_viewers_see_channels_and_change_none(site, client, olga, web):
    add_webhook(olga, web.url)
    client.force_login(site.person("vera", "viewer"))
    html = flat(client.get(PAGE))
    assert "127.0.0.1, not signed" in html
    assert "Add a channel" not in html
    assert "Send a test" not in html
    for path in (ADD, f"{PAGE}{NoticeChannel.objects.get().pk}/"):
        assert client.get(path).status_code == client.post(path).status_code == 403


def test_a_site_without_a_channel_says_what_happens_then(olga):
    html = flat(olga.get(PAGE))
    assert "There is no channel yet, so alarms appear only on this site’s pages." in html
    assert f'href="{ADD}"' in html
