"""What a correction would do to the arms of every bandit, before anything is saved."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from django.utils import timezone

from bandit.core.posterior import ArmPosterior
from bandit.selection import Change, Outlook, what_if_many
from grading import rewards
from grading.core.grade import checked_value
from grading.core.vocabulary import Source
from grading.models import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What corrections do to one arm of one bandit: its posterior, and its expected number of the next 100.

    `named`: a corrected session ran it; else it moves with the others.
    """

    bandit: str
    arm: str
    named: bool
    before: ArmPosterior
    after: ArmPosterior
    share_before: float
    share_after: float

    @classmethod
    def between(cls, before: Outlook, after: Outlook, *, bandit: str, arm: str, named: bool = True) -> Self:
        """The difference that two outlooks of the bandit make to the arm."""
        return cls(
            bandit=bandit,
            arm=arm,
            named=named,
            before=before.arms[arm],
            after=after.arms[arm],
            share_before=before.share_of_next_100(arm),
            share_after=after.share_of_next_100(arm),
        )


def preview(session: Session, value: float | None) -> tuple[Effect, ...]:
    """Every arm that learns from the session now, and as it would be after a person says `value` (None: exclude)."""
    value, now = None if value is None else checked_value(value), timezone.now()
    return tuple(
        Effect.between(*what_if_many(bandit, [change], now), bandit=bandit, arm=change.arm)
        for bandit, change in changes(session, value)
    )


def changes(session: Session, value: float | None) -> Iterator[tuple[str, Change]]:
    """What a person's `value` in [0, 1] (None: exclude) changes in each bandit that learns from the session."""
    day = timezone.localdate(session.ended_at)
    for bandit, arm in rewards.learners(session):
        if arm is not None:
            yield (
                bandit,
                Change(observation=session.observation, arm=arm.name, value=value, source=Source.HUMAN, day=day),
            )
