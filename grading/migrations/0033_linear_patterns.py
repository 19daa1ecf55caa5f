"""Patterns of rules are RE2's, which has no lookaheads: the one that a new site began with, as RE2 says it.

It finds the same lines. What people changed or wrote themselves is left alone; the page of rules says what cannot work.
"""

from django.db import migrations

BEFORE, AFTER = r"(?i)^\s*\|.*\bideas?(?![a-z])", r"(?i)^\s*\|.*\bideas?(?:[^a-z]|$)"


def rewrite(apps, schema_editor):
    apps.get_model("grading", "ArtifactRule").objects.filter(line_pattern=BEFORE).update(line_pattern=AFTER)


def write_back(apps, schema_editor):
    apps.get_model("grading", "ArtifactRule").objects.filter(line_pattern=AFTER).update(line_pattern=BEFORE)


class Migration(migrations.Migration):
    dependencies = [("grading", "0032_expired_blobs")]

    operations = [migrations.RunPython(rewrite, write_back)]
