"""Some of each arm's abstentions are judged first: drawn once, on record with chance and key."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("bandit", "0012_first_calibrations"), ("grading", "0023_verdicts")]

    operations = [
        migrations.CreateModel(
            name="AbstentionDraw",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("drawn", models.BooleanField()),
                ("chance", models.FloatField()),
                ("key_id", models.CharField(max_length=8)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "arm",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="bandit.arm",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="abstention_draws",
                        to="grading.session",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(fields=["session", "arm"], name="abstention_draw_once"),
                    models.CheckConstraint(
                        condition=Q(chance__gte=0, chance__lte=1), name="abstention_draw_chance_0_to_1"
                    ),
                    models.CheckConstraint(
                        condition=Q(drawn=False) | Q(chance__gt=0), name="abstention_draw_was_possible"
                    ),
                    models.CheckConstraint(
                        condition=Q(drawn=True) | Q(chance__lt=1), name="abstention_draw_certain_is_drawn"
                    ),
                    models.CheckConstraint(condition=~Q(key_id=""), name="abstention_draw_names_its_key"),
                ],
                "indexes": [
                    models.Index(fields=["arm", "-id"], name="abstention_draw_of_arm"),
                    models.Index(fields=["arm", "-id"], condition=Q(drawn=True), name="abstention_draw_drawn"),
                ],
            },
        ),
        *append_only("grading", "AbstentionDraw"),
        migrations.AddField("judgejob", "reserved", models.BooleanField(default=False)),
        migrations.AlterModelOptions(
            "judgejob", {"ordering": ["-stale", "-reserved", "backlog", "-worth", "pk"]}
        ),
        migrations.RemoveIndex("judgejob", "judge_job_promised"),
        migrations.AddIndex(
            "judgejob",
            models.Index(
                fields=["state", "-stale", "-reserved", "backlog", "-worth", "id"], name="judge_job_promised"
            ),
        ),
        migrations.AddField(
            "judgepolicy",
            "abstention_share",
            models.FloatField(
                default=0.1,
                validators=[
                    django.core.validators.MinValueValidator(0),
                    django.core.validators.MaxValueValidator(1),
                ],
            ),
        ),
        migrations.AddConstraint(
            "judgepolicy",
            models.CheckConstraint(
                condition=Q(abstention_share__gte=0, abstention_share__lte=1), name="judge_policy_abstention_share"
            ),
        ),
        # SQLite makes the table of policies anew, without its triggers.
        *append_only("grading", "JudgePolicy"),
    ]
