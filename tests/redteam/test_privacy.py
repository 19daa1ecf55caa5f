"""Secrets of sessions, and whoever wants to see them: what is hidden, from whom, and what stays on record."""

import datetime as dt
import json
import os
import secrets
import string
import time
from io import BytesIO, StringIO
from random import Random

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from grading import intake
from grading.evidence import care, store, transcripts
from grading.intake import redacting, regrading
from grading.judging import worker
from grading.models import AuditEvent, Evidence, Grade, Session, Settlement
from grading.redaction import find_secrets, mark_at, redact
from tests.casts import judge as judge_cast
from tests.corpus import transcripts as logs
from tests.site import Site

SECRET = "hunter-" + "aB3dE5gH7" * 2


def submitted(text: str, name: str = "s-1", **said):
    metadata = {
        "session_id": name,
        "title": f"Deploy with password={SECRET}",
        "ended_at": dt.datetime(2026, 3, 31, 11, 0, 30, tzinfo=dt.UTC),
        **said,
    }
    return intake.submit(
        agent=Site().agent("bob"),
        metadata=intake.SubmittedSession(**metadata),
        transcript=BytesIO(logs.log(name, ("user", text), ("Bash", {"command": f"echo {text}"}, text))),
        journal=BytesIO(f"Notes\n\n{text}\n".encode()),
        patch=BytesIO(f"--- a/.env\n+++ b/.env\n@@ -0,0 +1 @@\n+DB_PASSWORD={SECRET}\n".encode()),
    ).session


# --- what is hidden ---------------------------------------------------------------------------------------------


@pytest.mark.pure
def test_what_sts_gives_is_hidden_whole():
    rng = Random(1)
    for _ in range(300):
        values = ["".join(rng.choices(logs_b64(), k=count)) for count in (40, 400)]
        said = json.dumps({"Credentials": {"SecretAccessKey": values[0], "SessionToken": values[1]}}, indent=2)
        told = redact(said)
        assert not any(value[at : at + 6] in told for value in values for at in range(len(value) - 6)), said


def logs_b64() -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@pytest.mark.pure
@pytest.mark.parametrize(
    "place",
    [
        "   log in     user admin, password {}   (shown this once)",
        'data:\n  password: "{}"',
        "DB_PASSWORD={}",
        '{{"password": "{}"}}',
        "curl -H 'Authorization: Bearer {}'",
        "postgres://app:{}@db/app",
    ],
)
def test_what_the_site_itself_prints_and_people_write_is_hidden(place):
    drawn = Random(place)
    for _ in range(1000):
        value = "".join(drawn.choices(string.ascii_letters + string.digits + "-_", k=16))
        assert value not in redact(place.format(value))


@pytest.mark.pure
def test_a_token_in_its_header_is_hidden_even_where_it_has_letters_alone():
    assert "infbotwlrhLfaCic" not in redact("curl -H 'Authorization: Bearer infbotwlrhLfaCic'")


@pytest.mark.pure
@pytest.mark.parametrize("place", ["<pgpass>{}</pgpass>", "curl -b='session={}' https://example.org"])
def test_a_value_is_hidden_where_nothing_else_in_the_text_speaks_of_secrets(place):
    assert "qT7vX2mLp9Rk" not in redact(place.format("qT7vX2mLp9Rk"))


@pytest.mark.pure
def test_the_first_password_is_hidden_even_where_it_has_letters_alone():
    """What a first start prints may have no digit by chance, and may then be taken for words."""
    line = "   log in     user admin, password amErrJcrtIwiFthi   (shown this once)"
    assert "amErrJcrtIwiFthi" not in redact(line)


@pytest.mark.pure
@pytest.mark.parametrize("place", ["The password for the admin of staging: {}", "password is {} now"])
def test_a_password_in_a_sentence_is_hidden_unless_it_looks_like_words(place):
    drawn = Random(place)
    values = ["".join(drawn.choices(string.ascii_letters + string.digits + "-_", k=16)) for _ in range(1000)]
    shown = [value for value in values if value in redact(place.format(value))]
    assert len(shown) <= 5, shown
    assert all(value.strip("-_").replace("_", "").replace("-", "").isalpha() for value in shown), shown


@pytest.mark.pure
def test_a_token_of_the_site_is_hidden_wherever_it_stands():
    for place in ("{}", "token={}", "Bearer {}", "x{}".replace("x", " "), '"{}"'):
        token = f"gs_{secrets.token_urlsafe(32)}"
        assert token[8:] not in redact(place.format(token))


@pytest.mark.pure
@pytest.mark.parametrize(
    "text",
    [
        "commit 25ab004c53cdcfea485e5bf437aeaa74df47196d",
        '"integrity": "sha512-' + "Ab3/" * 21 + 'Ab=="',
        "h1:OS5cfenHcYF2MYLzQ4YzZ/AyUoFojg6S802P/xQKjUY=",
        "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8 bob@host (ED25519)",
        "550e8400-e29b-41d4-a716-446655440000",
        "toolu_01A09q90qw90lq917835lq9AbCdEf",
        "password: str = Field(min_length=8)",
        "session:123 agent bob",
    ],
)
def test_hashes_ids_and_fingerprints_stay(text):
    assert redact(text) == text


@pytest.mark.pure
def test_a_secret_broken_by_a_terminal_by_colours_or_by_nothing_visible_is_one():
    value = "".join(Random(2).choices(logs_b64()[:62], k=120))
    text = f"export GITHUB_PERSONAL_ACCESS_TOKEN=ghp_{value}"
    wrapped = "\n".join(text[at : at + 80] for at in range(0, len(text), 80))
    coloured = f"\x1b[31mghp_{value[:20]}\x1b[0m{value[20:]}"
    unseen = f"ghp_{value[:20]}\u200b{value[20:]}"
    for each in (wrapped, coloured, unseen):
        told = redact(each)
        assert not any(value[at : at + 8] in told for at in range(112)), told


@pytest.mark.pure
@pytest.mark.parametrize(
    "part", ['key="', "password: ", "=" * 40, "://a:", "Aa1/", "<token>", "a" * 31 + " ", "\\\\\\"]
)
def test_hostile_text_takes_time_in_proportion(part):
    def seconds(size: int) -> float:
        start = time.process_time()
        redact((part * size)[:size])
        return time.process_time() - start

    seconds(1000)
    assert seconds(200_000) < 20 * max(seconds(20_000), 0.05)


@pytest.mark.pure
def test_a_mark_gives_back_what_it_hides_and_a_forged_one_nothing():
    text = f"[redacted secret] then password={SECRET} end"
    assert mark_at(text, 0) is None
    assert mark_at(text, 1) == SECRET
    assert mark_at(text, 2) is None
    assert [span.kind for span in find_secrets(text)] == ["secret"]


# --- who sees it, and what is kept ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_no_row_but_evidence_holds_what_is_hidden():
    session = submitted(f"Use password={SECRET} please", outcome="failed", outcome_reason=f"password={SECRET}")
    for model in (Session, Grade, Settlement, Evidence):
        for row in model.objects.values():
            assert SECRET not in str({name: value for name, value in row.items() if name != "filename"}), model
    (line, *_) = transcripts.page(Evidence.objects.get(session=session, kind="transcript"), 1).lines
    assert SECRET not in line.stored_text + line.head


@pytest.mark.django_db
def test_rows_from_before_are_hidden_once_they_are_redacted_again():
    session = Site().session().session
    with connection.cursor() as cursor:
        cursor.execute("UPDATE grading_session SET title = %s WHERE id = %s", [f"password={SECRET}", session.pk])
    redacting.redact_again("a test")
    assert Session.objects.get(pk=session.pk).title == "password=[redacted secret]"


@pytest.mark.django_db
def test_a_title_that_was_cut_shows_no_start_of_a_key(subtests):
    """Whether the log's own title was cut, the first words of its task, or a row from before."""
    rng = Random(3)
    for number, prefix in enumerate(("AIza", "npm_", "hf_7", "gsk_4", "dckr_pat_", "shpat_", "", "postgres://app:")):
        with subtests.test(prefix or "no prefix"):
            value = "".join(rng.choices(logs_b64()[:62], k=52))
            task = f"{'Please fix it. ' * 6}{prefix}{value}"  # a title of what was asked ends at 120 characters
            named = f"{'Please fix it. ' * 18}{prefix}{value}"  # and a log's own at 300
            moment = dt.datetime(2026, 3, 31, 11, 0, 30, tzinfo=dt.UTC)
            for name, log in (
                (f"task-{number}", logs.log(f"task-{number}", ("user", task))),
                (
                    f"named-{number}",
                    logs.log(f"named-{number}", ("user", "Hello"))
                    + json.dumps({"type": "ai-title", "aiTitle": named, "sessionId": f"named-{number}"}).encode(),
                ),
            ):
                metadata = intake.SubmittedSession(session_id=name, ended_at=moment)
                session = intake.submit(agent=Site().agent("bob"), metadata=metadata, transcript=BytesIO(log)).session
                assert Session.objects.filter(pk=session.pk, title__contains=value[:8]).count() == 0
                assert session.title.startswith("Please fix it.")
                with connection.cursor() as cursor:
                    cursor.execute("UPDATE grading_session SET title = %s WHERE id = %s", [task[:120], session.pk])
                redacting.redact_again("a test")
                assert value[:8] not in Session.objects.get(pk=session.pk).title


@pytest.mark.django_db
def test_a_title_that_ends_in_a_word_or_an_id_stays():
    for title in (
        "Fix risk-assessment-2026",
        "Upgrade npm_config_registry",
        "Look at 550e8400-e29b-41d4-a716-446655440000",
        "Revert 25ab004c53cdcfea485e5bf437aeaa74df47196d",
        "Rename grading/redaction/secret_shapes.py",
        "Rename TestCheckRemoteMetadata",
    ):
        assert Site().session(title=title).session.title == title


@pytest.mark.django_db
def test_hiding_moves_no_reward():
    session = submitted(f"Use password={SECRET} please")
    told = regrading.preview(session)
    assert not told.changed
    assert told.ledger_rows == {}


@pytest.mark.django_db
@pytest.mark.parametrize("tab", ["did", "transcript", "patch", "journal", "judge", "files"])
def test_no_page_shows_it(client, tab):
    session = submitted(f"Use password={SECRET} please")
    client.force_login(Site().person("olga", "operator"))
    for url in (session.get_absolute_url(), reverse("admin:review_session", args=[session.pk])):
        assert SECRET not in client.get(url, {"tab": tab}).content.decode()
        assert client.get(url, {"tab": "transcript", "q": SECRET}).context["search"].event is None


@pytest.mark.django_db
def test_a_reviewer_sees_one_span_and_that_is_written_down(client):
    session = submitted(f"Use password={SECRET} please")
    url = reverse("admin:reveal", args=[session.pk])
    client.force_login(Site().person("vera", "viewer"))
    assert client.post(url, {"part": "journal", "mark": "0"}).status_code == 403
    assert not AuditEvent.objects.filter(kind="raw").exists()
    client.force_login(Site().person("rita", "reviewer"))
    assert client.post(url, {"part": "journal", "mark": "0"}).json() == {"text": SECRET}
    assert client.post(url, {"part": "patch", "mark": "0"}).json() == {"text": SECRET}
    assert client.post(url, {"part": "event", "event": "1", "mark": "0"}).json() == {"text": SECRET}
    assert client.post(url, {"part": "event", "event": "1", "mark": "1"}).status_code == 404
    assert AuditEvent.objects.filter(kind="raw", who="rita").count() == 3
    assert not AuditEvent.objects.filter(detail__contains=SECRET).exists()


@pytest.mark.django_db
def test_a_whole_file_is_for_operators_who_say_why(client):
    session = submitted("Hello")
    data = b'{"commits": []}'
    row = judge_cast.give(session, "facts", data)
    url = reverse("admin:raw", args=[row.pk])
    for role in ("viewer", "reviewer"):
        client.force_login(Site().person(f"{role}-x", role))
        assert client.post(url, {"why": "a look"}).status_code == 403
    client.force_login(Site().person("olga", "operator"))
    assert data not in client.get(url).content
    assert data not in client.post(url, {"why": ""}).content
    reply = client.post(url, {"why": "the customer asks"})
    assert b"".join(reply.streaming_content) == data
    assert "attachment" in reply["Content-Disposition"]
    assert AuditEvent.objects.get(kind="raw").detail == "the customer asks"


# --- retention -----------------------------------------------------------------------------------------------------


def made_old(session) -> None:
    """As if everything of the session had been sent 40 days ago."""
    cut = "UPDATE grading_evidence SET received_at = %s WHERE session_id = %s"
    with connection.cursor() as cursor:
        for trigger in ("no_update",):
            cursor.execute(
                f"DROP TRIGGER grading_evidence_{trigger}"
                + (" ON grading_evidence" if connection.vendor == "postgresql" else "")
            )
        cursor.execute(cut, [timezone.now() - dt.timedelta(days=40), session.pk])
    for row in session.evidence.all():
        os.utime(default_storage.path(store.blob_name(row.sha256)), (0, 0))


@pytest.mark.django_db
def test_old_bytes_go_and_the_reward_stays(settings, client):
    session = submitted("Hello there")
    before = Settlement.objects.filter(session=session).latest("revision")
    made_old(session)
    assert care.expire(timezone.now()) == 0
    settings.RETENTION_DAYS = 30
    assert care.expire(timezone.now()) == 3
    assert not any(store.is_kept(row.sha256) for row in session.evidence.all())
    with pytest.raises(store.Gone):
        store.open(session.evidence.first())
    told = regrading.regrade(Session.objects.with_people().get(pk=session.pk))
    assert not told.changed
    assert told.ledger_rows == {}
    assert Settlement.objects.filter(session=session).latest("revision") == before
    client.force_login(Site().person("vera", "viewer"))
    assert "Gone by retention" in client.get(session.get_absolute_url()).content.decode()
    assert "gone by retention" in client.get(session.get_absolute_url(), {"tab": "journal"}).content.decode()
    out = StringIO()
    call_command("regrade", "--yes", stdout=out)
    assert "1 sessions keep their grades" in out.getvalue()


@pytest.mark.django_db
def test_gone_evidence_ends_a_judge_job_and_stales_no_verdict(settings, sim):
    session = submitted("Hello there")
    judge_cast.use(settings, sim)
    job = session.judge_jobs.open().first() or Site().on(session).with_judge_job().job
    made_old(session)
    settings.RETENTION_DAYS = 30
    care.expire(timezone.now())
    worker.pump()
    job.refresh_from_db()
    assert job.state == "done"
    assert sim.calls == []
    assert "Gone by retention" in session.grades.filter(source="judge").latest("pk").detail


@pytest.mark.django_db
def test_bytes_that_somebody_sends_again_are_kept(settings):
    session = submitted("Hello there")
    made_old(session)
    settings.RETENTION_DAYS = 30
    journal = session.evidence.get(kind="journal")
    other = Site().session(agent="alice").session
    judge_cast.give(other, "journal", store.text_of(journal).encode())
    assert care.expire(timezone.now()) == 2
    assert store.is_kept(journal.sha256)
    patch = session.evidence.get(kind="patch")
    judge_cast.give(other, "patch", f"--- a/.env\n+++ b/.env\n@@ -0,0 +1 @@\n+DB_PASSWORD={SECRET}\n".encode())
    assert store.is_kept(patch.sha256)
    assert SECRET in store.text_of(patch)
