"""Where the site's code and files are: a checkout or an installed package, and the folder of everything it writes."""

import os
import stat
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The wheel has a copy of the templates and documents here. A checkout has them at its root.
_PACKAGED = Path(__file__).resolve().parent / "resources"
IS_CHECKOUT = not _PACKAGED.is_dir()
RESOURCES = ROOT if IS_CHECKOUT else _PACKAGED
# What people type to start the site, and a demo.
START = "make run" if IS_CHECKOUT else "gradingsite up"
START_DEMO = "make demo" if IS_CHECKOUT else "JUDGE_SIMULATED=yes DEMO=yes GRADINGSITE_STATE=demo gradingsite up"


def site_command(arguments: str) -> str:
    """What people type to run a management command: `gradingsite verify`, or in a checkout `manage.py verify`."""
    return f"{'manage.py' if IS_CHECKOUT else 'gradingsite'} {arguments}"


def state_folder(chosen: str) -> Path:
    """The folder that the site writes to: `chosen` unless it is empty, in a checkout its `var`, otherwise `./var` if
    that is a site's folder, otherwise `gradingsite` in the user's folder for data.
    """
    if chosen:
        return Path(chosen).resolve()
    if IS_CHECKOUT:
        return ROOT / "var"
    local = Path.cwd() / "var"
    if is_site(local):
        return local
    data = Path(os.environ.get("XDG_DATA_HOME", "").strip())
    if not data.is_absolute():  # the specification wants other values to be ignored
        data = Path.home() / ".local" / "share"
    return data / "gradingsite"


def is_site(folder: Path) -> bool:
    """Whether a folder has a site's database and key, and is closed to other users, as the site makes it.

    A repository that was cloned from somebody else may have such files, with a password that they know. But git can't
    store a folder that is closed.
    """
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return is_own and all((folder / name).is_file() for name in ("db.sqlite3", "secret_key"))
