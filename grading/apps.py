from django.apps import AppConfig
from django.db.models.signals import post_migrate


class GradingConfig(AppConfig):
    name = "grading"
    verbose_name = "Grading"

    def ready(self) -> None:
        from grading import checks  # noqa: F401 - registers the system checks
        from grading.monitoring.notices import checks as notice_checks  # noqa: F401 - the same
        from grading.roles import sync_roles

        # Permissions come into being after all migrations have run, so the groups are filled then.
        post_migrate.connect(sync_roles, sender=self)
