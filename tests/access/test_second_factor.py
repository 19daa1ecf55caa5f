"""The second factor: set up with an app's code, asked for at every sign-in, and gone only by who may."""

import re
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.management import CommandError, call_command
from django.test import Client

from grading.models import AuditEvent

pytestmark = pytest.mark.django_db

RIGHT = "correct horse battery"


def code(secret: str, periods: int = 0) -> str:
    """What the app shows now."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + periods))


@pytest.fixture
def enrolled(client, olga, clock) -> tuple[str, list[str]]:
    """The secret and the recovery codes of olga, who set it up in the browser and signed out."""
    client.force_login(olga)
    assert client.get("/second-factor/app/")["Location"].startswith("/second-factor/password/")
    response = client.post("/second-factor/password/", {"password": RIGHT, "next": "/second-factor/app/"})
    assert response["Location"] == "/second-factor/app/"
    html = client.get("/second-factor/app/").content.decode()
    secret = re.search(r'<p class="code">([A-Z2-7]{32})</p>', html)[1]
    assert client.post("/second-factor/app/", {"code": code(secret)})["Location"] == "/second-factor/recovery/"
    codes = re.findall(r"^(?:.*>)?(\d{8})$", client.get("/second-factor/recovery/").content.decode(), re.MULTILINE)
    assert len(codes) == 10
    client.post("/logout/")
    clock.shift(60)
    return secret, codes


def sign_in(client, **said):
    return client.post("/login/", {"username": "olga", "password": RIGHT, **said})


def is_in(client) -> bool:
    return client.get("/history/").status_code == 200


def test_it_is_asked_for_after_the_password_and_leads_on(client, enrolled, clock):
    assert sign_in(client, next="/quota/")["Location"] == "/login/code/"
    assert not is_in(client)
    assert client.post("/login/code/", {"code": "000000"}).status_code == 200
    assert not is_in(client)
    assert client.post("/login/code/", {"code": code(enrolled[0])})["Location"] == "/quota/"
    assert is_in(client)
    said = list(AuditEvent.objects.values_list("who", "what"))
    assert ("", "gave the right password of olga and a wrong code") in said
    assert said[0] == ("olga", "signed in")


def test_a_code_opens_once(client, enrolled, clock):
    for client_of, opened in ((client, True), (Client(), False)):
        sign_in(client_of)
        client_of.post("/login/code/", {"code": code(enrolled[0])})
        assert is_in(client_of) == opened


def test_a_recovery_code_opens_once_and_is_shown_once(client, enrolled, clock):
    _, codes = enrolled
    for client_of, opened in ((client, True), (Client(), False)):
        sign_in(client_of)
        client_of.post("/login/code/", {"code": codes[3]})
        assert is_in(client_of) == opened
    assert codes[0] not in client.get("/second-factor/recovery/").content.decode()


def test_codes_are_not_guessed(client, enrolled, clock):
    sign_in(client)
    for number in range(6):
        response = client.post("/login/code/", {"code": f"{number:06}"})
    assert "Too many failed login attempts" in response.content.decode()
    client.post("/login/code/", {"code": code(enrolled[0])})
    assert not is_in(client)
    clock.shift(301)
    sign_in(client)
    client.post("/login/code/", {"code": code(enrolled[0])})
    assert is_in(client)


def test_the_code_alone_opens_nothing(client, enrolled, clock):
    assert client.post("/login/code/", {"code": code(enrolled[0])})["Location"] == "/login/"
    assert not is_in(client)


def test_a_password_given_long_ago_is_asked_for_again(client, enrolled, clock):
    sign_in(client)
    clock.shift(3600)
    assert client.post("/login/code/", {"code": code(enrolled[0])})["Location"] == "/login/"
    assert not is_in(client)


def test_the_database_holds_no_secret_in_plain(enrolled):
    secret, codes = enrolled
    stored = str(list(Authenticator.objects.values("data")))
    assert secret not in stored
    assert not [each for each in codes if each in stored]


def test_with_another_secret_key_no_code_is_right_and_nothing_fails(client, enrolled, clock, settings):
    settings.SECRET_KEY = "another"
    sign_in(client)
    assert client.post("/login/code/", {"code": code(enrolled[0])}).status_code == 200
    assert not is_in(client)


def test_removing_it_takes_the_password_or_a_code_first(client, enrolled, clock):
    sign_in(client)
    client.post("/login/code/", {"code": code(enrolled[0])})
    assert "/second-factor/password/" in client.post("/second-factor/app/remove/")["Location"]
    assert Authenticator.objects.count() == 2
    client.post("/second-factor/password/", {"password": RIGHT, "next": "/second-factor/app/remove/"})
    client.post("/second-factor/app/remove/")
    assert Authenticator.objects.count() == 0
    assert AuditEvent.objects.filter(what__startswith="removed a second factor").exists()


def test_whoever_has_the_server_removes_it(client, enrolled):
    call_command("remove_second_factor", "olga")
    assert sign_in(client)["Location"] == "/"
    with pytest.raises(CommandError, match="has no second factor"):
        call_command("remove_second_factor", "olga")
    with pytest.raises(CommandError, match="no user"):
        call_command("remove_second_factor", "nobody")
