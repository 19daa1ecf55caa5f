"""What people's grades would do to the arms of every bandit, before anything is saved."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from django.utils import timezone

from bandit.core.posterior import ArmPosterior
from bandit.selection import HypotheticalReward, Outlook, what_if_many
from grading.models import Session
from grading.reward import rewards
from grading.reward.grade import checked_value
from grading.vocabulary import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEffect:
    """What grades do to one arm of one bandit: its posterior, and its expected number of the next 100.

    `named`: a graded session ran it; else it moves with the others.
    """

    bandit: str
    arm: str
    named: bool
    before: ArmPosterior
    after: ArmPosterior
    share_before: float
    share_after: float


def preview(session: Session, value: float | None) -> tuple[ArmEffect, ...]:
    """Every arm that learns from the session now, and as it would be after a person says `value` (None: exclude)."""
    value = None if value is None else checked_value(value)
    return tuple(effect for effect in effects([(session, value)]) if effect.named)


def effects(given: Iterable[tuple[Session, float | None]]) -> Iterator[ArmEffect]:
    """What it does together that a person gives these sessions these values in [0, 1] (None: exclude), by bandit.

    Every arm that the sessions ran, and every other whose mean or share moves with theirs by a digit that pages show.
    """
    now = timezone.now()
    by_bandit = changes(given)
    for bandit, own in by_bandit.items():
        before, after = what_if_many(bandit, own, now, beside=by_bandit)
        yield from moved(bandit, before, after, ran={change.arm for change in own})


def moved(bandit: str, before: Outlook, after: Outlook, *, ran: Collection[str] = ()) -> Iterator[ArmEffect]:
    """The arms of a bandit that `ran`, first, and every other whose mean or share moves by a digit that pages show."""
    for arm in sorted(before.arms, key=lambda name: (name not in ran, name)):
        if arm in ran or _shown(before, arm) != _shown(after, arm):
            yield ArmEffect(
                bandit=bandit,
                arm=arm,
                named=arm in ran,
                before=before.arms[arm],
                after=after.arms[arm],
                share_before=before.share_of_next_100(arm),
                share_after=after.share_of_next_100(arm),
            )


def changes(given: Iterable[tuple[Session, float | None]]) -> dict[str, list[HypotheticalReward]]:
    """What a person's values of these sessions (None: exclude) would make of their rewards, by bandit."""
    found: dict[str, list[HypotheticalReward]] = {}
    for session, value in given:
        day = timezone.localdate(session.ended_at)
        for learner in rewards.learners(session):
            change = HypotheticalReward(
                observation=session.observation,
                arm=learner.arm.name,
                value=value,
                source=Source.HUMAN,
                day=day,
                context=learner.context,
                salience=learner.salience,
                cost_usd=session.cost_usd,
            )
            found.setdefault(learner.bandit, []).append(change)
    return found


def _shown(outlook: Outlook, arm: str) -> tuple[int, int]:
    """An arm's mean and share, to the digits that pages show."""
    return round(1000 * outlook.arms[arm].mean), round(outlook.share_of_next_100(arm))
