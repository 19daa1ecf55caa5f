from collections.abc import Sequence

from django.apps import AppConfig
from django.core.management import call_command
from django.db.models.signals import post_migrate


class GradingConfig(AppConfig):
    name = "grading"
    verbose_name = "Grading"

    def ready(self) -> None:
        from grading import checks  # noqa: F401 - registers the system checks
        from grading.access import watching  # noqa: F401 - connects what History is told by
        from grading.monitoring.notices import checks as notice_checks  # noqa: F401 - the same
        from grading.roles import sync_roles

        # Permissions come into being after all migrations have run, so the groups are filled then.
        post_migrate.connect(sync_roles, sender=self)
        post_migrate.connect(make_cache, sender=self)
        post_migrate.connect(count_after_upgrade, sender=self)


def count_after_upgrade(using: str, plan: Sequence[object] = (), **_said: object) -> None:
    """A table that was made anew, and an index that is new, have not been counted."""
    from grading.health import planner
    from grading.models import Session

    if plan and Session.objects.using(using).exists():
        planner.gather_statistics(using)


def make_cache(using: str, **_said: object) -> None:
    """The table of Django's cache, which no migration makes."""
    call_command("createcachetable", database=using, verbosity=0)
