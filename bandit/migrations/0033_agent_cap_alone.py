"""Add the cap on an agent alone on an arm. A site that has recorded nothing begins with it; others have none."""

from django.db import migrations, models
from django.db.models import F, Q

from bandit.migrations._append_only import append_only, drop

NEW_SITE_CAP = 10


def begin(apps, schema_editor):
    """Let a new site's first policies have the cap."""
    used = any(apps.get_model("bandit", name).objects.exists() for name in ("LedgerEntry", "Selection"))
    if not used:
        policies = apps.get_model("bandit", "PolicyVersion").objects.filter(version=1, by="installation")
        policies.update(agent_cap_alone=NEW_SITE_CAP)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0032_remove_rectifiers")]

    operations = [
        migrations.AddField(
            "policyversion",
            "agent_cap_alone",
            models.PositiveIntegerField(
                blank=True,
                null=True,
                help_text="The same on an arm that no other agent works on. Empty: as many as on any other.",
            ),
        ),
        migrations.AddConstraint(
            "policyversion",
            models.CheckConstraint(
                condition=Q(agent_cap=None) | Q(agent_cap_alone=None) | Q(agent_cap_alone__gte=F("agent_cap")),
                name="bandit_agent_cap_alone_from_cap",
                violation_error_message="The cap of an agent alone on an arm is at least that of others, or empty.",
            ),
        ),
        drop("bandit_policyversion", "no_update"),
        migrations.RunPython(begin, migrations.RunPython.noop),
        *append_only("bandit", "PolicyVersion"),
    ]
