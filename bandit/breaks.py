"""What people say of breaks: that one stands, or that it is taken back. Always a new row, with a name."""

from datetime import date

from django.db import transaction
from django.utils import timezone

from bandit.ledger import touch
from bandit.models import Arm, Bandit, BreakDecision
from bandit.reading import posterior_of


def decide(arm: Arm, day: date, *, kept: bool, by: str, why: str = "") -> BreakDecision:
    """Keep the break of an arm before `day`, or take it back; from now on that counts.

    Raises ValueError where no break is found on that day, and nobody has said anything of one.
    """
    with transaction.atomic():
        bandit = Bandit.objects.locked(arm.bandit.name)
        changes = posterior_of(bandit.name, timezone.now()).posterior.changes
        found = None if changes is None else changes.breaks.get(arm.name)
        if (found is None or found.day != day) and not arm.break_decisions.filter(day=day).exists():
            raise ValueError(
                f"{arm} has no break on {day}: nothing was saved. Its rewards were corrected meanwhile, or more came; "
                "look at what is believed now."
            )
        made = BreakDecision.objects.create(bandit=bandit, arm=arm, day=day, kept=kept, by=by, note=why)
        touch(bandit)
    return made
