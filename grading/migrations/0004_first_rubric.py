"""The rubric that every site starts with, active."""

from django.db import migrations

from grading.migrations import _first_rubric as first_rubric
from grading.migrations._first_rubric import rubric_sha256


def seed(apps, schema_editor):
    Rubric = apps.get_model("grading", "Rubric")
    if Rubric.objects.exists():
        return
    Rubric.objects.create(
        sha256=rubric_sha256(first_rubric.TEXT, first_rubric.DIMENSIONS, first_rubric.BANDS),
        title=first_rubric.TITLE,
        text=first_rubric.TEXT,
        dimensions=first_rubric.DIMENSIONS,
        bands=first_rubric.BANDS,
        is_active=True,
    )


class Migration(migrations.Migration):
    dependencies = [("grading", "0003_artifact_rules")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
