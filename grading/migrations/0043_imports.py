"""What was imported from folders, and what became of each file."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models
from django.db.models import Q

FATES = ["imported", "added", "there", "refused", "other", "skipped", "folder"]


class Migration(migrations.Migration):
    dependencies = [("grading", "0042_categories")]

    operations = [
        migrations.CreateModel(
            name="LogImport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("by", models.CharField(max_length=150)),
                ("folders", models.JSONField(default=list)),
                ("category", models.CharField(blank=True, max_length=200)),
                ("counts", models.JSONField(blank=True, default=dict)),
                ("started_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("stopped", models.CharField(blank=True, max_length=200)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="imports", to="grading.agent"
                    ),
                ),
            ],
            options={"verbose_name": "import", "ordering": ["-pk"]},
        ),
        migrations.CreateModel(
            name="ImportedFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=1000)),
                (
                    "fate",
                    models.CharField(
                        choices=[
                            ("imported", "imported, a new session each"),
                            ("added", "added to a session that was there"),
                            ("there", "already there"),
                            ("refused", "refused"),
                            ("other", "not a session log"),
                            ("skipped", "left out: a link, or no regular file"),
                            ("folder", "folders left out"),
                        ],
                        max_length=32,
                    ),
                ),
                ("why", models.CharField(blank=True, max_length=200)),
                ("detail", models.CharField(blank=True, max_length=500)),
                (
                    "session",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="grading.session",
                    ),
                ),
                (
                    "log_import",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="found",
                        to="grading.logimport",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [models.Index(fields=["log_import", "fate", "id"], name="importedfile_by_fate")],
                "constraints": [
                    models.CheckConstraint(condition=Q(fate__in=FATES), name="importedfile_fate_known")
                ],
            },
        ),
    ]
