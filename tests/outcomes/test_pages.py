"""The page of repositories, and what a session's page and the list say of outcomes."""

import datetime as dt

import pytest
from django.urls import reverse

from grading.models import AuditEvent, Project, Repository, SessionCommit, SessionLanding
from grading.models.outcomes import Authorship, CommitState, LandingState
from grading.outcomes.following import TOKEN_PURPOSE
from grading.outcomes.recording import ReportedOutcome, record
from grading.roles import OPERATOR, VIEWER
from grading.witness import Witness
from gradingsite.sealing import unseal
from tests.site import NOON

pytestmark = pytest.mark.django_db
PAGE = "/settings/repositories/"


@pytest.fixture
def olga(site, client):
    person = site.person("olga", OPERATOR)
    client.force_login(person)
    return person


def test_an_operator_follows_a_repository(client, olga, site):
    site.session(project=Project.objects.for_key("forge.example/ada/engine"))
    page = client.get(PAGE)
    assert [project.key for project in page.context["suggestions"]] == ["forge.example/ada/engine"]
    body = {"url": "https://ada:secret@forge.example/ada/engine.git", "default_branch": "trunk", "token": "t-1"}
    assert client.post(PAGE, body).status_code == 302
    row = Repository.objects.get()
    assert (row.name, row.url, row.default_branch) == ("engine", "https://forge.example/ada/engine.git", "trunk")
    assert row.project.key == "forge.example/ada/engine"
    assert row.added_by == olga
    assert unseal(row.sealed_token, purpose=TOKEN_PURPOSE) == "t-1"
    assert "secret" not in AuditEvent.objects.get(kind="project").detail
    assert client.get(PAGE).context["suggestions"] == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"url": "ext::sh", "default_branch": "main"}, "Expected a host"),
        ({"url": "", "default_branch": "main"}, "required"),
        ({"url": "https://forge.example/a", "default_branch": "--upload-pack=x"}, "Expected the name of a branch"),
        ({"url": "https://forge.example/known", "default_branch": "main"}, "already followed"),
    ],
)
def test_bad_input_says_what_was_expected(client, olga, body, error):
    Repository.objects.create(name="known", url="https://forge.example/known")
    page = client.post(PAGE, body)
    assert page.status_code == 400
    assert error in str(page.context["form"].errors)
    assert Repository.objects.count() == 1


def test_pause_check_and_remove(client, olga, site):
    project = Project.objects.for_key("engine")
    row = Repository.objects.create(name="engine", url="/srv/engine", project=project)
    session = site.session(project=project).session
    later = NOON + dt.timedelta(days=1)
    SessionLanding.objects.create(session=session, next_check_at=later)
    client.post(PAGE, {"do": "pause", "repository": row.pk})
    row.refresh_from_db()
    assert row.is_paused
    client.post(PAGE, {"do": "resume", "repository": row.pk})
    checked = client.post(PAGE, {"do": "check", "repository": row.pk}, follow=True)
    assert "The commits of 1 session in engine are looked up within a minute." in checked.content.decode()
    assert SessionLanding.objects.get(session=session).next_check_at != later
    client.post(PAGE, {"do": "remove", "repository": row.pk})
    assert not Repository.objects.exists()
    assert SessionLanding.objects.filter(session=session).exists()
    assert client.post(PAGE, {"do": "remove", "repository": "x"}).status_code == 404


def test_a_viewer_changes_nothing(client, site):
    client.force_login(site.person("vera", VIEWER))
    assert client.get(PAGE).status_code == 200
    assert client.post(PAGE, {"url": "https://forge.example/a", "default_branch": "main"}).status_code == 403


def test_the_line_on_the_page_of_a_session(client, olga, site):
    session = site.session().with_pull_request("https://github.com/ada/engine/pull/142").settle()
    page = client.get(reverse("admin:session", args=[session.pk]))
    assert page.context["outcome_steps"] == []
    repository = Repository.objects.create(name="engine", url="/srv/engine")
    common = {"session": session, "repository": repository, "authorship": Authorship.OWN}
    SessionCommit.objects.create(claim="a" * 40, state=CommitState.LANDED, **common)
    SessionCommit.objects.create(claim="b" * 40, state=CommitState.REVERTED, **common)
    SessionLanding.objects.create(
        session=session, state=LandingState.PARTLY, landed=1, reverted=1, claimed=2, checked_at=NOON
    )
    passed = ReportedOutcome(kind="ci", value="pass", observed_at=NOON, url="https://ci.example.test/1")
    record(session, passed, source="token 1", witness=Witness.OBSERVED)
    record(session, ReportedOutcome(kind="score", value=0.75, observed_at=NOON), source="token 1", witness="observed")
    steps = client.get(reverse("admin:session", args=[session.pk])).context["outcome_steps"]
    assert [(step.label, step.note, step.mark) for step in steps] == [
        ("engine#142", "", ""),
        ("CI passed", "31 Mar", "observed"),
        ("Score 75%", "31 Mar", "observed"),
        ("1 of 2 commits on main, 1 reverted", "checked 31 Mar", "verified"),
    ]
    assert [bool(step.url) for step in steps] == [True, True, False, False]


def test_a_link_that_a_caller_sent_is_https_or_none(client, olga, site):
    session = site.session().settle()
    evil = ReportedOutcome(kind="ci", value="pass", url="javascript:alert(1)")
    record(session, evil, source="token 1", witness=Witness.OBSERVED)
    steps = client.get(reverse("admin:session", args=[session.pk])).context["outcome_steps"]
    assert [step.url for step in steps] == [""]


def test_the_list_has_a_column_and_a_filter(client, olga, site):
    landed, other = site.session().settle(), site.session().settle()
    assert "Landed</th>" not in client.get("/sessions/").content.decode()
    Repository.objects.create(name="engine", url="/srv/engine")
    SessionLanding.objects.create(session=landed, state=LandingState.LANDED, checked_at=NOON)
    page = client.get("/sessions/?landed=landed")
    assert "Landed</th>" in page.content.decode()
    assert list(page.context["page"].object_list) == [landed]
    assert len(client.get("/sessions/").context["page"].object_list) == 2
    assert other.pk
