"""Facts on the session's page, in the list's filters, in the API and in exports; and the names of projects."""

import json
from html import unescape

import pytest

from grading.models import ApiToken, AuditEvent, Project, Session, SessionFacts
from grading.signals.vitals import VITALS
from tests.casts import logs
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

TESTED = ("uv run pytest -q", "8 passed")
ENGINE = "https://forge.example/ada/engine.git"
FILE = {"name": "CLAUDE.md", "bytes": 19, "sha256": "a" * 64}


@pytest.fixture
def session(site) -> Session:
    ran_with = {"permission_mode": "plan", "instruction_files": [FILE]}
    return site.upload("s-1", logs.claude("s-1", TESTED), project=ENGINE, task="T-1", ran_with=ran_with).session


def test_the_page_shows_facts_with_their_definitions(viewer, session):
    """What it ran with, each vital, and what each of them counts are in one section."""
    html = unescape(flat(viewer.get(session.get_absolute_url())))
    section = html[html.index('id="facts"') : html.index("Compare this value only between sessions")]
    for text in ("forge.example/ada/engine", "T-1", "2.1.100", "claude-opus-4-6", "plan", "CLAUDE.md"):
        assert text in section
    for vital in VITALS:
        assert vital.title in section
        assert vital.definition.split(",")[0] in section
    assert "0 %, 0 of 1" in section
    assert "pytest green" in section


def test_what_is_unknown_is_said(site, viewer, session):
    """A missing number is called unknown, and a log that was not read for facts says how to have it read."""
    SessionFacts.objects.update(failed_share=None, active_minutes=None)
    html = flat(viewer.get(session.get_absolute_url()))
    assert html.count(">unknown</td>") == 2
    SessionFacts.objects.all().delete()
    assert "This session’s log was not read for facts." in flat(viewer.get(session.get_absolute_url()))
    assert viewer.get(site.session().session.get_absolute_url()).status_code == 200


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("project=forge.example/ada/engine", ["s-1"]),
        ("task=T-1", ["s-1"]),
        ("version=2.1.100", ["s-1", "s-2"]),
        ("model=claude-opus-4-6", ["s-1", "s-2"]),
        ("version=2.1", []),
        ("project=other&task=T-1", []),
        ("project=%00", ["s-1", "s-2"]),
    ],
)
def test_the_list_filters_by_facts(site, viewer, session, query, expected):
    """A project, task, version or model in full narrows the list; a value that can't be one is left out."""
    site.upload("s-2", logs.claude("s-2", ("ls -l", "total 0")))
    page = viewer.get(f"/sessions/?{query}").context["page"]
    assert sorted(each.external_id for each in page.object_list) == expected


def test_page_list_api_and_export_agree(viewer, client, session):
    """The same figure is the same everywhere."""
    row = SessionFacts.objects.get()
    [exported] = [json.loads(line) for line in flat_lines(viewer.get("/sessions.jsonl"))]
    token = ApiToken.objects.issue(session.agent)[1]
    answer = client.get(f"/api/v1/sessions/{session.pk}", headers={"authorization": f"Bearer {token}"}).json()
    assert (answer["project"], answer["task"]) == (exported["project"], exported["task"])
    assert (answer["project"], answer["task"]) == ("forge.example/ada/engine", "T-1")
    for name in ("harness_version", "failed_share", "minutes", "active_minutes", "test_runs", "claimed_without_green"):
        assert answer["facts"][name] == exported[name] == getattr(row, name)
    assert exported["permission_mode"] == answer["facts"]["permission_mode"] == "plan"
    assert answer["facts"]["sources"]["permission_mode"] == "caller"
    assert "a" * 64 not in json.dumps(answer)
    assert answer["facts"]["instruction_files"][0]["hmac"] == row.instruction_files[0]["hmac"]


def flat_lines(response) -> list[str]:
    return b"".join(response.streaming_content).decode().splitlines()


def test_a_session_without_facts_exports_nulls(site, viewer):
    """What nobody stated is null, never 0 or an empty text."""
    site.session().settle()
    [exported] = [json.loads(line) for line in flat_lines(viewer.get("/sessions.jsonl"))]
    names = ("project", "task", "harness_version", "minutes", "failed_share", "test_runs", "claimed_without_green")
    assert {exported[name] for name in names} == {None}


# --- projects


def rename(client, project: Project, name: str):
    return client.post("/settings/projects/", {"project": project.pk, "name": name}, follow=True)


def test_a_rename_is_recorded_and_undone_by_the_old_name(site, operator, session):
    """Lists and filters use the new name, the session keeps its repository, and History has both acts."""
    project = Project.objects.get()
    html = flat(rename(operator, project, "engine"))
    assert "forge.example/ada/engine is now listed as engine." in html
    assert Session.objects.get().project.key == "forge.example/ada/engine"
    assert [each.external_id for each in operator.get("/sessions/?project=engine").context["page"].object_list] == [
        "s-1"
    ]
    rename(operator, project, "forge.example/ada/engine")
    project.refresh_from_db()
    assert project.name == project.key
    events = list(AuditEvent.objects.filter(kind="project").order_by("pk").values_list("what", "detail"))
    assert events[0] == ("named forge.example/ada/engine “engine”", "It was “forge.example/ada/engine”.")
    assert len(events) == 2
    assert "Named forge.example/ada/engine" in flat(operator.get("/history/?kind=project"))


def test_repositories_of_one_name_are_one_project(site, operator, session):
    """Merging is giving a repository another one's name; later sessions of both are listed under it."""
    site.upload("s-2", project="git@elsewhere.example:ada/engine.git")
    first, second = Project.objects.order_by("key")
    html = flat(rename(operator, first, second.name))
    assert "together with 1 more of this name" in html
    site.upload("s-3", project="git@elsewhere.example:ada/engine.git")
    page = operator.get(f"/sessions/?project={second.name}").context["page"]
    assert sorted(each.external_id for each in page.object_list) == ["s-1", "s-2", "s-3"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "eng\u202eine", "a\nb"])
def test_a_name_that_nobody_could_read_is_refused(operator, session, name):
    """An empty, too long or invisible name says what was expected, and changes nothing."""
    html = flat(rename(operator, Project.objects.get(), name))
    assert "Expected a name of 1 to 200 visible characters" in html
    assert Project.objects.get().name == "forge.example/ada/engine"
    assert not AuditEvent.objects.filter(kind="project").exists()


def test_samples_have_no_project_of_yours(site, operator, session):
    """The repositories of samples are not listed; those of your own sessions are, in the list of sessions too."""
    site.upload("s-2", project="sample-project", is_sample=True)
    html = flat(operator.get("/settings/projects/"))
    assert "forge.example/ada/engine" in html
    assert "sample-project" not in html
    assert 'title="Project forge.example/ada/engine"' in flat(operator.get("/sessions/"))


def test_viewers_see_projects_and_change_none(viewer, session):
    """A viewer reads the page, and a form that they send anyway is refused."""
    assert "forge.example/ada/engine" in flat(viewer.get("/settings/projects/?q=engine"))
    assert "No project contains that text." in flat(viewer.get("/settings/projects/?q=nothing"))
    assert rename(viewer, Project.objects.get(), "engine").status_code == 403
    assert viewer.get("/settings/projects/").status_code == 200


def test_the_api_page_describes_what_it_takes_and_gives(client):
    """Fields of objects that may be null are listed like all others."""
    html = flat(client.get("/api/v1/docs"))
    for name in (
        "metadata.project",
        "metadata.ran_with.instruction_files[].sha256",
        "facts.failed_share",
        "facts.sources",
    ):
        assert f">{name}" in html
