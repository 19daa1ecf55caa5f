"""The pages of imports: what became of every file, and what to do where there is none."""

import pytest
from django.urls import reverse

from grading.models import ImportedFile, LogImport
from grading.models.imports import Fate

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(site, client):
    client.force_login(site.person("olga", "operator"))
    return client


def an_import(site, **counts: int) -> LogImport:
    """One that found so many files of each fate."""
    session = site.session().with_work().session
    row = LogImport.objects.create(agent=session.agent, by="olga", folders=["/logs"], counts=counts)
    for fate, count in counts.items():
        for number in range(count):
            of = session if fate in {Fate.IMPORTED, Fate.ADDED, Fate.THERE} else None
            ImportedFile.objects.create(
                log_import=row, path=f"/logs/{fate} {number}", fate=fate, why=f"why {number % 8}", session=of
            )
    return row


def test_an_import_shows_its_counts_and_the_files_of_one_fate(site, olga):
    row = an_import(site, imported=2, other=130, folder=1)
    page = olga.get(row.get_absolute_url())
    assert [(each["fate"], each["count"]) for each in page.context["rows"]] == [
        (Fate.IMPORTED, 2),
        (Fate.OTHER, 130),
        (Fate.FOLDER, 1),
    ]
    assert page.context["import"].files == 132
    assert page.context["rows"][1]["why"][0] == "why 0 (17)"
    assert page.context["rows"][1]["more"] == 2
    imported = olga.get(row.get_absolute_url(), {"fate": "imported"})
    assert [file.path for file in imported.context["page"]] == ["/logs/imported 0", "/logs/imported 1"]
    assert f'href="{imported.context["page"][0].session.get_absolute_url()}"' in imported.content.decode()
    second = olga.get(row.get_absolute_url(), {"fate": "other", "page": "2"})
    assert len(second.context["page"]) == 30
    assert "fate=other&amp;page=1#files" in second.content.decode()


def test_a_hostile_file_name_is_shown_as_what_it_is(site, olga):
    row = an_import(site, other=1)
    ImportedFile.objects.create(log_import=row, path="/logs/<script>x</script>\u202e.txt", fate=Fate.OTHER)
    page = olga.get(row.get_absolute_url()).content.decode()
    assert "&lt;script&gt;x&lt;/script&gt;⟨U+202E⟩.txt" in page


def test_the_files_that_were_forgotten_are_said_to_be(site, olga):
    row = an_import(site, other=1)
    row.found.all().delete()
    page = olga.get(row.get_absolute_url())
    assert page.context["rows"][0]["count"] == 1
    assert "stored only for the latest" in page.content.decode()


def test_the_list_leads_to_each_import_and_connect_to_the_list(site, olga):
    empty = olga.get(reverse("admin:imports")).content.decode()
    assert "No imports yet." in empty
    assert "manage.py import_sessions" in empty
    assert "~/.claude/projects/&lt;project&gt;/&lt;session&gt;.jsonl" in empty
    row = an_import(site, imported=1, refused=2)
    page = olga.get(reverse("admin:imports")).content.decode()
    assert f'href="{row.get_absolute_url()}"' in page
    assert f'href="{reverse("admin:imports")}"' in olga.get(reverse("admin:connect")).content.decode()


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_what_lies_on_the_servers_disk_is_for_operators(site, client, role):
    row = an_import(site, other=1)
    client.force_login(site.person("vera", role))
    assert client.get(row.get_absolute_url()).status_code == 403
    assert client.get(reverse("admin:imports")).status_code == 403
