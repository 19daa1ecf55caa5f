from django.apps import AppConfig


class BanditConfig(AppConfig):
    name = "bandit"

    def ready(self) -> None:
        from bandit import checks  # noqa: F401  registers the system checks
