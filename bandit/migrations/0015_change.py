"""Exploration that all arms share, its sharpness, breaks and drift become numbers of a policy, and what people say of
breaks become rows. A version that stands goes on as it did, with none of them.
"""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("bandit", "0014_one_live_reward")]

    operations = [
        migrations.AddField("policyversion", "exploration", models.FloatField(blank=True, null=True)),
        migrations.AddField("policyversion", "sharpness", models.FloatField(default=1)),
        migrations.AddField("policyversion", "follows_change", models.BooleanField(default=False)),
        migrations.AlterField(
            "policyversion",
            "exploration",
            models.FloatField(
                blank=True,
                null=True,
                default=0.03,
                help_text="The chance that all eligible arms share, whatever is known of them. Empty: each has the floor.",
            ),
        ),
        migrations.AlterField(
            "policyversion",
            "sharpness",
            models.FloatField(
                default=2,
                help_text="The power of P(best) that arms are chosen by: 1 is Thompson sampling, 2 tries less.",
            ),
        ),
        migrations.AlterField(
            "policyversion",
            "follows_change",
            models.BooleanField(
                default=True,
                help_text="What an arm was before it broke does not count, and what drifts is forgotten sooner.",
            ),
        ),
        migrations.AlterField(
            "policyversion",
            "floor",
            models.FloatField(
                default=0.01, help_text="The least chance of an eligible arm, where there is no exploration to share."
            ),
        ),
        migrations.AlterField(
            "policyversion",
            "half_life_days",
            models.FloatField(default=45, help_text="Evidence this old counts half."),
        ),
        migrations.AddConstraint(
            "policyversion",
            models.CheckConstraint(
                condition=Q(exploration__isnull=True) | Q(exploration__gte=0, exploration__lte=0.5),
                name="bandit_exploration_0_to_half",
                violation_error_message="Exploration is a chance from 0 to .5, or empty for a floor of each arm.",
            ),
        ),
        migrations.AddConstraint(
            "policyversion",
            models.CheckConstraint(
                condition=Q(sharpness__gte=1, sharpness__lte=4),
                name="bandit_sharpness_1_to_4",
                violation_error_message="The sharpness is a power from 1 to 4.",
            ),
        ),
        *append_only("bandit", "PolicyVersion"),
        migrations.CreateModel(
            name="BreakDecision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("kept", models.BooleanField()),
                ("by", models.CharField(max_length=200)),
                ("note", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "arm",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="break_decisions", to="bandit.arm"
                    ),
                ),
                (
                    "bandit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="break_decisions", to="bandit.bandit"
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "constraints": [models.CheckConstraint(condition=~Q(by=""), name="bandit_break_decision_says_who")],
            },
        ),
        *append_only("bandit", "BreakDecision"),
    ]
