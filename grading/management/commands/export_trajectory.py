"""Write a session as an ATIF trajectory."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.evidence.material import session_events
from grading.formats.atif.export import to_trajectory
from grading.models import Session
from grading.redaction import redact_json


class Command(BaseCommand):
    help = (
        "Write a session's own log as a trajectory in ATIF 1.7, the Agent Trajectory Interchange Format, whichever "
        "harness wrote it. Keys and other secrets that the site recognises are removed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="the agent's name")
        parser.add_argument("session", help="the agent's own id of the session")
        parser.add_argument("--output", type=Path, help="a file to write; standard output without it")

    def handle(self, *_args: Any, agent: str, session: str, output: Path | None, **_options: Any) -> None:
        row = Session.objects.filter(agent__name=agent, external_id=session).select_related("harness", "log").first()
        if row is None:
            raise CommandError(f"expected the id of one of {agent}'s sessions; got {session!r}")
        events = session_events(row)
        if events is None:
            raise CommandError(f"{session} has no log that could be used; its page says why")
        versions = [each.report.get("harness_version") for each in row.evidence.all()]
        trajectory = to_trajectory(
            events,
            session_id=row.external_id,
            harness=row.harness.name if row.harness else "unknown",
            version=str(next(filter(None, versions), "")),
            model=row.model,
        )
        text = json.dumps(redact_json(trajectory), indent=1, ensure_ascii=False)
        if output is None:
            self.stdout.write(text)
        else:
            output.write_text(text + "\n", encoding="utf-8")
