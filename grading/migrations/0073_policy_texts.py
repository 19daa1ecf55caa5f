"""What a settlement says of its policy is kept once for all that say the same, and together with the ledger's.

One pass over the settlements.
"""

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import drop, refuse

TABLE = "grading_settlement"
SENTENCE = f"{TABLE} is append-only: add a new row, never change one."
ROW = "SELECT t.id FROM bandit_policytext t WHERE t.text = {}"


def refer(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    schema_editor.execute(
        f"INSERT INTO bandit_policytext (text) SELECT DISTINCT policy_version FROM {TABLE} "
        "WHERE policy_version <> '' AND policy_version NOT IN (SELECT text FROM bandit_policytext)"
    )
    if schema_editor.connection.vendor != "postgresql":
        schema_editor.execute(f"UPDATE {TABLE} SET policy_id = ({ROW.format('policy_version')})")
        return
    # The table is written anew, without the text: to drop its column takes nothing out of the rows.
    schema_editor.execute(
        f"CREATE FUNCTION pg_temp.saying(said text) RETURNS bigint LANGUAGE sql STABLE AS $$ {ROW.format('said')} $$"
    )
    schema_editor.execute(
        f"ALTER TABLE {TABLE} ALTER COLUMN policy_id TYPE bigint USING pg_temp.saying(policy_version), "
        "ALTER COLUMN policy_version TYPE text USING ''"
    )


class Migration(migrations.Migration):
    dependencies = [("bandit", "0040_narrow_indexes"), ("grading", "0072_anchors_by_record")]

    operations = [
        migrations.AddField(
            "settlement",
            "policy",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="bandit.policytext",
            ),
        ),
        drop(TABLE, "no_update"),
        migrations.RunPython(refer),
        refuse(TABLE, "no_update", "UPDATE", "1 = 1", SENTENCE),
        migrations.RemoveField("settlement", "policy_version"),
    ]
