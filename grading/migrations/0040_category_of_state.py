"""A state says of which category its session is."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import OuterRef, Subquery


def name_categories(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    session, state = (apps.get_model("grading", name) for name in ("Session", "SessionState"))
    own = session.objects.filter(pk=OuterRef("session")).values("category")
    state.objects.update(category=Subquery(own))


class Migration(migrations.Migration):
    dependencies = [("grading", "0039_packed")]

    operations = [
        migrations.AddField("sessionstate", "category", models.BigIntegerField(null=True)),
        migrations.RunPython(name_categories, migrations.RunPython.noop, elidable=True),
    ]
