"""A permit to replace secrets in stored rows, and append-only tables that go by it."""

import django.utils.timezone
from django.db import migrations, models

from bandit.migrations._append_only import refuse
from grading.migrations._redactable import redactable

TABLE = "grading_redaction"


class Migration(migrations.Migration):
    dependencies = [("grading", "0060_stored_readings")]

    operations = [
        migrations.CreateModel(
            name="Redaction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("why", models.CharField(max_length=200)),
                ("opened_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("counts", models.JSONField(default=dict)),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("why", ""), _negated=True), name="redaction_says_why"
                    )
                ],
            },
        ),
        refuse(
            TABLE,
            "closed_stays",
            "UPDATE",
            "OLD.closed_at IS NOT NULL",
            f"{TABLE}: the record of a redaction never changes once it is closed.",
        ),
        refuse(TABLE, "no_delete", "DELETE", "1 = 1", f"{TABLE}: the record of a redaction is never deleted."),
        redactable("Comment", "text"),
        redactable("Evidence", "detail"),
        redactable("Grade", "detail", "evidence"),
        redactable("ReviewAnswer", "reason"),
        redactable("Settlement", "sentence", "steps"),
        redactable("Submission", "before", "after"),
    ]
