"""Erase an agent."""

import getpass
import sys
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.backups import upgrading
from grading.intake import erasing
from grading.models import Agent, Session


class Command(BaseCommand):
    help = (
        "Erase an agent: its sessions with their evidence, grades and rewards, its decisions, tokens and name, as if "
        "it had never existed. Shows what will be erased, and asks for the name first. It cannot be undone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="the agent's name")
        parser.add_argument("--why", default="asked for", help="kept with the erasure, without the agent's name")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        upgrading.add_copies_option(parser)

    def handle(
        self, *_args: Any, agent: str, why: str, yes: bool, delete_upgrade_copies: bool, **_options: Any
    ) -> None:
        row = Agent.objects.filter(name=agent).first()
        if row is None:
            raise CommandError(f"expected the name of an agent; got {agent!r}")
        counts = erasing.count_rows(Session.objects.filter(agent=row))
        self.stdout.write(f"To be erased with the agent: {erasing.describe_counts(counts) or 'nothing else'}.")
        copies = upgrading.copies()
        for line in upgrading.announce_copies(copies, delete=delete_upgrade_copies):
            self.stdout.write(line)
        is_confirmed = yes or (sys.stdin.isatty() and input("Type the agent's name to erase it: ").strip() == agent)
        if not is_confirmed:
            raise CommandError("nothing was erased; --yes erases without asking")
        gone = Counter[str]()
        # Iterating deletes, batch by batch.
        for done, batch_counts in erasing.erase_agent(row, who=f"{getpass.getuser()} (shell)", why=why):
            gone.update(batch_counts)
            self.stdout.write(f"{done:,} of {counts['sessions']:,} sessions")
        self.stdout.write(f"Erased: {erasing.describe_counts(gone)}.")
        self.stdout.write("\n".join(erasing.finish()))
        for line in upgrading.finish_copies(copies, delete=delete_upgrade_copies):
            self.stdout.write(line)
        for table, count in erasing.remaining_mentions(agent).items():
            self.stdout.write(f"{count:,} × {table}, written by people, still contain the name: change it there.")
