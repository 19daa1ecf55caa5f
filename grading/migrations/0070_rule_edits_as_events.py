"""Edits of category rules become events of the audit; deleted rules go, and what they gave sessions stays.

PostgreSQL cannot change rows and then their table in one transaction, so the columns go in the next migration.
"""

from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._append_only import append_only

KINDS = ["sign-in", "token", "person", "download", "raw", "category"]
ACTS = {
    "add": "added",
    "change": "changed",
    "up": "moved up",
    "down": "moved down",
    "on": "switched on",
    "off": "switched off",
    "delete": "deleted",
}


def move_edits(apps, schema_editor):
    alias = schema_editor.connection.alias
    events, changes, rules = (
        apps.get_model("grading", name)._base_manager.using(alias)
        for name in ("AuditEvent", "CategoryChange", "CategoryRule")
    )
    edits = changes.exclude(edit={})
    for change in edits.select_related("by", "undone_by").order_by("pk"):
        what = f"{ACTS[change.edit['act']]} rule {change.edit['number']}: {change.edit['words']}"
        events.create(at=change.created_at, kind="category", who=change.by.username, what=shorten(what, 300))
        if change.undone_at is not None:
            events.create(
                at=change.undone_at,
                kind="category",
                who=change.undone_by.username,
                what=shorten(f"undid “{what}”", 300),
                detail=shorten(change.undone_why, 500),
            )
    edits.delete()
    rules.filter(is_deleted=True).delete()


def shorten(text, length):
    return text if len(text) <= length else f"{text[: length - 1]}…"


class Migration(migrations.Migration):
    dependencies = [("grading", "0069_quota_state_labels")]

    operations = [
        migrations.AlterField(
            "auditevent", "kind", models.CharField(choices=[(kind, kind) for kind in KINDS], max_length=32)
        ),
        migrations.RemoveConstraint("auditevent", "auditevent_kind_known"),
        migrations.AddConstraint(
            "auditevent", models.CheckConstraint(condition=Q(kind__in=KINDS), name="auditevent_kind_known")
        ),
        *append_only("grading", "AuditEvent"),
        migrations.RunPython(move_edits, migrations.RunPython.noop, elidable=True),
    ]
