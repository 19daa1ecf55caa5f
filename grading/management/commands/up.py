"""`manage.py up`: the whole site under one supervisor. `make run` calls it once the environment is there."""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from grading.backups import upgrading
from grading.backups.databases import BackupProblem
from gradingsite import broker, schema
from gradingsite.ports import port_taken
from gradingsite.supervisor import Program, become, die_with_parent

DJANGO = [sys.executable, str(settings.BASE_DIR / "manage.py")]
WEB = [sys.executable, "-m", "gradingsite.web"]


class Command(BaseCommand):
    help = "Runs the site: web server, worker and, unless REDIS_URL is set, a broker of its own. Ctrl-C ends it."
    requires_system_checks = []  # they want a migrated database; `check` runs after the migration

    def handle(self, **_options: Any) -> None:
        if "MAKELEVEL" in os.environ:  # under `make run`: end if make is killed
            die_with_parent(signal.SIGTERM)
        with contextlib.suppress(KeyboardInterrupt), self.alone():
            self.prepare()
            programs = self.programs()
            connections.close_all()
            become(programs)

    def prepare(self) -> None:
        self.require_free_port()
        empty(settings.TEMP_DIR)
        os.environ["TMPDIR"] = str(settings.TEMP_DIR)  # of every program, SQLite among them
        try:
            upgrading.migrate(say=self.stdout.write)
        except BackupProblem as error:
            raise CommandError(str(error)) from error
        call_command("check", databases=["default"])
        schema.warn_of_short_key()
        self.greet(make_first_admin())

    def alone(self) -> IO[str]:
        """Holds the lock of this state folder. Raises CommandError if another run of the site has it."""
        settings.STATE_DIR.mkdir(parents=True, exist_ok=True)
        lock = (settings.STATE_DIR / "site.lock").open("a+")
        lock.seek(0)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"This site is running already: {lock.read() or 'it is just starting'}") from None
        lock.truncate(0)
        lock.write(f"{self.address} (process {os.getpid()})")
        lock.flush()
        os.set_inheritable(lock.fileno(), True)  # noqa: FBT003  as the os module has it
        return lock

    @property
    def address(self) -> str:
        host = "127.0.0.1" if settings.HOST in {"0.0.0.0", "::"} else settings.HOST  # noqa: S104  compared, not bound
        return f"http://{host}:{settings.PORT}/"

    def require_free_port(self) -> None:
        port = settings.PORT
        if not broker.is_free(port, settings.HOST):
            raise CommandError(port_taken(port))

    def greet(self, password: str | None) -> None:
        lines = [f"gradingsite   {self.address}"]
        if settings.SIMULATED:
            lines.append("   judge      SIMULATED: its verdicts are made up")
        if settings.DEMO:
            lines.append(f"   story      {self.address}story/")
        if password:
            lines.append(f"   log in     user admin, password {password}   (shown this once)")
        lines.append(f"   password   lost? {os.path.relpath(sys.executable)} manage.py changepassword admin")
        lines.append("   stop       Ctrl-C")
        self.stdout.write("\n" + "\n".join(lines) + "\n\n")
        self.stdout.flush()

    def programs(self) -> list[Program]:
        """What runs, in the order of starting; prepares the environment that all of them share."""
        return [
            *own_broker(),
            *judge_simulator(),
            Program(name="web", command=[*WEB, "--with-worker"]),
            *first_sessions(),
        ]


def empty(folder: Path) -> None:
    """Remove what processes left in it that were killed."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def make_first_admin() -> str | None:
    """Makes the user `admin` if the site has no superuser, and returns its password."""
    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    User.objects.create_superuser("admin", password=password)
    return password


def own_broker() -> list[Program]:
    """A broker of the site's own, unless REDIS_URL names another."""
    if os.environ.get("REDIS_URL"):
        return []
    directory = settings.STATE_DIR / "broker"
    ours = broker.prepare(directory)
    os.environ["REDIS_URL"] = ours.url
    return [Program(name="broker", command=broker.command(ours, directory), ends_last=True)]


def judge_simulator() -> list[Program]:
    """`make demo`: a judge of our own making, in place of the real one."""
    if not settings.SIMULATED:
        return []
    # Use the same port at every start if possible: a judge at another address is another judge.
    port_file = settings.STATE_DIR / "judge_port"
    port = int(port_file.read_text()) if port_file.exists() else 0
    if not port or not broker.is_free(port, "127.0.0.1"):
        port = broker.free_port()
        port_file.write_text(str(port))
    os.environ |= {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "simulated"}
    return [Program(name="judge", command=[*DJANGO, "judge_simulator", "--port", str(port)], ends_last=True)]


def first_sessions() -> list[Program]:
    """Loads the bundled sessions into an empty site, while it is already up. Samples that were removed stay away.

    A demo gets two weeks of history instead, before anything runs that would judge it by today's clock.
    """
    from bandit.models import Erasure
    from grading.models import Session

    if Session.objects.exists() or Erasure.objects.exists():
        return []
    if settings.DEMO:
        connections.close_all()
        shift = settings.TEMP_DIR / "clock"
        shift.write_text("0")
        environment = {**os.environ, "CLOCK_SHIFT_FILE": str(shift), "LOG_LEVEL": "CRITICAL"}
        subprocess.run([*DJANGO, "load_history"], env=environment, check=True)  # noqa: S603  our own
        return []
    return [Program(name="samples", command=[*DJANGO, "load_samples"], once=True)]
