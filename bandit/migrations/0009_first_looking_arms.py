"""The categories whose name says that they look. Apart from the schema: PostgreSQL wants the two in two transactions."""

from django.db import migrations

LOOKING = ("triage", "monitoring", "review")


def mark(apps, schema_editor):
    arms = apps.get_model("bandit", "Arm").objects.filter(bandit__name="category", name__in=LOOKING)
    arms.filter(is_consumption=False).update(is_looking=True)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0008_looking_arms")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop, elidable=True)]
