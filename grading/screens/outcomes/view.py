"""Uploads outcomes of many sessions from a file, such as the labels of a benchmark."""

import hashlib
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from grading.access.recording import record as record_event
from grading.models import AuditEvent
from grading.models.audit import AuditKind
from grading.outcomes.labels import MAX_LINES, Label, RefusedLine, Unreadable, read_labels
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


class LabelsForm(forms.Form):
    """A file, or its lines as `text`, which the page shows for correction if some cannot be stored.

    `confirmed` is the digest of the text of which a person agreed to leave out the lines that cannot be stored.
    """

    file = forms.FileField(required=False, allow_empty_file=True)
    text = forms.CharField(required=False)
    confirmed = forms.CharField(required=False)

    shown_text, digest = "", ""
    labels: list[Label] = []
    refused: list[RefusedLine] = []

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = self.cleaned_data
        file = data.get("file")
        content = data.get("text", "").encode() if file is None else file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise forms.ValidationError("Expected a file of at most 1 MB. Split it.")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise forms.ValidationError("Expected a file of text in UTF-8.") from None
        # Normalised as a browser sends the page's text back.
        self.shown_text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
        self.digest = hashlib.sha256(self.shown_text.encode()).hexdigest()
        if not self.shown_text:
            raise forms.ValidationError("Choose a file, or enter lines.")
        try:
            self.labels, self.refused = read_labels(self.shown_text)
        except Unreadable as error:
            raise forms.ValidationError(str(error)) from None
        return data

    @property
    def may_store(self) -> bool:
        """Whether there is something to store, and nothing is left out without a person's consent."""
        if not self.is_valid() or not self.labels:
            return False
        return not self.refused or self.cleaned_data["confirmed"] == self.digest


@staff_view("grading.change_repository")
def show(request: StaffRequest) -> HttpResponse:
    """The form; a POST stores the lines if all can be stored, or the valid ones once the person has confirmed that."""
    form = LabelsForm(request.POST, request.FILES) if request.method == "POST" else LabelsForm()
    if not form.may_store:
        context = {
            "title": "Upload outcomes",
            "form": form,
            "max_lines": MAX_LINES,
            "example": EXAMPLE,
            "uploads": AuditEvent.objects.filter(kind=AuditKind.PROJECT, what__startswith=STORED)[:LISTED],
        }
        return TemplateResponse(request, "outcomes/outcomes.html", context, status=400 if form.is_bound else 200)
    source = f"person {request.user.pk}"
    recorded = [record(each.session, each.outcome, source=source, witness=Witness.OBSERVED) for each in form.labels]
    new = sum(is_new for _row, is_new in recorded)
    repeated = len(form.labels) - new
    record_event(AuditKind.PROJECT, f"{STORED}: {new} new, {repeated} known, {len(form.refused)} left out")
    stored = "1 outcome was stored" if new == 1 else f"{new} outcomes were stored"
    messages.success(request, f"{stored}. {repeated} {'was' if repeated == 1 else 'were'} already stored before.")
    return redirect("admin:outcomes")
