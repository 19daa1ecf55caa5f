"""Evidence, grades and settlements are appended, never changed (L3); the database says so too."""

from django.db import migrations

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("grading", "0001_initial"), ("bandit", "0002_triggers")]

    operations = [
        *append_only("grading", "Evidence"),
        *append_only("grading", "Grade"),
        *append_only("grading", "Settlement"),
    ]
