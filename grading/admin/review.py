"""Review: what waits for a person. Flagged sessions first, then those whose reward can still change."""

from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest
from django.template.response import TemplateResponse

from grading import monitoring
from grading.admin.dashboard import with_rewards
from grading.models import Flag, Session

LISTED = 100


def show(request: HttpRequest) -> TemplateResponse:
    flags = monitoring.flagged_sessions()
    provisional = (
        Session.objects.with_reward()
        .with_people()
        .filter(Q(reward_final=False))
        .exclude(Exists(Flag.objects.open().filter(session=OuterRef("pk"))))
    )
    context = {
        "title": "Review",
        "flags": with_rewards(flags[:LISTED]),
        "flag_count": flags.values("session").distinct().count(),
        "provisional": provisional[:LISTED],
        "provisional_count": provisional.count(),
    }
    return TemplateResponse(request, "gradingsite/review.html", context)
