"""The Celery application. Its messages only wake workers up: the database is the queue (L7)."""

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

# The scheduler looks so often whether it is to end.
LOOKS_SECONDS = 1.0

app = Celery("gradingsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# A worker that loses its broker must not give its messages back to it: kombu does so through a connection that it may
# have let go already, and the AttributeError ends the worker. What a lost message was about, the sweep finds.
Channel.do_restore = False


@worker_init.connect  # type: ignore[untyped-decorator]  # Celery ships no types
@beat_init.connect  # type: ignore[untyped-decorator]
def begin(**_said: Any) -> None:
    from gradingsite.running import begin_program

    begin_program()


class SchedulerStep(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery ships no types
    """Celery's beat as a thread of the worker, where that is asked for: a process of its own would be a whole site in
    memory, to send a message now and then. One that falls takes its worker along, and is started again with it.
    """

    def __init__(self, worker: Any, *, with_scheduler: bool = False, **options: Any) -> None:
        super().__init__(worker, **options)
        self.enabled = with_scheduler

    def create(self, worker: Any) -> None:
        self.service = Service(worker.app, max_interval=LOOKS_SECONDS, scheduler_cls=worker.app.conf.beat_scheduler)
        self.thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self, _worker: Any) -> None:
        self.thread.start()

    def stop(self, _worker: Any) -> None:
        self.service.stop()
        self.thread.join(2 * LOOKS_SECONDS)

    def _run(self) -> None:
        try:
            self.service.start()
        except Exception:
            logger.exception("the scheduler fell; this worker ends, to be started again with a new one")
            os.kill(os.getpid(), signal.SIGTERM)


app.steps["worker"].add(SchedulerStep)
app.user_options["worker"].add(
    Option(("--with-scheduler",), is_flag=True, help="Send the periodic jobs' messages too.")
)
