from collections.abc import Sequence

from django.apps import AppConfig
from django.core.management import call_command
from django.db.models.signals import post_migrate


class GradingConfig(AppConfig):
    name = "grading"
    verbose_name = "Grading"

    def ready(self) -> None:
        from grading import checks  # noqa: F401 - registers the system checks
        from grading.access import watching  # noqa: F401 - connects signal handlers that write AuditEvents
        from grading.monitoring.notices import checks as notice_checks  # noqa: F401 - registers system checks
        from grading.roles import sync_roles

        # After all migrations, because Django creates the permissions then.
        post_migrate.connect(sync_roles, sender=self)
        post_migrate.connect(create_cache_table, sender=self)
        post_migrate.connect(gather_statistics_after_upgrade, sender=self)


def gather_statistics_after_upgrade(using: str, plan: Sequence[object] = (), **_kwargs: object) -> None:
    """Gather the query planner's statistics, which new and rebuilt tables and indexes lack."""
    from grading.health import planner
    from grading.models import Session

    if plan and Session.objects.using(using).exists():
        planner.gather_statistics(using)


def create_cache_table(using: str, **_kwargs: object) -> None:
    """Create the table of Django's cache, for which there is no migration."""
    call_command("createcachetable", database=using, verbosity=0)
