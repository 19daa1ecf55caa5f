"""`SessionState` becomes columns of `Session`: first the columns, then their values (0064), then the rest (0065)."""

from django.db import migrations, models
from django.db.models.deletion import DO_NOTHING


def reference(to: str) -> models.ForeignKey:
    return models.ForeignKey(
        to=to,
        null=True,
        editable=False,
        on_delete=DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )


class Migration(migrations.Migration):
    dependencies = [("grading", "0062_redact_rows")]

    operations = [
        # SQLite copies the table for each of the first three, which are not nullable. It has no triggers.
        migrations.AddField("session", "reward_source", models.CharField(blank=True, editable=False, max_length=32)),
        migrations.AddField("session", "reward_reason", models.CharField(blank=True, editable=False, max_length=32)),
        migrations.AddField("session", "open_flags", models.PositiveSmallIntegerField(default=0, editable=False)),
        migrations.AddField("session", "settlement", reference("grading.settlement")),
        migrations.AddField("session", "reward_value", models.FloatField(editable=False, null=True)),
        migrations.AddField("session", "reward_final", models.BooleanField(editable=False, null=True)),
        migrations.AddField("session", "reward_weight", models.FloatField(editable=False, null=True)),
        migrations.AddField("session", "verdict", reference("grading.grade")),
        migrations.AddField("session", "verdict_question", models.BigIntegerField(editable=False, null=True)),
    ]
