"""Repositories of this machine that imported sessions worked in, and the button that follows all of them."""

import pytest

from grading.models import AuditEvent, Evidence, ImportedFile, LogImport, Project, Repository
from grading.models.evidence import EvidenceKind
from grading.models.imports import Fate
from grading.outcomes.discovery import default_branch, find_local_repositories, find_root
from grading.roles import OPERATOR, VIEWER
from tests.outcomes.repos import Repo

pytestmark = pytest.mark.django_db
PAGE = "/settings/repositories/"


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path / "engine")


@pytest.fixture
def imported(site):
    """A session whose imported log names a folder."""
    run = LogImport.objects.create(agent=site.agent(), by="olga")

    def build(folder, project="forge.example/ada/engine"):
        session = site.session(project=Project.objects.for_key(project) if project else None).session
        Evidence.objects.create(
            session=session, kind=EvidenceKind.TRANSCRIPT, sha256="ab" * 32, size=1, report={"cwd": str(folder)}
        )
        ImportedFile.objects.create(log_import=run, path="log.jsonl", fate=Fate.IMPORTED, session=session)
        return session

    return build


def test_a_project_has_the_repository_in_which_most_sessions_worked(imported, repo, tmp_path):
    other = Repo(tmp_path / "copy")
    (repo.folder / "src").mkdir()
    for folder in (repo.folder, repo.folder / "src", repo.folder / ".claude/worktrees/quiet-fox", other.folder):
        imported(folder)
    (each,) = find_local_repositories()
    assert (each.folder, each.sessions, each.default_branch) == (repo.folder, 3, "main")
    assert each.project.key == "forge.example/ada/engine"


def test_what_is_not_suggested(imported, repo, site, tmp_path):
    """Folders that are gone or in no repository, sessions that were not imported or have no project, and samples."""
    imported(tmp_path / "gone")
    imported(tmp_path)
    imported("relative/engine")
    imported(repo.folder, project="")
    sample = imported(repo.folder, project="samples")
    sample.is_sample = True
    sample.save()
    sent = site.session(project=Project.objects.for_key("sent")).session
    facts = {"kind": EvidenceKind.TRANSCRIPT, "sha256": "cd" * 32, "size": 1, "report": {"cwd": str(repo.folder)}}
    Evidence.objects.create(session=sent, **facts)
    assert find_local_repositories() == []


def test_what_is_followed_is_not_suggested_again(imported, repo, tmp_path):
    imported(repo.folder)
    imported(Repo(tmp_path / "tools").folder, project="forge.example/ada/tools")
    Repository.objects.create(name="engine", url=str(repo.folder))
    project = Project.objects.for_key("forge.example/ada/tools")
    Repository.objects.create(name="tools", url="https://forge.example/ada/tools", project=project)
    assert find_local_repositories() == []


def test_a_worktree_leads_to_its_repository(repo, tmp_path):
    repo.git("worktree", "add", "-q", str(tmp_path / "tree"))
    assert find_root(str(tmp_path / "tree")) == repo.folder
    (tmp_path / "module").mkdir()
    (tmp_path / "module/.git").write_text("gitdir: ../engine/.git/modules/module\n")
    assert find_root(str(tmp_path / "module")) is None


def test_default_branch(repo, tmp_path):
    """That of the origin, else main or master, else the one that is checked out; each must exist."""
    repo.git("checkout", "-q", "-b", "feature")
    assert default_branch(repo.folder) == "main"
    repo.git("branch", "trunk")
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert default_branch(repo.folder) == "trunk"
    repo.git("pack-refs", "--all")
    assert default_branch(repo.folder) == "trunk"
    repo.git("branch", "-D", "trunk", "main")
    assert default_branch(repo.folder) == "feature"


def test_one_button_follows_all(client, site, imported, repo, tmp_path):
    olga = site.person("olga", OPERATOR)
    client.force_login(olga)
    tools = Repo(tmp_path / "tools")
    imported(repo.folder)
    imported(tools.folder, project="forge.example/ada/tools")
    page = client.get(f"{PAGE}?local=yes")
    assert page.context["is_choosing"]
    keys = [each.project.pk for each in page.context["local"]]
    assert len(keys) == 2
    client.post(PAGE, {"do": "follow_local", "project": keys, "credits_history": "on"})
    rows = {row.url: row for row in Repository.objects.all()}
    assert rows.keys() == {str(repo.folder), str(tools.folder)}
    row = rows[str(repo.folder)]
    assert (row.name, row.project.key, row.credits_history) == ("engine", "forge.example/ada/engine", True)
    assert row.added_by == olga
    assert AuditEvent.objects.filter(kind="project").count() == 2
    assert client.get(PAGE).context["local"] == []


def test_only_the_chosen_ones_are_followed(client, site, imported, repo, tmp_path):
    client.force_login(site.person("olga", OPERATOR))
    imported(repo.folder)
    imported(Repo(tmp_path / "tools").folder, project="forge.example/ada/tools")
    chosen = Project.objects.get(key="forge.example/ada/tools")
    client.post(PAGE, {"do": "follow_local", "project": [chosen.pk, "x"]})
    assert [row.name for row in Repository.objects.all()] == ["tools"]
    assert not Repository.objects.get().credits_history


def test_a_viewer_is_not_shown_folders_of_the_server(client, site, imported, repo):
    imported(repo.folder)
    client.force_login(site.person("vera", VIEWER))
    page = client.get(f"{PAGE}?local=yes")
    assert str(repo.folder) not in page.content.decode()
    assert client.post(PAGE, {"do": "follow_local", "project": [Project.objects.get().pk]}).status_code == 403
