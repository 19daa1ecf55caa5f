"""What a bandit would believe had it learned from the samples: shown while nothing else has come, recorded nowhere."""

import datetime as dt
from collections import Counter, defaultdict
from dataclasses import dataclass

from django.utils.safestring import SafeString

from bandit.core.posterior import ArmPosterior
from bandit.core.table import ABSTAINED, RewardRow
from bandit.models import Arm, Bandit
from bandit.whatif import row_for, what_if_moved
from grading.models import Session
from grading.reward import rewards
from grading.screens import charts

PREFETCHED = ("grades", "flags", "judge_jobs", "lessons__arm__merged_into")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleArm:
    """An arm that ran in `sessions` samples with a reward, as it would be believed; `share` of the next hundred."""

    arm: Arm
    sessions: int
    posterior: ArmPosterior
    share: float
    ridge: SafeString


def sample_arms(bandit: Bandit, now: dt.datetime) -> list[SampleArm]:
    """The arms that some sample has a reward for, the most chosen first: some five queries a sample."""
    rows: dict[str, list[RewardRow]] = defaultdict(list)
    told = Counter[str]()
    sessions = Session.objects.samples().with_people().prefetch_related(*PREFETCHED)
    days = rewards.credited_days(sessions)
    for session in sessions:
        learners, credit = rewards.would_teach(session)
        if credit is None:
            continue
        for learner in learners:
            rows[learner.bandit].append(row_for(learner, credit, days[session.pk]))
            told[learner.arm.name] += learner.bandit == bandit.name and credit.grader.source != ABSTAINED
    _before, after = what_if_moved(bandit.name, rows, now)
    arms = {arm.name: arm for arm in bandit.arms.filter(name__in=[name for name, n in told.items() if n])}
    shown = {name: after.arms[name] for name in arms if name in after.arms}
    drawn = charts.ridges({name: charts.Beta(alpha=arm.alpha, beta=arm.beta) for name, arm in shown.items()})
    found = [
        SampleArm(
            arm=arms[name],
            sessions=told[name],
            posterior=arm,
            share=after.share_of_next_100(name),
            ridge=drawn[name],
        )
        for name, arm in shown.items()
    ]
    return sorted(found, key=lambda each: (-each.share, each.arm.name))
