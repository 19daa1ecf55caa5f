"""Waking workers: a message says that something is due. Never the truth (L7): it may fail, but hold nobody up."""

import logging
import time

logger = logging.getLogger(__name__)

# After a message that failed none is tried for a while: the sweep finds every due job anyway.
SILENT_SECONDS = 10
_silent_until = 0.0


def publish(task: str = "grading.tasks.judge", *arguments: int) -> bool:
    """Say that `task` is due. False, and a line in the log, where the broker could not be reached."""
    global _silent_until  # noqa: PLW0603 - a broker that is away is away for the whole process
    if time.monotonic() < _silent_until:
        return False
    from gradingsite.celery import app

    try:
        app.send_task(task, arguments, expires=60, retry=False, ignore_result=True)
    except Exception as error:  # noqa: BLE001 - whatever ails the broker, the sweep finds the job
        _silent_until = time.monotonic() + SILENT_SECONDS
        logger.warning("the broker cannot be reached (%s); the sweep will find what is due", error)
        return False
    return True
