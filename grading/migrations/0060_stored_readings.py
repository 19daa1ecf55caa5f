"""Figures that the worker computes for pages have one table; lessons' had one of their own, which is not carried over:
the worker reads them anew within a minute.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("grading", "0059_settlement_basis")]

    operations = [
        migrations.CreateModel(
            "StoredReading",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("read_at", models.DateTimeField()),
                ("seconds", models.FloatField()),
                ("inputs", models.TextField()),
                ("value", models.JSONField()),
            ],
        ),
        migrations.DeleteModel("LessonReading"),
    ]
