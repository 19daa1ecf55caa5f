"""What History keeps of sign-ins, people, roles and downloads."""

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.test import RequestFactory

from grading.access import watching
from grading.access.recording import CONSOLE, record
from grading.models import ApiToken, AuditEvent
from grading.models.audit import AuditKind
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

RIGHT = "correct horse"


def told(**chosen) -> list[tuple[str, str, str]]:
    """Who did what, and its detail, the latest first."""
    return list(AuditEvent.objects.filter(**chosen).values_list("who", "what", "detail"))


@pytest.fixture
def olga(site):
    olga = site.person("olga", "operator")
    olga.set_password(RIGHT)
    olga.save()
    return olga


def sign_in(client, name="olga", password=RIGHT, **extra):
    return client.post("/login/", {"username": name, "password": password}, **extra)


def test_signing_in_and_out_are_kept_with_the_address(client, olga):
    sign_in(client, REMOTE_ADDR="192.0.2.7")
    client.post("/logout/", REMOTE_ADDR="192.0.2.7")
    assert told(kind=AuditKind.SIGN_IN, address="192.0.2.7") == [("olga", "signed out", ""), ("olga", "signed in", "")]


def test_a_failed_sign_in_names_nobody_and_what_was_tried(client, olga):
    sign_in(client, password="wrong")
    assert told(kind=AuditKind.SIGN_IN) == [("", "failed to sign in as “olga”", "")]


def test_a_hostile_name_is_made_visible_and_cut(client):
    watching.failed({"username": "\x1b[31m\u202eadmin\n" + "x" * 5000}, RequestFactory().post("/login/"))
    ((_, what, _),) = told()
    assert what.startswith("failed to sign in as “⟨U+001B⟩[31m⟨U+202E⟩admin⟨U+000A⟩xxx")
    assert len(what) <= 300


def test_guessing_fills_no_table(client):
    for number in range(60):
        watching.failed({"username": f"name-{number}"}, RequestFactory().post("/login/", REMOTE_ADDR="192.0.2.7"))
    assert len(told()) == watching.MAX_FAILED_OF_ADDRESS + 1
    for number in range(300):
        watching.failed(
            {"username": "admin"}, RequestFactory().post("/login/", REMOTE_ADDR=f"198.51.100.{number % 250}")
        )
    assert len(told()) == watching.MAX_FAILED + 1
    assert told()[0][1] == watching.UNLISTED


def test_people_and_their_roles_are_kept(client, olga):
    client.force_login(User.objects.create_superuser("root", password="x"))
    rita = User.objects.create_user("rita", password="x")
    data = {"username": "rita", "is_active": "on", "is_staff": "on", "groups": [Group.objects.get(name="operator").pk]}
    response = client.post(
        f"/auth/user/{rita.pk}/change/", {**data, "date_joined_0": "2026-01-01", "date_joined_1": "1:00"}
    )
    assert response.status_code == 302
    made = [(who, what, detail) for who, what, detail in told(kind=AuditKind.PERSON) if who == "root"]
    assert made == [
        ("root", "gave the role operator to rita", ""),
        ("root", "changed the user rita", "staff: no → yes"),
    ]
    client.post(f"/auth/user/{rita.pk}/delete/", {"post": "yes"})
    assert told(kind=AuditKind.PERSON)[0] == ("root", "deleted the user rita", "")


def test_what_is_done_on_the_server_is_kept_as_that(olga):
    assert (CONSOLE, "made the user olga", "") in told()
    assert (CONSOLE, "set the password of olga", "") in told()


def test_a_password_that_is_only_hashed_anew_is_not_set(client, olga, settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]
    sign_in(client)
    assert User.objects.get(username="olga").password.startswith("pbkdf2")
    assert told()[:2] == [("olga", "signed in", ""), (CONSOLE, "set the password of olga", "")]


def test_a_download_is_kept(client, olga):
    client.force_login(olga)
    client.get("/history.csv").getvalue()
    who, what, _ = told(kind=AuditKind.DOWNLOAD)[0]
    assert (who, what[:19]) == ("olga", "downloaded history-")


def test_a_token_is_named_by_its_agent_and_end(site):
    request = RequestFactory().post("/api/v1/sessions", REMOTE_ADDR="192.0.2.7")
    request.auth, _ = ApiToken.objects.issue(site.agent())
    assert record(AuditKind.TOKEN, "asked", request=request).who == f"token bob …{request.auth.hint}"


def test_the_record_is_never_changed():
    event = record(AuditKind.SIGN_IN, "signed in", who="olga")
    event.what = "nothing"
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        event.save()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        event.delete()


def test_operators_see_it_in_history_and_viewers_do_not(site, client, olga):
    watching.failed({"username": "<b>hunter2</b>"}, RequestFactory().post("/login/", REMOTE_ADDR="192.0.2.7"))
    client.force_login(olga)
    html = flat(client.get("/history/"))
    assert "Failed to sign in as “&lt;b&gt;hunter2&lt;/b&gt;”" in html
    assert "from 192.0.2.7" in html
    client.force_login(site.person("vera", "viewer"))
    for address in ("/history/", "/history/?kind=sign-in", "/history.csv", "/history.jsonl?kind=sign-in"):
        assert "hunter2" not in client.get(address).getvalue().decode()
