"""Starving arms: those that a fortnight's sessions taught little, and those that are hardly chosen any more."""

import datetime as dt
from dataclasses import dataclass

from django.db.models import Max
from django.urls import reverse
from django.utils.http import urlencode

from bandit.reading import posterior_of
from grading.models import Session
from grading.review.trust import CHART_DAYS, Behind, Trust
from grading.reward.explain import number
from grading.screens.desk.answer import count
from grading.templatetags.gradingsite_tags import age

MISSING_SHARE = 0.25
# Of the next hundred decisions.
SELDOM = 1.0
BANDITS = ("category", "harness")


@dataclass(frozen=True, slots=True, kw_only=True)
class Starving:
    """An arm that gets too little evidence: why, and a link to sessions whose grades would change that."""

    arm: str
    why: str
    link: str = ""
    url: str = ""


def starving(figures: Trust, now: dt.datetime) -> list[Starving]:
    """The arms that lack grades, the most missing grades first, then those seldom chosen. Three queries per bandit."""
    starving_arms = []
    for arm, share in sorted(figures.missing_by_arm.items(), key=lambda each: -each[1].part):
        if share.part == 0 or share.part < MISSING_SHARE * share.whole:
            continue
        them = "it" if share.part == 1 else f"these {count(share.part)}"
        starving_arms.append(
            Starving(
                arm=arm,
                why=f"{share.part} of {share.whole} grades in {CHART_DAYS} days are provisional or missing.",
                link=f"Review {them}",
                url=f"{reverse('admin:sessions')}?{urlencode({'category': arm, 'behind': Behind.MISSING})}",
            )
        )
    for bandit in BANDITS:
        outlook = posterior_of(bandit, now)
        best = max((outlook.arms[arm].mean for arm in outlook.chances), default=0.0)
        # An arm whose whole interval lies below the best mean is rightly chosen seldom.
        seldom = [
            arm
            for arm in outlook.chances
            if outlook.share_of_next_100(arm) <= SELDOM and outlook.arms[arm].high >= best
        ]
        if not seldom:
            continue
        ran = (
            Session.objects.yours().filter(**{f"{bandit}__name__in": seldom}).order_by().values_list(f"{bandit}__name")
        )
        last = dict(ran.annotate(at=Max("ended_at")))
        where = "" if bandit == BANDITS[0] else f" in the {bandit} bandit"
        for arm in seldom:
            often = "Under 1" if outlook.share_of_next_100(arm) < SELDOM else "About 1"
            lately = f"last ran {age(last[arm])} ago" if last.get(arm) else "never ran"
            posterior = outlook.arms[arm]
            certain = f"Mean {number(posterior.mean)}, between {number(posterior.low)} and {number(posterior.high)}."
            starving_arms.append(Starving(arm=arm, why=f"{often} of the next 100 sessions{where}; {lately}. {certain}"))
    return starving_arms
