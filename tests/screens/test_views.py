"""Saved views: kept under a name, shared, renamed and deleted by whose they are, and by nobody else."""

import pytest

from grading.models import SavedView
from grading.models.review import FilteredList
from grading.review import views
from tests.casts.page import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def vera(site):
    return site.person("vera", "viewer")


@pytest.fixture
def viewer(client, vera):
    client.force_login(vera)
    return client


def page(client, address) -> str:
    response = client.get(address, follow=True)
    assert response.status_code == 200
    return flat(response)


def save(client, **fields) -> str:
    fields = {"page": "sessions", "name": "Mine", "query": "category=code&state=final", **fields}
    return flat(client.post("/views/", fields, follow=True))


def test_filters_are_saved_under_a_name_and_stand_in_the_menu(viewer):
    assert "Save these filters as" in page(viewer, "/sessions/?category=code&state=final")
    html = save(viewer)
    assert "Saved as “Mine”." in html
    assert "View: Mine" in html
    assert '<a href="/sessions/?category=code&amp;state=final">Mine</a>' in page(viewer, "/sessions/")
    assert "Mine" not in page(viewer, "/history/")


def test_page_number_and_empty_filters_are_no_part_of_a_view(viewer):
    save(viewer, query="?q=&category=code&page=3&before=x&csrfmiddlewaretoken=y")
    assert SavedView.objects.get().query == "category=code"


def test_every_list_has_its_built_in_views(viewer):
    for built_in in views.BUILT_IN[FilteredList.SESSIONS]:
        html = page(viewer, f"/sessions/?{built_in.query}")
        assert f"View: {built_in.name}" in html
        assert "Filter ignored" not in html
    for built_in in views.BUILT_IN[FilteredList.HISTORY]:
        assert f"View: {built_in.name}" in page(viewer, f"/history/?{built_in.query}")


def test_a_shared_view_is_everybodys_to_use_and_its_owners_to_change(site, viewer, client, vera):
    save(viewer, shared="yes")
    save(viewer, name="Private", query="category=news")
    view = SavedView.objects.get(name="Mine")
    client.force_login(site.person("rita", "reviewer"))
    html = page(client, "/sessions/")
    assert "Shared by others" in html
    assert "Mine" in html
    assert "Private" not in html
    assert client.post(f"/views/{view.pk}/", {"delete": "yes"}).status_code == 404
    assert client.post(f"/views/{view.pk}/", {"name": "Taken"}).status_code == 404
    with pytest.raises(views.ViewError, match="belongs to vera"):
        views.delete(view, site.person("omar", "operator"))
    assert SavedView.objects.filter(name="Mine").exists()


def test_a_view_is_renamed_shared_and_kept_to_oneself_again(viewer):
    save(viewer)
    address = f"/views/{SavedView.objects.get().pk}/"
    viewer.post(address, {"name": "  Code,   final ", "shared": "yes"})
    assert (SavedView.objects.get().name, SavedView.objects.get().shared) == ("Code, final", True)
    response = viewer.post(address, {"name": "Code, final"})
    assert not SavedView.objects.get().shared
    assert "View: Code, final" in page(viewer, response.url)


def test_menu_changes_the_view_that_is_open_if_it_is_ones_own(site, viewer, client):
    save(viewer, shared="yes")
    form = f'action="/views/{SavedView.objects.get().pk}/"'
    assert form in page(viewer, "/sessions/?category=code&state=final")
    assert form not in page(viewer, "/sessions/")
    client.force_login(site.person("rita", "reviewer"))
    assert form not in page(client, "/sessions/?category=code&state=final")


def test_queue_changes_the_view_that_is_open_if_it_is_ones_own(site, client):
    site.session().in_queue()
    client.force_login(site.person("rita", "reviewer"))
    save(client, page="review", query="agent=bob")
    form = f'action="/views/{SavedView.objects.get(name="Mine").pk}/"'
    assert form in page(client, "/review/?agent=bob")
    assert form not in page(client, "/review/")


def test_filters_of_a_deleted_view_stay_set(viewer):
    save(viewer)
    html = flat(viewer.post(f"/views/{SavedView.objects.get().pk}/", {"delete": "yes"}, follow=True))
    assert "“Mine” is deleted." in html
    assert "Save these filters as" in html
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": " "}, "1 to 60 characters"),
        ({"name": "x" * 61}, "1 to 60 characters"),
        ({"name": "two\x00"}, "1 to 60 characters"),
        ({"query": "q=" + "x" * 1000}, "Use fewer filters"),
        ({"name": "Taken"}, "Choose another name"),
    ],
)
def test_what_cannot_be_kept_is_said(viewer, vera, fields, said):
    views.save(vera, FilteredList.SESSIONS, "Taken", "category=news")
    assert said in save(viewer, **fields)
    assert SavedView.objects.count() == 1


def test_a_name_may_stand_once_on_each_list(vera):
    views.save(vera, FilteredList.SESSIONS, "Mine", "category=news")
    views.save(vera, FilteredList.HISTORY, "Mine", "kind=undo")
    assert [view.name for view in views.visible_to(vera, FilteredList.HISTORY)] == ["Mine"]


def test_renaming_to_a_taken_name_changes_nothing(viewer, vera):
    views.save(vera, FilteredList.SESSIONS, "Taken", "category=news")
    save(viewer)
    html = flat(viewer.post(f"/views/{SavedView.objects.get(name='Mine').pk}/", {"name": "Taken"}, follow=True))
    assert "Choose another name" in html
    assert SavedView.objects.filter(name="Mine").exists()


def test_one_person_keeps_at_most_fifty(vera):
    for number in range(views.MAX_VIEWS):
        views.save(vera, FilteredList.SESSIONS, f"view {number}", "category=news")
    with pytest.raises(views.ViewError, match="Delete one"):
        views.save(vera, FilteredList.SESSIONS, "one more", "category=news")


def test_an_unknown_list_is_refused(viewer):
    assert viewer.post("/views/", {"page": "users", "name": "x", "query": "a=b"}).status_code == 404


def test_a_view_leads_nowhere_but_to_its_list(viewer):
    response = viewer.post("/views/", {"page": "sessions", "name": "x", "query": "//evil.example/?a=b"})
    assert response.url.startswith("/sessions/?")


def test_a_name_is_text(viewer):
    save(viewer, name="<script>alert(1)</script>")
    for address in ("/sessions/", f"/sessions/?{SavedView.objects.get().query}"):
        assert "<script>alert(1)" not in page(viewer, address)
