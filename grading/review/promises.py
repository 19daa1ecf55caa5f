"""Previews what people's grades would do to the arms of every bandit. Nothing is saved."""

from collections.abc import Iterable, Iterator

from django.utils import timezone

from bandit.core.moves import ArmMove, moves
from bandit.core.posterior import Outlook
from bandit.ledger import Credit, GraderKey
from bandit.whatif import HypotheticalReward, rows_of_changes, what_if_rows
from grading.models import Session
from grading.reward import rewards
from grading.vocabulary import Source


def outlooks(
    grades: Iterable[tuple[Session, float | None]],
) -> Iterator[tuple[str, Outlook, Outlook, frozenset[str]]]:
    """The joint effect of a person's grades of these sessions, in [0, 1] or None to exclude, on each bandit.

    Yields the bandit's name, its outlook before and after, and the arms that the sessions ran.
    """
    now = timezone.now()
    changes_by_bandit = changes(grades)
    changed_rows = rows_of_changes(changes_by_bandit)
    for bandit, bandit_changes in changes_by_bandit.items():
        before, after = what_if_rows(bandit, changed_rows, now)
        yield bandit, before, after, frozenset(change.arm for change in bandit_changes)


def arm_moves(grades: Iterable[tuple[Session, float | None]]) -> Iterator[ArmMove]:
    """The moves of the arms that the sessions ran, and of every other arm whose shown figures these grades change."""
    for bandit, before, after, ran in outlooks(grades):
        yield from (move for move in moves(bandit, before, after, touched=ran) if move.touched or move.is_shown)


def changes(grades: Iterable[tuple[Session, float | None]]) -> dict[str, list[HypotheticalReward]]:
    """The rewards that these sessions would have, by bandit, if a person gave these grades (None: exclude)."""
    by_bandit: dict[str, list[HypotheticalReward]] = {}
    pairs = list(grades)
    days = rewards.credited_days(session for session, _ in pairs)
    for session, value in pairs:
        credit = None
        if value is not None:
            credit = Credit(value=value, grader=GraderKey(source=Source.HUMAN), cost_usd=session.cost_usd)
        for learner in rewards.learners(session):
            change = HypotheticalReward(
                observation=session.observation,
                arm=learner.arm.name,
                day=days[session.pk],
                credit=None if credit is None else learner.credit(credit),
            )
            by_bandit.setdefault(learner.bandit, []).append(change)
    return by_bandit
