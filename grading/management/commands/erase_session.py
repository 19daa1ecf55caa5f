"""Erase sessions."""

import getpass
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.backups import upgrading
from grading.intake import erasing
from grading.models import Session


class Command(BaseCommand):
    help = (
        "Erase sessions with their evidence, grades and rewards; the bandits forget them exactly. Shows what will be "
        "erased, and asks first. It cannot be undone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="the agent's name")
        parser.add_argument("session", nargs="+", help="the agent's own ids of the sessions")
        parser.add_argument("--why", default="asked for", help="kept with the erasure; write no name into it")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        upgrading.add_copies_option(parser)

    def handle(
        self,
        *_args: Any,
        agent: str,
        session: list[str],
        why: str,
        yes: bool,
        delete_upgrade_copies: bool,
        **_options: Any,
    ) -> None:
        sessions = Session.objects.filter(agent__name=agent, external_id__in=session)
        missing = set(session) - set(sessions.values_list("external_id", flat=True))
        if missing:
            raise CommandError(f"expected ids of {agent}'s sessions; unknown are {', '.join(sorted(missing))}")
        self.stdout.write(f"To be erased: {erasing.describe_counts(erasing.count_rows(sessions))}.")
        copies = upgrading.copies()
        for line in upgrading.announce_copies(copies, delete=delete_upgrade_copies):
            self.stdout.write(line)
        if not yes and not (sys.stdin.isatty() and input("Type yes to erase it: ").strip() == "yes"):
            raise CommandError("nothing was erased; --yes erases without asking")
        erasing.overwrite_deleted()
        counts = erasing.erase(sessions, who=f"{getpass.getuser()} (shell)", why=why)
        self.stdout.write(f"Erased: {erasing.describe_counts(counts)}.")
        self.stdout.write("\n".join(erasing.finish()))
        for line in upgrading.finish_copies(copies, delete=delete_upgrade_copies):
            self.stdout.write(line)
