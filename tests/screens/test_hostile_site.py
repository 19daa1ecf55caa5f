"""Every page and every file of a site full of attacks, by Django's test client: text stays text, no cell is a formula.

Whether scripts of the site turn text into something else is seen in a real browser: tests/browser/test_xss.py.
"""

import csv
import io
import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from grading.models import SavedView
from tests import addresses, poisoned
from tests.addresses import FILE, PAGE, PART, World
from tests.casts import quota as quota_cast
from tests.page_checks import markup_faults
from tests.site import Site

pytestmark = pytest.mark.django_db

# What a spreadsheet takes for a formula, in full width too, except a plain number.
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?")
MAIN = re.compile(r"<main.*</main>", re.DOTALL)


@pytest.fixture(scope="module")
def hostile(django_db_setup, django_db_blocker) -> Iterator[tuple[World, set[str]]]:
    """The site, and the columns in which nothing is hostile. Built once: nothing here changes it."""
    demo = {"DEMO": True, "SIMULATED": True, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    judge = override_settings(ANTHROPIC_API_KEY=quota_cast.KEY, JUDGE_MODEL="claude-sonnet-5-5", **demo)
    with django_db_blocker.unblock(), judge, Site().rolled_back():
        site, tame = poisoned.make()
        owner = User.objects.create_superuser("root", password="correct horse battery")
        with poisoned.poisoning():
            SavedView.objects.create(owner=owner, page="sessions")
        yield site, tame


@pytest.fixture
def owner(hostile) -> Client:
    client = Client()
    client.force_login(User.objects.get(username="root"))
    return client


@pytest.fixture
def files(hostile, owner):
    """The answer of every address that gives a file, by its address."""
    names = [name for name in addresses.of_kind(FILE) if name in addresses.SCREENS]
    return {url: owner.get(url) for name in names for url in addresses.urls(name, hostile[0])}


def test_every_text_column_is_hostile(hostile):
    _site, tame = hostile
    assert not tame, (
        f"{sorted(tame)}: no row of tests/poisoned.py holds hostile text in these. Make one there, so that every "
        "page that shows them is tested; or, where no text from outside ever comes there, add the column to KEPT."
    )


def test_hostile_text_stays_text_on_every_page(hostile, owner):
    site, wrong, shown = hostile[0], {}, 0
    for name in set(addresses.of_kind(PAGE, PART)) - {"admin:trial"}:  # on no normal site
        for url in addresses.urls(name, site):
            response = owner.get(url, follow=True)
            wrong[url] = [*markup_faults(response)[:5], *([] if response.status_code == 200 else ["no page"])]
            shown += "pwned" in "".join(MAIN.findall(response.content.decode()))
    assert not {url: faults for url, faults in wrong.items() if faults}
    assert shown > 30, "most pages are to show hostile text, or else this shows nothing"


def test_a_file_is_saved_and_never_shown_as_a_page_and_has_no_formula(files):
    tables = 0
    for url, response in files.items():
        assert response.status_code == 200, url
        kind = response.headers["Content-Type"].partition(";")[0]
        assert kind in {"text/csv", "application/x-ndjson"}, url
        assert response.headers["Content-Disposition"].startswith("attachment; filename="), url
        assert response.headers["X-Content-Type-Options"] == "nosniff", url
        if kind == "text/csv":
            tables += 1
            rows = list(csv.reader(io.StringIO(response.getvalue().decode(), newline="")))
            assert len(rows) > 1, f"{url} has nothing in it"
            assert {len(row) for row in rows} == {len(rows[0])}, url
            live = [cell for row in rows for cell in row if FORMULA.match(cell) and not NUMBER.fullmatch(cell)]
            assert live == [], url
    assert tables > 2
