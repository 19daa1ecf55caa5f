"""Pages that need a selection of sessions, opened without one: they list some to tick."""

import pytest

from tests.casts.page import flat

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]


@pytest.mark.parametrize("url", ["/review/bulk/", "/categories/set/"])
def test_without_a_session_the_page_lists_some_to_choose(site, reviewer, url):
    assert "so none is selected." in flat(reviewer.get(f"{url}?session=x&session=999999"))
    session = site.session().judged(0.6).settle()
    page = flat(reviewer.get(url))
    assert f'name="session" value="{session.pk}"' in page
    assert "so none is selected." not in page
    assert "Continue with the ticked sessions" not in flat(reviewer.get(url, {"session": session.pk}))


@pytest.mark.parametrize("url", ["/review/bulk/", "/categories/set/"])
def test_a_site_without_sessions_offers_none_to_choose(reviewer, url):
    page = flat(reviewer.get(url))
    assert "None of your own sessions has arrived, so there is nothing to choose." in page
    assert "Continue with the ticked sessions" not in page
    assert "all have a category" not in page


def test_sessions_without_a_category_are_offered_before_others(site, reviewer):
    site.session().judged(0.6).settle()
    assert "the latest; all have a category" in flat(reviewer.get("/categories/set/"))
    without = site.session(category=None).judged(0.6).settle()
    assert list(reviewer.get("/categories/set/").context["choosable"]) == [without]
