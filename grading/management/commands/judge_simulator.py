"""Run the judge simulator until interrupted."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.simulator import Mode, Simulator


class Command(BaseCommand):
    help = "A local server that speaks the Messages API, for demonstrations and tests. It costs and knows nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8765, help="0 finds a free one")
        parser.add_argument("--mode", default=Mode.VERDICT.value, choices=[mode.value for mode in Mode])

    def handle(self, *_args: Any, port: int, mode: str, **_options: Any) -> None:
        done = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: done.set())
        try:
            simulator = Simulator(port=port, mode=mode)
            simulator.start()
        except OSError as error:
            raise CommandError(f"Port {port} cannot be used ({error.strerror}); choose another with --port") from error
        self.stdout.write(f"Judge simulator at {simulator.url}, mode {mode}; POST /_script changes it")
        self.stdout.flush()
        done.wait()
        simulator.close()
