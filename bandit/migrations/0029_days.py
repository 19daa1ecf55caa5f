"""Good and bad days: an arm's sessions of one day count less the more its days differ.

A site that has learnt and decided nothing begins with that, and with less exploration; one that has keeps its policies
until a person accepts others.
"""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import append_only, drop
from bandit.migrations._untouched import is_untouched

HELP = "An arm's sessions of one day count less the more its days differ."
EXPLORATION_HELP = "The chance that all eligible arms share, whatever is known of them. Empty: each has the floor."


def begin(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    if not is_untouched(apps):
        return
    policy = apps.get_model("bandit", "PolicyVersion")
    first = policy.objects.filter(version=1, by="installation").exclude(bandit__policies__version__gt=1)
    for row in first:
        policy.objects.filter(pk=row.pk).update(varies_by_day=True, exploration=0.005)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0028_narrow_indexes")]

    operations = [
        # Versions that there are know no such days.
        migrations.AddField("policyversion", "varies_by_day", models.BooleanField(default=False, help_text=HELP)),
        migrations.AlterField("policyversion", "varies_by_day", models.BooleanField(default=True, help_text=HELP)),
        migrations.AlterField(
            "policyversion",
            "exploration",
            models.FloatField(blank=True, default=0.005, help_text=EXPLORATION_HELP, null=True),
        ),
        drop("bandit_policyversion", "no_update"),
        migrations.RunPython(begin, migrations.RunPython.noop),
        *append_only("bandit", "PolicyVersion"),
    ]
