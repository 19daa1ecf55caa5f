"""`manage.py up`: the whole site under one supervisor. `make run` calls it once the environment is there.

`up web`, `up worker` and `up beat` run one role of a site that several hosts share.
"""

import contextlib
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
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError, connections

from grading.backups import upgrading
from grading.backups.databases import BackupProblem
from grading.busy import StorageAway
from grading.evidence import store
from grading.models import LogInPlace
from grading.trial import keeping
from gradingsite import broker, keys, running, schema
from gradingsite.ports import port_taken
from gradingsite.state import IS_CHECKOUT, site_command
from gradingsite.supervisor import Program, become, die_with_parent

DJANGO = [sys.executable, "-m", "gradingsite"]
WEB = [sys.executable, "-m", "gradingsite.web"]
CELERY = [sys.executable, "-m", "celery", "--app", "gradingsite"]
# `--without-…`: workers need not know of each other, since the queue is in the database.
ROLES = {
    "web": WEB,
    "worker": [*CELERY, "worker", "--loglevel=WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"],
    "beat": [*CELERY, "beat", "--loglevel=WARNING", "--pidfile="],
}


class Command(BaseCommand):
    help = (
        "Runs the site: web server, worker and, unless REDIS_URL is set, a broker of its own. Ctrl-C ends it. With a "
        "role, runs only that: several hosts then share a PostgreSQL database and a Redis or Valkey server."
    )
    requires_system_checks = []  # they want a migrated database; `check` runs after the migration

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("role", nargs="?", choices=ROLES, help="run only this; without it, run everything")

    def handle(self, role: str | None = None, **_options: Any) -> None:
        if "MAKELEVEL" in os.environ:  # under `make run`: end if make is killed
            die_with_parent(signal.SIGTERM)
        if role is not None:
            require_shared_servers(role)
        with contextlib.suppress(KeyboardInterrupt), self.alone("site.lock" if role is None else f"{role}.lock"):
            self.prepare(role)
            programs = self.programs() if role is None else [Program(name=role, command=ROLES[role])]
            connections.close_all()
            become(programs)

    def prepare(self, role: str | None) -> None:
        """Migrate the database and check the settings before programs start. Raises CommandError."""
        if role in {None, "web"}:
            self.require_free_port()
        if role is None:  # otherwise another role may run from this folder; `care` deletes what is left
            empty(settings.TEMP_DIR)
        os.environ["TMPDIR"] = str(settings.TEMP_DIR)  # of every program, SQLite among them
        try:
            upgrading.migrate(say=self.stdout.write, beside_others=role is not None)
            if LogInPlace.objects.exists():
                self.stdout.write("Copying the logs that the trial read in place …")
                keeping.keep_logs()
            keys.require_same()
            store.require_storage()
        except (BackupProblem, keys.DifferentKeys, StorageAway) as error:
            raise CommandError(str(error)) from error
        call_command("check", databases=["default"])
        schema.warn_of_short_key()
        if role in {None, "web"}:
            self.greet(make_first_admin())

    def alone(self, name: str) -> IO[str]:
        """A lock that the programs inherit. Raises CommandError if another run of the site has it."""
        try:
            lock = running.alone(name, self.address)
        except running.AlreadyRunning as error:
            raise CommandError(str(error)) from None
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
        python = f"{os.path.relpath(sys.executable)} " if IS_CHECKOUT else ""
        lines.append(f"   password   lost? {python}{site_command('changepassword admin')}")
        lines.append(f"   stored in  {settings.STATE_DIR}")
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


def require_shared_servers(role: str) -> None:
    """Raise CommandError unless other hosts can share this one's database and broker."""
    if connections["default"].vendor == "sqlite":
        raise CommandError(
            f"`up {role}` runs one role of a site on several hosts, which cannot share SQLite: set DATABASE_URL to a "
            f"PostgreSQL database ({site_command('move_to')} copies the present one), or run `up` for everything on "
            "this host"
        )
    if not os.environ.get("REDIS_URL"):
        raise CommandError(f"`up {role}` needs REDIS_URL: the Redis or Valkey server that all hosts share")


def empty(folder: Path) -> None:
    """Delete the contents of the folder: files that killed processes left."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def make_first_admin() -> str | None:
    """Make the user `admin` if the site has no superuser. Returns its password, or None if nobody was made."""
    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    try:
        User.objects.create_superuser("admin", password=password)
    except IntegrityError:  # another host made it at the same time
        return None
    return password


def own_broker() -> list[Program]:
    """The site's own broker, unless REDIS_URL names another. Sets REDIS_URL to it."""
    if os.environ.get("REDIS_URL"):
        return []
    directory = settings.STATE_DIR / "broker"
    ours = broker.prepare(directory)
    os.environ["REDIS_URL"] = ours.url
    return [Program(name="broker", command=broker.command(ours, directory), ends_last=True)]


def judge_simulator() -> list[Program]:
    """The judge simulator of a demo, in place of the real judge. Sets the variables of the judge to it."""
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
    """A program that loads the sample sessions into an empty site; none if they were removed before.

    A demo gets two weeks of history instead. It is loaded at once, before anything runs that would judge it by today's
    clock.
    """
    from bandit.models import Erasure
    from grading.models import Session

    if Session.objects.exists() or Erasure.objects.exists():
        return []
    if settings.DEMO:
        connections.close_all()
        environment = {**os.environ, "LOG_LEVEL": "CRITICAL"}
        subprocess.run([*DJANGO, "load_history"], env=environment, check=True)  # noqa: S603  our own
        return []
    return [Program(name="samples", command=[*DJANGO, "load_samples"], once=True)]
