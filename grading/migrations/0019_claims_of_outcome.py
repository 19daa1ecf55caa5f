"""Outcomes that callers had claimed until now: they stay in force until the session is graded again."""

from django.db import migrations


def copy_claims(apps, schema_editor):
    sessions = apps.get_model("grading", "Session").objects.exclude(outcome="completed")
    for session in sessions.exclude(outcome_reason__startswith="No model turn: ").iterator():
        session.outcome_claimed, session.claim_reason = session.outcome, session.outcome_reason
        session.save(update_fields=["outcome_claimed", "claim_reason"])


class Migration(migrations.Migration):
    dependencies = [("grading", "0018_outcome_claimed")]

    operations = [migrations.RunPython(copy_claims, migrations.RunPython.noop, elidable=True)]
