"""Previews what people's grades would do to the arms of every bandit. Nothing is saved."""

from collections.abc import Iterable, Iterator, Sequence

from django.utils import timezone

from bandit import ledger
from bandit.core.moves import ArmMove, moves
from bandit.core.posterior import Outlook
from bandit.ledger import Credit, GraderKey
from bandit.whatif import (
    HypotheticalReward,
    row_of_credit,
    row_of_entry,
    rows_of_changes,
    what_if_each,
    what_if_rows,
)
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


def answer_moves(session: Session, values: Sequence[float]) -> list[ArmMove]:
    """What each of these grades in [0, 1] by a person would do to the first arm that learns from the session: that of
    its category if it has one. Empty if no arm learns from it.

    Each move is that of `arm_moves` for this grade. A constant number of queries, whatever the number of grades.
    """
    learners = rewards.learners(session)
    if not learners:
        return []
    bandit, day = learners[0].arm.bandit, rewards.credited_day(session)
    # The baseline's rewards matter, too; those of other bandits make no difference to this one.
    names = [learning.name for learning in (bandit, bandit.baseline) if learning is not None]
    removed = {
        name: [row_of_entry(entry, sign=-1) for entry in ledger.live_entries(name, [session.observation])]
        for name in names
    }
    alternatives = []
    for value in values:
        rows = {name: list(own) for name, own in removed.items()}
        for learner in learners:
            if learner.bandit in rows:
                credit = learner.credit(_credit(session, value))
                rows[learner.bandit].append(row_of_credit(learner.arm.name, credit, day))
        alternatives.append(rows)
    before, after = what_if_each(bandit.name, alternatives, timezone.now())
    arm = learners[0].arm.name
    return [moves(bandit.name, before, outlook, touched=[arm])[0] for outlook in after]


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
        credit = None if value is None else _credit(session, value)
        for learner in rewards.learners(session):
            change = HypotheticalReward(
                observation=session.observation,
                arm=learner.arm.name,
                day=days[session.pk],
                credit=None if credit is None else learner.credit(credit),
            )
            by_bandit.setdefault(learner.bandit, []).append(change)
    return by_bandit


def _credit(session: Session, value: float) -> Credit:
    """The credit of a person's grade."""
    # An agent's past rewards, people's grades included, decide whether others are capped.
    grader = GraderKey(source=Source.HUMAN, agent=session.agent.name)
    return Credit(value=value, grader=grader, cost_usd=session.cost_usd)
