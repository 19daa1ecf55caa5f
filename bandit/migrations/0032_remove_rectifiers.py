"""Remove rectifiers, which are calibration versions now, and make the calibrations append-only again."""

from django.db import migrations

from bandit.migrations._append_only import append_only, drop


class Migration(migrations.Migration):
    dependencies = [("bandit", "0031_one_calibration")]

    operations = [
        *append_only("bandit", "CalibrationVersion"),
        drop("bandit_rectifier", "no_update"),
        drop("bandit_rectifier", "no_delete"),
        migrations.DeleteModel("Rectifier"),
    ]
