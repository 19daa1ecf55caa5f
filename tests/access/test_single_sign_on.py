"""Sign-in by an OpenID Connect provider: who is let in as whom, and who is told whom to ask."""

from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib.auth.models import User
from django.test import Client

from grading.models import AuditEvent
from grading.roles import REVIEWER
from tests.access.provider import CLIENT, SECRET, provider

pytestmark = pytest.mark.django_db


@pytest.fixture
def sso(settings):
    with provider() as running:
        app = {"provider_id": "sso", "name": "Example", "client_id": CLIENT, "secret": SECRET}
        app["settings"] = {"server_url": running.url}
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
        settings.OIDC_CLIENT_ID, settings.OIDC_NAME = CLIENT, "Example"
        yield running


@pytest.fixture
def olga(site):
    olga = site.person("olga", "operator")
    User.objects.filter(pk=olga.pk).update(email="Olga@example.test")
    return olga


def come_back(client, **said):
    """Goes to the provider and comes back with a code, or with what is said."""
    away = client.get("/login/sso/", {"next": "/history/"})
    asked = {name: values[0] for name, values in parse_qs(urlsplit(away["Location"]).query).items()}
    return client.get("/login/sso/callback/", {"code": "c", "state": asked["state"], **said})


def who(client) -> str | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None


def told(client) -> str:
    return client.get("/login/").content.decode()


def test_the_button_is_there_only_where_a_provider_is_named(client, sso, settings):
    assert "Log in with Example" in told(client)
    settings.OIDC_CLIENT_ID = ""
    assert "/login/sso/" not in told(client)


def test_without_a_provider_its_addresses_are_not_there(client):
    assert client.get("/login/sso/").status_code == 404
    assert client.get("/login/sso/callback/").status_code == 404


def test_a_user_with_a_verified_address_is_let_in_and_led_on(client, sso, olga):
    response = come_back(client)
    assert (response.status_code, response["Location"], who(client)) == (302, "/history/", "olga")
    assert AuditEvent.objects.filter(who="olga", what="signed in").exists()
    (asked,) = sso.asked
    assert asked["client_secret"] == SECRET
    assert asked["code_verifier"]


def test_somebody_known_by_the_provider_stays_who_they_are_when_their_address_changes(client, sso, olga):
    come_back(client)
    sso.claims["email"] = "new@example.test"
    client = Client()
    come_back(client)
    assert who(client) == "olga"


@pytest.mark.parametrize("verified", [False, "true", None])
def test_an_address_that_is_not_verified_is_nobodys(client, sso, olga, verified):
    sso.claims["email_verified"] = verified
    assert come_back(client)["Location"] == "/login/"
    assert who(client) is None
    assert "has not verified" in told(client)


@pytest.mark.postgresql
@pytest.mark.parametrize("address", ["mıke@example.test", "ſam@example.test"])
def test_an_address_that_is_equal_only_in_capitals_is_somebody_elses(client, sso, site, address):
    """PostgreSQL compares capitals: with the locale of UTF-8, those of ı and ſ are I and S."""
    for name in ("mike", "sam"):
        User.objects.filter(pk=site.person(name, REVIEWER).pk).update(email=f"{name}@example.test")
    sso.claims["email"] = address
    come_back(client)
    assert who(client) is None


def test_a_stranger_is_told_whom_to_ask(client, sso, olga):
    sso.claims["email"] = "eve@example.test"
    come_back(client)
    assert who(client) is None
    assert "No user here has the address eve@example.test. Ask an operator" in told(client)
    assert User.objects.count() == 1


def test_a_stranger_gets_the_role_for_new_users_where_there_is_one(client, sso, settings):
    settings.OIDC_NEW_USERS = REVIEWER
    come_back(client)
    user = User.objects.get()
    assert (user.username, user.is_staff, user.is_superuser) == ("olga@example.test", True, False)
    assert [group.name for group in user.groups.all()] == [REVIEWER]
    assert not user.has_usable_password()
    assert who(client) == user.username


def test_an_address_of_two_users_is_nobodys(client, sso, olga):
    User.objects.create_user("olga-2", email="olga@example.test")
    come_back(client)
    assert who(client) is None
    assert "Several users" in told(client)


def test_a_user_who_was_switched_off_is_not_let_in(client, sso, olga):
    User.objects.filter(pk=olga.pk).update(is_active=False)
    assert come_back(client)["Location"] == "/login/"
    assert who(client) is None


def test_the_second_factor_is_asked_for_here_too(client, sso, olga):
    client.get("/login/")
    TOTP.activate(olga, "JBSWY3DPEHPK3PXP")
    assert come_back(client)["Location"] == "/login/code/"
    assert who(client) is None


def test_a_state_that_was_not_given_out_is_refused(client, sso, olga):
    assert come_back(client, state="made-up")["Location"] == "/login/"
    assert who(client) is None
    assert sso.asked == []


def test_a_provider_that_fails_or_declines_is_said_in_words(client, sso, olga):
    come_back(client, error="access_denied", code="")
    sso.token_status = 500
    come_back(client)
    assert "Example did not sign you in" in told(client)
    assert who(client) is None


def test_a_provider_that_is_away_is_said_in_words(client, sso, olga, settings):
    sso.url = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["server_url"] = (
        "http://127.0.0.1:9"
    )
    assert client.get("/login/sso/")["Location"] == "/login/"
    assert "Example does not answer" in told(client)


def test_it_leads_nowhere_but_back_to_this_site(client, sso, olga):
    away = client.get("/login/sso/", {"next": "https://evil.test/"})
    state = parse_qs(urlsplit(away["Location"]).query)["state"][0]
    assert client.get("/login/sso/callback/", {"code": "c", "state": state})["Location"] == "/"
