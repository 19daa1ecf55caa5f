"""Outcomes of many sessions from a file, such as the labels of a benchmark."""

import hashlib

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from grading.access.recording import record as record_event
from grading.models import AuditEvent
from grading.models.audit import AuditKind
from grading.outcomes.labels import COLUMNS, MAX_LINES, Unreadable, read_labels
from grading.outcomes.recording import record
from grading.screens.http import StaffRequest, staff_view
from grading.witness import Witness

MAX_BYTES = 1024**2
LISTED = 10
STORED = "stored outcomes from a file"
EXAMPLE = """session,kind,value,observed_at,url,detail
5e0c2f7a,tests,pass,2026-04-01T10:00:00Z,https://ci.example.org/run/7,48 of 48 tests
71a3,resolved,fail,2026-04-01T10:00:00Z,,the issue was opened again
412,quality,0.75,2026-04-01T10:00:00Z,,"graded by hand, blind"
"""


@staff_view("grading.change_repository")
def show(request: StaffRequest) -> HttpResponse:
    """The form; a POST stores the lines if all can be stored, or the good ones after the person confirmed that."""
    context = {
        "title": "Upload outcomes",
        "columns": COLUMNS,
        "max_lines": MAX_LINES,
        "example": EXAMPLE,
        "uploads": AuditEvent.objects.filter(kind=AuditKind.PROJECT, what__startswith=STORED)[:LISTED],
    }
    if request.method != "POST":
        return TemplateResponse(request, "outcomes/outcomes.html", context)
    text, problem = _submitted_text(request)
    context |= {"text": text, "digest": hashlib.sha256(text.encode()).hexdigest()}
    try:
        labels, refused = read_labels(text) if not problem else ([], [])
    except Unreadable as error:
        labels, refused, problem = [], [], str(error)
    is_confirmed = request.POST.get("confirmed") == context["digest"]
    if problem or not labels or (refused and not is_confirmed):
        context |= {"problem": problem, "refused": refused, "good": len(labels)}
        return TemplateResponse(request, "outcomes/outcomes.html", context, status=400)
    source = f"person {request.user.pk}"
    new = sum(record(label.session, label.outcome, source=source, witness=Witness.OBSERVED)[1] for label in labels)
    record_event(AuditKind.PROJECT, f"{STORED}: {new} new, {len(labels) - new} known, {len(refused)} left out")
    messages.success(request, f"{new} outcomes were stored. {len(labels) - new} were known already.")
    return redirect("admin:outcomes")


def _submitted_text(request: StaffRequest) -> tuple[str, str]:
    """The text of the file, or else of the field, and what is wrong with it."""
    file = request.FILES.get("file")
    data = request.POST.get("text", "").encode() if file is None else file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        return "", "Expected a file of at most 1 MB. Split it."
    if not data.strip():
        return "", "Choose a file, or enter lines."
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "Expected a file of text in UTF-8."
    # As a browser sends back what the page shows.
    return text.replace("\r\n", "\n").replace("\r", "\n").strip(), ""
