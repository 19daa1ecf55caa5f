"""The founding incident on a terminal, in a state of its own that is thrown away."""

import datetime as dt
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from grading import judging
from grading.story import history
from grading.story.figures import ARM
from grading.story.march31 import STEPS, Incident, StoryStep, is_demo, press
from gradingsite import broker

# How long a step may take, in seconds; it takes a fraction of one.
PATIENCE, PAUSE = 300, 0.1


class Command(BaseCommand):
    help = "Live through an incident, step by step: a temporary site with a simulated judge. Yours is not touched."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", choices=["march31"], help="31 March: the day the reward lied")
        parser.add_argument("--inside", action="store_true", help="in a temporary site that is there already")

    def handle(self, *_args: Any, name: str, inside: bool, **_options: Any) -> None:
        if inside:
            self.live_through()
            return
        with tempfile.TemporaryDirectory(prefix="incident-") as folder:
            there = environment(Path(folder))
            for command in (["migrate", "--verbosity", "0"], ["incident", name, "--inside"]):
                whole = [sys.executable, str(settings.BASE_DIR / "manage.py"), *command]
                if subprocess.run(whole, env=there, check=False).returncode:  # noqa: S603  our own
                    raise CommandError("The incident was not lived through to its end: see above.")

    def live_through(self) -> None:
        """Raises CommandError where this is no site of its own, or a step does not come about."""
        if not is_demo() or not settings.CLOCK_SHIFT_FILE:
            raise CommandError("This is no temporary site. Leave out --inside; the command makes one.")
        now = timezone.now()
        with history.simulator() as judge:
            count = sum(1 for _session in history.live_through(now, judge))
            self.say(f"31 March: the day the reward lied\n\nTwo weeks of history: {count} sessions, each judged.")
            self.say(f"This site believes that {ARM} earns {Incident(now).ledger.belief()}.")
            you = User.objects.create_superuser("you")
            for number, step in enumerate(STEPS, start=1):
                press(step.name, you)
                self.say(f"\n{number}. {step.title}\n   {step.means}")
                for figure in step.figures(until_over(step, now)):
                    self.say(f"     {figure.of:<12} {figure.says}")
        ledger = Incident(now).ledger
        self.say(f"\n{ARM} would earn, without the two sessions: {ledger.without}.")
        self.say(f"This site believes that it earns {ledger.belief()}.")
        self.say(f"A site that learns floors believes that it earns {ledger.with_floors}.")

    def say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()


def until_over(step: StoryStep, now: dt.datetime) -> Incident:
    """Do what a worker would, until all of the step has come about. Raises CommandError where it never does."""
    deadline = time.monotonic() + PATIENCE
    while not step.is_over(incident := Incident(now)):
        if time.monotonic() > deadline:
            raise CommandError(f"“{step.title}” did not come about within {PATIENCE} s.")
        judging.sweep()
        judging.pump()
        time.sleep(PAUSE)
    return incident


def environment(folder: Path) -> dict[str, str]:
    """For a site that has nothing to do with this one, and a judge that is simulated; without a broker."""
    (folder / "clock").write_text("0")
    judges = ("JUDGE_MODEL", "JUDGE_FALLBACK_MODEL", "JUDGE_SECOND_MODEL")
    ours = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SITE_TIME_ZONE", *judges)
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return kept | {
        "GRADINGSITE_STATE": str(folder / "state"),
        "CLOCK_SHIFT_FILE": str(folder / "clock"),
        "JUDGE_SIMULATED": "yes",
        "DEMO": "yes",
        "ANTHROPIC_API_KEY": "simulated",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{broker.free_port()}",
        "LOG_LEVEL": "CRITICAL",
    }
