"""Calibrations: how fallbacks are read on the judge's scale, in versions; and which one a rectifier was fitted under."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("bandit", "0010_wider_grader_key")]

    operations = [
        migrations.AddField(
            model_name="rectifier",
            name="calibration",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="The last calibration that a person had accepted when these were fitted.",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="CalibrationVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("scale", models.JSONField(blank=True, default=dict)),
                ("target", models.CharField(blank=True, max_length=300)),
                ("enabled", models.BooleanField(default=True)),
                ("accepted", models.BooleanField(default=False)),
                ("note", models.CharField(blank=True, max_length=500)),
                ("by", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "bandit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="calibrations", to="bandit.bandit"
                    ),
                ),
            ],
            options={
                "ordering": ["-version"],
                "constraints": [
                    models.UniqueConstraint(fields=("bandit", "version"), name="bandit_calibrationversion_once"),
                    models.CheckConstraint(condition=models.Q(version__gte=1), name="bandit_calibrationversion_from_1"),
                    models.CheckConstraint(condition=~models.Q(by=""), name="bandit_calibrationversion_says_who"),
                ],
            },
        ),
        *append_only("bandit", "CalibrationVersion"),
    ]
