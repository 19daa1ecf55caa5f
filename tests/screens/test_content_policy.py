"""The content policy, and the other headers that keep a browser careful, on what is no address of the site: what is not
there, files, errors, refusals. `test_roles_matrix.py` checks those of every address, with every role.
"""

import pytest
from django.test import Client
from django.urls import reverse

from grading.models import ApiToken
from tests.page_checks import header_faults

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "path", ["/no/such/page/", "/sessions/999999/", "/static/gradingsite/site.css", "/static/no.css"]
)
def test_what_is_not_there_and_what_is_a_file_carry_it_too(client, path):
    response = client.get(path)
    assert header_faults(response) == []
    response.close()


def test_the_page_of_an_error_of_ours_carries_it(client, settings):
    settings.ROOT_URLCONF = "tests.screens.broken_urls"
    client.raise_request_exception = False
    response = client.get("/broken/")
    assert response.status_code == 500
    assert header_faults(response) == []


def test_refusals_carry_it(site, client):
    session = site.session().session
    _, secret = ApiToken.objects.issue(session.agent)
    checked = Client(enforce_csrf_checks=True)
    reviewer, ron = Client(), site.person("ron", "reviewer")
    for each in (checked, reviewer):
        each.force_login(ron)
    responses = {
        "a form without its token": checked.post(reverse("admin:review_answer", args=[session.pk]), {"value": ".1"}),
        "another host": client.get("/", headers={"host": "elsewhere.test"}),
        "the API without a token": client.post("/api/v1/sessions"),
        "the API, unreadable": client.post(
            "/api/v1/selections", "{", "application/json", headers={"authorization": f"Bearer {secret}"}
        ),
        "the API, unknown": client.get("/api/v1/none"),
        "another method": reviewer.put("/sessions/"),
        "an address without its slash": client.get("/sessions"),
    }
    assert {response.status_code for response in responses.values()} == {403, 400, 401, 404, 405, 301}
    assert {name: found for name, response in responses.items() if (found := header_faults(response))} == {}
