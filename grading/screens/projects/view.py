"""Projects: the repositories that sessions worked in, and the form that renames and merges them."""

from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Max, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse

from grading.access.recording import record
from grading.models import Project
from grading.models.audit import AuditKind
from grading.models.projects import MAX_PROJECT_NAME
from grading.plain import primary_key
from grading.screens.http import StaffRequest, staff_view

LISTED = 200
CHANGE = "grading.change_project"


@staff_view("grading.view_session", to_post=CHANGE)
def show(request: StaffRequest) -> HttpResponse:
    """The projects with the most sessions, or those that contain a text; a POST renames one."""
    if request.method == "POST":
        _rename(request, request.POST.get("project", ""), request.POST.get("name", "").strip())
        return redirect("admin:projects")
    text = request.GET.get("q", "").strip()[:MAX_PROJECT_NAME]
    own = Q(sessions__is_sample=False)
    projects = Project.objects.annotate(
        count=Count("sessions", filter=own), last=Max("sessions__ended_at", filter=own)
    ).filter(count__gt=0)
    if text:
        projects = projects.filter(Q(key__icontains=text) | Q(name__icontains=text))
    context = {
        "title": "Projects",
        "rows": projects.order_by("-count", "name", "key")[:LISTED],
        "total": projects.count(),
        "text": text,
        "may": request.user.has_perm(CHANGE),
        "longest": MAX_PROJECT_NAME,
    }
    return TemplateResponse(request, "projects/projects.html", context)


def _rename(request: StaffRequest, key: str, name: str) -> None:
    """Give the project of this primary key another name, and record it; or say why not."""
    with transaction.atomic():
        project = get_object_or_404(Project.objects.select_for_update(), pk=primary_key(key))
        before = project.name
        if not name or len(name) > MAX_PROJECT_NAME or not name.isprintable():
            messages.error(
                request,
                f"Nothing was changed. Expected a name of 1 to {MAX_PROJECT_NAME} visible characters, got "
                f"{len(name)}. Enter another name.",
            )
            return
        if name == before:
            messages.info(request, f"{project.key} already has this name.")
            return
        project.name = name
        project.save(update_fields=["name"])
        others = Project.objects.filter(name=project.name).exclude(pk=project.pk).count()
        record(AuditKind.PROJECT, f"named {project.key} “{project.name}”", detail=f"It was “{before}”.")
    others_of_name = f", together with {others} more of this name" if others else ""
    messages.success(
        request,
        f"{project.key} is now listed as {project.name}{others_of_name}. No session was changed. To undo this, "
        f"rename it to {before}.",
    )
