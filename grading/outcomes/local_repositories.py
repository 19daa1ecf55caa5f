"""Checks that a folder of this machine is a complete git repository of its own, before and after it is read.

The checks prevent that git reads another repository through it, or runs what its configuration names.
"""

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from grading.outcomes import git

MAX_OBJECT_FOLDERS = 300
MAX_PACKS = 20_000
# Where git would follow a link. Loose refs below `refs` are links only in very old repositories.
FOLLOWED = ("HEAD", "config", "packed-refs", "objects", "refs", "objects/pack", "objects/info")


class RepositoryRefused(Exception):
    """The folder must not be read. The message says what was found in it and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRepository:
    """A folder that passed the checks: its git directory, and the device and inode of that directory, which change if
    somebody replaces it.
    """

    git_dir: Path
    device: int
    inode: int


def check(folder: Path) -> LocalRepository:
    """The repository in a folder. Raises RepositoryRefused."""
    if folder.resolve() != folder:
        raise RepositoryRefused(f"{folder} is or contains a symbolic link; add the folder that it refers to")
    if not folder.is_dir():
        raise RepositoryRefused(f"there is no folder {folder} on this host")
    git_dir = folder / ".git"
    if not os.path.lexists(git_dir) and (folder / "objects").is_dir():
        git_dir = folder
    if git_dir.is_symlink():
        raise RepositoryRefused(f"{git_dir} is a symbolic link; add the repository that it refers to")
    if git_dir.is_file():
        raise RepositoryRefused(f"{folder} is a worktree or submodule; add the repository that it belongs to")
    if not (git_dir / "HEAD").is_file() or not (git_dir / "objects").is_dir():
        raise RepositoryRefused(f"{folder} is no git repository")
    _check_files(git_dir)
    _check_configuration(git_dir)
    status = git_dir.stat()
    return LocalRepository(git_dir=git_dir, device=status.st_dev, inode=status.st_ino)


def _check_files(git_dir: Path) -> None:
    """Refuse links and files by which git would read objects from outside the repository."""
    for name in FOLLOWED:
        if (git_dir / name).is_symlink():
            raise RepositoryRefused(f"{git_dir / name} is a symbolic link, which is not followed")
    for name in ("objects/info/alternates", "objects/info/http-alternates", "commondir"):
        if os.path.lexists(git_dir / name):
            raise RepositoryRefused(
                f"{git_dir / name} refers to another repository; run `git repack -a -d` and remove it"
            )
    objects = git_dir / "objects"
    entries = list(islice(os.scandir(objects), MAX_OBJECT_FOLDERS))
    if (objects / "pack").is_dir():
        entries += islice(os.scandir(objects / "pack"), MAX_PACKS)
    if any(entry.is_symlink() for entry in entries):
        raise RepositoryRefused(f"{objects} contains a symbolic link, which is not followed")


def _check_configuration(git_dir: Path) -> None:
    """Refuse a partial clone: git would fetch its missing objects with commands that its configuration names."""
    config = git_dir / "config"
    if not config.is_file():
        return
    try:
        names = git.run(git_dir, "config", "--file", str(config), "--no-includes", "--list", "--name-only", "-z")
    except git.GitFailed as error:
        raise RepositoryRefused(f"git cannot read {config}: {error}") from None
    keys = names.decode("utf-8", "replace").lower().split("\0")
    if any(key == "extensions.partialclone" or key.endswith((".promisor", ".partialclonefilter")) for key in keys):
        raise RepositoryRefused(f"{git_dir} is a partial clone, whose missing objects live elsewhere; add a full one")
