"""The menu of saved views above a list, where people also rename, share and delete their own."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseNotFound
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from grading.models import SavedView
from grading.models.review import FilteredList
from grading.review import views
from grading.review.views import ViewError
from grading.screens.http import StaffRequest, staff_view

# The URL name of each list.
URL_NAMES = {
    FilteredList.SESSIONS: "admin:sessions",
    FilteredList.HISTORY: "admin:history",
    FilteredList.REVIEW: "admin:review",
}


def menu(request: StaffRequest, page: FilteredList) -> dict[str, Any]:
    """The context `saved_views` of `_saved_views.html`. One query."""
    try:
        filters = views.filters_of(request.GET.urlencode())
    except ViewError:
        filters = ""
    visible = views.visible_to(request.user, page)
    built_in = views.BUILT_IN[page]
    current = views.current([*visible, *built_in], filters) if filters else None
    return {
        "page": page.value,
        "url": reverse(URL_NAMES[page]),
        "filters": filters,
        "built_in": built_in,
        "own": [view for view in visible if view.owner_id == request.user.pk],
        "others": [view for view in visible if view.owner_id != request.user.pk],
        "current": current,
        "own_current": current if isinstance(current, SavedView) and current.owner_id == request.user.pk else None,
        "longest": views.MAX_NAME,
    }


@staff_view("grading.add_savedview", methods=["POST"])
def save(request: StaffRequest) -> HttpResponse:
    """Save the filters of a list under a name."""
    if request.POST.get("page") not in set(FilteredList):
        return HttpResponseNotFound()
    page, query = FilteredList(request.POST["page"]), request.POST.get("query", "")
    try:
        view = views.save(
            request.user,
            page,
            request.POST.get("name", ""),
            query,
            shared="shared" in request.POST,
        )
    except ViewError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _saved_as(view))
    return redirect(_address(page, query))


@staff_view("grading.add_savedview", methods=["POST"])
def change(request: StaffRequest, pk: int) -> HttpResponse:
    """Rename, share or delete a view of the user's own, and go back to its list with its filters."""
    view = get_object_or_404(SavedView, pk=pk, owner=request.user.pk)
    try:
        if "delete" in request.POST:
            views.delete(view, request.user)
            messages.success(
                request, f"“{view.name}” is deleted. Its filters are still set. To restore the view, save them again."
            )
        else:
            views.change(
                view,
                request.user,
                name=request.POST.get("name", ""),
                shared="shared" in request.POST,
            )
            messages.success(request, _saved_as(view))
    except ViewError as error:
        messages.error(request, str(error))
    return redirect(_address(FilteredList(view.page), view.query))


def _saved_as(view: SavedView) -> str:
    return f"Saved as “{view.name}”{', for everybody to use' if view.shared else ''}."


def _address(page: FilteredList, query: str) -> str:
    try:
        filters = views.filters_of(query)
    except ViewError:
        filters = ""
    return reverse(URL_NAMES[page]) + (f"?{filters}" if filters else "")
