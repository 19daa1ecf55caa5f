"""A session is read up to three times where it matters, and each kind of work has a rubric of its own.

The rubric that is there is the one for production. A site that has judged goes on with it, and is offered a better
anchored one; one that has not begins with that. SQLite rebuilds the table of grades, so that its triggers are made anew.
"""

import django.db.models.deletion
from django.db import migrations, models

from bandit.migrations._append_only import append_only
from grading.migrations import _first_rubric as first_rubric
from grading.migrations._first_rubric import rubric_sha256
from grading.migrations._first_rubrics import FIRST

NOTE = "Each band says what one sees in a session that belongs there"


def add_rubrics(apps, schema_editor):
    rubrics, jobs = (apps.get_model("grading", name).objects for name in ("Rubric", "JudgeJob"))
    first = rubrics.filter(sha256=rubric_sha256(first_rubric.TEXT, first_rubric.DIMENSIONS, first_rubric.BANDS)).first()
    made = {}
    # Those of an earlier run of this migration, which was taken back, are rows still.
    for kind, content in FIRST.items():
        is_production = kind == "production"
        made[kind], _ = rubrics.get_or_create(
            sha256=rubric_sha256(content.text, content.dimensions, content.bands),
            defaults={
                "kind": kind,
                "title": content.title,
                "text": content.text,
                "dimensions": content.dimensions,
                "bands": content.bands,
                "parent": first if is_production else None,
                "note": NOTE if is_production else "",
                "is_active": not is_production,
            },
        )
        if not is_production:
            rubrics.filter(pk=made[kind].pk).update(kind=kind, is_active=True)
    queued = jobs.filter(state="queued", purpose="verdict")
    queued.filter(session__category__is_consumption=True).update(rubric=made["consumption"])
    queued.filter(session__category__is_looking=True).update(rubric=made["looking"])
    if first is not None and first.is_active and _is_new(apps):
        rubrics.filter(pk=first.pk).update(is_active=False)
        rubrics.filter(pk=made["production"].pk).update(is_active=True)
        queued.filter(rubric=first).update(rubric=made["production"])


def _is_new(apps):
    """Whether nothing was judged here, and nobody has put a rubric in force."""
    verdicts = apps.get_model("grading", "Grade").objects.filter(source="judge", status="scored")
    return not verdicts.exists() and not apps.get_model("grading", "RubricActivation").objects.exists()


def leave_one_active(apps, schema_editor):
    """Only the rubric of production was there before, and one may be active."""
    apps.get_model("grading", "Rubric").objects.exclude(kind="production").update(is_active=False)


class Migration(migrations.Migration):
    dependencies = [("grading", "0024_silence")]

    operations = [
        migrations.RemoveConstraint("grade", "grade_once_per_inputs_and_identity"),
        migrations.RemoveConstraint("judgejob", "judge_job_purpose_known"),
        migrations.RemoveConstraint("rubric", "rubric_one_active"),
        migrations.AddField("grade", "sample", models.PositiveSmallIntegerField(default=1)),
        migrations.AddField(
            "grade",
            "sample_of",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="read_again",
                to="grading.grade",
            ),
        ),
        migrations.AddField("judgejob", "sample", models.PositiveSmallIntegerField(default=1)),
        migrations.AddField(
            "judgejob",
            "sample_of",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="grading.grade",
            ),
        ),
        migrations.AddField(
            "rubric",
            "kind",
            models.CharField(
                choices=[("production", "production"), ("consumption", "reading"), ("looking", "looking")],
                default='production',
                max_length=32,
            ),
        ),
        migrations.AlterField(
            "judgejob",
            "purpose",
            models.CharField(
                choices=[
                    ("verdict", "verdict"),
                    ("sample", "read again"),
                    ("repeat", "asked twice"),
                    ("second", "second opinion"),
                    ("trial", "trial of a rubric"),
                ],
                default='verdict',
                max_length=32,
            ),
        ),
        migrations.AddConstraint(
            "grade",
            models.CheckConstraint(
                condition=models.Q(("sample", 1), ("sample_of", None))
                | models.Q(
                    ("parallel", False),
                    ("sample__gt", 1),
                    ("sample_of__isnull", False),
                    ("source", "judge"),
                    ("status", "scored"),
                ),
                name="grade_further_readings_are_verdicts",
            ),
        ),
        migrations.AddConstraint(
            "grade",
            models.UniqueConstraint(
                condition=models.Q(("status", "scored"), models.Q(("source", "human"), _negated=True)),
                fields=(
                    "session",
                    "source",
                    "inputs_sha256",
                    "version",
                    "model",
                    "route",
                    "rubric",
                    "sample",
                    "replicate",
                ),
                name="grade_once_per_inputs_and_identity",
            ),
        ),
        migrations.AddConstraint(
            "judgejob",
            models.CheckConstraint(
                condition=models.Q(("purpose__in", ["verdict", "sample", "repeat", "second", "trial"])),
                name="judge_job_purpose_known",
            ),
        ),
        migrations.AddConstraint(
            "judgejob",
            models.CheckConstraint(
                condition=models.Q(("purpose", "sample"), ("sample__gt", 1), ("sample_of__isnull", False))
                | models.Q(models.Q(("purpose", "sample"), _negated=True), ("sample", 1), ("sample_of", None)),
                name="judge_job_sample_is_of_a_verdict",
            ),
        ),
        migrations.AddConstraint(
            "rubric",
            models.CheckConstraint(
                condition=models.Q(("kind__in", ["production", "consumption", "looking"])), name="rubric_kind_known"
            ),
        ),
        migrations.AddConstraint(
            "rubric",
            models.UniqueConstraint(condition=models.Q(("is_active", True)), fields=("kind",), name="rubric_one_active"),
        ),
        *append_only("grading", "Grade"),
        migrations.RunPython(add_rubrics, leave_one_active),
    ]
