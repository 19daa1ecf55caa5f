"""Graders name models and routes as long as grades do."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bandit", "0025_kept_up")]

    operations = [
        migrations.AlterField("grader", "model", models.CharField(blank=True, default="", max_length=120)),
        migrations.AlterField("grader", "route", models.CharField(blank=True, default="", max_length=120)),
    ]
