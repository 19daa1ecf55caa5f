"""Everybody reads times in the site's zone. History keeps which zone each person had chosen."""

from typing import Any

from django.db import migrations


def record_zones(apps: Any, schema_editor: Any) -> None:
    database = schema_editor.connection.alias
    event = apps.get_model("grading", "AuditEvent")
    rows = apps.get_model("grading", "PersonZone").objects.using(database).select_related("user").order_by("pk")
    event.objects.using(database).bulk_create(
        event(
            kind="person",
            who=row.user.username,
            what=f"read times in {row.zone} before the upgrade",
            detail="Times are in the site’s zone since, which SITE_TIME_ZONE sets.",
        )
        for row in rows
    )


class Migration(migrations.Migration):
    dependencies = [("grading", "0072_delete_hidden_checklist")]

    operations = [
        migrations.RunPython(record_zones, migrations.RunPython.noop, elidable=True),
        migrations.DeleteModel("PersonZone"),
    ]
