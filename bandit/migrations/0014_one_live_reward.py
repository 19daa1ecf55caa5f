"""In a bandit that chooses one arm, an observation has one live reward."""

from django.db import migrations

from bandit.migrations._append_only import refuse

LEDGER = "bandit_ledgerentry"
CHOOSES = "EXISTS (SELECT 1 FROM bandit_bandit b WHERE b.id = NEW.bandit_id AND b.kind = 'choice')"
REVERSED = (
    f"EXISTS (SELECT 1 FROM {LEDGER} r WHERE r.bandit_id = e.bandit_id AND r.arm_id = e.arm_id "
    "AND r.observation = e.observation AND r.revision = e.revision AND r.op = 'reverse')"
)
LIVE_ELSEWHERE = (
    f"EXISTS (SELECT 1 FROM {LEDGER} e WHERE e.bandit_id = NEW.bandit_id AND e.observation = NEW.observation "
    f"AND e.arm_id <> NEW.arm_id AND e.op = 'apply' AND NOT {REVERSED})"
)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0013_calibration_constraint_names")]

    operations = [
        refuse(
            LEDGER,
            "one_arm",
            "INSERT",
            f"(NEW.op = 'apply' AND {CHOOSES} AND {LIVE_ELSEWHERE})",
            f"{LEDGER}: another arm of this bandit has a live reward of this observation; reverse that first.",
        )
    ]
