"""The key that the site draws with: random bytes in a file of their own, so that nobody outside foresees a draw."""

import os
import secrets
import stat
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from gradingsite.privacy import close, say

SIZE = 32


def chance_key(path: Path) -> bytes:
    """The 32 bytes in that file, made on first use; of several processes that make it at once, all get the same.

    A file that other users may read is closed, and that is said. Raises ImproperlyConfigured for one that cannot be
    read, cannot be closed, or does not hold exactly one key.
    """
    try:
        if not path.is_symlink() and not path.exists():
            _make(path)
        held = path.stat()
        is_file = stat.S_ISREG(held.st_mode)
        if not is_file or held.st_size != SIZE:
            found = f"found {held.st_size:,} bytes" if is_file else "found no regular file"
            raise ImproperlyConfigured(
                f"Unexpected content of CHANCE_KEY_FILE={str(path)!r}, which holds a key of {SIZE} random bytes and "
                f"nothing else ({found}); put it back from a backup, or move it away: a new one is then made, "
                "and what was drawn with the old one stays as it is"
            )
        if close(path.resolve()):
            say(
                f"{path} could be read by other users of this machine: closed it. Whoever has read it can foresee what "
                "the site draws: where that may be, move it away and start again, and a new one is made."
            )
        return path.read_bytes()
    except OSError as error:
        raise ImproperlyConfigured(
            f"Cannot use CHANCE_KEY_FILE={str(path)!r} ({error}); expected a file that only the user who runs the site "
            f"can read: let its owner run chmod 600, or name another file"
        ) from error


def _make(path: Path) -> None:
    """A whole key under a name of its own first, then linked: nobody ever sees half of one, and the first one stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(SIZE))
            file.flush()
            os.fsync(file.fileno())
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink(missing_ok=True)
