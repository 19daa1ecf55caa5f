"""Two alarm rules that run in the heartbeats' threads, because the sweep that runs the others may have stopped.

These threads also send notices that have not been sent for some time.
"""

import datetime as dt
import threading

from django.db import connection, transaction
from django.utils import timezone

from grading import clock
from grading.health import pulse
from grading.health.liveness import Component, Life, Liveness
from grading.models import Alarm, Notice, RuleRun
from grading.monitoring.alarms import run_rules, update_alarms
from grading.monitoring.notices import send_due
from grading.monitoring.operation import find_stopped_programs, missed_turns, program_stopped
from grading.monitoring.watch import claim_run, is_due

# A notice that has been due for longer is sent by any program.
NOTICE_OVERDUE_AFTER = dt.timedelta(seconds=30)


def attend(part: Component) -> None:
    """Start this process's heartbeat, whose thread also watches the other programs."""
    pulse.start(part, update_attended_alarms)


def update_attended_alarms(liveness: Liveness) -> None:
    """Update the two rules' alarms from the heartbeats that this process has watched, and send overdue notices.

    Alarms about programs whose state is unknown stay as they are.
    """
    now = timezone.now()
    silent = [part for part in liveness.parts if liveness.life(part) is Life.SILENT]
    if Component.BROKER in silent and Component.SCHEDULER in silent:
        silent.remove(Component.SCHEDULER)  # the scheduler only waits for the broker, which has an alarm of its own
    unknown = {str(part) for part in liveness.parts if liveness.life(part) is Life.UNKNOWN}
    open_alarms = Alarm.objects.filter(rule=program_stopped.id, resolved_at=None)
    update_alarms(program_stopped, open_alarms, find_stopped_programs(silent), now, unknown=unknown)
    if liveness.is_settled:
        ran = dict(RuleRun.objects.filter(rule__in=[program_stopped.id, missed_turns.id]).values_list("rule", "ran_at"))
        for rule in (program_stopped, missed_turns):
            if is_due(rule, ran, now):
                with transaction.atomic():
                    is_claimed = claim_run(rule, ran, now)
                    if is_claimed and rule is missed_turns:  # the alarms of the other rule were updated above
                        run_rules([missed_turns], now)
    overdue = Notice.objects.queued().filter(next_attempt_at__lte=clock.now() - NOTICE_OVERDUE_AFTER)
    if silent or overdue.exists():
        send_in_background()


_sender: threading.Thread | None = None


def send_in_background() -> None:
    """Send the due notices in another thread, because a mail server that hangs must not stop the heartbeat."""
    global _sender  # noqa: PLW0603 - one thread per process
    if _sender is None or not _sender.is_alive():
        _sender = threading.Thread(target=send, name="notices", daemon=True)
        _sender.start()


def send() -> None:
    """Send the due notices, and close this thread's database connection."""
    try:
        send_due()
    finally:
        connection.close()
