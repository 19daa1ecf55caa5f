"""The preview bandit: a bandit's outlook if it had learned from the samples and nothing else. Stores nothing."""

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
from grading.screens.charts import posteriors
from grading.screens.charts.posteriors import Beta
from grading.vocabulary import Source

PREFETCHED = ("grades", "flags", "judge_jobs", "lessons__arm__merged_into")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleArm:
    """An arm that ran in `sessions` samples with a reward, its posterior and its `share` of the next hundred."""

    arm: Arm
    sessions: int
    posterior: ArmPosterior
    share: float
    ridge: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReward:
    """The credit that a sample would give to its arms, and the day on which it would count."""

    session: int
    learners: tuple[Learner, ...]
    credit: Credit
    day: dt.date


def sample_rewards() -> list[SampleReward]:
    """The rewards that the samples would have. Some five queries for each sample."""
    sessions = Session.objects.samples().with_people().prefetch_related(*PREFETCHED)
    days = rewards.credited_days(sessions)
    would_be = []
    for session in sessions:
        learners, credit = rewards.preview_credit(session)
        if credit is not None:
            would_be.append(SampleReward(session=session.pk, learners=learners, credit=credit, day=days[session.pk]))
    return would_be


def sample_outlook(bandit: Bandit, sample: Iterable[SampleReward], now: dt.datetime) -> Outlook:
    """The bandit's outlook if it had these rewards and no others."""
    rows = [
        row_of_credit(learner.arm.name, learner.credit(each.credit), each.day)
        for each in sample
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
    graded = SampleReward(
        session=session.pk, learners=learners, credit=credit, day=rewards.credited_days([session])[session.pk]
    )
    after = [*(each for each in before if each.session != session.pk), graded]
    for name in dict.fromkeys(learner.bandit for learner in learners):
        bandit = Bandit.objects.named(name)
        ran = frozenset(learner.arm.name for learner in learners if learner.bandit == name)
        yield name, sample_outlook(bandit, before, now), sample_outlook(bandit, after, now), ran


def sample_arms(bandit: Bandit, now: dt.datetime) -> list[SampleArm]:
    """The arms of the samples with a reward, the most chosen first."""
    sample = sample_rewards()
    after = sample_outlook(bandit, sample, now)
    counts = Counter(
        learner.arm.name
        for each in sample
        for learner in each.learners
        if learner.bandit == bandit.name and each.credit.grader.source != ABSTAINED
    )
    arms = {arm.name: arm for arm in bandit.arms.filter(name__in=counts)}
    arm_posteriors = {name: after.arms[name] for name in arms if name in after.arms}
    ridges = posteriors.ridges({name: Beta(alpha=arm.alpha, beta=arm.beta) for name, arm in arm_posteriors.items()})
    sample_rows = [
        SampleArm(
            arm=arms[name],
            sessions=counts[name],
            posterior=arm,
            share=after.next_100(name),
            ridge=ridges[name],
        )
        for name, arm in arm_posteriors.items()
    ]
    return sorted(sample_rows, key=lambda each: (-each.share, each.arm.name))
