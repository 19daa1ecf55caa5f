"""The ledger's rules, in the database: append-only, and each revision undone exactly before the next."""

from django.db import migrations

from bandit.migrations._append_only import append_only, refuse

LEDGER = "bandit_ledgerentry"


def entry(condition):
    """SQL: there is a row of NEW's bandit, arm and observation for which `condition` holds."""
    return (
        f"EXISTS (SELECT 1 FROM {LEDGER} e WHERE e.bandit_id = NEW.bandit_id AND e.arm_id = NEW.arm_id "
        f"AND e.observation = NEW.observation AND {condition})"
    )


UNDONE_BEFORE = entry("e.op = 'reverse' AND e.revision = NEW.revision - 1")
SAME_APPLY = entry(
    "e.op = 'apply' AND e.revision = NEW.revision AND e.value_micro = NEW.value_micro "
    "AND e.effective_day = NEW.effective_day AND e.grader_id = NEW.grader_id"
)
OWN_ARM = "EXISTS (SELECT 1 FROM bandit_arm a WHERE a.id = NEW.arm_id AND a.bandit_id = NEW.bandit_id)"


class Migration(migrations.Migration):
    dependencies = [("bandit", "0001_initial")]

    operations = [
        *append_only("bandit", "LedgerEntry"),
        refuse(
            LEDGER,
            "own_arm",
            "INSERT",
            f"NOT {OWN_ARM}",
            f"{LEDGER}: the arm belongs to another bandit.",
        ),
        refuse(
            LEDGER,
            "one_live",
            "INSERT",
            f"(NEW.op = 'apply' AND NEW.revision > 1 AND NOT {UNDONE_BEFORE})",
            f"{LEDGER}: reverse the revision before this one first; revisions have no gaps.",
        ),
        refuse(
            LEDGER,
            "exact_reverse",
            "INSERT",
            f"(NEW.op = 'reverse' AND NOT {SAME_APPLY})",
            f"{LEDGER}: a reverse repeats the value, day and grader of an apply of the same revision.",
        ),
        refuse(
            "bandit_erasure",
            "closed_stays",
            "UPDATE",
            "OLD.closed_at IS NOT NULL",
            "bandit_erasure: the record of an erasure never changes once it is closed.",
        ),
        refuse(
            "bandit_erasure",
            "no_delete",
            "DELETE",
            "1 = 1",
            "bandit_erasure: the record of an erasure is never deleted.",
        ),
    ]
