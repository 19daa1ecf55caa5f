"""Import the logs that harnesses left on disk."""

import argparse
import getpass
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from bandit.models import Arm, UnknownArm
from grading.access.recording import CONSOLE
from grading.health import planner
from grading.intake.importing import ImportOutcome, ImportRecord, import_logs, scan
from grading.intake.opencode import export_sessions
from grading.models import Agent
from grading.models.imports import Fate
from grading.plain import visible_text
from grading.redaction import redact

SHOWN = 3


class Command(BaseCommand):
    help = (
        "Import session logs of coding agents (docs/formats.md) from folders, for example ~/.claude/projects, "
        "~/.codex or ~/.local/share/opencode. A file's format is recognised by its content, not its name. Sessions "
        "that the site has already are skipped; links are not followed; nothing is changed on disk. The page Imports "
        "lists the result for every file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a folder or a log file")
        parser.add_argument("--agent", default="imported", help="the agent whose sessions these are; made if new")
        parser.add_argument("--category", help="what kind of work they were, if all were of one kind")
        parser.add_argument("--list", action="store_true", help="list the result for every file, a line each")
        parser.add_argument("--processes", type=int, default=processors(), help="how many logs to read at a time")

    def handle(
        self,
        *_args: Any,
        paths: list[Path],
        agent: str,
        category: str | None,
        processes: int,
        list: bool,  # noqa: A002 - as the option is called
        **_options: Any,
    ) -> None:
        for path in paths:
            if not path.exists():
                raise CommandError(f"{path} does not exist; name a folder or a log file")
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
        scanned = [*tqdm(scan(paths), desc="Looking", unit=" files", disable=None)]
        files = [each for each in scanned if isinstance(each, Path)]
        exported = TemporaryDirectory()
        exports, sources = export_sessions(files, Path(exported.name))
        files = [path for path in files if path not in sources] + exports
        outcomes = [each for each in scanned if isinstance(each, ImportOutcome)]
        record = ImportRecord(owner, paths, by=operator(), category=category)
        for outcome in outcomes:
            record.add(outcome)
        record.write()  # before the processes are forked, which must not share this connection
        done = import_logs(files, agent=owner, category=category, folders=paths, processes=max(1, processes))
        stopped = "an error stopped it"
        try:
            for outcome in tqdm(done, total=len(files), desc="Importing", unit="file", disable=None):
                outcomes.append(outcome)
                record.add(outcome)
            stopped = ""
        except KeyboardInterrupt:
            stopped = "stopped by Ctrl-C"
        except BrokenProcessPool:
            stopped = "a process of the import was killed, perhaps for lack of memory"
        finally:
            done.close()
            exported.cleanup()
            record.end(stopped)
            planner.gather_statistics()
        read = sum(outcome.fate not in {Fate.SKIPPED, Fate.FOLDER} for outcome in outcomes)
        if stopped:
            self.stdout.write(f"Ended after {read:,} of {len(files):,}: {stopped}. Run it again to go on.")
        self.stdout.write(table(outcomes))
        self.stdout.write("\n".join(listed(outcomes) if list else reasons(outcomes)))
        address = f"{settings.SITE_URL.rstrip('/')}{record.row.get_absolute_url()}"
        self.stdout.write(f"Every file with its reason: {address} on the site{'' if list else ', or --list'}")


def operator() -> str:
    """Who runs this, for the site's page."""
    with suppress(KeyError, OSError):  # a user without a name
        return f"{getpass.getuser()}, at {CONSOLE}"
    return CONSOLE


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def table(outcomes: Iterable[ImportOutcome]) -> str:
    """A row for each fate with its number of files, their sum, and the number of folders that were left out."""
    counts = Counter(outcome.fate for outcome in outcomes)
    folders = counts.pop(Fate.FOLDER, 0)
    if not counts and not folders:
        return "No file found. Name the folder where your harness keeps its logs."
    lines = [f"{counts[fate]:8,}  {fate.words}" for fate in Fate if counts[fate]]
    lines.append(f"{counts.total():8,}  files in all")
    if folders:
        lines.append(f"{folders:8,}  {Fate.FOLDER.words}")
    return "\n".join(lines)


def reasons(outcomes: Iterable[ImportOutcome]) -> Iterable[str]:
    """For each fate and reason: the reason, the number of files, and a few of them."""
    groups: dict[tuple[Fate, str], list[ImportOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.why:
            groups[outcome.fate, outcome.why].append(outcome)
    for (fate, why), group in sorted(groups.items(), key=lambda item: ([*Fate].index(item[0][0]), -len(item[1]))):
        yield f"{fate.words}: {why} ({len(group):,}), for example"
        yield from (f"    {_describe(each.path, each.detail)}" for each in group[:SHOWN])


def listed(outcomes: Iterable[ImportOutcome]) -> Iterable[str]:
    """A line for every file, in the order of their names: its fate, and why."""
    for each in sorted(outcomes, key=lambda outcome: outcome.path):
        yield f"{each.fate.one:<17}  {_describe(each.path, ', '.join(filter(None, (each.why, each.detail))))}"


def _describe(path: Path, why: str) -> str:
    """A file's name and why it was skipped, safe for a terminal."""
    text = f"{path}: {redact(why)}" if why else str(path)
    return visible_text(text, 500)
