"""Invitations: a link by mail, once, for three days, in place of a password that somebody else knows."""

import datetime as dt
import re
import socket

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

from grading.models import AuditEvent

pytestmark = pytest.mark.django_db

PASSWORD = "seven green lamps"


@pytest.fixture
def olga(site, client, settings):
    settings.MAIL_WORKS = True
    olga = site.person("olga", "operator")
    client.force_login(olga)
    return olga


def invite(client, address="Nina@example.test", role="reviewer"):
    return client.post("/settings/invite/", {"address": address, "role": role}, follow=True)


def link() -> str:
    return re.search(r"http://testserver(/invitation/\S+)", mail.outbox[-1].body)[1]


def accept(path, password=PASSWORD):
    """Opens the link in a browser of its own and sets a password, where it opens."""
    guest = Client()
    page = guest.get(path, follow=True)
    if page.redirect_chain:
        page = guest.post(
            page.redirect_chain[-1][0], {"new_password1": password, "new_password2": password}, follow=True
        )
    return page.content.decode()


def test_whoever_is_invited_sets_a_password_and_has_the_role(client, olga):
    assert "Invited nina@example.test" in invite(client).content.decode()
    assert mail.outbox[0].to == ["nina@example.test"]
    assert "Your password is set" in accept(link())
    nina = User.objects.get(username="nina@example.test")
    assert (nina.check_password(PASSWORD), nina.is_superuser) == (True, False)
    assert [group.name for group in nina.groups.all()] == ["reviewer"]
    assert AuditEvent.objects.filter(who="olga", what="invited nina@example.test as reviewer").exists()


def test_a_link_opens_once(client, olga):
    invite(client)
    accept(link())
    assert "doesn’t work" in accept(link(), "another password")
    assert User.objects.get(username="nina@example.test").check_password(PASSWORD)


def test_a_link_opens_for_three_days(client, olga):
    invite(client)
    with time_machine.travel(dt.datetime.now(dt.UTC) + dt.timedelta(days=3, minutes=1)):
        assert "doesn’t work" in accept(link())


@pytest.mark.parametrize("path", ["/invitation/x/y/", "/invitation/MQ/set-password/", "/invitation/MQ/abc-def/"])
def test_a_made_up_link_opens_nothing(client, olga, path):
    assert "doesn’t work" in accept(path)


def test_somebody_who_is_here_is_not_invited_over_their_password(client, olga):
    User.objects.create_user("nina", email="nina@example.test", password="x")
    assert "already has this address" in invite(client).content.decode()
    assert mail.outbox == []


def test_somebody_who_has_not_come_is_invited_again(client, olga):
    invite(client)
    invite(client, role="viewer")
    assert len(mail.outbox) == 2
    accept(link())
    assert [group.name for group in User.objects.get(username="nina@example.test").groups.all()] == ["viewer"]


def test_without_mail_nobody_is_made(client, olga, settings):
    settings.MAIL_WORKS = False
    assert "Invitations need mail, and the site can’t send any yet." in invite(client).content.decode()
    assert not User.objects.filter(username="nina@example.test").exists()


def test_a_mail_server_that_is_away_leaves_no_user_behind(client, olga, settings):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", unused.getsockname()[1]
        assert "No invitation was sent" in invite(client).content.decode()
    assert not User.objects.filter(username="nina@example.test").exists()


def test_a_role_that_is_none_is_refused(client, olga):
    invite(client, role="superuser")
    assert mail.outbox == []


def test_reviewers_invite_nobody(site, client, olga):
    client.force_login(site.person("rita", "reviewer"))
    assert invite(client).status_code == 403
