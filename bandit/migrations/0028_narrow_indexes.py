"""Narrower indexes: an arm is of one bandit, so that a ledger row is told apart without naming that.

PostgreSQL makes one index anew; SQLite the ledger's table: about a minute for a million sessions.
"""

import django.db.models.deletion
from django.db import migrations, models

from bandit.migrations._constraints import ReplaceConstraint
from bandit.migrations._packing import without_index


class Migration(migrations.Migration):
    dependencies = [("bandit", "0027_policy_texts")]

    operations = [
        ReplaceConstraint(
            "ledgerentry",
            models.UniqueConstraint(fields=["observation", "op", "arm", "revision"], name="bandit_ledger_once"),
        ),
        # Another index begins with the same column; and PostgreSQL had a second one, for prefixes.
        *without_index(
            "bandit",
            "assignment",
            bandit=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="assignments",
                to="bandit.bandit",
            ),
            observation=models.CharField(blank=True, default="", max_length=200),
        ),
        migrations.AddIndex("assignment", models.Index(fields=["observation"], name="bandit_assignment_of")),
    ]
