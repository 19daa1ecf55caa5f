"""Which shares of all sessions one belongs to: drawn once with the site's key, when it arrives, and kept.

Nobody who is graded can foresee or choose a draw, and no other share, key or hash that comes later changes what was
drawn: the sessions of a share stay a random sample of all.
"""

from typing import Any

from django.conf import settings

from bandit.chance import chance, key_id
from grading.models import JudgePolicy, Session, SessionShares
from grading.models.judging import Purpose

SLICE = "review slice"


def draw(session: Session) -> SessionShares:
    """Draw for a session that has just arrived."""
    return SessionShares.objects.create(session=session, **_drawn(session))


def _drawn(session: Session) -> dict[str, Any]:
    policy = JudgePolicy.objects.current()
    # Nobody asks the judge about a sample but people, once each.
    shares = (0.0, 0.0) if session.is_sample else (policy.repeat_share, policy.second_share)
    return {
        "review_slice": _draw_share(session, SLICE, settings.REVIEW_SLICE),
        "repeat": _draw_share(session, Purpose.REPEAT, shares[0]),
        "second": _draw_share(session, Purpose.SECOND, shares[1]),
        "key_id": key_id(),
    }


def for_session(session: Session) -> SessionShares:
    """What was drawn for a session; it is drawn now where that was never done."""
    drawn: SessionShares | None = getattr(session, "shares", None)
    return drawn or SessionShares.objects.get_or_create(session=session, defaults=_drawn(session))[0]


def number(purpose: str, agent: str, name: str) -> float:
    """The number in [0, 1) that is drawn for a session's name."""
    return chance(purpose, "", agent, name)


def _draw_share(session: Session, purpose: str, share: float) -> float | None:
    return share if number(purpose, session.agent.name, session.external_id) < share else None
