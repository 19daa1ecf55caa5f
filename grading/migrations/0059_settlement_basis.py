"""Settlements are compared by content: a column for what their sentence rests on besides the other columns."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("grading", "0001_squashed_0058_short_artifacts")]

    operations = [
        migrations.AddField("settlement", "basis", models.CharField(editable=False, max_length=16, null=True)),
    ]
