"""Starving arms: those that a fortnight's sessions taught little, and those that are hardly chosen any more."""

import datetime as dt
from dataclasses import dataclass

from django.db.models import Max
from django.urls import reverse
from django.utils.http import urlencode

from bandit.core.posterior import ArmPosterior
from bandit.selection import Outlook, posterior_of
from grading.models import Session
from grading.review.trust import CHART_DAYS, Behind, Share, Trust
from grading.reward.explain import number
from grading.screens.desk.answer import count
from grading.templatetags.gradingsite_tags import age

MISSING_SHARE = 0.25
# Of the next hundred decisions.
SELDOM = 1.0
BANDITS = ("category", "harness")


@dataclass(frozen=True, slots=True, kw_only=True)
class Starving:
    """An arm that gets too little evidence, in which way, and the rows that would change it."""

    arm: str
    why: str
    link: str = ""
    url: str = ""


def starving(figures: Trust, now: dt.datetime) -> list[Starving]:
    """What is missing most first, then what is chosen least: three queries for each bandit."""
    found = [_missing(arm, share) for arm, share in figures.missing_by_arm.items() if _is_missing(share)]
    found.sort(key=lambda each: -figures.missing_by_arm[each.arm].part)
    return [*found, *(each for bandit in BANDITS for each in _seldom(bandit, now))]


def _is_missing(share: Share) -> bool:
    return share.part > 0 and share.part >= MISSING_SHARE * share.whole


def _missing(arm: str, share: Share) -> Starving:
    them = "this one" if share.part == 1 else f"these {count(share.part)}"
    return Starving(
        arm=arm,
        why=f"{share.percent:.0f} % of its grades in {CHART_DAYS} days are missing, {share.part} of {share.whole}.",
        link=f"Review {them}",
        url=f"{reverse('admin:sessions')}?{urlencode({'category': arm, 'behind': Behind.MISSING})}",
    )


def _seldom(bandit: str, now: dt.datetime) -> list[Starving]:
    outlook = posterior_of(bandit, now)
    seldom = [arm for arm in outlook.chances if outlook.share_of_next_100(arm) <= SELDOM]
    if not seldom:
        return []
    ran = Session.objects.filter(**{f"{bandit}__name__in": seldom}).order_by().values_list(f"{bandit}__name")
    last = dict(ran.annotate(at=Max("ended_at")))
    return [Starving(arm=arm, why=_why(bandit, outlook, arm, last.get(arm))) for arm in seldom]


def _why(bandit: str, outlook: Outlook, arm: str, last: dt.datetime | None) -> str:
    share, found = outlook.share_of_next_100(arm), outlook.arms[arm]
    often = "Under 1" if share < SELDOM else "About 1"
    ran = f"last ran {age(last)} ago" if last else "never ran"
    where = "" if bandit == BANDITS[0] else f" in the {bandit} bandit"
    return f"{often} of the next 100 sessions{where}; {ran}. {_certainty(found)}"


def _certainty(arm: ArmPosterior) -> str:
    """Whether the little that is known of it would justify that."""
    return f"Its mean is {number(arm.mean)}, somewhere from {number(arm.low)} to {number(arm.high)}."
