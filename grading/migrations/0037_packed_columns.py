"""Fewer indexes, and columns for what the next migration packs."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._packing import beside, without_index


class Migration(migrations.Migration):
    dependencies = [
        ("bandit", "0021_recent_decisions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("grading", "0036_parked_jobs"),
    ]

    operations = [
        # Another index begins with the same column.
        *without_index(
            "grading",
            "session",
            agent=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="sessions", to="grading.agent"),
            category=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="bandit.arm"),
        ),
        *without_index("grading", "settlement", session=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="settlements", to="grading.session")),
        *without_index("grading", "evidence", session=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="evidence", to="grading.session")),
        # The same; and few rows have the others, which get an index of their own.
        *without_index(
            "grading",
            "artifact",
            session=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="artifacts", to="grading.session"),
            owned_by=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="grading.session"),
        ),
        *without_index(
            "grading",
            "grade",
            session=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="grades", to="grading.session"),
            sample_of=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="read_again", to="grading.grade"),
            author=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL),
        ),
        *without_index(
            "grading",
            "judgeattempt",
            batch=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="attempt_rows", to="grading.judgebatch"),
            payer=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="grading.apitoken"),
        ),
        *without_index(
            "grading",
            "judgejob",
            run=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="jobs", to="grading.judgerun"),
            sample_of=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="grading.grade"),
        ),
        *without_index("grading", "sessionlog", part_of=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="parts", to="grading.session")),
        *without_index("grading", "submission", token=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="submissions", to="grading.apitoken")),
        *(
            migrations.AddIndex(model, models.Index(condition=Q((f"{field}__isnull", False)), fields=[field], name=name))
            for model, field, name in (
                ("artifact", "owned_by", "artifact_elsewhere"),
                ("grade", "sample_of", "grade_samples"),
                ("grade", "author", "grade_authors"),
                ("judgeattempt", "payer", "judge_attempt_payers"),
                ("judgeattempt", "batch", "judge_attempt_batches"),
                ("judgejob", "run", "judge_job_runs"),
                ("judgejob", "sample_of", "judge_job_samples"),
                ("sessionlog", "part_of", "session_log_parts"),
                ("submission", "token", "submission_tokens"),
            )
        ),
        migrations.AddField("grade", "mean", models.FloatField(editable=False, null=True)),
        migrations.AddField("grade", "purpose", models.CharField(blank=True, editable=False, max_length=16)),
        migrations.AddField("grade", "view", models.CharField(blank=True, editable=False, max_length=16)),
        *beside("grade", "evidence"),
        *beside("settlement", "steps"),
        *beside("evidence", "report"),
        *beside("judgeattempt", "read"),
        *beside("reviewanswer", "effects"),
        *beside("submission", "before", "after"),
    ]
