"""One chain of calibrations: rectifiers become calibration versions, and fallbacks are read by a simpler rule.

A version keeps its bandit, its place in time, who made it and whether it was on. The lines of 0.1.0 are dropped, because
nothing reads them any more: such a version becomes the start of the new rule, which is fitted again at night. Offsets of
fallbacks count only while no calibration is on.
"""

from django.db import migrations, models

from bandit.migrations._append_only import drop

SOURCES = ["journal", "trajectory"]
START = {"sources": SOURCES, "kinds": [], "latest": None}
DROPPED = "An upgrade replaced its lines by the start of a simpler rule."
MAX_NOTE = 500


def merge(apps, schema_editor):
    """Rewrite the calibrations of each bandit as one chain with its rectifiers, in the order in which they were made."""
    Bandit, Calibration, Rectifier = (
        apps.get_model("bandit", name) for name in ("Bandit", "CalibrationVersion", "Rectifier")
    )
    chain = []
    for bandit in Bandit.objects.order_by("pk"):
        changes = [*Calibration.objects.filter(bandit=bandit), *Rectifier.objects.filter(bandit=bandit)]
        changes.sort(key=lambda change: (change.created_at, isinstance(change, Rectifier), change.version))
        fallbacks, offsets, target = None, [], ""
        for version, change in enumerate(changes, start=1):
            note, accepted = change.note, True
            if isinstance(change, Rectifier):
                offsets = change.offsets if change.enabled else []
            else:
                had_lines = bool(change.enabled and change.fallbacks["lines"])
                note = f"{note} {DROPPED}".strip()[-MAX_NOTE:] if had_lines else note
                fallbacks, target, accepted = START if change.enabled else None, "", change.accepted
            # Offsets of fallbacks rest while there is a calibration that maps these.
            current = offsets if fallbacks is None else [each for each in offsets if each["source"] not in SOURCES]
            chain.append(
                Calibration(
                    bandit=bandit,
                    version=version,
                    enabled=fallbacks is not None or bool(current),
                    fallbacks=fallbacks,
                    offsets=current,
                    target=target,
                    accepted=accepted,
                    note=note,
                    by=change.by,
                    created_at=change.created_at,
                )
            )
    Calibration.objects.all().delete()
    Calibration.objects.bulk_create(chain)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0030_remove_unused_columns")]

    operations = [
        drop("bandit_calibrationversion", "no_update"),
        drop("bandit_calibrationversion", "no_delete"),
        migrations.RenameField("calibrationversion", "scale", "fallbacks"),
        migrations.AlterField("calibrationversion", "fallbacks", models.JSONField(blank=True, null=True)),
        migrations.AddField("calibrationversion", "offsets", models.JSONField(blank=True, default=list)),
        migrations.RunPython(merge),
    ]
