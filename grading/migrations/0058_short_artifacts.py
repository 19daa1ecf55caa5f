"""New sites ask for less text in a task and a note. A site that has, or had, sessions keeps its rules, and so its rewards."""

from django.db import migrations

BEFORE = 200
AFTER = {"task": 60, "knowledge": 120}


def is_new(apps):
    return not (
        apps.get_model("grading", "Session").objects.exists() or apps.get_model("bandit", "Erasure").objects.exists()
    )


def ask_for_less(apps, schema_editor):
    rules = apps.get_model("grading", "ArtifactRule").objects
    if is_new(apps):
        for kind, least in AFTER.items():
            rules.filter(kind=kind, least_characters=BEFORE).update(least_characters=least)


def ask_for_more(apps, schema_editor):
    rules = apps.get_model("grading", "ArtifactRule").objects
    if is_new(apps):
        for kind, least in AFTER.items():
            rules.filter(kind=kind, least_characters=least).update(least_characters=BEFORE)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0028_narrow_indexes"), ("grading", "0057_lesson_readings")]

    operations = [migrations.RunPython(ask_for_less, ask_for_more)]
