"""What a ledger row says of its policy is kept once for all the rows that say the same."""

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Q

from bandit.migrations._append_only import drop, refuse

LEDGER = "bandit_ledgerentry"
SENTENCE = f"{LEDGER} is append-only: add a new row, never change one."


def refer(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    """Two passes over the ledger."""
    schema_editor.execute(
        f"INSERT INTO bandit_policytext (text) SELECT DISTINCT policy_version FROM {LEDGER} WHERE policy_version <> ''"
    )
    schema_editor.execute(
        f"UPDATE {LEDGER} SET policy_id = (SELECT t.id FROM bandit_policytext t WHERE t.text = {LEDGER}.policy_version)"
    )


class Migration(migrations.Migration):
    dependencies = [("bandit", "0026_longer_names")]

    operations = [
        migrations.CreateModel(
            name="PolicyText",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.CharField(max_length=200, unique=True)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=~Q(text=""), name="bandit_policy_text_said")],
            },
        ),
        # Empty where nothing was said: SQLite would make the table anew for a column that never is.
        migrations.AddField(
            "ledgerentry",
            "policy",
            models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="bandit.policytext",
                verbose_name="policy version",
            ),
        ),
        drop(LEDGER, "no_update"),
        migrations.RunPython(refer),
        refuse(LEDGER, "no_update", "UPDATE", "1 = 1", SENTENCE),
        migrations.RemoveField("ledgerentry", "policy_version"),
    ]
