"""`gradingsite try`: shows what this machine's coding agents did, from the logs that they left."""

import os
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.utils import timezone

from grading import disk
from grading.api.gate import refusal_of
from grading.backups import upgrading
from grading.backups.databases import BackupProblem
from grading.evidence import care
from grading.intake import importing
from grading.trial import access, keeping, places, reading
from gradingsite import running, schema, web
from gradingsite.server import SharedCounts, WebServer

OPENER = "open.html"
JOIN_SECONDS = 10.0


class Command(BaseCommand):
    help = (
        "Reads the logs that coding agents left on this machine in place, and shows what ran and what it cost. Needs "
        "no account and no key, sends nothing anywhere, and serves this machine only. Ctrl-C ends it."
    )
    requires_system_checks = []  # they want a migrated database

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--keep", action="store_true", help="copy the logs before their harness deletes them")
        parser.add_argument("--yes", action="store_true", help="do not ask before --keep copies")
        parser.add_argument("--no-browser", action="store_true", help="only print the address")

    def handle(self, *, keep: bool, yes: bool, no_browser: bool, **_options: Any) -> None:
        address = f"http://{settings.HOST}:{settings.PORT}/"
        try:
            lock = running.alone(running.SITE_LOCK, address)
        except running.AlreadyRunning as error:
            raise CommandError(str(error)) from None
        with lock:
            self.prepare()
            folders = [folder for each in places.log_folders().values() for folder in each]
            is_keeping = keep and self.agrees_to_copy(folders, yes=yes)
            self.serve(folders, keeps=is_keeping, opens_browser=not no_browser)
        if keeping.is_normal_site():
            self.stdout.write("Starting the site …")
            keeping.start_site()

    def prepare(self) -> None:
        """Make the database and the local user. Raises CommandError if that is impossible."""
        if keeping.is_normal_site():
            raise CommandError(
                f"{settings.STATE_DIR} holds a site already: start it with `gradingsite up`. To try without touching "
                "it, name another folder: GRADINGSITE_STATE=/path/to/folder gradingsite try"
            )
        if disk.is_short():
            raise CommandError(
                f"{settings.STATE_DIR} has {disk.free() / 1e6:,.0f} MB of free space; {disk.floor() / 1e6:,.0f} MB are "
                "needed. Free some, or name a folder elsewhere: GRADINGSITE_STATE=/path/to/folder gradingsite try"
            )
        os.environ["TMPDIR"] = tempfile.tempdir = str(settings.TEMP_DIR)
        try:
            upgrading.migrate(say=self.stdout.write)
        except BackupProblem as error:
            raise CommandError(str(error)) from None
        schema.begin_program()
        access.make_local_user()
        care.expire(timezone.now())
        importing.forget_files(timezone.now())

    def agrees_to_copy(self, folders: Sequence[Path], *, yes: bool) -> bool:
        """Whether the person agrees to copies of all logs. Raises CommandError if nobody can be asked."""
        if yes:
            return True
        if not sys.stdin.isatty():
            raise CommandError("--keep asks before it copies, and nobody can answer here: add --yes")
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
        size = sum(path.stat().st_size for path in files)
        what = f"{len(files):,} files ({size / 1e6:,.0f} MB, stored compressed)"
        return input(f"Copy {what} to {settings.STATE_DIR}? [y/N] ").strip().lower() in {"y", "yes"}

    def serve(self, folders: Sequence[Path], *, keeps: bool, opens_browser: bool) -> None:
        """Serve the pages while a thread reads the logs, until Ctrl-C or until the trial becomes a normal site."""
        web.load_code()
        sock = web.listen(settings.HOST, settings.PORT)
        server = WebServer(get_wsgi_application(), partial(web.gate, refusal_of), sock, counts=SharedCounts(1))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: server.stop())
        keeping.when_kept = server.stop
        self.greet(folders)
        opener = settings.STATE_DIR / OPENER
        if opens_browser and has_display():
            open_browser(opener)
        reader = threading.Thread(target=reading.read_in_thread, args=[folders, keeps], name="reading", daemon=True)
        reader.start()
        follower = threading.Thread(target=reading.follow_in_thread, name="following", daemon=True)
        follower.start()
        connections.close_all()
        try:
            server.run()
        finally:
            reading.STOP.set()
            reader.join(JOIN_SECONDS)
            follower.join(JOIN_SECONDS)
            opener.unlink(missing_ok=True)

    def greet(self, folders: Sequence[Path]) -> None:
        lines = [
            f"gradingsite   {access.KEY.address}",
            "   the address works once, and only in the browser that opens it first",
            *(f"   reading    {folder}" for folder in folders),
            f"   stored in  {settings.STATE_DIR}; delete the folder to remove everything",
            "   stop       Ctrl-C",
        ]
        self.stdout.write("\n" + "\n".join(lines) + "\n\n")
        self.stdout.flush()


def has_display() -> bool:
    """Whether a browser with windows can be opened. One in the terminal would take it over."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(path: Path) -> None:
    """Open the address by a private file that leads to it: other users can see the arguments of programs."""
    path.unlink(missing_ok=True)
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={access.KEY.address}">'
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(page)
    webbrowser.open(path.as_uri())
