"""A decision's id is its agent's own, and what one agent can take from others has limits of its own.

A site that has learnt and decided nothing begins with those; one that has keeps the limits that all agents share, and
reads every reward in full, until a person accepts others. Decisions that were drawn by a public hash name no key.
"""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from bandit.migrations._append_only import append_only, drop
from bandit.migrations._untouched import is_untouched

LIMITS = {
    "agent_cap": (3, "Sessions of one agent on an arm and day that count in full, where others work too. Empty: all."),
    "consumption_per_agent": (2, "Reading sessions of one agent a day, at most. Empty: any."),
    "open_decisions": (8, "Decisions of one agent that may wait for a session. Empty: any."),
    "probation_per_agent": (1, "Sessions of one agent a day with an arm on probation. Empty: any."),
}
SHARED = {
    "consumption_per_day": "Reading sessions of all agents a day, at most. Empty: any.",
    "probation_per_day": "Sessions of all agents a day with an arm on probation. Empty: any.",
}


def begin(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    policy = apps.get_model("bandit", "PolicyVersion")
    if not is_untouched(apps):
        return
    numbers = {name: usual for name, (usual, _help) in LIMITS.items()} | dict.fromkeys(SHARED)
    first = policy.objects.filter(version=1, by="installation")
    for row in first.exclude(bandit__policies__version__gt=1):
        policy.objects.filter(pk=row.pk).update(**numbers)


def number(help_text: str, **usual: int) -> models.PositiveIntegerField:
    return models.PositiveIntegerField(blank=True, null=True, help_text=help_text, **usual)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0018_pooling")]

    operations = [
        migrations.AddField("selection", "key_id", models.CharField(blank=True, default="", max_length=8)),
        migrations.AddField("assignment", "key_id", models.CharField(blank=True, default="", max_length=8)),
        migrations.RemoveConstraint("selection", "bandit_decision_once"),
        migrations.RemoveConstraint("assignment", "bandit_assigned_once"),
        migrations.AddConstraint(
            "selection",
            models.UniqueConstraint(fields=("bandit", "agent", "decision_id"), name="bandit_decision_once"),
        ),
        migrations.AddConstraint(
            "assignment",
            models.UniqueConstraint(fields=("bandit", "agent", "decision_id", "arm"), name="bandit_assigned_once"),
        ),
        migrations.AddIndex(
            "selection",
            models.Index(
                condition=models.Q(("completed_at", None)),
                fields=["bandit", "agent", "created"],
                name="bandit_selection_open",
            ),
        ),
        migrations.AddIndex(
            "assignment",
            models.Index(
                condition=models.Q(("observation", "")),
                fields=["bandit", "agent", "created"],
                name="bandit_assignment_open",
            ),
        ),
        # Versions that there are have none of the new limits.
        *(migrations.AddField("policyversion", name, number(said)) for name, (_usual, said) in LIMITS.items()),
        *(
            migrations.AlterField("policyversion", name, number(said, default=usual))
            for name, (usual, said) in LIMITS.items()
        ),
        *(migrations.AlterField("policyversion", name, number(said)) for name, said in SHARED.items()),
        migrations.AddConstraint(
            "policyversion",
            models.CheckConstraint(
                condition=models.Q(("open_decisions__isnull", True), ("open_decisions__gte", 1), _connector="OR"),
                name="bandit_open_decisions_from_1",
                violation_error_message="At least 1 decision may wait for its session, or empty for any number.",
            ),
        ),
        migrations.AddConstraint(
            "policyversion",
            models.CheckConstraint(
                condition=models.Q(("agent_cap__isnull", True), ("agent_cap__gte", 1), _connector="OR"),
                name="bandit_agent_cap_from_1",
                violation_error_message="At least 1 session of an agent counts, or empty for all.",
            ),
        ),
        drop("bandit_policyversion", "no_update"),
        migrations.RunPython(begin, migrations.RunPython.noop),
        *append_only("bandit", "PolicyVersion"),
    ]
