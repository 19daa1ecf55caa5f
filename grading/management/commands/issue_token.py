"""Make a token for an agent, for those who have a shell and no browser."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.access.recording import record
from grading.models import Agent, ApiToken
from grading.models.agents import TokenScope
from grading.models.audit import AuditKind


class Command(BaseCommand):
    help = "Make a bearer token for an agent (made if new) and print it, once: only its hash is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="the agent's name: letters, digits, hyphens")
        parser.add_argument(
            "--scope",
            default=TokenScope.HOOK.value,
            choices=[scope.value for scope in TokenScope if scope],
            help="who will hold it (default: %(default)s): the agent itself, a hook that runs as the agent's user, a "
            "runner that the agent cannot read, or something that only reads",
        )
        parser.add_argument("--note", default="", help="what it is for, shown beside it in the admin")

    def handle(self, *_args: Any, agent: str, scope: str, note: str, **_options: Any) -> None:
        owner = Agent.objects.filter(name=agent).first() or Agent(name=agent)
        try:
            owner.full_clean(validate_unique=False)
        except ValidationError as error:
            raise CommandError(f"{agent!r}: {' '.join(error.messages)}") from error
        owner.save()
        row, secret = ApiToken.objects.issue(owner, scope=TokenScope(scope), note=note)
        record(AuditKind.TOKEN, f"made the token {row}", detail=f"held by {row.get_scope_display()}")
        self.stdout.write(secret)
