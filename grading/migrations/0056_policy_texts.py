"""What a settlement says of its policy is kept once for all that say the same, and together with the ledger's.

The settlements are written anew, twice.
"""

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import append_only, drop
from grading.migrations._hashes import InPlace, rewrite

TABLE = "grading_settlement"
ROW = "SELECT t.id FROM bandit_policytext t WHERE t.text = {}"


def refer(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    schema_editor.execute(
        f"INSERT INTO bandit_policytext (text) SELECT DISTINCT policy_version FROM {TABLE} "
        "WHERE policy_version <> '' AND policy_version NOT IN (SELECT text FROM bandit_policytext)"
    )
    if schema_editor.connection.vendor != "postgresql":
        schema_editor.execute(f"UPDATE {TABLE} SET policy_id = ({ROW.format('policy_version')})")
        return
    # The table is written anew by the next operation, which may ask no other table: a function may.
    schema_editor.execute(
        f"CREATE FUNCTION pg_temp.saying(said text) RETURNS bigint LANGUAGE sql STABLE AS $$ {ROW.format('said')} $$"
    )
    schema_editor.execute(
        f"ALTER TABLE {TABLE} ALTER COLUMN policy_id TYPE bigint USING pg_temp.saying(policy_version)"
    )


class Migration(migrations.Migration):
    dependencies = [("bandit", "0028_narrow_indexes"), ("grading", "0055_anchors_by_record")]

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
        rewrite(TABLE, emptied=("policy_version",), texts=("sentence",)),
        migrations.RemoveField("settlement", "policy_version"),
        InPlace("settlement", "sentence", models.BinaryField(blank=True)),
        # Nobody looks a settlement up by its grade.
        migrations.AlterField(
            "settlement",
            "grade",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="grading.grade",
            ),
        ),
        *append_only("grading", "Settlement"),
    ]
