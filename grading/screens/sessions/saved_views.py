"""The menu of saved views over a list, and the page on which one's own are renamed, shared and deleted."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from grading.models import SavedView
from grading.models.review import FilteredList
from grading.review import views
from grading.review.views import ViewError

# The screen on which each list is.
SCREEN = {
    FilteredList.SESSIONS: "admin:sessions",
    FilteredList.HISTORY: "admin:history",
    FilteredList.REVIEW: "admin:review",
}
TITLE = {FilteredList.SESSIONS: "Sessions", FilteredList.HISTORY: "History", FilteredList.REVIEW: "Review"}


def menu(request: HttpRequest, page: FilteredList, query: str | None = None) -> dict[str, Any]:
    """What `_saved_views.html` shows, as its `saved_views`: one query. `query` defaults to the address'."""
    try:
        filters = views.filters_of(request.GET.urlencode() if query is None else query)
    except ViewError:
        filters = ""
    kept = views.visible_to(request.user, page)  # type: ignore[arg-type] # the screen needs a login
    built_in = views.BUILT_IN[page]
    return {
        "page": page.value,
        "url": reverse(SCREEN[page]),
        "filters": filters,
        "built_in": built_in,
        "own": [view for view in kept if view.owner_id == request.user.pk],
        "others": [view for view in kept if view.owner_id != request.user.pk],
        "current": views.current([*kept, *built_in], filters) if filters else None,
        "longest": views.LONGEST_NAME,
    }


def show(request: HttpRequest) -> HttpResponse:
    """One's own views; a POST saves the filters of a list as another."""
    if request.method != "POST":
        own = SavedView.objects.filter(owner=request.user.pk)
        lists = [
            {"title": TITLE[page], "url": reverse(SCREEN[page]), "views": [view for view in own if view.page == page]}
            for page in FilteredList
        ]
        context = {"title": "Saved views", "lists": [each for each in lists if each["views"]]}
        return TemplateResponse(request, "sessions/views.html", context)
    given = request.POST
    if given.get("page") not in set(FilteredList):
        return HttpResponseNotFound()
    page = FilteredList(given["page"])
    try:
        view = views.save(
            request.user,  # type: ignore[arg-type] # the screen needs a login
            page,
            given.get("name", ""),
            given.get("query", ""),
            shared="shared" in given,
        )
    except ViewError as error:
        messages.error(request, str(error))
        return redirect(_address(page, given.get("query", "")))
    messages.success(request, f"Saved as “{view.name}”{', for everybody to use' if view.shared else ''}.")
    return redirect(_address(page, view.query))


def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename, share, or delete; deleting asks first."""
    view = get_object_or_404(SavedView, pk=pk, owner=request.user.pk)
    problem = ""
    if request.method == "POST" and "delete" in request.POST:
        views.delete(view, request.user)  # type: ignore[arg-type] # the screen needs a login
        messages.success(request, f"“{view.name}” is deleted. The list itself has lost nothing.")
        return redirect("admin:views")
    if request.method == "POST":
        try:
            views.change(
                view,
                request.user,  # type: ignore[arg-type] # the screen needs a login
                name=request.POST.get("name", ""),
                shared="shared" in request.POST,
            )
        except ViewError as error:
            problem = str(error)
            view.refresh_from_db()
        else:
            messages.success(request, f"“{view.name}” is kept{' and shared' if view.shared else ''}.")
            return redirect("admin:views")
    address = _address(FilteredList(view.page), view.query)
    asks = "delete" in request.GET
    context = {"title": view.name, "view": view, "problem": problem, "address": address, "asks": asks}
    return TemplateResponse(request, "sessions/view.html", context)


def _address(page: FilteredList, query: str) -> str:
    try:
        filters = views.filters_of(query)
    except ViewError:
        filters = ""
    return reverse(SCREEN[page]) + (f"?{filters}" if filters else "")
