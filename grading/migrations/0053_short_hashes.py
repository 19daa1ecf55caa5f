"""Hashes take half the room, and a grade's identity is one of 64 bits instead of a copy of eight columns in an index.

The tables of grades, evidence, logs, calls to the judge, submissions and states are each written anew once on PostgreSQL, and
a few times on SQLite: minutes for a million sessions, and meanwhile room for the largest of them.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._append_only import append_only
from grading.migrations._hashes import InPlace, rewrite

IDENTITY = ("source", "inputs_sha256", "version", "model", "route", "rubric", "sample", "replicate")


class Migration(migrations.Migration):
    dependencies = [("bandit", "0027_policy_texts"), ("grading", "0052_drawn_items")]

    operations = [
        migrations.RemoveConstraint("grade", "grade_once_per_inputs_and_identity"),
        migrations.RemoveIndex("grade", "grade_current"),
        migrations.AddField("grade", "identity", models.BigIntegerField(editable=False, null=True)),
        rewrite(
            "grading_grade",
            "inputs_sha256",
            condition="status = 'scored' AND source <> 'human'",
            texts=("detail",),
            identity=IDENTITY,
        ),
        InPlace("grade", "inputs_sha256", models.BinaryField(blank=True)),
        InPlace("grade", "detail", models.BinaryField(blank=True)),
        migrations.AddConstraint("grade", models.UniqueConstraint(fields=["session", "identity"], name="grade_once")),
        # Few grades withdraw another: the index of all of them was one of nothing.
        migrations.RemoveIndex("grade", "grade_withdrawals"),
        migrations.AlterField(
            "grade",
            "withdraws",
            models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="withdrawn_by",
                to="grading.grade",
            ),
        ),
        migrations.AddConstraint(
            "grade",
            models.UniqueConstraint(
                condition=Q(withdraws__isnull=False), fields=["withdraws"], name="grade_withdrawals"
            ),
        ),
        *append_only("grading", "Grade"),
        migrations.RemoveIndex("evidence", "evidence_by_hash"),
        migrations.RemoveConstraint("evidence", "evidence_once"),
        rewrite("grading_evidence", "sha256"),
        InPlace("evidence", "sha256", models.BinaryField()),
        migrations.AddConstraint(
            "evidence",
            models.UniqueConstraint(fields=["sha256", "kind", "witness", "session"], name="evidence_once"),
        ),
        migrations.AddIndex("evidence", models.Index(fields=["session"], name="evidence_of_session")),
        *append_only("grading", "Evidence"),
        # SQLite's columns of JSON take nothing else: they are made columns of bytes before.
        InPlace("submission", "body_sha256", models.BinaryField()),
        InPlace("submission", "added", models.BinaryField(blank=True)),
        rewrite("grading_submission", "body_sha256", texts=("added",)),
        *append_only("grading", "Submission"),
        rewrite("grading_judgeattempt", "prompt_sha256", "inputs_sha256", append_only=False),
        InPlace("judgeattempt", "prompt_sha256", models.BinaryField(blank=True)),
        InPlace("judgeattempt", "inputs_sha256", models.BinaryField(blank=True)),
        InPlace("sessionlog", "files", models.BinaryField()),
        rewrite("grading_sessionlog", append_only=False, lists=("files",)),
        migrations.RemoveIndex("sessionstate", "state_by_question"),
        migrations.AddField("sessionstate", "question", models.BigIntegerField(null=True)),
        rewrite(
            "grading_sessionstate",
            condition="verdict_id IS NOT NULL",
            append_only=False,
            emptied=("rubric", "version"),
            question=("rubric", "version"),
        ),
        migrations.RemoveField("sessionstate", "rubric"),
        migrations.RemoveField("sessionstate", "version"),
        migrations.AddIndex(
            "sessionstate",
            models.Index(
                condition=Q(verdict__isnull=False),
                fields=["question", "category", "-ended_at"],
                name="state_by_question",
            ),
        ),
    ]
