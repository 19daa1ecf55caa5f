"""A dead man's switch: an external address is called while all is well, and raises an alarm when the calls stop.

The call is a periodic job, so it shows that scheduler, broker, a worker and the database work; the web server and the
other jobs are checked by their alarms.
"""

import logging
from http.client import HTTPException
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request

from django.conf import settings

from grading.models import Alarm
from grading.monitoring.notices.webhook import opener
from grading.monitoring.operation import missed_turns, program_stopped

logger = logging.getLogger(__name__)


def call() -> bool:
    """Call DEADMAN_URL, if it is set and every program works. Returns whether the call arrived."""
    failures = Alarm.objects.filter(rule__in=[program_stopped.id, missed_turns.id], resolved_at=None)
    if not settings.DEADMAN_URL or failures.exists():
        return False
    request = Request(settings.DEADMAN_URL, headers={"User-Agent": "gradingsite"})  # noqa: S310 - http(s) only
    try:
        with opener.open(request, timeout=settings.NOTIFY_TIMEOUT):
            return True
    except (URLError, HTTPException, OSError) as error:
        host = urlsplit(settings.DEADMAN_URL).hostname  # the rest may contain a secret
        logger.warning(
            "%s could not be called to report that the site works: %s", host, getattr(error, "reason", error)
        )
        return False
