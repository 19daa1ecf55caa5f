"""What strangers, local users and hostile text try at the shell around the site, and what it does then."""

import logging
import time

import pytest
from django.contrib.sessions.models import Session as Login
from django.core.management import call_command
from django.db import connection
from django.test import Client

from grading.models import ArtifactRule, AuditEvent, Grade, Session
from grading.plain import UNSEEN
from grading.reward import sources
from grading.signals import patch
from grading.signals.artifacts import ArtifactDefinition, find_artifacts
from grading.vocabulary import Source, Status
from gradingsite.telemetry import LineFormatter
from tests.casts import judge as judge_cast
from tests.casts import shared_records
from tests.site import Site

pytestmark = pytest.mark.django_db

RIGHT = "correct horse battery"


@pytest.fixture
def olga():
    return Site().person("olga", "operator")


def sign_in(client, password=RIGHT, address="192.0.2.7", name="olga"):
    return client.post("/login/", {"username": name, "password": password}, REMOTE_ADDR=address)


def test_a_stolen_database_signs_nobody_in(client, olga):
    sign_in(client)
    with connection.cursor() as cursor:
        cursor.execute("SELECT session_key FROM django_session")
        stolen = [key for (key,) in cursor.fetchall()]
    thief = Client()
    for key in stolen:
        thief.cookies["sessionid_8000"] = key
        assert thief.get("/history/").status_code == 302
    assert Login.objects.count() == 1


def test_whoever_fails_in_the_admins_name_does_not_shut_the_admin_out(olga):
    for number in range(30):
        sign_in(Client(), "wrong", address=f"203.0.113.{number}")
        sign_in(Client(), "wrong", address="203.0.113.77")
    assert sign_in(Client(), address="198.51.100.4").status_code == 302


def test_a_made_up_forwarded_address_changes_nothing(olga):
    for number in range(8):
        said = {"username": "olga", "password": "wrong"}
        response = Client().post("/login/", said, REMOTE_ADDR="203.0.113.9", HTTP_X_FORWARDED_FOR=f"10.0.0.{number}")
    assert response.status_code == 429
    assert set(AuditEvent.objects.exclude(address="").values_list("address", flat=True)) == {"203.0.113.9"}


def test_a_pattern_that_takes_for_ever_elsewhere_takes_no_time():
    rule = ArtifactDefinition(kind="x", weight=0.1, path_glob="**", line_pattern="(a+)+$", least_characters=0)
    text = "--- /dev/null\n+++ b/a.md\n@@ -0,0 +1 @@\n+" + "a" * 200 + "b\n"
    start = time.process_time()
    assert find_artifacts([rule], patch=patch.parse(text)) == ()
    assert time.process_time() - start < 2


def test_a_pattern_that_cannot_be_is_refused_with_words(client, olga):
    client.force_login(olga)
    data = {"kind": "x", "path_glob": "**", "line_pattern": "a(?=b)", "weight": ".1", "scale": "1"}
    response = client.post("/grading/artifactrule/add/", {**data, "least_characters": "0"})
    assert response.status_code == 200
    assert "Lookaheads" in response.content.decode()
    assert not ArtifactRule.objects.filter(kind="x").exists()


def test_a_pattern_from_before_that_cannot_be_is_said_and_breaks_nothing(client, olga):
    before = sources.artifact_rules().globs
    ArtifactRule.objects.filter(kind="idea").update(line_pattern=r"(idea)\1")
    assert sources.artifact_rules().globs == before
    session = judge_cast.session()
    sources.grade(session)
    grade = Grade.objects.filter(session=session, source=Source.CONSUMPTION).latest("pk")
    assert grade.status == Status.FAILED
    assert "line pattern of rule 'idea' does not compile" in grade.detail
    client.force_login(olga)
    html = client.get("/grading/artifactrule/").content.decode()
    assert "Cannot work" in html
    assert "backreferences are not supported" in html


def test_a_rule_is_deleted_by_an_operator_who_is_told_what_that_changes(client, olga):
    rule = ArtifactRule.objects.get(kind="task")
    client.force_login(Site().person("rita", "reviewer"))
    assert client.post(f"/grading/artifactrule/{rule.pk}/delete/", {"post": "yes"}).status_code == 403
    client.force_login(olga)
    assert (
        "The rule has found nothing so far" in client.get(f"/grading/artifactrule/{rule.pk}/delete/").content.decode()
    )
    client.post(f"/grading/artifactrule/{rule.pk}/delete/", {"post": "yes"})
    assert not ArtifactRule.objects.filter(pk=rule.pk).exists()
    assert "Deleted the artifact rule task" in client.get("/history/").content.decode()


HIDDEN = "fix\u202ecod.exe\x1b[2J\u200b"
NAMED = "fix⟨U+202E⟩cod.exe⟨U+001B⟩[2J⟨U+200B⟩"


@pytest.mark.parametrize("page", ["/sessions/", "/sessions/{pk}/", "/review/{pk}/"])
def test_what_hides_or_turns_text_is_named_on_every_page(client, olga, page):
    session = judge_cast.session(title=HIDDEN, external_id=HIDDEN)
    client.force_login(olga)
    html = client.get(page.format(pk=session.pk)).content.decode()
    assert NAMED in html
    assert not UNSEEN.search(html)


def test_text_with_emoji_and_joined_scripts_stays_what_it_is(client, olga):
    session = judge_cast.session(title="👩\u200d💻 می\u200cخواهم — naïve")
    client.force_login(olga)
    assert session.title in client.get(f"/sessions/{session.pk}/").content.decode()


def test_a_log_line_obeys_no_name():
    record = logging.LogRecord("x", logging.INFO, "f", 1, "signals of %s", (HIDDEN,), None)
    assert LineFormatter("%(message)s").format(record) == f"signals of {NAMED}"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path, capsys):
    secret = tmp_path / "elsewhere" / "secret.jsonl"
    secret.parent.mkdir()
    secret.write_bytes(shared_records.log("secret", shared_records.steps("a", 1, 10)))
    logs = tmp_path / "logs\x1b[2J"
    (logs / "own").mkdir(parents=True)
    (logs / "own" / "own.jsonl").write_bytes(shared_records.log("own", shared_records.steps("b", 1, 10)))
    (logs / "a.jsonl").symlink_to(secret)
    (logs / "inside.jsonl").symlink_to(logs / "own" / "own.jsonl")
    (logs / "folder").symlink_to(secret.parent)
    call_command("import_sessions", str(logs), processes=1)
    assert list(Session.objects.values_list("external_id", flat=True)) == ["own"]
    said = capsys.readouterr().out
    assert "links (3), for example" in said
    assert "logs⟨U+001B⟩[2J/a.jsonl" in said
