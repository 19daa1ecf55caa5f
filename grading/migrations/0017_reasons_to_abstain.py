"""Two more reasons to abstain. SQLite rebuilds the tables, so that their triggers are made anew."""

from django.conf import settings
from django.db import migrations, models

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0016_lessons_and_models'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='evidence',
            name='evidence_problem_known',
        ),
        migrations.RemoveConstraint(
            model_name='grade',
            name='grade_reason_known',
        ),
        migrations.RemoveConstraint(
            model_name='judgeattempt',
            name='judge_attempt_reason_known',
        ),
        migrations.RemoveConstraint(
            model_name='judgejob',
            name='judge_job_reason_known',
        ),
        migrations.RemoveConstraint(
            model_name='quota',
            name='quota_reason_known',
        ),
        migrations.RemoveConstraint(
            model_name='quotatransition',
            name='quota_transition_reason_known',
        ),
        migrations.AlterField(
            model_name='evidence',
            name='problem',
            field=models.CharField(blank=True, choices=[('', ''), ('not_configured', 'No judge is configured'), ('awaiting_judge', 'Waiting for the judge'), ('quota_exhausted', 'Quota exhausted'), ('budget_spent', "Today's budget is spent"), ('paused', 'An operator paused the judge'), ('rate_limited', 'Rate limited'), ('overloaded', "The judge's service is overloaded"), ('timeout', 'The judge did not answer in time'), ('connection', 'The judge could not be reached'), ('auth', "The judge's key was refused"), ('refused', 'The judge declined to grade this session'), ('unparsable_verdict', "The judge's reply was not a verdict"), ('input_too_large', 'Too much evidence for one request'), ('needs_attention', 'An answer nobody expected; a person must look'), ('no_transcript', 'No transcript was submitted'), ('log_too_small', 'The log is too small for a session this long'), ('log_overwritten', 'The log belongs to another session'), ('log_shared', 'The same log was submitted for another session'), ('stub_no_tool_calls', 'Stub transcript: no tool calls in it'), ('format_unknown', "The transcript's format is unknown"), ('format_blind', 'Nothing in the transcript was recognised'), ('unreadable', 'The evidence could not be read'), ('nothing_observable', 'No effect and no failure to see'), ('carried', 'All of it was carried over from another session'), ('no_journal', 'No journal was submitted'), ('no_signal', 'The journal names no outcome'), ('no_artifacts', 'No ideas, tasks, posts or notes'), ('not_consumption', 'Not a reading session, and nothing was left behind'), ('no_evidence', 'No source could grade this session'), ('excluded', 'A person excluded this session'), ('withdrawn', 'The correction was undone'), ('infrastructure', 'The session died of infrastructure')], default='', max_length=32),
        ),
        migrations.AlterField(
            model_name='grade',
            name='reason',
            field=models.CharField(blank=True, choices=[('', ''), ('not_configured', 'No judge is configured'), ('awaiting_judge', 'Waiting for the judge'), ('quota_exhausted', 'Quota exhausted'), ('budget_spent', "Today's budget is spent"), ('paused', 'An operator paused the judge'), ('rate_limited', 'Rate limited'), ('overloaded', "The judge's service is overloaded"), ('timeout', 'The judge did not answer in time'), ('connection', 'The judge could not be reached'), ('auth', "The judge's key was refused"), ('refused', 'The judge declined to grade this session'), ('unparsable_verdict', "The judge's reply was not a verdict"), ('input_too_large', 'Too much evidence for one request'), ('needs_attention', 'An answer nobody expected; a person must look'), ('no_transcript', 'No transcript was submitted'), ('log_too_small', 'The log is too small for a session this long'), ('log_overwritten', 'The log belongs to another session'), ('log_shared', 'The same log was submitted for another session'), ('stub_no_tool_calls', 'Stub transcript: no tool calls in it'), ('format_unknown', "The transcript's format is unknown"), ('format_blind', 'Nothing in the transcript was recognised'), ('unreadable', 'The evidence could not be read'), ('nothing_observable', 'No effect and no failure to see'), ('carried', 'All of it was carried over from another session'), ('no_journal', 'No journal was submitted'), ('no_signal', 'The journal names no outcome'), ('no_artifacts', 'No ideas, tasks, posts or notes'), ('not_consumption', 'Not a reading session, and nothing was left behind'), ('no_evidence', 'No source could grade this session'), ('excluded', 'A person excluded this session'), ('withdrawn', 'The correction was undone'), ('infrastructure', 'The session died of infrastructure')], default='', max_length=32),
        ),
        migrations.AlterField(
            model_name='judgeattempt',
            name='reason',
            field=models.CharField(blank=True, choices=[('', ''), ('not_configured', 'No judge is configured'), ('awaiting_judge', 'Waiting for the judge'), ('quota_exhausted', 'Quota exhausted'), ('budget_spent', "Today's budget is spent"), ('paused', 'An operator paused the judge'), ('rate_limited', 'Rate limited'), ('overloaded', "The judge's service is overloaded"), ('timeout', 'The judge did not answer in time'), ('connection', 'The judge could not be reached'), ('auth', "The judge's key was refused"), ('refused', 'The judge declined to grade this session'), ('unparsable_verdict', "The judge's reply was not a verdict"), ('input_too_large', 'Too much evidence for one request'), ('needs_attention', 'An answer nobody expected; a person must look'), ('no_transcript', 'No transcript was submitted'), ('log_too_small', 'The log is too small for a session this long'), ('log_overwritten', 'The log belongs to another session'), ('log_shared', 'The same log was submitted for another session'), ('stub_no_tool_calls', 'Stub transcript: no tool calls in it'), ('format_unknown', "The transcript's format is unknown"), ('format_blind', 'Nothing in the transcript was recognised'), ('unreadable', 'The evidence could not be read'), ('nothing_observable', 'No effect and no failure to see'), ('carried', 'All of it was carried over from another session'), ('no_journal', 'No journal was submitted'), ('no_signal', 'The journal names no outcome'), ('no_artifacts', 'No ideas, tasks, posts or notes'), ('not_consumption', 'Not a reading session, and nothing was left behind'), ('no_evidence', 'No source could grade this session'), ('excluded', 'A person excluded this session'), ('withdrawn', 'The correction was undone'), ('infrastructure', 'The session died of infrastructure')], default='', max_length=32),
        ),
        migrations.AlterField(
            model_name='judgejob',
            name='reason',
            field=models.CharField(blank=True, choices=[('', ''), ('not_configured', 'No judge is configured'), ('awaiting_judge', 'Waiting for the judge'), ('quota_exhausted', 'Quota exhausted'), ('budget_spent', "Today's budget is spent"), ('paused', 'An operator paused the judge'), ('rate_limited', 'Rate limited'), ('overloaded', "The judge's service is overloaded"), ('timeout', 'The judge did not answer in time'), ('connection', 'The judge could not be reached'), ('auth', "The judge's key was refused"), ('refused', 'The judge declined to grade this session'), ('unparsable_verdict', "The judge's reply was not a verdict"), ('input_too_large', 'Too much evidence for one request'), ('needs_attention', 'An answer nobody expected; a person must look'), ('no_transcript', 'No transcript was submitted'), ('log_too_small', 'The log is too small for a session this long'), ('log_overwritten', 'The log belongs to another session'), ('log_shared', 'The same log was submitted for another session'), ('stub_no_tool_calls', 'Stub transcript: no tool calls in it'), ('format_unknown', "The transcript's format is unknown"), ('format_blind', 'Nothing in the transcript was recognised'), ('unreadable', 'The evidence could not be read'), ('nothing_observable', 'No effect and no failure to see'), ('carried', 'All of it was carried over from another session'), ('no_journal', 'No journal was submitted'), ('no_signal', 'The journal names no outcome'), ('no_artifacts', 'No ideas, tasks, posts or notes'), ('not_consumption', 'Not a reading session, and nothing was left behind'), ('no_evidence', 'No source could grade this session'), ('excluded', 'A person excluded this session'), ('withdrawn', 'The correction was undone'), ('infrastructure', 'The session died of infrastructure')], default='awaiting_judge', max_length=32),
        ),
        migrations.AlterField(
            model_name='quota',
            name='reason',
            field=models.CharField(blank=True, choices=[('', ''), ('not_configured', 'No judge is configured'), ('awaiting_judge', 'Waiting for the judge'), ('quota_exhausted', 'Quota exhausted'), ('budget_spent', "Today's budget is spent"), ('paused', 'An operator paused the judge'), ('rate_limited', 'Rate limited'), ('overloaded', "The judge's service is overloaded"), ('timeout', 'The judge did not answer in time'), ('connection', 'The judge could not be reached'), ('auth', "The judge's key was refused"), ('refused', 'The judge declined to grade this session'), ('unparsable_verdict', "The judge's reply was not a verdict"), ('input_too_large', 'Too much evidence for one request'), ('needs_attention', 'An answer nobody expected; a person must look'), ('no_transcript', 'No transcript was submitted'), ('log_too_small', 'The log is too small for a session this long'), ('log_overwritten', 'The log belongs to another session'), ('log_shared', 'The same log was submitted for another session'), ('stub_no_tool_calls', 'Stub transcript: no tool calls in it'), ('format_unknown', "The transcript's format is unknown"), ('format_blind', 'Nothing in the transcript was recognised'), ('unreadable', 'The evidence could not be read'), ('nothing_observable', 'No effect and no failure to see'), ('carried', 'All of it was carried over from another session'), ('no_journal', 'No journal was submitted'), ('no_signal', 'The journal names no outcome'), ('no_artifacts', 'No ideas, tasks, posts or notes'), ('not_consumption', 'Not a reading session, and nothing was left behind'), ('no_evidence', 'No source could grade this session'), ('excluded', 'A person excluded this session'), ('withdrawn', 'The correction was undone'), ('infrastructure', 'The session died of infrastructure')], default='', max_length=32),
        ),
        migrations.AlterField(
            model_name='quotatransition',
            name='reason',
            field=models.CharField(blank=True, choices=[('', ''), ('not_configured', 'No judge is configured'), ('awaiting_judge', 'Waiting for the judge'), ('quota_exhausted', 'Quota exhausted'), ('budget_spent', "Today's budget is spent"), ('paused', 'An operator paused the judge'), ('rate_limited', 'Rate limited'), ('overloaded', "The judge's service is overloaded"), ('timeout', 'The judge did not answer in time'), ('connection', 'The judge could not be reached'), ('auth', "The judge's key was refused"), ('refused', 'The judge declined to grade this session'), ('unparsable_verdict', "The judge's reply was not a verdict"), ('input_too_large', 'Too much evidence for one request'), ('needs_attention', 'An answer nobody expected; a person must look'), ('no_transcript', 'No transcript was submitted'), ('log_too_small', 'The log is too small for a session this long'), ('log_overwritten', 'The log belongs to another session'), ('log_shared', 'The same log was submitted for another session'), ('stub_no_tool_calls', 'Stub transcript: no tool calls in it'), ('format_unknown', "The transcript's format is unknown"), ('format_blind', 'Nothing in the transcript was recognised'), ('unreadable', 'The evidence could not be read'), ('nothing_observable', 'No effect and no failure to see'), ('carried', 'All of it was carried over from another session'), ('no_journal', 'No journal was submitted'), ('no_signal', 'The journal names no outcome'), ('no_artifacts', 'No ideas, tasks, posts or notes'), ('not_consumption', 'Not a reading session, and nothing was left behind'), ('no_evidence', 'No source could grade this session'), ('excluded', 'A person excluded this session'), ('withdrawn', 'The correction was undone'), ('infrastructure', 'The session died of infrastructure')], default='', max_length=32),
        ),
        migrations.AlterField(
            model_name='settlement',
            name='reason',
            field=models.CharField(blank=True, choices=[('', ''), ('not_configured', 'No judge is configured'), ('awaiting_judge', 'Waiting for the judge'), ('quota_exhausted', 'Quota exhausted'), ('budget_spent', "Today's budget is spent"), ('paused', 'An operator paused the judge'), ('rate_limited', 'Rate limited'), ('overloaded', "The judge's service is overloaded"), ('timeout', 'The judge did not answer in time'), ('connection', 'The judge could not be reached'), ('auth', "The judge's key was refused"), ('refused', 'The judge declined to grade this session'), ('unparsable_verdict', "The judge's reply was not a verdict"), ('input_too_large', 'Too much evidence for one request'), ('needs_attention', 'An answer nobody expected; a person must look'), ('no_transcript', 'No transcript was submitted'), ('log_too_small', 'The log is too small for a session this long'), ('log_overwritten', 'The log belongs to another session'), ('log_shared', 'The same log was submitted for another session'), ('stub_no_tool_calls', 'Stub transcript: no tool calls in it'), ('format_unknown', "The transcript's format is unknown"), ('format_blind', 'Nothing in the transcript was recognised'), ('unreadable', 'The evidence could not be read'), ('nothing_observable', 'No effect and no failure to see'), ('carried', 'All of it was carried over from another session'), ('no_journal', 'No journal was submitted'), ('no_signal', 'The journal names no outcome'), ('no_artifacts', 'No ideas, tasks, posts or notes'), ('not_consumption', 'Not a reading session, and nothing was left behind'), ('no_evidence', 'No source could grade this session'), ('excluded', 'A person excluded this session'), ('withdrawn', 'The correction was undone'), ('infrastructure', 'The session died of infrastructure')], default='', max_length=32),
        ),
        migrations.AddConstraint(
            model_name='evidence',
            constraint=models.CheckConstraint(condition=models.Q(('problem__in', ['', 'not_configured', 'awaiting_judge', 'quota_exhausted', 'budget_spent', 'paused', 'rate_limited', 'overloaded', 'timeout', 'connection', 'auth', 'refused', 'unparsable_verdict', 'input_too_large', 'needs_attention', 'no_transcript', 'log_too_small', 'log_overwritten', 'log_shared', 'stub_no_tool_calls', 'format_unknown', 'format_blind', 'unreadable', 'nothing_observable', 'carried', 'no_journal', 'no_signal', 'no_artifacts', 'not_consumption', 'no_evidence', 'excluded', 'withdrawn', 'infrastructure'])), name='evidence_problem_known'),
        ),
        migrations.AddConstraint(
            model_name='grade',
            constraint=models.CheckConstraint(condition=models.Q(('reason__in', ['', 'not_configured', 'awaiting_judge', 'quota_exhausted', 'budget_spent', 'paused', 'rate_limited', 'overloaded', 'timeout', 'connection', 'auth', 'refused', 'unparsable_verdict', 'input_too_large', 'needs_attention', 'no_transcript', 'log_too_small', 'log_overwritten', 'log_shared', 'stub_no_tool_calls', 'format_unknown', 'format_blind', 'unreadable', 'nothing_observable', 'carried', 'no_journal', 'no_signal', 'no_artifacts', 'not_consumption', 'no_evidence', 'excluded', 'withdrawn', 'infrastructure'])), name='grade_reason_known'),
        ),
        migrations.AddConstraint(
            model_name='judgeattempt',
            constraint=models.CheckConstraint(condition=models.Q(('reason__in', ['', 'not_configured', 'awaiting_judge', 'quota_exhausted', 'budget_spent', 'paused', 'rate_limited', 'overloaded', 'timeout', 'connection', 'auth', 'refused', 'unparsable_verdict', 'input_too_large', 'needs_attention', 'no_transcript', 'log_too_small', 'log_overwritten', 'log_shared', 'stub_no_tool_calls', 'format_unknown', 'format_blind', 'unreadable', 'nothing_observable', 'carried', 'no_journal', 'no_signal', 'no_artifacts', 'not_consumption', 'no_evidence', 'excluded', 'withdrawn', 'infrastructure'])), name='judge_attempt_reason_known'),
        ),
        migrations.AddConstraint(
            model_name='judgejob',
            constraint=models.CheckConstraint(condition=models.Q(('reason__in', ['', 'not_configured', 'awaiting_judge', 'quota_exhausted', 'budget_spent', 'paused', 'rate_limited', 'overloaded', 'timeout', 'connection', 'auth', 'refused', 'unparsable_verdict', 'input_too_large', 'needs_attention', 'no_transcript', 'log_too_small', 'log_overwritten', 'log_shared', 'stub_no_tool_calls', 'format_unknown', 'format_blind', 'unreadable', 'nothing_observable', 'carried', 'no_journal', 'no_signal', 'no_artifacts', 'not_consumption', 'no_evidence', 'excluded', 'withdrawn', 'infrastructure'])), name='judge_job_reason_known'),
        ),
        migrations.AddConstraint(
            model_name='quota',
            constraint=models.CheckConstraint(condition=models.Q(('reason__in', ['', 'not_configured', 'awaiting_judge', 'quota_exhausted', 'budget_spent', 'paused', 'rate_limited', 'overloaded', 'timeout', 'connection', 'auth', 'refused', 'unparsable_verdict', 'input_too_large', 'needs_attention', 'no_transcript', 'log_too_small', 'log_overwritten', 'log_shared', 'stub_no_tool_calls', 'format_unknown', 'format_blind', 'unreadable', 'nothing_observable', 'carried', 'no_journal', 'no_signal', 'no_artifacts', 'not_consumption', 'no_evidence', 'excluded', 'withdrawn', 'infrastructure'])), name='quota_reason_known'),
        ),
        migrations.AddConstraint(
            model_name='quotatransition',
            constraint=models.CheckConstraint(condition=models.Q(('reason__in', ['', 'not_configured', 'awaiting_judge', 'quota_exhausted', 'budget_spent', 'paused', 'rate_limited', 'overloaded', 'timeout', 'connection', 'auth', 'refused', 'unparsable_verdict', 'input_too_large', 'needs_attention', 'no_transcript', 'log_too_small', 'log_overwritten', 'log_shared', 'stub_no_tool_calls', 'format_unknown', 'format_blind', 'unreadable', 'nothing_observable', 'carried', 'no_journal', 'no_signal', 'no_artifacts', 'not_consumption', 'no_evidence', 'excluded', 'withdrawn', 'infrastructure'])), name='quota_transition_reason_known'),
        ),
        *append_only("grading", "Evidence"),
        *append_only("grading", "Grade"),
        *append_only("grading", "Settlement"),
    ]
