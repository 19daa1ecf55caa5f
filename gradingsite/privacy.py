"""The state folder is for the user who runs the site alone: with its database anybody could log in as an admin."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

OTHERS = stat.S_IRWXG | stat.S_IRWXO
# What the site itself writes there. Anything else in the folder keeps its mode, and is out of reach all the same.
OURS = (
    *("db.sqlite3*", "secret_key", "chance.key", "site.lock", "programs.lock", "write.gate", "beat-schedule*"),
    *("broker", "cache", "evidence", "tmp"),
)


def keep_private(folder: Path) -> None:
    """Let this process and those it starts write for their own user alone, and close the state folder to others.

    A folder that was open is closed with all that the site keeps in it, and that is said in one line. Raises
    ImproperlyConfigured for a folder that many users write to, such as /tmp: closing that would shut them out.
    """
    os.umask(OTHERS)
    if not folder.is_dir():
        return
    if folder.stat().st_mode & stat.S_ISVTX or folder == Path(folder.anchor):
        raise ImproperlyConfigured(
            f"Unexpected value GRADINGSITE_STATE={str(folder)!r}, which other users need too; "
            f"use a folder of the site's own, such as {folder / 'gradingsite'}"
        )
    try:
        # The folder first: nobody can put a link into the way after that.
        closed = [path for path in (folder, *_kept(folder)) if close(path)]
    except PermissionError as error:
        say(f"{error.filename} can be read by other users of this machine: let its owner close it with chmod go=")
        return
    if closed:
        counted = "1 file or folder" if len(closed) == 1 else f"{len(closed):,} files and folders"
        say(f"{folder} could be read by other users of this machine: closed it ({counted}).")


def _kept(folder: Path) -> Iterator[Path]:
    """What the site keeps in the folder; all of a subfolder only where that is open itself."""
    for path in (found for name in OURS for found in folder.glob(name)):
        is_open = _is_open(path)
        yield path
        if is_open and path.is_dir() and not path.is_symlink():
            yield from path.rglob("*")


def _is_open(path: Path) -> bool:
    """Whether others than the owner may do anything with it. A link's own mode means nothing, and is not followed."""
    mode = path.lstat().st_mode
    return not stat.S_ISLNK(mode) and bool(mode & OTHERS)


def close(path: Path) -> bool:
    """Take from others what they may do with it; False where that was nothing, or it is gone meanwhile."""
    try:
        if not _is_open(path):
            return False
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
    except FileNotFoundError:
        return False
    return True


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  before any logging is set up
