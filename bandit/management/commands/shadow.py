"""What a variant of a bandit's policy would have chosen and earned on the log, before it is switched on."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from bandit.models import Bandit, UnknownBandit
from bandit.names import printable
from bandit.policies import proposed
from bandit.reading import version_of
from bandit.shadow import LIMIT, shadow

# What moves the odds among arms that may be chosen; the rest of a policy says which those are.
NUMBERS = {
    "half-life": "half_life_days",
    "long-run-half-life": "long_run_half_life_days",
    "prior-strength": "prior_strength",
    "evidence-scale": "evidence_scale",
    "evidence-cap": "evidence_cap",
    "exploration": "exploration",
    "sharpness": "sharpness",
    "floor": "floor",
    "cost-weight": "cost_weight",
    "consumption-boost": "consumption_boost",
    "consumption-penalty": "consumption_penalty",
    "consumption-window": "consumption_window_days",
    "consumption-min-samples": "consumption_min_samples",
}
WHOLE = {"consumption_window_days", "consumption_min_samples"}


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("bandit", help="its name, such as category")
        for option, name in NUMBERS.items():
            number = int if name in WHOLE else float
            parser.add_argument(f"--{option}", dest=name, type=number, help=f"in place of the policy's {name}")
        parser.add_argument(
            "--weight", action="append", default=[], type=weight, metavar="SOURCE=0..1", help="may be repeated"
        )
        parser.add_argument("--limit", type=int, default=LIMIT, help="decisions looked at (default: %(default)s)")
        parser.add_argument(
            "--every", type=int, default=1, help="read the ledger anew after so many rows; 1, the default, is exact"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        quiet = options["verbosity"] == 0
        try:
            bandit = Bandit.objects.named(options["bandit"])
            numbers = {name: options[name] for name in NUMBERS.values() if options[name] is not None}
            weights = {**version_of(bandit).weights, **dict(options["weight"])}
            report = shadow(
                proposed(bandit, {**numbers, "weights": weights}),
                timezone.now(),
                limit=options["limit"],
                every=options["every"],
                watch=lambda draws: tqdm(draws, desc="reading", unit="draw", disable=quiet or None),
            )
        except (UnknownBandit, ValidationError, ValueError) as error:
            raise CommandError("; ".join(getattr(error, "messages", [str(error)]))) from error
        others = "".join(f"; {count} {reason}" for reason, count in sorted(report.left_out.items()))
        lines = [f"{report.variant}: {report.used} of the last {report.looked_at} decisions{others}."]
        if report.comparison is not None:
            lines += [f"From {report.first:%Y-%m-%d %H:%M} to {report.last:%Y-%m-%d %H:%M}. Of a hundred such draws:"]
            lines += [f"  {'':24}{'ran':>8}{'would':>8}"]
            lines += [f"  {printable(share.arm):24}{share.ran:8.1f}{share.would:8.1f}" for share in report.shares]
            told = report.comparison
            cut = f", {told.clipped} cut to {told.cap:.1f}" if told.clipped else ""
            lines += [f"Effective sample {told.effective:.0f}, heaviest weight {told.largest:.2f}{cut}."]
            if found := report.comparison.levels:
                lines += [f"  {'mean reward':24}{'':>8}  90 % interval"]
                named = {"earned": found.earned, "IPS": found.ips, "SNIPS": found.snips, "doubly robust": found.dr}
                lines += [f"  {name:24}{of.mean:8.3f}  {of.low:.3f} to {of.high:.3f}" for name, of in named.items()]
        self.stdout.write("\n".join([*lines, report.sentence]))


def weight(text: str) -> tuple[str, float]:
    """A source and what it is to count, from "journal=0.1". Raises ValueError."""
    source, _, number = text.partition("=")
    return source, float(number)
