"""Indexes for what every page or every minute asks of all sessions."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("grading", "0040_category_of_state")]

    operations = [
        migrations.RemoveIndex("sessionstate", "state_by_rubric"),
        migrations.AddIndex(
            "sessionstate",
            models.Index(
                condition=Q(verdict__isnull=False),
                fields=["rubric", "version", "category", "-ended_at"],
                name="state_by_question",
            ),
        ),
        migrations.AddIndex(
            "grade",
            models.Index(
                condition=Q(source="judge", reason="not_configured", parallel=False),
                fields=["session"],
                name="grade_not_configured",
            ),
        ),
        migrations.RemoveIndex("session", "session_infrastructure"),
        migrations.AddIndex(
            "session",
            models.Index(condition=Q(outcome="infrastructure"), fields=["ended_at"], name="session_infrastructure"),
        ),
        migrations.AddIndex(
            "session",
            models.Index(
                condition=Q(model_arm=None) & ~Q(model=""), fields=["model", "-ended_at"], name="session_nameless"
            ),
        ),
    ]
