"""Sessions that are handed in as history, and why nobody asked the judge about them. SQLite rebuilds the tables, so that
their triggers are made anew.
"""

from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._append_only import append_only

REASONS = {
    "": "",
    "not_configured": "No judge is configured",
    "awaiting_judge": "Waiting for the judge",
    "quota_exhausted": "Quota exhausted",
    "budget_spent": "Today's budget is spent",
    "paused": "An operator paused the judge",
    "rate_limited": "Rate limited",
    "overloaded": "The judge's service is overloaded",
    "timeout": "The judge did not answer in time",
    "connection": "The judge could not be reached",
    "auth": "The judge's key was refused",
    "refused": "The judge declined to grade this session",
    "unparsable_verdict": "The judge's reply was not a verdict",
    "input_too_large": "Too much evidence for one request",
    "needs_attention": "An answer nobody expected; a person must look",
    "declined": "Handed in as history, without a verdict",
    "no_transcript": "No transcript was submitted",
    "log_too_small": "The log is too small for a session this long",
    "log_overwritten": "The log belongs to another session",
    "log_shared": "The same log was submitted for another session",
    "stub_no_tool_calls": "Stub transcript: no tool calls in it",
    "format_unknown": "The transcript's format is unknown",
    "format_blind": "Nothing in the transcript was recognised",
    "unreadable": "The evidence could not be read",
    "nothing_observable": "No effect and no failure to see",
    "carried": "All of it was carried over from another session",
    "no_journal": "No journal was submitted",
    "no_signal": "The journal names no outcome",
    "no_artifacts": "No ideas, tasks, posts or notes",
    "not_consumption": "Not a reading session, and nothing was left behind",
    "no_evidence": "No source could grade this session",
    "excluded": "A person excluded this session",
    "withdrawn": "The correction was undone",
    "infrastructure": "The session died of infrastructure",
}
# Model, column, name of its constraint, default.
COLUMNS = [
    ("evidence", "problem", "evidence_problem_known", ""),
    ("grade", "reason", "grade_reason_known", ""),
    ("judgeattempt", "reason", "judge_attempt_reason_known", ""),
    ("judgejob", "reason", "judge_job_reason_known", "awaiting_judge"),
    ("quota", "reason", "quota_reason_known", ""),
    ("quotatransition", "reason", "quota_transition_reason_known", ""),
]


def column(default: str) -> models.CharField:
    return models.CharField(blank=True, choices=[*REASONS.items()], default=default, max_length=32)


class Migration(migrations.Migration):
    dependencies = [("grading", "0043_imports"), ("bandit", "0002_triggers")]

    operations = [
        *[migrations.RemoveConstraint(model, name) for model, _, name, _ in COLUMNS],
        *[migrations.AlterField(model, field, column(default)) for model, field, _, default in COLUMNS],
        migrations.AlterField("settlement", "reason", column("")),
        *[
            migrations.AddConstraint(
                model, models.CheckConstraint(condition=Q(**{f"{field}__in": [*REASONS]}), name=name)
            )
            for model, field, name, _ in COLUMNS
        ],
        *append_only("grading", "Evidence"),
        *append_only("grading", "Grade"),
        migrations.AddField(
            "session",
            "history",
            models.CharField(
                blank=True, choices=[("none", "none"), ("backlog", "backlog")], default="", max_length=32
            ),
        ),
        migrations.AddConstraint(
            "session",
            models.CheckConstraint(condition=Q(history__in=["", "none", "backlog"]), name="session_history_known"),
        ),
    ]
