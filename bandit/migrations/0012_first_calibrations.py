"""A bandit that has learnt nothing yet starts with the calibration that nobody has data for. One that has goes on as it
did until a person accepts one: what it believes is not moved by an upgrade.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

START = {
    "sources": ["journal", "trajectory"],
    "floored": ["failed"],
    "lines": [],
    "weights": {},
    "variance": 0.04,
    "latest": None,
}


def begin(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    bandit, entry = apps.get_model("bandit", "Bandit"), apps.get_model("bandit", "LedgerEntry")
    version = apps.get_model("bandit", "CalibrationVersion")
    for row in bandit.objects.exclude(kind="names").order_by("pk"):
        if not entry.objects.filter(bandit=row).exists():
            version.objects.create(bandit=row, version=1, scale=START, accepted=True, by="the site, at the start")


class Migration(migrations.Migration):
    dependencies = [("bandit", "0011_calibrations")]

    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
