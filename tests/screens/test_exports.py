"""Every file that the site gives out, from a site full of attacks: no cell is a formula, and no file is a page."""

import csv
import io
import re

import pytest
from django.conf import settings as site_settings
from django.test import override_settings

from tests import addresses, poisoned
from tests.addresses import FILE
from tests.casts import quota as quota_cast

pytestmark = pytest.mark.django_db

# What a spreadsheet takes for a formula, in full width too, except a plain number.
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?")


@pytest.fixture(scope="module")
def rows(module_site, django_db_blocker):
    """A row of everything, full of attacks: it takes eight seconds of CPU, so both tests read the same."""
    with django_db_blocker.unblock(), override_settings():
        quota_cast.use(site_settings)
        return poisoned.make()[0]


@pytest.fixture
def files(rows, admin_client, settings):
    """The answer of every address that gives a file, by name."""
    quota_cast.use(settings)
    names = [name for name in addresses.of_kind(FILE) if name in addresses.SCREENS]
    return {url: admin_client.get(url) for name in names for url in addresses.urls(name, rows)}


def test_a_file_is_saved_and_never_shown_as_a_page(files):
    for url, response in files.items():
        assert response.status_code == 200, url
        assert response.headers["Content-Type"].partition(";")[0] in {"text/csv", "application/x-ndjson"}, url
        assert response.headers["Content-Disposition"].startswith("attachment; filename="), url
        assert response.headers["X-Content-Type-Options"] == "nosniff", url


def test_no_cell_is_a_formula(files):
    tables = {url: csv_rows(response) for url, response in files.items() if "csv" in response.headers["Content-Type"]}
    assert tables
    for url, rows in tables.items():
        assert len(rows) > 1, f"{url} has nothing in it"
        assert {len(row) for row in rows} == {len(rows[0])}, url
        live = [cell for row in rows for cell in row if FORMULA.match(cell) and not NUMBER.fullmatch(cell)]
        assert live == [], url


def csv_rows(response) -> list[list[str]]:
    return list(csv.reader(io.StringIO(response.getvalue().decode(), newline="")))
