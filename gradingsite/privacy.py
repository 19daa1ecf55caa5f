"""Keeps the state folder private (with the database anybody could sign in as an admin), and creates its secret keys."""

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

OTHERS = stat.S_IRWXG | stat.S_IRWXO
CHANCE_KEY_SIZE = 32  # bytes
# What the site writes in the state folder. Other files keep their modes: the folder's own mode protects them.
SITE_FILES = (
    *("db.sqlite3*", "secret_key", "chance.key", "*.lock", "write.gate", "beat-schedule*"),
    *("broker", "cache", "evidence", "tmp"),
)


def keep_private(folder: Path) -> None:
    """Make the state folder, and files that this process and its children create, accessible to their owner only.

    Files of the site that other users could access get private modes, too, and a line is printed. Raises
    ImproperlyConfigured for a folder that other users need, such as /tmp.
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
        # The folder first: after that, nobody else can create a symbolic link in it.
        closed = [path for path in (folder, *_site_files(folder)) if make_private(path)]
    except PermissionError as error:
        say(f"{error.filename} can be read by other users of this machine: let its owner close it with chmod go=")
        return
    if closed:
        counted = "1 file or folder" if len(closed) == 1 else f"{len(closed):,} files and folders"
        say(f"{folder} could be read by other users of this machine: closed it ({counted}).")


def _site_files(folder: Path) -> Iterator[Path]:
    """The site's files in the folder, with the content of each subfolder that others may access."""
    for name in SITE_FILES:
        for path in folder.glob(name):
            is_open = _is_open(path)  # before the caller makes it private
            yield path
            if is_open and path.is_dir() and not path.is_symlink():
                yield from path.rglob("*")


def _is_open(path: Path) -> bool:
    """Whether users other than the owner have any permission. False for a symbolic link, whose mode means nothing."""
    mode = path.lstat().st_mode
    return not stat.S_ISLNK(mode) and bool(mode & OTHERS)


def make_private(path: Path) -> bool:
    """Remove all permissions of other users. Returns whether there were any."""
    try:
        if not _is_open(path):
            return False
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
    except FileNotFoundError:
        return False
    return True


def chance_key(path: Path) -> bytes:
    """The site's 32 random bytes for draws, in a file of their own so that nobody outside can foresee a draw.

    Creates the file on first use; processes that do so at the same time get the same key. If other users could read the
    file, makes it private and prints a warning. Raises ImproperlyConfigured if the file can't be read or made private,
    or isn't exactly one key.
    """
    try:
        if not path.is_symlink() and not path.exists():
            _create_once(path, secrets.token_bytes(CHANCE_KEY_SIZE))
        status = path.stat()
        is_file = stat.S_ISREG(status.st_mode)
        if not is_file or status.st_size != CHANCE_KEY_SIZE:
            content = f"{status.st_size:,} bytes" if is_file else "no regular file"
            raise ImproperlyConfigured(
                f"Unexpected content of CHANCE_KEY_FILE={str(path)!r}, which holds a key of {CHANCE_KEY_SIZE} random "
                f"bytes and nothing else (found {content}); put it back from a backup, or move it away: a new one is "
                "then made, and what was drawn with the old one stays as it is"
            )
        if make_private(path.resolve()):
            say(
                f"{path} could be read by other users of this machine: closed it. Anyone who has read it can foresee "
                "the site's draws. If that is possible, move it away and restart; a new one is created."
            )
        return path.read_bytes()
    except OSError as error:
        raise ImproperlyConfigured(
            f"Cannot use CHANCE_KEY_FILE={str(path)!r} ({error}); expected a file that only the user who runs the site "
            f"can read: let its owner run chmod 600, or name another file"
        ) from error


def _create_once(path: Path, content: bytes) -> None:
    """Write a temporary file and link it to the path, so that the file is always complete and the first one stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink(missing_ok=True)


def secret_key(path: Path) -> str:
    """The site's generated SECRET_KEY. Creates the file, readable by its owner only, on first use."""
    if not path.exists():
        _create_once(path, secrets.token_urlsafe(50).encode())
    return path.read_text().strip()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  before any logging is set up
