"""Import the logs that harnesses left on disk."""

import argparse
import os
import sys
from collections import defaultdict
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from bandit.models import Arm, UnknownArm
from grading.intake.importing import Fate, ImportOutcome, import_logs, logs_under
from grading.models import Agent
from grading.plain import visible_text

SHOWN = 3


class Command(BaseCommand):
    help = (
        "Import session logs (.jsonl of Claude Code, gptme, Codex CLI) from folders, for example ~/.claude/projects, "
        "~/.codex/sessions or ~/.local/share/gptme/logs. What is there already is skipped; nothing is changed on disk."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a folder or a log file")
        parser.add_argument("--agent", default="imported", help="the agent whose sessions these are; made if new")
        parser.add_argument("--category", help="what kind of work they were, if all were of one kind")

        parser.add_argument("--processes", type=int, default=processors(), help="how many logs to take in at a time")

    def handle(
        self,
        *_args: Any,
        paths: list[Path],
        agent: str,
        category: str | None,
        processes: int,
        **_options: Any,
    ) -> None:
        for path in paths:
            if not path.exists():
                raise CommandError(f"{path} does not exist; name a folder or a .jsonl file")
        if category:
            try:
                category = Arm.objects.resolve("category", category).name
            except UnknownArm as error:
                raise CommandError(str(error)) from error
        owner = Agent.objects.filter(name=agent).first() or Agent(name=agent)
        try:
            owner.full_clean(validate_unique=False)
        except ValidationError as error:
            raise CommandError(f"--agent {agent!r}: {' '.join(error.messages)}") from error
        owner.save()
        outcomes: list[ImportOutcome] = []
        files = list(logs_under(paths))
        done = import_logs(files, agent=owner, category=category, folders=paths, processes=max(1, processes))
        try:
            outcomes.extend(tqdm(done, total=len(files), unit="log", disable=None))
        except (KeyboardInterrupt, BrokenProcessPool) as stop:
            what = (
                "" if isinstance(stop, KeyboardInterrupt) else " A process of the import was killed; was memory short?"
            )
            self.stdout.write(f"Stopped after {len(outcomes)} of {len(files)}; run it again to go on.{what}")
        finally:
            done.close()
        self.stdout.write(summary(outcomes))


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def summary(outcomes: list[ImportOutcome]) -> str:
    """How many files met which fate, and why, each reason with a few of its files."""
    if not outcomes:
        return "No .jsonl file found."
    lines = []
    for fate in Fate:
        those = [outcome for outcome in outcomes if outcome.fate is fate]
        if those:
            lines.append(f"{len(those):6,} {fate}")
        reasons: dict[str, list[ImportOutcome]] = defaultdict(list)
        for outcome in those:
            reasons[outcome.why].append(outcome)
        for why, group in sorted(reasons.items(), key=lambda item: -len(item[1])):
            if why:
                lines.append(f"       {len(group):,} {why}, for example")
                told = (f"{item.path}{item.detail and f': {item.detail}'}" for item in group[:SHOWN])
                lines += [f"          {visible_text(line, 500)}" for line in told]
    return "\n".join(lines)
