"""Rewards and the state they leave, in few words."""

from datetime import date

from django.db import transaction

from bandit import ledger
from bandit.ledger import Credit, GraderKey
from bandit.models import Arm, Bandit, Bucket, PolicyVersion
from bandit.reading import version_of
from bandit.whatif import HypotheticalReward, what_if_changed

DAY = date(2026, 3, 31)


def credit(value, source="judge", **grader):
    return Credit(value=value, grader=GraderKey(source=source, **grader))


def reward(
    observation, *, day=DAY, bandit="category", source="judge", provisional=False, settlement="s", stratum="", **arms
):
    """Make `arms` (name=value, underscores for hyphens) the live rewards of an observation."""
    with transaction.atomic():
        return ledger.set_credits(
            {bandit: {name: credit(value, source, stratum=stratum) for name, value in arms.items()}},
            observation=observation,
            effective_day=day,
            settlement=settlement,
            policy_version="test",
            provisional=provisional,
        )


def hypothetical(observation, arm, value, *, day=DAY, **grader):
    """A reward of this value, or none."""
    made = None if value is None else credit(value, **grader)
    return HypotheticalReward(observation=observation, arm=arm, day=day, credit=made)


def what_if(observation, arm, value, *, bandit="category", now, **options):
    """The outlook now, and as it would be after this one change."""
    return what_if_changed(bandit, {bandit: [hypothetical(observation, arm, value, **options)]}, now)


def lessons(*names):
    """Arms of the bandit that has several of them in one session."""
    bandit = Bandit.objects.get(name="lesson")
    for name in names:
        Arm.objects.get_or_create(bandit=bandit, name=name)


def policy(bandit="category", **numbers):
    """Put a version of the bandit's policy with these numbers in force."""
    row = Bandit.objects.get(name=bandit)
    version = version_of(row).version + 1
    return PolicyVersion.objects.create(bandit=row, version=version, by="otto", **numbers)


def buckets(bandit="category"):
    """The non-empty buckets, bit for bit."""
    rows = Bucket.objects.filter(bandit__name=bandit).exclude(n=0, s=0, q=0)
    return sorted(rows.values_list("arm__name", "grader__source", "grader__model", "effective_day", "n", "s", "q"))


def with_cost(observation, value, *, usd, arm, bandit="category", day=DAY, source="judge", **grader):
    """As `reward`, of a session that cost so much; None where that is not known."""
    made = Credit(value=value, grader=GraderKey(source=source, **grader), cost_usd=usd)
    with transaction.atomic():
        return ledger.set_credits(
            {bandit: {arm: made}}, observation=observation, effective_day=day, settlement="s", policy_version="test"
        )
