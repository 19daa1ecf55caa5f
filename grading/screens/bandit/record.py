"""The record of each arm: how many rewards it had, what they were, and which sessions got none."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from bandit.core.table import MICRO
from bandit.models import Arm, Bandit
from bandit.reading import days_read
from bandit.silence import heard_arms
from grading.models import Flag, JudgeJob, Session
from grading.models.sessions import yours
from grading.monitoring.arms import unheard_arm
from grading.review.priority import BANDIT
from grading.review.unheard import GRADING_SOURCES
from grading.screens.bandit.travel import BanditSnapshot, Moments
from grading.vocabulary import Outcome

# The session's columns that name the arm of each bandit. Of two columns the arm is "a/b" if there is such an arm, else
# "a".
COLUMNS = {"category": ("category__name",), "harness": ("harness__name", "model_arm__name")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One arm's rewards: `n` of them, `productive` ones above .5, their mean as given (`raw`) and as read.

    `cost_usd` is the mean of the known costs, of `costed` sessions. `infrastructure` counts sessions without a reward
    because infrastructure ended them, `ungraded` those that no source could grade. `is_heard`: a judge or a person has
    graded one of the latter; `waiting` of them are in the review queue.
    """

    n: int
    productive: int
    raw: float | None
    as_read: float | None
    cost_usd: float | None
    costed: int
    infrastructure: int
    ungraded: int
    is_heard: bool
    waiting: int

    @property
    def sessions(self) -> int:
        """The number of sessions with a reward and of those that no source could grade."""
        return self.n + self.ungraded

    @property
    def is_only_seen(self) -> bool:
        """Whether no judge or person has graded any of the sessions that no source could grade."""
        return self.ungraded > 0 and not self.is_heard


def records(snapshot: BanditSnapshot, arms: Mapping[str, Arm], at: Moments) -> dict[str, Record]:
    """The record of each arm, by its name. Three queries."""
    productive, ungraded = snapshot.reading.productive, snapshot.reading.abstentions
    ended_by_infrastructure = infrastructure_failures(snapshot.bandit, arms, at)
    days = days_read(snapshot.policy, at.day)
    heard = heard_arms(snapshot.bandit, days, GRADING_SOURCES, at.known_by, arms=ungraded.keys())
    # By arm: the ungraded sessions that wait for a person, because nobody has graded any session of the arm.
    waiting = {}
    if snapshot.bandit.name == BANDIT:
        unheard = Flag.objects.open().filter(rule=unheard_arm.id).order_by()
        waiting = by_arm(arms, unheard.values_list("session__category__name").annotate(n=Count("pk")))
    sums: dict[str, Counter[str]] = {name: Counter() for name in arms}
    for kind, (n, reward, _squares, cost, costed) in snapshot.rewards.totals():
        sums[kind.arm].update({"n": n, "reward": reward, "cost": cost, "costed": costed})
    return {
        name: Record(
            n=sum_of["n"],
            productive=productive.get(name, 0),
            raw=sum_of["reward"] / sum_of["n"] / MICRO if sum_of["n"] else None,
            as_read=snapshot.reading.plain_means.get(name),
            cost_usd=sum_of["cost"] / sum_of["costed"] / MICRO if sum_of["costed"] else None,
            costed=sum_of["costed"],
            infrastructure=ended_by_infrastructure.get(name, 0),
            ungraded=ungraded.get(name, 0),
            is_heard=name in heard,
            waiting=waiting.get(name, 0),
        )
        for name, sum_of in sums.items()
    }


def infrastructure_failures(bandit: Bandit, arms: Mapping[str, Arm], at: Moments) -> dict[str, int]:
    """By arm, the number of sessions that infrastructure ended by `at.until`, received by `at.known_by`."""
    columns = COLUMNS.get(bandit.name)
    if columns is None:
        return {}
    sessions = Session.objects.yours().filter(
        outcome=Outcome.INFRASTRUCTURE, ended_at__lte=at.until, received_at__lte=at.known_by or at.now
    )
    return by_arm(arms, sessions.order_by().values_list(*columns).annotate(n=Count("pk")))


def pending(bandit: Bandit, arms: Mapping[str, Arm]) -> dict[str, int]:
    """The number of verdicts still to come, by arm."""
    if bandit.name not in COLUMNS:
        return {}
    columns = [f"session__{column}" for column in COLUMNS[bandit.name]]
    jobs = JudgeJob.objects.open().filter(yours()).order_by()
    return by_arm(arms, jobs.values_list(*columns).annotate(n=Count("pk")))


def by_arm(arms: Mapping[str, Arm], rows: Iterable[tuple[Any, ...]]) -> dict[str, int]:
    """Sum the counts of rows like (harness, model, count) or (category, count) by their current arm.

    An arm's name is all names of the row joined by "/", or else the first one. Rows without an arm are ignored.
    """
    counts: Counter[str] = Counter()
    for *names, count in rows:
        full_name = "/".join(name for name in names if name)
        arm = arms.get(full_name) or arms.get(names[0] or "")
        if arm is not None:
            counts[arm.current.name] += count
    return dict(counts)
