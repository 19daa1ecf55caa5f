"""Categories that look (triage, monitoring, review): finding nothing to do is a right outcome there."""

from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._append_only import drop, refuse

LEDGER = "bandit_ledgerentry"
OWN_ARM = "EXISTS (SELECT 1 FROM bandit_arm a WHERE a.id = NEW.arm_id AND a.bandit_id = NEW.bandit_id)"


class Migration(migrations.Migration):
    dependencies = [("bandit", "0007_policies_are_rows")]

    operations = [
        # SQLite rebuilds the arms' table, which this trigger of the ledger's reads.
        drop(LEDGER, "own_arm"),
        migrations.AddField(
            model_name="arm",
            name="is_looking",
            field=models.BooleanField(
                default=False,
                help_text="Its sessions look (triage, monitoring, review), and may rightly find nothing to do.",
            ),
        ),
        migrations.AddConstraint(
            model_name="arm",
            constraint=models.CheckConstraint(
                condition=~Q(is_looking=True, is_consumption=True), name="bandit_arm_looks_or_reads"
            ),
        ),
        refuse(LEDGER, "own_arm", "INSERT", f"NOT {OWN_ARM}", f"{LEDGER}: the arm belongs to another bandit."),
    ]
