"""The preview bandit: what a bandit would believe had it learned from the samples, and from nothing else. It is worked
out when a page is shown, and recorded nowhere.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.utils.safestring import SafeString

from bandit.core.posterior import ArmPosterior, Outlook
from bandit.core.table import ABSTAINED
from bandit.ledger import Credit, GraderKey, Learner
from bandit.models import Arm, Bandit
from bandit.reading import outlook, policy_of, site_day
from bandit.whatif import row_of_credit
from grading.models import Session
from grading.reward import rewards
from grading.screens import charts
from grading.vocabulary import Source

PREFETCHED = ("grades", "flags", "judge_jobs", "lessons__arm__merged_into")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleArm:
    """An arm that ran in `sessions` samples with a reward, as it would be believed; `share` of the next hundred."""

    arm: Arm
    sessions: int
    posterior: ArmPosterior
    share: float
    ridge: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReward:
    """What one sample would teach each bandit, on which day."""

    session: int
    learners: tuple[Learner, ...]
    credit: Credit
    day: dt.date


def sample_rewards() -> list[SampleReward]:
    """What the samples would teach: some five queries a sample."""
    sessions = Session.objects.samples().with_people().prefetch_related(*PREFETCHED)
    days = rewards.credited_days(sessions)
    found = []
    for session in sessions:
        learners, credit = rewards.preview_credit(session)
        if credit is not None:
            found.append(SampleReward(session=session.pk, learners=learners, credit=credit, day=days[session.pk]))
    return found


def sample_outlook(bandit: Bandit, taught: Iterable[SampleReward], now: dt.datetime) -> Outlook:
    """What the bandit would believe had it learned these rewards, and no other."""
    rows = [
        row_of_credit(learner.arm.name, learner.credit(each.credit), each.day)
        for each in taught
        for learner in each.learners
        if learner.bandit == bandit.name
    ]
    return outlook(bandit, policy_of(bandit), rows, site_day(now))


def sample_outlooks(
    session: Session, value: float, now: dt.datetime
) -> Iterator[tuple[str, Outlook, Outlook, frozenset[str]]]:
    """For each preview bandit that would learn from a sample: its outlook now, its outlook once a person gives the
    sample this value in [0, 1], and the arms that ran.
    """
    before, learners = sample_rewards(), rewards.arms_of(session)
    credit = Credit(value=value, grader=GraderKey(source=Source.HUMAN), cost_usd=session.cost_usd)
    given = SampleReward(
        session=session.pk, learners=learners, credit=credit, day=rewards.credited_days([session])[session.pk]
    )
    after = [*(each for each in before if each.session != session.pk), given]
    for name in dict.fromkeys(learner.bandit for learner in learners):
        bandit = Bandit.objects.named(name)
        ran = frozenset(learner.arm.name for learner in learners if learner.bandit == name)
        yield name, sample_outlook(bandit, before, now), sample_outlook(bandit, after, now), ran


def sample_arms(bandit: Bandit, now: dt.datetime) -> list[SampleArm]:
    """The arms that some sample has a reward for, the most chosen first."""
    taught = sample_rewards()
    after = sample_outlook(bandit, taught, now)
    counts = Counter(
        learner.arm.name
        for each in taught
        for learner in each.learners
        if learner.bandit == bandit.name and each.credit.grader.source != ABSTAINED
    )
    arms = {arm.name: arm for arm in bandit.arms.filter(name__in=counts)}
    shown = {name: after.arms[name] for name in arms if name in after.arms}
    drawn = charts.ridges({name: charts.Beta(alpha=arm.alpha, beta=arm.beta) for name, arm in shown.items()})
    found = [
        SampleArm(
            arm=arms[name],
            sessions=counts[name],
            posterior=arm,
            share=after.share_of_next_100(name),
            ridge=drawn[name],
        )
        for name, arm in shown.items()
    ]
    return sorted(found, key=lambda each: (-each.share, each.arm.name))
