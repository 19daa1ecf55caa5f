"""Draws which random shares of all sessions a session belongs to: once, when it arrives, with the site's key.

An agent can neither foresee nor choose a draw. The draw is stored, so that a later change of shares or key does not
change it, and the sessions of a share stay a random sample.
"""

from typing import Any

from django.conf import settings

from bandit.chance import chance, key_id
from grading.models import JudgePolicy, Session, SessionShares
from grading.models.judging import Purpose

SLICE = "review slice"


def draw(session: Session) -> SessionShares:
    """Draw and store the shares that a session belongs to, when it has just arrived."""
    return SessionShares.objects.create(session=session, **_draw_columns(session))


def _draw_columns(session: Session) -> dict[str, Any]:
    policy = JudgePolicy.objects.current()
    # Samples are judged only once, on a person's request.
    repeat_share = 0.0 if session.is_sample else policy.repeat_share
    second_share = 0.0 if session.is_sample else policy.second_share
    return {
        "review_slice": _draw_share(session, SLICE, settings.REVIEW_SLICE),
        "repeat": _draw_share(session, Purpose.REPEAT, repeat_share),
        "second": _draw_share(session, Purpose.SECOND, second_share),
        "key_id": key_id(),
    }


def for_session(session: Session) -> SessionShares:
    """The stored draw of a session. If there is none, the session is drawn now."""
    stored: SessionShares | None = getattr(session, "shares", None)
    if stored:
        return stored
    drawn, _is_new = SessionShares.objects.get_or_create(session=session, defaults=_draw_columns(session))
    return drawn


def keyed_number(purpose: str, agent: str, name: str) -> float:
    """The number in [0, 1) that is drawn for a session (agent and name) and a purpose."""
    return chance(purpose, "", agent, name)


def _draw_share(session: Session, purpose: str, share: float) -> float | None:
    """`share` if the session was drawn for it, else None."""
    return share if keyed_number(purpose, session.agent.name, session.external_id) < share else None
