"""What holds of each session in one row, and what its log says in another, compressed; both made from what is there."""

import json
import zlib

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Count

CHUNK = 500


def fill_signals(apps, schema_editor):
    Session, Signals = apps.get_model("grading", "Session"), apps.get_model("grading", "SessionSignals")
    for rows in chunks(Session.objects.only("signals", "signals_version")):
        Signals.objects.bulk_create(
            Signals(session_id=row.pk, version=row.signals_version, data=packed(row.signals))
            for row in rows
            if row.signals is not None or row.signals_version
        )


def unfill_signals(apps, schema_editor):
    Session, Signals = apps.get_model("grading", "Session"), apps.get_model("grading", "SessionSignals")
    for row in Signals.objects.order_by("pk").iterator(CHUNK):
        Session.objects.filter(pk=row.pk).update(signals=unpacked(row.data), signals_version=row.version)


def packed(signals):
    return None if signals is None else zlib.compress(json.dumps(signals, separators=(",", ":")).encode())


def unpacked(data):
    return None if data is None else json.loads(zlib.decompress(bytes(data)))


def fill_states(apps, schema_editor):
    names = ("Session", "SessionState", "Settlement", "Grade", "Flag")
    Session, State, Settlement, Grade, Flag = (apps.get_model("grading", name) for name in names)
    columns = ("value", "source", "final", "weight", "reason")
    for rows in chunks(Session.objects.only("ended_at")):
        keys = [row.pk for row in rows]
        settled = Settlement.objects.filter(session__in=keys).order_by("session_id", "revision")
        last = {row.session_id: row for row in settled.only("session_id", *columns)}
        judged = Grade.objects.filter(session__in=keys, source="judge", status="scored", parallel=False, sample=1)
        verdicts = {row.session_id: row for row in judged.only("session_id", "rubric", "version").order_by("pk")}
        waiting = Flag.objects.filter(session__in=keys, cleared_at=None).order_by()
        flags = dict(waiting.values_list("session").annotate(n=Count("pk")))
        states = []
        for row in rows:
            state = State(session_id=row.pk, ended_at=row.ended_at, flags=flags.get(row.pk, 0))
            if (held := last.get(row.pk)) is not None:
                state.settlement_id = held.pk
                for name in columns:
                    setattr(state, name, getattr(held, name))
            if (verdict := verdicts.get(row.pk)) is not None:
                state.verdict_id, state.rubric, state.version = verdict.pk, verdict.rubric, verdict.version
            states.append(state)
        State.objects.bulk_create(states)


def chunks(sessions):
    after = 0
    while rows := list(sessions.filter(pk__gt=after).order_by("pk")[:CHUNK]):
        yield rows
        after = rows[-1].pk


class Migration(migrations.Migration):
    dependencies = [("grading", "0033_linear_patterns")]

    operations = [
        migrations.CreateModel(
            name="SessionSignals",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="extracted",
                        serialize=False,
                        to="grading.session",
                    ),
                ),
                ("version", models.CharField(blank=True, max_length=40)),
                ("data", models.BinaryField(null=True)),
            ],
            options={"verbose_name_plural": "session signals"},
        ),
        migrations.CreateModel(
            name="SessionState",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="state",
                        serialize=False,
                        to="grading.session",
                    ),
                ),
                ("ended_at", models.DateTimeField()),
                ("value", models.FloatField(null=True)),
                ("source", models.CharField(blank=True, max_length=32)),
                ("final", models.BooleanField(null=True)),
                ("weight", models.FloatField(null=True)),
                ("reason", models.CharField(blank=True, max_length=32)),
                ("flags", models.PositiveSmallIntegerField(default=0)),
                ("rubric", models.CharField(blank=True, max_length=64)),
                ("version", models.CharField(blank=True, max_length=80)),
                (
                    "settlement",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="grading.settlement",
                    ),
                ),
                (
                    "verdict",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="grading.grade",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-ended_at", "-session"], name="state_recent"),
                    models.Index(fields=["source", "-ended_at", "-session"], name="state_by_source"),
                    models.Index(
                        condition=models.Q(("verdict__isnull", False)),
                        fields=["rubric", "version", "-ended_at"],
                        name="state_by_rubric",
                    ),
                    models.Index(
                        condition=models.Q(("final", False)),
                        fields=["-ended_at", "-session"],
                        name="state_provisional",
                    ),
                    models.Index(
                        condition=models.Q(("value", None)),
                        fields=["-ended_at", "-session"],
                        name="state_without_reward",
                    ),
                    models.Index(
                        condition=models.Q(("flags__gt", 0)), fields=["-ended_at", "-session"], name="state_flagged"
                    ),
                ],
            },
        ),
        migrations.RunPython(fill_signals, unfill_signals),
        migrations.RunPython(fill_states, migrations.RunPython.noop),
        migrations.RemoveField(model_name="session", name="signals"),
        migrations.RemoveField(model_name="session", name="signals_version"),
        migrations.AddIndex(
            "session",
            models.Index(
                condition=models.Q(("outcome", "infrastructure")), fields=["category"], name="session_infrastructure"
            ),
        ),
        # SQLite takes the NULLs of a unique column for as many equal values, and would rather read the whole table.
        migrations.AddIndex(
            "grade",
            models.Index(
                condition=models.Q(("withdraws__isnull", False)), fields=["withdraws"], name="grade_withdrawals"
            ),
        ),
        migrations.AddIndex(
            "reviewanswer",
            models.Index(condition=models.Q(("undoes__isnull", False)), fields=["undoes"], name="review_answer_undone"),
        ),
    ]
