"""Strata of a grader's rewards, and the rectifiers that move them at read. Existing rewards are in no stratum."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("bandit", "0003_first_arms")]

    operations = [
        # SQLite rebuilds the table of graders for this; no trigger is on it, and the ledger's own table stays as it is.
        migrations.RemoveConstraint(model_name="grader", name="bandit_grader_once"),
        migrations.AddField(
            model_name="grader", name="stratum", field=models.CharField(blank=True, default="", max_length=40)
        ),
        migrations.AddConstraint(
            model_name="grader",
            constraint=models.UniqueConstraint(
                fields=("source", "model", "route", "rubric", "stratum"), name="bandit_grader_once"
            ),
        ),
        migrations.CreateModel(
            name="Rectifier",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("offsets", models.JSONField(blank=True, default=list)),
                ("enabled", models.BooleanField(default=True)),
                ("note", models.CharField(blank=True, max_length=500)),
                ("by", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "bandit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="rectifiers", to="bandit.bandit"
                    ),
                ),
            ],
            options={
                "ordering": ["-version"],
                "constraints": [
                    models.UniqueConstraint(fields=("bandit", "version"), name="bandit_rectifier_once"),
                    models.CheckConstraint(condition=models.Q(version__gte=1), name="bandit_rectifier_from_1"),
                    models.CheckConstraint(condition=~models.Q(by=""), name="bandit_rectifier_says_who"),
                ],
            },
        ),
        *append_only("bandit", "Rectifier"),
    ]
