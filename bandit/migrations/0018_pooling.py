"""Arms of a harness and a model may share what is known of both: from the start where nothing was learnt or decided yet,
elsewhere once a person puts it in force.
"""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import append_only, drop
from bandit.migrations._untouched import is_untouched


def begin(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    policy = apps.get_model("bandit", "PolicyVersion")
    if not is_untouched(apps):
        return
    if not policy.objects.filter(bandit__name="harness", version__gt=1).exists():
        policy.objects.filter(bandit__name="harness", version=1, by="installation").update(pooling=True)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0017_holdout_until_decided")]

    operations = [
        migrations.AddField(
            model_name="policyversion",
            name="pooling",
            field=models.BooleanField(
                default=False, help_text="Arms of two parts, first/second, share what is known of them."
            ),
        ),
        drop("bandit_policyversion", "no_update"),
        migrations.RunPython(begin, migrations.RunPython.noop),
        *append_only("bandit", "PolicyVersion"),
    ]
