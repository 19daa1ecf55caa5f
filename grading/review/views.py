"""Saved views: the filters of a list under a name, private or shared with everybody."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import QueryDict

from grading.models import SavedView
from grading.models.review import FilteredList

MAX_NAME, MAX_QUERY, MAX_VIEWS = 60, 1000, 50  # characters, characters, views of a person
# Parameters of a list's address that are not filters: the page, and a form's token.
NOT_FILTERS = ("page", "before", "after", "csrfmiddlewaretoken")


class ViewError(ValueError):
    """The view cannot be saved. The message says what was expected, what came, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A view that everybody has and nobody saved."""

    name: str
    query: str


BUILT_IN: dict[FilteredList, tuple[BuiltIn, ...]] = {
    FilteredList.SESSIONS: (
        BuiltIn(name="Flagged", query="flagged=yes"),
        BuiltIn(name="Provisional", query="state=provisional"),
        BuiltIn(name="Not graded yet", query="source=floor"),
        BuiltIn(name="Graded by people", query="source=human"),
        BuiltIn(name="Verdict stale", query="stale=yes"),
    ),
    FilteredList.HISTORY: (
        BuiltIn(name="Answers", query="kind=answer"),
        BuiltIn(name="Undone", query="kind=undo"),
    ),
    FilteredList.REVIEW: (),
}


def visible_to(user: User, page: FilteredList) -> list[SavedView]:
    """The views of a list that this person sees: first their own, then those that others share, each by name."""
    views = SavedView.objects.filter(Q(owner=user) | Q(shared=True), page=page).select_related("owner")
    return sorted(views, key=lambda view: (view.owner_id != user.pk, view.name.lower(), view.pk))


def save(user: User, page: FilteredList, name: str, query: str, *, shared: bool = False) -> SavedView:
    """Save a list's filters under a name.

    Raises ViewError if the name is blank, too long or taken, if the filters are too long, or if the person has too many
    views.
    """
    if SavedView.objects.filter(owner=user).count() >= MAX_VIEWS:
        raise ViewError(f"You already have {MAX_VIEWS} views. Delete one first.")
    return _saved(SavedView(owner=user, page=page, name=_named(name), query=filters_of(query), shared=shared))


def change(view: SavedView, user: User, *, name: str, shared: bool) -> SavedView:
    """Rename, share or unshare a view. Raises ViewError if it is another person's, or the name is invalid."""
    _require_own(view, user)
    view.name, view.shared = _named(name), shared
    return _saved(view)


def delete(view: SavedView, user: User) -> None:
    """Delete a view. Raises ViewError if it is another person's."""
    _require_own(view, user)
    view.delete()


def filters_of(query: str) -> str:
    """The filters in a query string, without empty filters. Raises ViewError if they are too long."""
    params = QueryDict(query.lstrip("?"))
    filters = QueryDict(mutable=True)
    for name in params:
        if name not in NOT_FILTERS and any(params.getlist(name)):
            filters.setlist(name, params.getlist(name))
    text = filters.urlencode()
    if len(text) > MAX_QUERY:
        raise ViewError(
            f"These filters are too long to save: {len(text)} characters, at most {MAX_QUERY}. Use fewer filters."
        )
    return text


def current(views: Iterable[SavedView | BuiltIn], query: str) -> SavedView | BuiltIn | None:
    """The first view with the same filters as `query`; None if there is none."""
    filters = dict(QueryDict(query).lists())
    return next((view for view in views if dict(QueryDict(view.query).lists()) == filters), None)


def _named(name: str) -> str:
    name = " ".join(name.split())
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise ViewError(f"A view's name has 1 to {MAX_NAME} characters; this one has {len(name)}.")
    return name


def _require_own(view: SavedView, user: User) -> None:
    if view.owner_id != user.pk:
        raise ViewError(f"This view belongs to {view.owner.get_username()}. To change it, save your own copy.")


def _saved(view: SavedView) -> SavedView:
    try:
        with transaction.atomic():
            view.save()
    except IntegrityError as error:
        raise ViewError(f"You already have a view named “{view.name}” here. Choose another name.") from error
    return view
