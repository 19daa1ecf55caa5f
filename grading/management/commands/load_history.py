"""Two weeks of made-up history for the demo."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tqdm import tqdm

from grading.models import Session
from grading.story import history, march31
from grading.tasks import read_calibration, read_costs, read_insight


class Command(BaseCommand):
    help = (
        "Give an empty demo site two weeks of history. `make demo` does it at the first start, before the others run."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        if not march31.is_demo():
            raise CommandError("This is no demo site: its sessions are its own. Nothing was loaded; try `make demo`.")
        if Session.objects.exists():
            raise CommandError("This site has sessions already; nothing was loaded.")
        with history.simulator() as judge:
            now = timezone.now()
            total = sum(1 for _past in history.plan(now))
            count = sum(1 for _session in tqdm(history.load(now, judge), total=total, disable=None))
        for compute in (read_costs, read_calibration, read_insight):  # or pages would lack these for some minutes
            compute()
        self.stdout.write(f"{count} sessions of two weeks loaded, each with its verdict")
