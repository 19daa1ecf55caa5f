"""Stale verdicts are asked about first, an attempt keeps what it had read, and the first rubric has a stage more.

A site that has put a rubric of its own in force keeps it; the old first rubric stays, and can be put back.
"""

from django.db import migrations, models
from django.utils import timezone

from grading.migrations import _first_rubric as first_rubric
from grading.migrations._first_rubric import rubric_sha256

WITHOUT_PARTIAL = "c08690e0aed4d62b88c6aabfc327fb4834cb0c97433441be7922b704fe5b1ae5"


def take_over(apps, schema_editor):
    Rubric, Activation = (apps.get_model("grading", name) for name in ("Rubric", "RubricActivation"))
    old = Rubric.objects.filter(sha256=WITHOUT_PARTIAL, is_active=True).first()
    if old is None:
        return
    sha256 = rubric_sha256(first_rubric.TEXT, first_rubric.DIMENSIONS, first_rubric.BANDS)
    content = {
        "title": first_rubric.TITLE,
        "text": first_rubric.TEXT,
        "dimensions": first_rubric.DIMENSIONS,
        "bands": first_rubric.BANDS,
        "parent": old,
        "note": "A part handed over is a stage of its own; the site computes the score",
    }
    new, _ = Rubric.objects.get_or_create(sha256=sha256, defaults=content)
    if not Activation.objects.exists():
        Activation.objects.create(rubric=old, at=old.created_at)
    Rubric.objects.filter(pk=old.pk).update(is_active=False)
    Rubric.objects.filter(pk=new.pk).update(is_active=True)
    Activation.objects.create(rubric=new, at=timezone.now())
    jobs = apps.get_model("grading", "JudgeJob").objects
    jobs.filter(rubric=old, state="queued", purpose="verdict").update(rubric=new)


class Migration(migrations.Migration):
    dependencies = [("grading", "0022_artifacts_with_substance")]

    operations = [
        migrations.AddField("judgejob", "stale", models.BooleanField(default=False)),
        migrations.AddField("judgejob", "unread", models.CharField(blank=True, default="", max_length=16)),
        migrations.AddField("judgeattempt", "read", models.JSONField(blank=True, default=dict)),
        migrations.AlterModelOptions("judgejob", {"ordering": ["-stale", "backlog", "-worth", "pk"]}),
        migrations.RemoveIndex("judgejob", "judge_job_promised"),
        migrations.AddIndex(
            "judgejob",
            models.Index(fields=["state", "-stale", "backlog", "-worth", "id"], name="judge_job_promised"),
        ),
        migrations.RunPython(take_over, migrations.RunPython.noop),
    ]
