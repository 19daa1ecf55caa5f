"""Unredacted evidence: one hidden span at a time for reviewers, a whole file for operators who give a reason. Each
access is logged; viewers have none.
"""

from django.forms import CharField, ChoiceField, Form, IntegerField
from django.http import FileResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from grading.access.recording import record
from grading.evidence import store, transcripts
from grading.models import Evidence, Session
from grading.models.audit import AuditKind
from grading.models.evidence import EvidenceKind
from grading.redaction import MARGIN, mark_at
from grading.screens.http import StaffRequest, staff_view

BAD_REQUEST, NOT_FOUND = 400, 404
PARTS = {"event": EvidenceKind.TRANSCRIPT, "journal": EvidenceKind.JOURNAL, "patch": EvidenceKind.PATCH}
LONGEST_TEXT = 60_000
MAX_NUMBER = 999_999_999
NOTHING = "Nothing is hidden here. This text comes from the session itself."


class MarkForm(Form):
    """A mark of redacted text: its index, from 0, in the journal, the patch, or the event with number `event`."""

    part = ChoiceField(choices=[(name, name) for name in PARTS])
    event = IntegerField(min_value=0, max_value=MAX_NUMBER, required=False)
    mark = IntegerField(min_value=0, max_value=MAX_NUMBER)


class ReasonForm(Form):
    why = CharField(min_length=3, max_length=300, error_messages={"required": "Give a reason. It is recorded."})


@staff_view("grading.add_grade", methods=["POST"])
def reveal(request: StaffRequest, pk: int) -> JsonResponse:
    """The redacted text behind one mark, as JSON `text`, or an `error`."""
    session = get_object_or_404(Session, pk=pk)
    form = MarkForm(request.POST)
    if not form.is_valid():
        expected = "part (event, journal or patch), mark and, of an event, its number"
        return JsonResponse({"error": f"Expected {expected}. Reload the page."}, status=BAD_REQUEST)
    part, mark = form.cleaned_data["part"], form.cleaned_data["mark"]
    event = form.cleaned_data["event"] or 1
    row = store.usable(session, PARTS[part])
    try:
        if row is None:
            hidden_text = None
        elif part == "event":
            hidden_text = transcripts.hidden_in(row, event, mark)
        else:
            hidden_text = mark_at(store.text_of(row, LONGEST_TEXT + MARGIN), mark)
    except OSError as error:
        return JsonResponse({"error": str(error)}, status=NOT_FOUND)
    if hidden_text is None:
        return JsonResponse({"error": NOTHING}, status=NOT_FOUND)
    where = f"event {event}" if part == "event" else f"the {part}"
    record(AuditKind.RAW, f"saw what is hidden in {session.observation}", detail=f"{where}, mark {mark + 1}")
    return JsonResponse({"text": hidden_text})


@staff_view("grading.change_quota")
def show(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Download a whole unredacted file, after giving a reason. Only operators have this permission."""
    row = get_object_or_404(Evidence.objects.select_related("session"), pk=pk)
    form = ReasonForm(request.POST or None)
    problem = ""
    if request.method == "POST" and form.is_valid():
        try:
            file = store.open(row)
        except OSError as error:
            problem = str(error)
        else:
            what = f"downloaded an unredacted file: {row.kind} of {row.session.observation}"
            record(AuditKind.RAW, what, detail=form.cleaned_data["why"])
            name = f"{row.kind}-{row.sha256[:12]}"
            return FileResponse(file, as_attachment=True, filename=name, content_type="application/octet-stream")
    context = {"title": "Original file", "row": row, "session": row.session, "form": form, "problem": problem}
    return TemplateResponse(request, "session/raw.html", context)
