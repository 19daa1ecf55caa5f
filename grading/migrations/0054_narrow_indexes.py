"""Indexes of the rows that are looked for, and none where another one begins with the same column. Seconds."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._packing import without_index


class Migration(migrations.Migration):
    dependencies = [("grading", "0053_short_hashes")]

    operations = [
        *without_index(
            "grading",
            "categoryword",
            rule=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="grading.categoryrule"),
            change=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="words", to="grading.categorychange"),
        ),
        *without_index(
            "grading",
            "sessionlesson",
            session=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="lessons", to="grading.session"),
        ),
        *(
            migrations.AddIndex("categoryword", models.Index(condition=Q((f"{field}__isnull", False)), fields=[field], name=name))
            for field, name in (("rule", "category_word_rules"), ("change", "category_word_changes"))
        ),
        migrations.RemoveIndex("judgejob", "judge_job_promised"),
        migrations.AddIndex(
            "judgejob",
            models.Index(
                condition=Q(state="queued"),
                fields=["-stale", "-reserved", "backlog", "-worth", "id"],
                name="judge_job_promised",
            ),
        ),
    ]
