"""Pack what is only read as a whole: batch by batch, so that it can be interrupted and goes on where it was."""

from django.db import migrations

from bandit.migrations._packing import fill


def text(said):
    return said if isinstance(said, str) else ""


def number(said):
    return said if isinstance(said, (int, float)) else None


COPIED = {"view": ("evidence", text), "purpose": ("evidence", text), "mean": ("evidence", number)}


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("grading", "0037_packed_columns")]

    operations = [
        fill("grading", "Grade", "evidence", append_only=True, copied=COPIED),
        fill("grading", "Settlement", "steps", append_only=True),
        fill("grading", "Evidence", "report", append_only=True),
        fill("grading", "ReviewAnswer", "effects", append_only=True),
        fill("grading", "Submission", "before", "after", append_only=True),
        fill("grading", "JudgeAttempt", "read", append_only=False),
    ]
