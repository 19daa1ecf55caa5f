"""One strict content policy, and the other headers that keep a browser careful, on every response of every kind."""

import pytest
from django.test import Client

from tests import addresses, world
from tests.addresses import ADDRESSES
from tests.casts import quota as quota_cast

pytestmark = pytest.mark.django_db

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@pytest.fixture
def rows(settings):
    quota_cast.use(settings)
    return world.make()


def faults(response) -> list[str]:
    """What a response's headers lack, in words."""
    said = [part.strip().partition(" ") for part in response.headers.get("Content-Security-Policy", "").split(";")]
    found = [] if {name: value for name, _, value in said} == POLICY else [f"policy {said}"]
    found += [
        f"{name}: {response.headers.get(name)}"
        for name, value in HEADERS.items()
        if response.headers.get(name) != value
    ]
    if "Content-Security-Policy-Report-Only" in response.headers:
        found.append("a policy that only reports")
    response.close()
    return found


@pytest.mark.parametrize("who", ["a stranger", "a viewer", "an owner"])
def test_every_answer_carries_the_policy(site, rows, django_user_model, who):
    client = Client(raise_request_exception=False)
    if who == "a viewer":
        client.force_login(site.person("vera", "viewer"))
    if who == "an owner":
        client.force_login(django_user_model.objects.create_superuser("root"))
    wrong = {}
    for name in ADDRESSES:
        for url in addresses.urls(name, rows):
            wrong[url] = faults(client.get(url))
        wrong[f"POST {name}"] = faults(client.post(addresses.url(name, rows), {}))
    assert not {url: found for url, found in wrong.items() if found}


@pytest.mark.parametrize(
    "path", ["/no/such/page/", "/sessions/999999/", "/static/gradingsite/site.css", "/static/no.css"]
)
def test_what_is_not_there_and_what_is_a_file_carry_it_too(client, path):
    assert faults(client.get(path)) == []


def test_the_page_of_an_error_of_ours_carries_it(client, settings):
    settings.ROOT_URLCONF = "tests.screens.broken_urls"
    client.raise_request_exception = False
    response = client.get("/broken/")
    assert response.status_code == 500
    assert faults(response) == []


def test_refusals_carry_it(site, client, rows):
    checked = Client(enforce_csrf_checks=True)
    reviewer, ron = Client(), site.person("ron", "reviewer")
    for each in (checked, reviewer):
        each.force_login(ron)
    responses = {
        "a form without its token": checked.post(addresses.url("admin:review_answer", rows), {"value": ".1"}),
        "another host": client.get("/", headers={"host": "elsewhere.test"}),
        "the API without a token": client.post("/api/v1/sessions"),
        "the API, unreadable": client.post(
            "/api/v1/selections", "{", "application/json", headers={"authorization": f"Bearer {rows['secret']}"}
        ),
        "the API, unknown": client.get("/api/v1/none"),
        "another method": reviewer.put("/sessions/"),
        "an address without its slash": client.get("/sessions"),
    }
    assert {response.status_code for response in responses.values()} == {403, 400, 401, 404, 405, 301}
    assert {name: faults(response) for name, response in responses.items() if faults(response)} == {}


def test_nothing_is_cached_that_only_some_may_see(site, client, rows):
    client.force_login(site.person("vera", "viewer"))
    responses = {name: client.get(addresses.urls(name, rows)[0]) for name in addresses.SCREENS}
    seen = {name: response for name, response in responses.items() if response.status_code == 200}
    assert len(seen) > 10
    assert all("no-store" in response.headers["Cache-Control"] for response in seen.values())
