"""Category rules are deleted for good, and their edits are in the audit alone."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("grading", "0070_rule_edits_as_events")]

    operations = [
        migrations.RemoveField("categorychange", "edit"),
        migrations.RemoveField("categoryrule", "is_deleted"),
        migrations.AlterModelManagers("categoryrule", managers=[]),
    ]
