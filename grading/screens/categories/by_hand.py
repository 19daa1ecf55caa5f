"""Setting the category of one session or many by hand: what it would do first, and undoing it."""

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from bandit.models import Arm
from grading.intake.categories import changes, preview, provenance
from grading.intake.categories.changes import MAX_BY_HAND, ChangeRefused
from grading.models import CategoryChange, Session
from grading.plain import counted, primary_key
from grading.screens.categories import effect
from grading.screens.categories.draft import categories, uuid_of
from grading.screens.http import StaffRequest, staff_view

# The most sessions that the page lists if none was selected.
CHOOSABLE = 20
BACK = {"session": "admin:session", "review": "admin:review_session"}


@staff_view("grading.add_grade")
def show(request: StaffRequest) -> HttpResponse:
    """The selected sessions, and the effect of the category; a POST sets it."""
    params = request.POST if request.method == "POST" else request.GET
    ids = list(dict.fromkeys(key for text in params.getlist("session") if (key := primary_key(text))))
    category = categories().filter(name=params.get("category", "")[:200]).first()
    if request.method == "POST":
        _set(request, ids, category)
        back = BACK.get(params.get("back", ""))
        if back is not None and len(ids) == 1:
            return redirect(back, pk=ids[0])
        return redirect(f"{reverse('admin:categories')}#changes")
    rows = list(Session.objects.with_people().filter(pk__in=ids[: MAX_BY_HAND + 1]))
    context: dict[str, Any] = {
        "title": "Set the category",
        "rows": rows,
        "total": len(ids),
        "most": MAX_BY_HAND,
        "too_many": len(ids) > MAX_BY_HAND,
        "chosen": category,
        "categories": categories(),
        "name": uuid.uuid4(),  # of the change, so that a form that is sent twice is applied once
        "preview": None,
    }
    if not rows:
        without_category = Session.objects.uncategorised()
        is_left = without_category.exists()
        choosable = without_category if is_left else Session.objects.yours()
        context["choosable"] = choosable.with_people().order_by("-ended_at", "-pk")[:CHOOSABLE]
        context["choosable_words"] = "the latest without a category" if is_left else "the latest; all have a category"
        context["was_asked"] = bool(params.getlist("session"))
    if category is not None and rows and not context["too_many"]:
        context["preview"] = preview.preview({each.pk: category for each in rows}, timezone.now())
        context["effects"] = effect.bandit_effects(context["preview"])
        context["changing"] = [each for each in rows if each.category is None or each.category.current != category]
    return TemplateResponse(request, "categories/set.html", context)


def _set(request: StaffRequest, ids: list[int], category: Arm | None) -> None:
    """Set the category of these sessions, and leave a message."""
    if category is None:
        messages.error(request, "Nothing was changed. Choose a category first.")
        return
    reason, name = request.POST.get("reason", ""), uuid_of(request.POST.get("name", ""))
    try:
        change = changes.set_by_hand(ids, category, request.user, reason=reason, name=name)
    except ChangeRefused as error:
        messages.error(request, str(error))
        return
    count = counted(change.total, "session")
    messages.success(request, f"{count} set to {category}. The judge wasn’t called, and you can undo this.")


@staff_view("grading.add_grade")
def undo(request: StaffRequest, pk: int) -> HttpResponse:
    """Undo a change of categories by a person."""
    change = get_object_or_404(CategoryChange, pk=pk)
    changes_url = f"{reverse('admin:categories')}#changes"
    if request.method == "POST":
        try:
            changes.undo(change, request.user, request.POST.get("reason", ""))
        except ChangeRefused as error:
            messages.error(request, str(error))
        else:
            messages.success(request, "Undone. The previous categories and rewards are restored exactly.")
        back, key = BACK.get(request.POST.get("back", "")), primary_key(request.POST.get("session", ""))
        if back is not None and key:
            return redirect(back, pk=key)
    return redirect(changes_url)


def of_session(session: Session) -> dict[str, Any]:
    """The context about a session's category: where it came from, overruled words, and the choices."""
    category_words = provenance.load_words(session)
    effective_word = provenance.effective_word(category_words)
    return {
        "given": provenance.provenance_of(session, category_words),
        "words": category_words,
        "undo": None if effective_word is None else effective_word.change,
        "overruled": [word for word in category_words if word.undone_at is None and word is not effective_word],
        "categories": categories(),
        "name": uuid.uuid4(),  # of the change, so that a form that is sent twice is applied once
    }
