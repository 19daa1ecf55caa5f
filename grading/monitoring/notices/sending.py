"""Delivery of notices: claimed by a conditional UPDATE, sent outside any transaction, with the result on the row."""

import datetime as dt
import logging

from django.db import transaction
from django.db.models import Q

from grading import clock
from grading.backoff import DICE, MAX_WAIT, backoff
from grading.models import Notice
from grading.models.notices import NoticeState, Webhook
from grading.monitoring.notices import channels, email, webhook
from grading.monitoring.notices.outcomes import DeliveryRefused, Unreachable

logger = logging.getLogger(__name__)

BATCH_SIZE = 20
# How long a process may take to send a notice that it claimed. After that, another process may send it.
CLAIM = dt.timedelta(minutes=10)
FIRST_WAIT, MAX_ATTEMPTS = dt.timedelta(seconds=30), 12


def send_due() -> int:
    """Send the notices that are due, oldest first. Returns how many arrived. Must not be called in a transaction."""
    now = clock.now()
    # First attempts are due at once. A wait longer than MAX_WAIT shows that a clock was wrong.
    is_due = Q(attempts=0) | Q(next_attempt_at__lte=now) | Q(next_attempt_at__gt=now + MAX_WAIT)
    due = Notice.objects.queued().filter(is_due).select_related("to").order_by("next_attempt_at", "pk")
    return sum(deliver(notice) for notice in due[:BATCH_SIZE])


def deliver(notice: Notice) -> bool:
    """Try to send a notice once. Returns whether it arrived; False, too, if another process is sending it.

    Raises RuntimeError inside a transaction.
    """
    if not _claim(notice):
        return False
    try:
        to = channels.target(notice)
        if isinstance(to, Webhook):
            webhook.send(notice, to)
        else:
            email.send(notice, to)
    except DeliveryRefused as error:
        _finish(notice, state=NoticeState.FAILED, last_error=str(error))
    except Unreachable as error:
        _retry_later(notice, str(error))
    except Exception as error:
        # A fault of the site or its settings: it is logged as well as stored in the row.
        logger.exception("notice %s by %s", notice.pk, notice.channel)
        _retry_later(notice, f"{type(error).__name__}: {error}")
    else:
        return _finish(notice, state=NoticeState.SENT, sent_at=clock.now(), last_error="")
    return False


def _claim(notice: Notice) -> bool:
    """Claim a notice by postponing its next attempt. Returns False if another process has claimed it."""
    with transaction.atomic(durable=True):  # `durable` raises inside another transaction, which would hide the claim
        unclaimed = Notice.objects.queued().filter(
            pk=notice.pk, attempts=notice.attempts, next_attempt_at=notice.next_attempt_at
        )
        is_claimed = bool(unclaimed.update(next_attempt_at=clock.now() + CLAIM, attempts=notice.attempts + 1))
    if is_claimed:
        notice.attempts += 1
    return is_claimed


def _retry_later(notice: Notice, error: str) -> None:
    """Schedule the next attempt, or give the notice up after MAX_ATTEMPTS."""
    if notice.attempts >= MAX_ATTEMPTS:
        _finish(notice, state=NoticeState.FAILED, last_error=error)
        return
    wait = max(backoff(notice.attempts, FIRST_WAIT, DICE), FIRST_WAIT / 2)
    _finish(notice, next_attempt_at=clock.now() + wait, last_error=error)


def _finish(notice: Notice, **columns: object) -> bool:
    """Record the result of the attempt, unless another one has begun meanwhile. Returns whether it was recorded."""
    if columns.get("state") == NoticeState.FAILED:
        logger.warning("notice %s by %s was given up: %s", notice.pk, notice.channel, columns["last_error"])
    return bool(Notice.objects.queued().filter(pk=notice.pk, attempts=notice.attempts).update(**columns))
