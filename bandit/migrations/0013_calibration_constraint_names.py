"""Sites that made the table of calibrations before its migration was edited have its constraints under other names."""

from django.db import migrations, models

from bandit.migrations._append_only import append_only

TABLE = "bandit_calibrationversion"
NAMES = {f"bandit_calibration_{rest}": f"{TABLE}_{rest}" for rest in ("once", "from_1", "says_who")}


def rename(apps, schema_editor):
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        found = NAMES.keys() & connection.introspection.get_constraints(cursor, TABLE)
    if found and connection.vendor == "postgresql":
        for name in sorted(found):
            schema_editor.execute(f"ALTER TABLE {TABLE} RENAME CONSTRAINT {name} TO {NAMES[name]}")
    elif found:
        # SQLite makes the table anew, with the constraints that the model has now, whichever is taken away.
        once = models.UniqueConstraint(fields=["bandit", "version"], name="bandit_calibration_once")
        schema_editor.remove_constraint(apps.get_model("bandit", "CalibrationVersion"), once)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0012_first_calibrations")]

    operations = [
        migrations.RunPython(rename, migrations.RunPython.noop),
        *append_only("bandit", "CalibrationVersion"),
    ]
