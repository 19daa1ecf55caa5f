"""A grader's key says more: what computed the value, what it saw, who vouches for it, its standing, whose session.

Of the rewards that are there nobody has said any of it: empty, in the buckets that they are in.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bandit", "0009_first_looking_arms")]

    operations = [
        migrations.RemoveConstraint(model_name="grader", name="bandit_grader_once"),
        migrations.AddField("grader", "version", models.CharField(blank=True, default="", max_length=80)),
        migrations.AddField("grader", "view", models.CharField(blank=True, default="", max_length=40)),
        migrations.AddField("grader", "witness", models.CharField(blank=True, default="", max_length=20)),
        migrations.AddField("grader", "standing", models.CharField(blank=True, default="", max_length=20)),
        migrations.AddField("grader", "agent", models.CharField(blank=True, default="", max_length=80)),
        migrations.AddConstraint(
            model_name="grader",
            constraint=models.UniqueConstraint(
                fields=(
                    "source", "model", "route", "rubric", "stratum", "context", "salience", "version", "view",
                    "witness", "standing", "agent",
                ),
                name="bandit_grader_once",
            ),
        ),
    ]  # fmt: skip
