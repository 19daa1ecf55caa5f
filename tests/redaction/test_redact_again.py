"""Secrets in rows from before are replaced once, by the only UPDATE that append-only tables allow."""

import datetime as dt
import io

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import BinaryField, JSONField, Value

from bandit.packed import pack, pack_text
from grading.intake import redacting
from grading.models import (
    Comment,
    Evidence,
    Grade,
    OutcomeRecord,
    Redaction,
    ReviewAnswer,
    Session,
    SessionSignals,
    Settlement,
    Submission,
)
from grading.models.fields import HashField
from grading.outcomes.recording import ReportedOutcome, record
from grading.reward import rewards, sources
from grading.reward.freshness import EvidenceState
from grading.witness import Witness
from tests.casts import logs
from tests.databases import database, restore_baseline

SECRET = "ghp_" + "a1B2" * 9
MARK = "[redacted GitHub Token]"
APPEND_ONLY = (Comment, Evidence, Grade, OutcomeRecord, ReviewAnswer, Settlement, Submission)
on_both = pytest.mark.postgresql


@pytest.fixture
def session(site) -> Session:
    """With a row in every append-only table that has redacted columns."""
    olga = site.person("olga", "operator")
    session = site.upload("s-1", logs.claude("s-1", logs.COMMIT)).session
    site.on(session).answered_blind(olga, 0.5, reason="It works.")
    Comment.objects.create(session=session, author=olga, text="See the log.")
    outcome = ReportedOutcome(kind="ci", value="pass", url="https://ci.example.test/1", detail="12 jobs")
    record(session, outcome, source="token 1", witness=Witness.OBSERVED)
    return session


def another(field, value):
    """Another value of that type, as `update` takes it."""
    kind = field.get_internal_type()
    if field.is_relation or kind.endswith("IntegerField") or kind == "BigAutoField":
        return (value or 0) + 777
    if isinstance(field, HashField):
        return "cd" * 32
    if isinstance(field, JSONField):
        return {"another": 1}
    if kind == "BooleanField":
        return not value
    if kind == "DateTimeField":
        return value - dt.timedelta(days=1)
    return 0.123 if kind == "FloatField" else "another"


@on_both
@pytest.mark.django_db
def test_only_redacted_columns_can_change_and_only_under_a_permit(session, subtests):
    redacted_columns = redacting.redacted_columns()
    for model in APPEND_ONLY:
        row = model.objects.filter(session=session).latest("pk")
        rows = model.objects.filter(pk=row.pk)
        for field in model._meta.concrete_fields:
            change = {field.attname: another(field, getattr(row, field.attname))}
            with subtests.test(model=model.__name__, column=field.name):
                with pytest.raises(IntegrityError, match="append-only: add a new row"), transaction.atomic():
                    rows.update(**change)
                with redacting.permit("a test"):
                    if field.attname in redacted_columns[model]:
                        assert rows.update(**change) == 1
                    else:
                        with pytest.raises(IntegrityError, match="append-only: add a new row"), transaction.atomic():
                            rows.update(**change)
        refused = pytest.raises(IntegrityError, match="append-only: only an erasure")
        with subtests.test(model=model.__name__), redacting.permit("a test"), refused, transaction.atomic():
            rows._raw_delete(using="default")


@on_both
@pytest.mark.django_db
def test_other_append_only_tables_allow_no_change(site):
    shares = site.upload("s-1", logs.claude("s-1", logs.COMMIT)).session.shares
    with redacting.permit("a test"), pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        type(shares).objects.update(session=shares.session)


@on_both
@pytest.mark.django_db
def test_a_permit_is_recorded_and_its_record_stays(session):
    with redacting.permit("a test") as counts:
        counts["comment"] += Comment.objects.update(text="Another")
    redaction = Redaction.objects.get()
    assert (redaction.why, redaction.counts, redaction.closed_at is None) == ("a test", {"comment": 1}, False)
    with pytest.raises(IntegrityError, match="never changes once it is closed"), transaction.atomic():
        Redaction.objects.update(why="none")
    with pytest.raises(IntegrityError, match="never deleted"), transaction.atomic():
        Redaction.objects.all().delete()


@on_both
@pytest.mark.django_db
def test_a_permit_whose_work_fails_leaves_nothing(session):
    with pytest.raises(ZeroDivisionError), redacting.permit("a test"):
        Comment.objects.update(text=str(1 / 0))
    assert not Redaction.objects.exists()


def plant(model, **columns) -> None:
    """Store text with secrets, as an earlier version did. An expression is stored as it is."""
    with redacting.permit("a test"):
        model.objects.update(**columns)


def packed(value):
    return Value(pack_text(value) if isinstance(value, str) else pack(value), output_field=BinaryField())


@on_both
@pytest.mark.django_db
def test_redacting_again_replaces_secrets_in_every_kind_of_column_and_moves_no_reward(session):
    plant(Session, title=Value(f"{'Please fix it. ' * 6}and use {SECRET[:24]}"), outcome_reason=Value(f"Use {SECRET}"))
    plant(Comment, text=Value(f"See {SECRET}"))
    plant(Evidence, detail=Value(SECRET))
    plant(Submission, before=packed({"title": SECRET}))
    plant(Settlement, sentence=packed(f"Use {SECRET}"))
    shown = EvidenceState(transcript=SECRET).as_dict()
    plant(Grade, detail=packed(SECRET), evidence=packed({"shown": shown, "terms": [SECRET]}))
    rewards.settle(session)
    before = list(Settlement.objects.values("pk", "value", "source", "final", "weight"))
    said = io.StringIO()
    call_command("redact_again", verbosity=0, stdout=said)
    assert "Replaced secrets in" in said.getvalue()
    assert "1 of session" in said.getvalue()
    texts = [str(list(model.objects.values())) for model in (Session, Comment, Evidence, Submission, Settlement)]
    assert SECRET[:24] not in "".join(texts)
    grade = Grade.objects.filter(session=session).latest("pk")
    assert (grade.detail, grade.evidence) == (MARK, {"shown": shown, "terms": [MARK]})
    assert list(Settlement.objects.values("pk", "value", "source", "final", "weight")) == before
    said = io.StringIO()
    call_command("redact_again", verbosity=0, stdout=said)
    assert said.getvalue() == "No stored row has a secret in it.\n"


@on_both
@pytest.mark.django_db
def test_signals_that_lose_a_secret_later_are_extracted_again_to_grade_by(site):
    commit = ("git commit -am 'Fix it'", "[main 1a2b3c4] Fix it\n 1 file changed, 2 insertions(+)")
    session = site.upload("s-1", logs.claude("s-1", commit)).session
    data = SessionSignals.objects.get(session=session).data
    data["commits"][0]["subject"] = SECRET
    SessionSignals.objects.update(data=packed(data))
    assert redacting.redact_again("a test") == {"sessionsignals": 1}
    data = SessionSignals.objects.get(session=session).data
    assert (data["commits"][0]["subject"], data[sources.HIDDEN]) == (MARK, True)
    signals = sources.load_input(Session.objects.get(pk=session.pk)).signals
    assert [commit.subject for commit in signals.commits] == ["Fix it"]


@pytest.mark.slow
@pytest.mark.database
def test_an_upgrade_replaces_secrets_in_rows_of_earlier_versions(tmp_path, django_db_blocker):
    tables = ("grading_grade", "grading_settlement")
    with django_db_blocker.unblock(), database("redaction", tmp_path):
        restore_baseline(tmp_path)
        with connection.cursor() as cursor:
            for table in tables:
                on = f" ON {table}" if connection.vendor == "postgresql" else ""
                cursor.execute(f"DROP TRIGGER {table}_no_update{on}")
            evidence = pack({"shown": {"source": SECRET}, "terms": [SECRET]})
            cursor.execute("UPDATE grading_session SET title = %s", [f"Use {SECRET}"])
            cursor.execute("UPDATE grading_grade SET detail = %s, evidence = %s", [pack_text(SECRET), evidence])
            cursor.execute("UPDATE grading_settlement SET sentence = %s", [pack_text(f"Use {SECRET}")])
        call_command("migrate", verbosity=0)
        assert set(Session.objects.values_list("title", flat=True)) == {f"Use {MARK}"}
        assert set(Settlement.objects.values_list("sentence", flat=True)) == {f"Use {MARK}"}
        grade = Grade.objects.first()
        assert (grade.detail, grade.evidence) == (MARK, {"shown": {"source": SECRET}, "terms": [MARK]})
        assert sum(row.counts.get("grade", 0) for row in Redaction.objects.all()) == Grade.objects.count()
        assert redacting.redact_again("a test") == {}
