"""The Celery application. Its messages only wake workers: the queue is in the database."""

import logging
import os
import signal
import threading
from typing import Any

from celery import Celery, bootsteps
from celery.beat import Service
from celery.signals import beat_init, worker_init
from click import Option
from kombu.transport.redis import Channel

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gradingsite.settings")

logger = logging.getLogger(__name__)

# How often the scheduler checks whether it has been stopped.
STOP_CHECK_SECONDS = 1.0

app = Celery("gradingsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# A worker that loses its broker must not return its messages: kombu does that through a connection that it may have
# closed already, and the AttributeError ends the worker. The sweep finds the work of lost messages.
Channel.do_restore = False


@worker_init.connect  # type: ignore[untyped-decorator]  # Celery ships no types
@beat_init.connect  # type: ignore[untyped-decorator]
def begin(**_kwargs: Any) -> None:
    """Check, when a worker or a scheduler starts, that it can work on the database (`begin_program`)."""
    from gradingsite.schema import begin_program

    begin_program(ends_if_outdated=True)


class SchedulerStep(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery ships no types
    """Celery's beat as a thread of the worker, with --with-scheduler. A separate process would hold the whole site in
    memory to send a few messages. If the thread fails, the worker ends and both are started again.
    """

    def __init__(self, worker: Any, *, with_scheduler: bool = False, **options: Any) -> None:
        super().__init__(worker, **options)
        self.enabled = with_scheduler

    def create(self, worker: Any) -> None:
        self.service = Service(
            worker.app, max_interval=STOP_CHECK_SECONDS, scheduler_cls=worker.app.conf.beat_scheduler
        )
        self.thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self, _worker: Any) -> None:
        self.thread.start()

    def stop(self, _worker: Any) -> None:
        self.service.stop()
        self.thread.join(2 * STOP_CHECK_SECONDS)

    def _run(self) -> None:
        """Run the scheduler until `stop`; if it fails, end the worker's process."""
        try:
            self.service.start()
        except Exception:
            logger.exception("the scheduler failed; this worker ends, to be started again with a new one")
            os.kill(os.getpid(), signal.SIGTERM)


app.steps["worker"].add(SchedulerStep)
app.user_options["worker"].add(
    Option(("--with-scheduler",), is_flag=True, help="Send the periodic jobs' messages too.")
)
