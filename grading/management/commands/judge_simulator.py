"""Run the judge simulator until interrupted."""

import signal
import threading
from dataclasses import fields
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.simulator import Limits, Mode, Simulator


class Command(BaseCommand):
    help = "A local server that speaks the Messages API, for demonstrations and tests. It costs and knows nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8765, help="0 finds a free one")
        parser.add_argument("--mode", default=Mode.VERDICT.value, choices=[mode.value for mode in Mode])
        parser.add_argument("--latency", type=float, default=0.0, help="mean seconds until a reply")
        parser.add_argument(
            "--filled", type=float, default=1.0, help="share of a minute in the buckets at first, 0 to 1"
        )
        for limit in fields(Limits):
            option = f"--{limit.name.replace('_', '-')}"
            parser.add_argument(option, type=int, help=f"a minute; enforces limits ({limit.default:,})")

    def handle(self, *_args: Any, port: int, mode: str, latency: float, filled: float, **options: Any) -> None:
        done = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: done.set())
        # If any limit is given, the others have their defaults; otherwise none is enforced.
        chosen = {limit.name: options[limit.name] for limit in fields(Limits) if options[limit.name] is not None}
        limits = Limits(**chosen) if chosen else None
        try:
            simulator = Simulator(port=port, mode=mode, latency=latency, filled=filled, limits=limits)
            simulator.start()
        except OSError as error:
            raise CommandError(f"Port {port} cannot be used ({error.strerror}); choose another with --port") from error
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Judge simulator at {simulator.url}, mode {mode}; POST /_script changes it")
        self.stdout.flush()
        done.wait()
        simulator.close()
