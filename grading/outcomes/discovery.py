"""Finds the repositories of this machine that imported sessions worked in, for an operator to follow.

Only files are read: git runs on a repository after an operator has chosen it.
"""

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grading.evidence.session_facts import WORKTREE
from grading.models import Evidence, ImportedFile, Project, Repository
from grading.models.evidence import EvidenceKind
from grading.models.sessions import yours
from grading.outcomes.mirror import BRANCH_NAME

# The latest logs whose folders are looked at.
LOGS = 2000
MAX_ADDRESS = 500
MAX_BYTES = 10 * 1024**2  # of a file that names branches
LINK_OF_WORKTREE = re.compile(r"gitdir: (/.{1,1000})/\.git/worktrees/[^/]+\s*")
ORIGIN = re.compile(r"\Aref: refs/remotes/origin/(\S+)\s*\Z")
HEAD = re.compile(r"\Aref: refs/heads/(\S+)\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSuggestion:
    """A repository of this machine that nobody follows, and how many imported sessions of its project worked in it."""

    folder: Path
    default_branch: str
    project: Project
    sessions: int


def find_local_repositories() -> list[LocalSuggestion]:
    """The repositories that the latest imported sessions worked in, the one with the most sessions first.

    Of the repositories of one project, only the one with the most sessions is suggested. Projects and folders that are
    followed are left out.
    """
    imported = ImportedFile.objects.filter(session__isnull=False).values("session")
    logs = Evidence.objects.filter(yours(), kind=EvidenceKind.TRANSCRIPT, session__in=imported)
    logs = logs.filter(session__project__isnull=False, session__project__repository=None).order_by("-pk")
    roots: dict[str, Path | None] = {}
    sessions: dict[tuple[int, Path], set[int]] = {}
    for session, project, report in logs.values_list("session", "session__project", "report")[:LOGS]:
        folder = str(report.get("cwd") or "")
        if folder not in roots:
            roots[folder] = find_root(folder)
        root = roots[folder]
        if root and len(str(root)) <= MAX_ADDRESS:
            sessions.setdefault((project, root), set()).add(session)
    counts = Counter({project_and_root: len(keys) for project_and_root, keys in sessions.items()})
    projects = Project.objects.in_bulk([project for project, _root in counts])
    used_folders = set(Repository.objects.values_list("url", flat=True))
    used_projects: set[int] = set()
    suggestions = []
    for (project, root), count in counts.most_common():
        if project not in used_projects and str(root) not in used_folders:
            used_projects.add(project)
            used_folders.add(str(root))
            branch = default_branch(root)
            suggestions.append(
                LocalSuggestion(folder=root, default_branch=branch, project=projects[project], sessions=count)
            )
    return suggestions


def find_root(folder: str) -> Path | None:
    """The root folder of the repository that contains this folder. For a worktree, the root of the repository that the
    worktree belongs to. None if no repository contains the folder.
    """
    path = Path(WORKTREE.sub("", folder))
    with suppress(OSError, ValueError):
        path = path.resolve()
        if not folder.startswith("/") or not path.is_dir():
            return None
        for parent in (path, *path.parents):
            if (parent / ".git").is_dir():
                return parent
            if (parent / ".git").is_file():
                match = LINK_OF_WORKTREE.fullmatch(_read(parent / ".git"))
                return Path(match[1]).resolve() if match else None
    return None


def default_branch(folder: Path) -> str:
    """The default branch of a repository by its files: its origin's default branch, else main or master, else the
    branch that is checked out. "main" if none of these is a branch.
    """
    git_dir = folder / ".git"
    packed = _read(git_dir / "packed-refs")
    origin: list[str] = ORIGIN.findall(_read(git_dir / "refs/remotes/origin/HEAD"))
    current: list[str] = HEAD.findall(_read(git_dir / "HEAD"))
    for name in (*origin, "main", "master", *current):
        ref = f"refs/heads/{name}"
        is_branch = BRANCH_NAME.fullmatch(name) and ".." not in name
        if is_branch and ((git_dir / ref).is_file() or f" {ref}\n" in packed):
            return name
    return "main"


def _read(path: Path) -> str:
    """The text of a file; "" if there is no such file or it is too large."""
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= MAX_BYTES:
            return path.read_text(encoding="utf-8", errors="replace")
    return ""
