"""History: people's actions, as a page, CSV or JSONL; and the blind pairs for calibrating judges, as CSV."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib.auth.models import AnonymousUser, User
from django.http import StreamingHttpResponse
from django.template.response import TemplateResponse

from bandit.models import Arm
from grading.models import ReviewAnswer, Session
from grading.models.review import Answer, FilteredList
from grading.review import audit, exported
from grading.review.acts import HistoryEntry, HistoryKind
from grading.review.audit import HistoryCursor
from grading.review.effects import moves_of
from grading.screens.exports import view as exports
from grading.screens.http import StaffRequest, staff_view
from grading.screens.moves import words
from grading.screens.sessions import saved_views

# The ids that one search may name.
MATCHES = 200
DAY = forms.DateInput(attrs={"type": "date"})


class HistoryFilterForm(forms.Form):
    """The page's filters. Every field is optional; a value that doesn't exist is reported and ignored."""

    person = forms.ModelChoiceField(
        User.objects.filter(is_staff=True).order_by("username"),
        required=False,
        to_field_name="username",
        empty_label="any",
    )
    kind = forms.ChoiceField(required=False, label="What", choices=[("", "any"), *HistoryKind.choices])
    arm = forms.ModelChoiceField(
        Arm.objects.filter(bandit__name="category"), required=False, to_field_name="name", empty_label="any"
    )
    since = forms.DateField(required=False, label="From", widget=DAY)
    until = forms.DateField(required=False, label="To", widget=DAY)
    session = forms.CharField(required=False, max_length=200, widget=forms.TextInput(attrs={"placeholder": "id"}))
    bulk = forms.CharField(required=False, max_length=36, widget=forms.HiddenInput)

    def for_viewer(self, viewer: User | AnonymousUser) -> audit.HistoryFilters:
        """The audit's filters. Sign-ins and other access events are included only if `viewer` may see them."""
        self.is_valid()
        data = self.cleaned_data
        author, arm = data.get("person"), data.get("arm")
        sessions = Session.objects.filter(external_id__icontains=data.get("session", ""))
        return audit.HistoryFilters(
            person=author.username if author else "",
            kind=HistoryKind(data["kind"]) if data.get("kind") else None,
            arm=arm.name if arm else "",
            sessions=tuple(sessions.values_list("pk", flat=True)[:MATCHES]) if data.get("session") else None,
            bulk=data.get("bulk", ""),
            since=data.get("since"),
            until=data.get("until"),
            with_access=viewer.has_perm("grading.view_auditevent"),
        )


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """The page of people's actions, in a constant number of queries."""
    filters, query = HistoryFilterForm(request.GET), request.GET.copy()
    query.pop("before", None)
    audit_filters = filters.for_viewer(request.user)
    page = audit.read_page(audit_filters, before=HistoryCursor.parse(request.GET.get("before", "")))
    context = {
        "title": "History",
        "filters": filters,
        "rows": rows(page.acts, grouped=audit_filters.kind is not HistoryKind.SIGN_IN),
        "older": page.older,
        "is_first": "before" not in request.GET,
        "query": query.urlencode(),
        "narrowed": any(query.values()),
        "bulk": bulk(audit_filters.bulk) if audit_filters.bulk else None,
        "saved_views": saved_views.menu(request, FilteredList.HISTORY),
    }
    return TemplateResponse(request, "history/history.html", context)


def rows(acts: Iterable[HistoryEntry], *, grouped: bool) -> list[dict[str, Any]]:
    """The rows of the table, one for each act, newest first.

    If `grouped`, consecutive equal sign-ins share a row, with their `count` and the time of the `first`. A reveal that
    was followed by the same person's answer has no row, because the answer's row mentions it.
    """
    table: list[dict[str, Any]] = []
    for act in acts:
        latest = table[-1]["act"] if table else None
        if act.kind is HistoryKind.REVEAL and latest is not None and _says_revealed(latest, act):
            continue
        if grouped and act.kind is HistoryKind.SIGN_IN and latest is not None and _is_same_sign_in(act, latest):
            table[-1] |= {"count": table[-1]["count"] + 1, "first": act.at}
        else:
            table.append({"act": act, "changed": shown_changes(act), "count": 1})
    return table


def _says_revealed(act: HistoryEntry, reveal: HistoryEntry) -> bool:
    """Whether `act` is an answer, after a reveal, by the person and for the session of `reveal`."""
    is_revealed = act.answer is not None and act.answer.revealed
    return is_revealed and (act.session, act.who) == (reveal.session, reveal.who)


def _is_same_sign_in(act: HistoryEntry, other: HistoryEntry) -> bool:
    return (act.kind, act.who, act.what, act.why) == (other.kind, other.who, other.what, other.why)


def shown_changes(act: HistoryEntry) -> dict[str, Any] | None:
    """Everything that an answer changed, for its row. None for other acts, and if there is nothing to show.

    An answer with its time or a reveal has something to show even if it changed nothing.
    """
    effects = act.effects
    changes = {
        "arms": [(move.bandit, words(move)) for move in moves_of(effects)],
        "flags": effects.get("flags_cleared", []),
        "alarms": effects.get("alarms", []),
    }
    if act.answer and (any(changes.values()) or act.answer.seconds or act.answer.revealed):
        return changes
    return None


def bulk(name: str) -> dict[str, Any] | None:
    """How many answers a bulk correction has, and how many still count; None if there is no correction of that name."""
    answers = ReviewAnswer.objects.filter(bulk=name).exclude(answer=Answer.UNDO)
    total = answers.count()
    if not total:
        return None
    first = answers.select_related("reviewer").latest("pk")
    return {"id": name, "total": total, "holding": answers.filter(undone_by=None).count(), "first": first}


@staff_view("grading.view_session")
def export_csv(request: StaffRequest) -> StreamingHttpResponse:
    """All actions that match the filters, as CSV."""
    acts = audit.each_act(HistoryFilterForm(request.GET).for_viewer(request.user))
    return exports.as_csv("history", exported.ACT_FIELDS, (exported.act_record(act) for act in acts))


@staff_view("grading.view_session")
def export_jsonl(request: StaffRequest) -> StreamingHttpResponse:
    """All actions that match the filters, as JSONL, with everything that each changed."""
    acts = audit.each_act(HistoryFilterForm(request.GET).for_viewer(request.user))
    return exports.as_jsonl("history", (exported.act_record_with_effects(act) for act in acts))


@staff_view("grading.view_session")
def calibration(request: StaffRequest) -> StreamingHttpResponse:  # noqa: ARG001 - a view
    """The blind pairs as CSV, for calibrating a judge elsewhere."""
    return exports.as_csv("calibration", exported.PAIR_FIELDS, exported.pair_records())
