"""The heartbeats' threads look by two rules that the sweep cannot: it may be what stands still. What they find is told
by them where nobody else would.
"""

import datetime as dt
import threading

from django.db import connection, transaction
from django.utils import timezone

from grading import clock
from grading.health import pulse
from grading.health.liveness import Component, Life, Liveness
from grading.models import Notice, RuleRun
from grading.monitoring.alarms import keep, state
from grading.monitoring.notices import send_due
from grading.monitoring.operation import find_silent, missed_turns, program_stopped
from grading.monitoring.watch import has_turn, take_turn

# A notice that waits longer than this is sent by whoever sees it.
UNSENT = dt.timedelta(seconds=30)


def attend(part: Component) -> None:
    """Begin this process's heartbeat, with an eye on the other programs."""
    pulse.start(part, look)


def look(seen: Liveness) -> None:
    """Let the two rules' alarms say what this process knows; what it does not know stays as it was said before."""
    now, silent = timezone.now(), [part for part in Component if seen.life(part) is Life.SILENT]
    if Component.BROKER in silent and Component.SCHEDULER in silent:
        silent.remove(Component.SCHEDULER)  # it waits for the broker, and that is told
    unsure = {(program_stopped.id, str(part)) for part in Component if seen.life(part) is Life.UNKNOWN}
    state([(program_stopped, find_silent(silent))], now, leave=unsure)
    ran = dict(RuleRun.objects.filter(rule__in=[program_stopped.id, missed_turns.id]).values_list("rule", "ran_at"))
    if seen.is_settled:
        for rule in (program_stopped, missed_turns):
            if has_turn(rule, ran, now):
                with transaction.atomic():
                    if take_turn(rule, ran, now) and rule is missed_turns:
                        keep([missed_turns], now)
    waits = Notice.objects.queued().filter(next_attempt_at__lte=clock.now() - UNSENT)
    if silent or waits.exists():
        send_in_background()


_sender: threading.Thread | None = None


def send_in_background() -> None:
    """Send what is due, in a thread of its own: a mail server that does not answer must not stop the heart."""
    global _sender  # noqa: PLW0603 - a process has one
    if _sender is None or not _sender.is_alive():
        _sender = threading.Thread(target=send, name="notices", daemon=True)
        _sender.start()


def send() -> None:
    """Send what is due, and close the thread's connection."""
    try:
        send_due()
    finally:
        connection.close()
