"""Indexes over the reward columns of sessions, and the end of the table that they came from."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("grading", "0064_fill_reward_columns")]

    operations = [
        migrations.DeleteModel("SessionState"),
        migrations.AddIndex(
            "session", models.Index(fields=["reward_source", "-ended_at", "-id"], name="session_by_source")
        ),
        migrations.AddIndex(
            "session",
            models.Index(
                fields=["verdict_question", "category", "-ended_at"],
                condition=Q(verdict__isnull=False),
                name="session_by_question",
            ),
        ),
        migrations.AddIndex(
            "session",
            models.Index(fields=["-ended_at", "-id"], condition=Q(reward_final=False), name="session_provisional"),
        ),
        migrations.AddIndex(
            "session",
            models.Index(fields=["-ended_at", "-id"], condition=Q(reward_value=None), name="session_without_reward"),
        ),
        migrations.AddIndex(
            "session", models.Index(fields=["-ended_at", "-id"], condition=Q(open_flags__gt=0), name="session_flagged")
        ),
    ]
