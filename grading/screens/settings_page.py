"""Settings: people, agents, the judge, data and notices, with the current values and links to change them."""

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, F, Max, Q
from django.template.response import TemplateResponse

from grading.models import Agent
from grading.reward.rewards import policy
from grading.roles import OPERATOR, REVIEWER, VIEWER
from grading.screens.about.view import version
from grading.screens.http import StaffRequest, staff_view
from grading.screens.notices import view as notices

LISTED = 6
ROLES = {
    VIEWER: "reads everything",
    REVIEWER: "also corrects grades",
    OPERATOR: "also runs the site and invites people",
}


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    active = User.objects.filter(is_active=True)
    people = dict(active.order_by().values_list("groups__name").annotate(n=Count("pk")))
    people[OPERATOR] = active.filter(Q(groups__name=OPERATOR) | Q(is_superuser=True)).distinct().count()
    agents = Agent.objects.filter(is_sample=False).annotate(token_used_at=Max("tokens__last_used_at"))
    context = {
        "title": "Settings",
        "policy": policy(),
        "roles": [{"name": name, "text": text, "people": people.get(name, 0)} for name, text in ROLES.items()],
        "agents": agents.order_by(F("token_used_at").desc(nulls_last=True), "name")[:LISTED],
        "retention_days": settings.RETENTION_DAYS,
        "backup_nightly": settings.BACKUP_NIGHTLY,
        "version": version(),
        **notices.card(),
    }
    return TemplateResponse(request, "settings/settings.html", context)
