"""Events that GitHub sends of a followed repository."""

import hashlib
import hmac
import json
import uuid

import pytest

from grading.models import Artifact, OutcomeRecord, Repository, SessionLanding
from grading.models.evidence import ArtifactKind, Origin
from grading.outcomes.github import SECRET_PURPOSE
from grading.signals.links import pull_request
from gradingsite.sealing import seal
from tests.site import NOON

pytestmark = pytest.mark.django_db
SECRET = "s3cret"
PULL = "https://github.com/ada/engine/pull/142"
SHA = "a1b2c3d4" * 5


@pytest.fixture
def repository():
    sealed = seal(SECRET, purpose=SECRET_PURPOSE)
    url = "https://github.com/ada/engine"
    return Repository.objects.create(name="engine", url=url, sealed_webhook_secret=sealed)


@pytest.fixture
def session(site):
    session = site.session().with_pull_request(PULL).settle()
    fields = {"lookup": SHA[:7], "origin": Origin.FACTS}
    Artifact.objects.create(session=session, kind=ArtifactKind.COMMIT, key=SHA[:9], **fields)
    return session


@pytest.fixture
def deliver(client, repository):
    def send(event, payload, *, secret=SECRET, delivery=None, body=None, pk=None):
        body = json.dumps(payload).encode() if body is None else body
        headers = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": delivery or str(uuid.uuid4()),
            "X-Hub-Signature-256": f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}",
        }
        path = f"/hooks/github/{pk or repository.pk}/"
        reply = client.post(path, body, content_type="application/json", headers=headers)
        return reply.status_code, reply.json()

    return send


def pull(**fields):
    values = {"html_url": PULL, "merged": True, "merged_at": "2026-04-01T09:00:00Z", "closed_at": None, **fields}
    return {"action": "closed", "pull_request": values}


def suite(conclusion, sha=SHA):
    fields = {"conclusion": conclusion, "head_sha": sha, "updated_at": "2026-04-01T08:00:00Z"}
    return {"action": "completed", "check_suite": {**fields, "app": {"name": "GitHub Actions"}}}


def test_a_merged_pull_request(deliver, session):
    assert deliver("pull_request", pull()) == (200, {"outcomes": 1})
    record = session.outcomes.get()
    assert (record.kind, record.result, record.url, record.witness) == ("merged", "pass", PULL, "observed")


def test_capitals_in_the_name_of_a_repository(deliver, site, repository):
    """Claims of pull requests are stored in lower case; GitHub writes names as their owners do."""
    Repository.objects.filter(pk=repository.pk).update(url="https://github.com/Ada/Engine")
    address = "https://github.com/Ada/Engine/pull/142"
    session = site.session().with_pull_request(pull_request(address)).settle()
    assert deliver("pull_request", pull(html_url=address)) == (200, {"outcomes": 1})
    assert session.outcomes.get().url == address


def test_a_pull_request_that_was_closed(deliver, session):
    deliver("pull_request", pull(merged=False, merged_at=None, closed_at="2026-04-01T09:00:00Z"))
    assert session.outcomes.get().kind == "closed"


@pytest.mark.parametrize(
    ("conclusion", "result"),
    [("success", "pass"), ("failure", "fail"), ("timed_out", "fail"), ("cancelled", "unknown"), (None, "unknown")],
)
def test_a_check_suite(deliver, session, conclusion, result):
    assert deliver("check_suite", suite(conclusion)) == (200, {"outcomes": 1})
    assert session.outcomes.get().result == result


def test_a_push_lets_sessions_be_looked_up(deliver, session, repository, site):
    from grading.models import Project

    project = Project.objects.for_key("github.com/ada/engine")
    Repository.objects.update(project=project)
    later = NOON.replace(year=2030)
    other = site.session(project=project).session
    SessionLanding.objects.create(session=other, next_check_at=later)
    assert deliver("push", {"ref": "refs/heads/main"}) == (200, {"outcomes": 0})
    assert SessionLanding.objects.get(session=other).next_check_at != later


def test_a_delivery_counts_once(deliver, session):
    assert deliver("pull_request", pull(), delivery="d-1") == (200, {"outcomes": 1})
    assert deliver("pull_request", pull(), delivery="d-1") == (200, {"outcomes": 0})
    assert deliver("pull_request", pull()) == (200, {"outcomes": 0})  # the same event as another delivery
    assert OutcomeRecord.objects.count() == 1


def test_what_is_not_signed_is_refused_alike(deliver, session, repository):
    unsigned = deliver("pull_request", pull(), secret="guess")
    nobody = deliver("pull_request", pull(), pk=repository.pk + 99)
    Repository.objects.update(sealed_webhook_secret="")
    without = deliver("pull_request", pull(), secret="")
    assert unsigned == nobody == without
    assert unsigned[0] == 403
    assert not OutcomeRecord.objects.exists()


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("pull_request", {"action": "closed"}),
        ("pull_request", {"action": "closed", "pull_request": {"merged": True, "merged_at": "soon", "html_url": PULL}}),
        ("check_suite", {"action": "completed", "check_suite": []}),
        ("check_suite", []),
        ("pull_request", "text"),
    ],
)
def test_bad_payloads_are_refused_and_can_be_sent_again(deliver, session, event, payload):
    status, error = deliver(event, payload, delivery="d-1")
    assert (status, "JSON" in error["expected"]) == (422, True)
    assert deliver("pull_request", pull(), delivery="d-1") == (200, {"outcomes": 1})


def test_bad_json(deliver):
    assert deliver("push", None, body=b"{")[0] == 422
    assert deliver("push", None, body=b"[" * 100_000)[0] == 422


def test_other_events_and_other_peoples_work_say_nothing(deliver, session):
    assert deliver("issues", {"action": "opened"}) == (200, {"outcomes": 0})
    assert deliver("check_suite", suite("success", sha="f" * 40)) == (200, {"outcomes": 0})
    elsewhere = "https://github.com/ada/other/pull/142"
    assert deliver("pull_request", pull(html_url=elsewhere)) == (200, {"outcomes": 0})


def test_an_operator_makes_the_secret(client, site, repository):
    from grading.roles import OPERATOR

    client.force_login(site.person("olga", OPERATOR))
    page = client.post("/settings/repositories/", {"do": "webhook", "repository": repository.pk})
    made = page.context["webhook"]
    assert made["address"].endswith(f"/hooks/github/{repository.pk}/")
    body = b"{}"
    signature = hmac.new(made["secret"].encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "ping", "X-GitHub-Delivery": "1", "X-Hub-Signature-256": f"sha256={signature}"}
    path = f"/hooks/github/{repository.pk}/"
    assert client.post(path, body, content_type="application/json", headers=headers).status_code == 200
    assert made["secret"] not in client.get("/settings/repositories/").content.decode()
