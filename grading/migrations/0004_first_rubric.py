"""The rubric that every site starts with, active."""

from django.db import migrations

from grading import rubric_seed
from grading.core.prompt import rubric_sha256


def seed(apps, schema_editor):
    Rubric = apps.get_model("grading", "Rubric")
    if Rubric.objects.exists():
        return
    Rubric.objects.create(
        sha256=rubric_sha256(rubric_seed.TEXT, rubric_seed.DIMENSIONS, rubric_seed.BANDS),
        title=rubric_seed.TITLE,
        text=rubric_seed.TEXT,
        dimensions=rubric_seed.DIMENSIONS,
        bands=rubric_seed.BANDS,
        is_active=True,
    )


class Migration(migrations.Migration):
    dependencies = [("grading", "0003_artifact_rules")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
