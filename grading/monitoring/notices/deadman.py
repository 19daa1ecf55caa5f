"""A dead man's switch: an address outside is called while all is well, and whoever listens there tells of its silence.

The call is a periodic job, so that it stands for the scheduler, the broker, a worker and a database that can be written
to; for the web server and the other jobs it goes by the alarms.
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
    """Call DEADMAN_URL, if it is set and every program does its work; whether the call arrived."""
    stands_still = Alarm.objects.filter(rule__in=[program_stopped.id, missed_turns.id], resolved_at=None)
    if not settings.DEADMAN_URL or stands_still.exists():
        return False
    request = Request(settings.DEADMAN_URL, headers={"User-Agent": "gradingsite"})  # noqa: S310 - http(s) only
    try:
        with opener.open(request, timeout=settings.NOTIFY_TIMEOUT):
            return True
    except (URLError, HTTPException, OSError) as error:
        host = urlsplit(settings.DEADMAN_URL).hostname  # the rest may hold a secret
        logger.warning("%s could not be told that the site works: %s", host, getattr(error, "reason", error))
        return False
