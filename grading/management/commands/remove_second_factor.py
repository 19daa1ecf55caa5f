"""Remove the second factor of a user who lost the app and the recovery codes."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.access.recording import record
from grading.models.audit import AuditKind


class Command(BaseCommand):
    help = "Remove the second factor of a user, who then logs in by password alone and can set up a new one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the user's name")

    def handle(self, *_args: Any, name: str, **_options: Any) -> None:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user {name!r}.")
        count, _ = Authenticator.objects.filter(user=user).delete()
        if not count:
            raise CommandError(f"{name!r} has no second factor.")
        record(AuditKind.SIGN_IN, f"removed the second factor of {name}")
        self.stdout.write(f"{name} logs in by password alone now.")
