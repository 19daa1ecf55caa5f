"""Recalibration on the bandit's page: what people's grades say of the machines, and putting that in force, or off."""

import datetime as dt
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_POST

from bandit.core.moves import moves
from bandit.reading import EffectivePolicy
from grading.review import recalibration
from grading.screens.moves import in_words
from grading.screens.scale.switch import answer


def card(held: EffectivePolicy, now: dt.datetime) -> dict[str, Any]:
    """What the card shows of a bandit that is read by what `held` says."""
    name = held.bandit.name
    proposed = recalibration.proposal(name, now, held)
    found = moves(name, proposed.without, proposed.rectified)
    return {"proposal": proposed, "moves": found, "effect": in_words(found)}


@require_POST
def change(request: HttpRequest, name: str) -> HttpResponse:
    """Put the proposed offsets in force, or switch the recalibration off: one more version, with the user's name."""

    def act(by: User, asked: dict[str, Any], fingerprint: str) -> str:
        if not fingerprint:
            row = recalibration.switch_off(name, by, **asked)
            return f"The recalibration is off since version {row.version}: every posterior is the ledger's own again."
        proposed = recalibration.proposal(name, timezone.now())
        row = recalibration.put_in_force(proposed, by, fingerprint=fingerprint, **asked)
        return f"Version {row.version} is in force: {in_words(moves(name, proposed.without, proposed.rectified))}."

    return answer(request, name, act)
