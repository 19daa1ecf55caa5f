"""Jobs that each host runs for itself, in a thread of its programs: other hosts don't see its files.

Each host has its own row of each job (`health.periodic`), by which one of its programs runs a job that is due. They do
not depend on the broker, and a host that only serves pages runs them as well.
"""

import logging
import threading

from django.conf import settings
from django.db import Error, connection

from grading.backups import making
from grading.evidence import care
from grading.health import periodic
from grading.intake import erased
from grading.models import PeriodicJob
from grading.outcomes import following

logger = logging.getLogger(__name__)

# Between two checks of what is due.
CHECK_SECONDS = 60.0


def tidy() -> None:
    """Delete what is left over in this host's folders, and record erasures beside this host's backups.

    That is: files of dead processes, indexes of logs that were erased or have expired, and mirrors of repositories that
    were removed. (The host on which somebody erased or removed them could only delete its own.)
    """
    care.delete_leftovers()
    care.delete_stale_indexes()
    following.delete_stale_mirrors()
    erased.append_to_backups()


JOBS = {"tidy": tidy, "backup": making.at_night}


class Housekeeping(threading.Thread):
    """Runs this host's jobs when they are due, until `ends` is set. Backups are left to a worker."""

    def __init__(self, *, is_worker: bool) -> None:
        super().__init__(name="housekeeping", daemon=True)
        self.is_worker = is_worker
        self.ends = threading.Event()

    @property
    def jobs(self) -> list[str]:
        return ["tidy", "backup"] if self.is_worker and settings.BACKUP_NIGHTLY else ["tidy"]

    def run(self) -> None:
        if self.is_worker and not settings.BACKUP_NIGHTLY:
            forget_backups()
        while not self.ends.wait(CHECK_SECONDS):
            run_due(*self.jobs)
            connection.close()


def run_due(*names: str) -> None:
    """Run those of the jobs that are due on this host. A job that fails doesn't stop the others."""
    for name in names:
        try:
            periodic.run(name, JOBS[name], host=settings.HOST_NAME)
        except Exception:
            logger.exception("“%s” failed on this host; it will be tried again", name)


def forget_backups() -> None:
    """Delete this host's row of backups, since it makes none: the alarm about overdue jobs must not miss them."""
    try:
        PeriodicJob.objects.filter(name="backup", host=settings.HOST_NAME).delete()
    except Error as error:
        logger.warning("an alarm may miss the backups of this host, which makes none: %s", error)
