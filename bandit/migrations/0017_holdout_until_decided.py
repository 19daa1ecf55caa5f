"""A lesson is held out often until it has a verdict, and seldom from then on; sites that run keep their holdout."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import append_only, drop
from bandit.migrations._untouched import is_untouched

VERSION = "bandit_policyversion"


def begin(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    """A site on which nothing has happened yet begins with the new numbers."""
    PolicyVersion = apps.get_model("bandit", "PolicyVersion")
    if not is_untouched(apps):
        return
    first = PolicyVersion.objects.filter(bandit__kind="many", version=1, by="installation")
    for row in first.exclude(bandit__policies__version__gt=1):
        PolicyVersion.objects.filter(pk=row.pk).update(holdout=0.4, holdout_decided=0.05)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0016_first_numbers")]

    operations = [
        migrations.AddField(
            model_name="policyversion",
            name="holdout_decided",
            field=models.FloatField(
                blank=True, help_text="The same, of a lesson that has a verdict. Empty: as of any other.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="policyversion",
            name="holdout_decided",
            field=models.FloatField(
                blank=True,
                default=0.05,
                help_text="The same, of a lesson that has a verdict. Empty: as of any other.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="policyversion",
            name="holdout",
            field=models.FloatField(default=0.4, help_text="Chance with which a matched lesson is held out."),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("holdout_decided__isnull", True),
                    models.Q(("holdout_decided__gte", 0), ("holdout_decided__lte", 0.5)),
                    _connector="OR",
                ),
                name="bandit_decided_holdout_in_range",
                violation_error_message="The holdout of a decided lesson is a chance from 0 to .5, or empty.",
            ),
        ),
        drop(VERSION, "no_update"),
        migrations.RunPython(begin, migrations.RunPython.noop),
        *append_only("bandit", "PolicyVersion"),
    ]
