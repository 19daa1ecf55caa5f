"""The labels of a quota's states as pages show them. No column changes."""

from django.db import migrations, models

STATES = [
    ("open", "open"),
    ("pacing", "paced"),
    ("exhausted", "out"),
    ("misconfigured", "misconfigured"),
    ("paused", "paused"),
]


class Migration(migrations.Migration):
    dependencies = [("grading", "0068_canary_runs")]

    operations = [
        migrations.AlterField("quota", "state", models.CharField(choices=STATES, default="open", max_length=32)),
        migrations.AlterField("quotatransition", "state", models.CharField(choices=STATES, max_length=32)),
    ]
