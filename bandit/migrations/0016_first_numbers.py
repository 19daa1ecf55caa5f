"""A site that has learnt and decided nothing begins with the numbers of today. One that has goes on as it did until a
person accepts others: what it believes and chooses is not moved by an upgrade.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import append_only, drop
from bandit.migrations._untouched import is_untouched

NUMBERS = {"half_life_days": 45.0, "exploration": 0.03, "sharpness": 2.0, "follows_change": True}


def begin(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    bandit, policy = apps.get_model("bandit", "Bandit"), apps.get_model("bandit", "PolicyVersion")
    if not is_untouched(apps):
        return
    for row in bandit.objects.all():
        if not policy.objects.filter(bandit=row, version__gt=1).exists():
            policy.objects.filter(bandit=row, version=1, by="installation").update(**NUMBERS)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0015_change")]

    operations = [
        drop("bandit_policyversion", "no_update"),
        migrations.RunPython(begin, migrations.RunPython.noop),
        *append_only("bandit", "PolicyVersion"),
    ]
