"""The git repository that the sessions of the demo's history commit to. The site follows it like any repository."""

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

from grading.models import Project, Repository
from grading.outcomes import git

logger = logging.getLogger(__name__)

BRANCH = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCommit:
    """A commit of the session `name`. One that has not landed is on a branch of its own."""

    name: str
    author: str
    subject: str
    committed_at: datetime
    has_landed: bool
    reverted_at: datetime | None

    @property
    def path(self) -> str:
        return f"work/{self.name}.md"


def location() -> Path:
    """The folder of the repository. There is none where it could not be created."""
    return Path(settings.STATE_DIR).resolve() / "demo-repository.git"


def create(commits: Sequence[DemoCommit]) -> dict[str, str]:
    """Create the repository with these commits, in the order given. Returns the hash of each by its session's name.

    Creates nothing, and returns nothing, where git is missing or fails: a demo works without it.
    """
    folder = location()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        git.run(folder, "init", "--quiet", "--bare", "--template=")
        git.run(folder, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
        git.run(folder, "fast-import", "--quiet", "--export-marks=marks", stdin=_stream(commits).encode())
    except git.GitFailed as error:
        logger.warning("the demo has no repository: %s", error)
        shutil.rmtree(folder)
        return {}
    hashes = dict(line.split() for line in (folder / "marks").read_text().splitlines())
    return {commit.name: hashes[f":{mark}"] for mark, commit in enumerate(commits, start=1)}


def follow(project: str) -> None:
    """Follow the repository as that of a project. Its commits count although they are older than the first fetch."""
    Repository.objects.create(
        name=project,
        url=str(location()),
        default_branch=BRANCH,
        project=Project.objects.get(name=project),
        credits_history=True,
    )


def _stream(commits: Sequence[DemoCommit]) -> str:
    """The commits, and then the reverts, as the input of `git fast-import`."""
    first = commits[0]
    lines = [_commit(BRANCH, first.author, first.committed_at, "Begin", _addition("README.md", "A relay"))]
    for mark, each in enumerate(commits, start=1):
        branch = BRANCH if each.has_landed else each.name
        origin = "" if each.has_landed else f"from refs/heads/{BRANCH}\n"
        change = origin + _addition(each.path, each.subject)
        lines.append(_commit(branch, each.author, each.committed_at, each.subject, change, mark=f"mark :{mark}\n"))
    lines += [
        _commit(BRANCH, each.author, each.reverted_at, f'Revert "{each.subject}"', f"D {each.path}\n")
        for each in commits
        if each.reverted_at
    ]
    return "".join(lines)


def _commit(branch: str, author: str, at: datetime, subject: str, change: str, *, mark: str = "") -> str:
    committer = f"committer {author} <{author}@example.test> {int(at.timestamp())} +0000\n"
    return f"commit refs/heads/{branch}\n{mark}{committer}{_data(subject)}{change}"


def _addition(path: str, text: str) -> str:
    return f"M 100644 inline {path}\n{_data(text)}"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"
