"""Copy each session's state into its new columns: one statement and one transaction, a few seconds for 200,000 rows.

PostgreSQL cannot change rows and then the table in one transaction, so the table is changed before and after.
"""

from django.db import migrations

COPY = """
UPDATE grading_session SET
    settlement_id = state.settlement_id,
    reward_value = state.value,
    reward_source = state.source,
    reward_final = state.final,
    reward_weight = state.weight,
    reward_reason = state.reason,
    open_flags = state.flags,
    verdict_id = state.verdict_id,
    verdict_question = state.question
FROM grading_sessionstate AS state
WHERE state.session_id = grading_session.id
"""


class Migration(migrations.Migration):
    dependencies = [("grading", "0063_session_reward_columns")]

    operations = [migrations.RunSQL(COPY, migrations.RunSQL.noop, elidable=True)]
