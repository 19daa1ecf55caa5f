"""Quota: what each judge's provider lets it do now, what it cost today, what waits, and the outages of two weeks."""

import datetime as dt

from django.db.models import Count, Max, Min
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.admin import quota_figures as figures
from grading.admin.quota_cards import STATES, card, effect, unconfigured
from grading.admin.quota_policy import may_probe
from grading.core.vocabulary import Reason
from grading.judging import attempts, outages
from grading.judging.attempts import Held
from grading.judging.forecast import outlook
from grading.judging.standing import Standing, headroom, standings
from grading.models import JudgeJob, JudgePolicy, Quota
from grading.models.judging import JudgeRole
from grading.models.quota import QuotaState
from grading.templatetags.house import moment


def show(request: HttpRequest) -> TemplateResponse:
    """A constant number of queries, whatever was asked, waits or failed."""
    now, policy, held = timezone.now(), JudgePolicy.objects.current(), attempts.held()
    judged = standings()
    first = judged.pop(JudgeRole.FIRST, None)
    context = {
        "title": "Judge quota",
        "states": STATES,
        "first": unconfigured() if first is None else card(first, policy, now),
        "others": [card(standing, policy, now) for standing in judged.values()],
        "effect": effect(),
        "held": held,
        "policy": policy,
        "tallies": figures.tallies_today(now),
        "spent": figures.spent(now, policy),
        **_of_first(first, policy, held, now),
    }
    return TemplateResponse(request, "gradingsite/quota.html", context)
