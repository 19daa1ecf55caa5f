"""Every page and fragment in a real Chromium, on a site whose every text is an attack: nothing of it does anything."""

from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User

from grading.models import SavedView
from tests import addresses, poisoned
from tests.addresses import PAGE, PART
from tests.browser.watch import LISTEN, Watch, signed_in
from tests.casts import quota as quota_cast
from tests.corpus import xss

pytestmark = pytest.mark.browser

# What pages read from their address. A page that reads none of them shows nothing of it.
ASKED = (
    "q", "session", "category", "harness", "agent", "model", "state", "value", "event", "page", "next", "why", "note",
    "days", "find", "ticked", "stale", "title", "reason", "view", "name", "source", "reviewer", "sort", "order", "arm",
)  # fmt: skip


@pytest.fixture
def site(db, settings):
    quota_cast.demo(settings)
    return poisoned.make()


@pytest.fixture
def watched(chromium, live_site, site):
    """A superuser's page, which sees everything, and what is heard of it."""
    owner = User.objects.create_superuser("root", password="correct horse battery")
    with poisoned.poisoning():
        site[0].rows["view"] = SavedView.objects.create(owner=owner, page="sessions")
    context = signed_in(chromium, live_site, owner, viewport={"width": 1440, "height": 900})
    context.add_init_script(LISTEN)
    page = context.new_page()
    yield page, Watch(page, live_site)
    context.close()


def test_every_text_column_is_hostile(site):
    _world, tame = site
    assert not tame, (
        f"{sorted(tame)}: no row of tests/poisoned.py holds hostile text in these. Make one there, so that every "
        "page that shows them is tested; or, where no text from outside ever comes there, add the column to KEPT."
    )


def test_hostile_text_stays_text_on_every_page(watched, site):
    page, watch = watched
    wrong, shown = {}, 0
    for name in addresses.of_kind(PAGE, PART):
        for url in addresses.urls(name, site[0]):
            status = page.goto(url).status
            found = watch.looked()
            if status != 200 or found:
                wrong[url] = (status, found[:5])
            shown += "pwned" in page.locator("main").inner_text() if page.locator("main").count() else 0
    assert not wrong
    assert shown > 30, "most pages are to show hostile text, or else this shows nothing"


def test_hostile_addresses_stay_text_on_every_page(watched, site):
    page, watch = watched
    attack = xss.BREAKOUTS["out of everything"] + xss.HANDLERS["img onerror"]
    asked = "?" + urlencode(dict.fromkeys(ASKED, attack))
    wrong = {}
    for name in addresses.of_kind(PAGE, PART):
        if name in addresses.SCREENS or name == "admin:login":
            url = addresses.url(name, site[0]) + asked
            status = page.goto(url).status
            found = watch.looked()
            if status not in {200, 302, 400, 404} or found:
                wrong[name] = (status, found[:5])
    page.goto("/no/such/page/" + xss.BREAKOUTS["out of everything"].replace("/", "%2f"))
    assert not wrong
    assert watch.looked() == []
