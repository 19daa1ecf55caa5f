"""Keeping the logs that a trial reads in place, and making the trial a normal site.

A kept log is a compressed copy in the site's store of evidence. It shares no blocks with the harness's file, which an
agent may rewrite, and retention and erasures delete it like any other evidence.
"""

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone

from grading.access.recording import record
from grading.evidence import in_place, store
from grading.models import BlobProblem, Evidence, LogInPlace
from grading.models.audit import AuditKind
from grading.models.health import BlobProblemKind

ADMIN = "admin"
# Ends the trial's server. Set by the command.
when_kept: Callable[[], object] = lambda: None  # noqa: E731


def keep_logs() -> int:
    """Copy the logs that were read in place into the store. Returns how many of them are gone or were rewritten.

    If it fails, for example on a full disk, it can be repeated: copied logs stay.
    """
    return sum(not keep_log(row) for row in list(LogInPlace.objects.order_by("pk")))


def keep_log(row: LogInPlace) -> bool:
    """Copy a log into the store. False if its bytes are not there any more; pages then say so."""
    if Evidence.objects.filter(sha256=row.pk).exists():  # otherwise it was erased, and no copy is needed
        try:
            with Path(row.path).open("rb") as file, store.incoming(in_place.FirstBytes(file, row.size)) as copy:
                is_same = copy.stored.sha256 == row.pk
                if is_same:
                    copy.keep()
        except FileNotFoundError:
            is_same = False
        if not is_same:
            columns = {"kind": BlobProblemKind.EXPIRED, "since": timezone.now(), "what": "deleted by its harness"}
            BlobProblem.objects.update_or_create(pk=row.pk, defaults=columns)
            row.delete()
            return False
    row.delete()
    return True


def make_admin() -> str:
    """Make the first superuser, and return the password. The database is then a normal site's."""
    password = secrets.token_urlsafe(12)
    User.objects.create_superuser(ADMIN, password=password)
    record(AuditKind.PERSON, "kept the trial as a normal site")
    return password


def is_normal_site() -> bool:
    """Whether the database is that of a site which people sign in to."""
    tables = connections["default"].introspection.table_names()
    return User._meta.db_table in tables and User.objects.filter(is_superuser=True).exists()  # noqa: SLF001 - Django's documented API


def start_site() -> NoReturn:
    """Replace this process by `gradingsite up`, on the same port."""
    connections.close_all()
    os.environ.pop("LOG_LEVEL", None)
    os.environ.pop("HEARTBEAT_SECONDS", None)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "gradingsite", "up"])  # noqa: S606  our own
