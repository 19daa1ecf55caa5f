import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('grading', "0044_history"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='JudgeKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('only', models.BooleanField(default=True, editable=False, unique=True)),
                ('sealed', models.TextField()),
                ('base_url', models.CharField(blank=True, max_length=500)),
                ('hint', models.CharField(max_length=4)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('only', True)), name='judge_key_only')],
            },
        ),
        migrations.CreateModel(
            name='JudgeKeyTest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hint', models.CharField(max_length=4)),
                ('model', models.CharField(max_length=120)),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('reason', models.CharField(blank=True, choices=[('', ''), ('not_configured', 'No judge is configured'), ('awaiting_judge', 'Waiting for the judge'), ('quota_exhausted', 'Quota exhausted'), ('budget_spent', "Today's budget is spent"), ('paused', 'An operator paused the judge'), ('rate_limited', 'Rate limited'), ('overloaded', "The judge's service is overloaded"), ('timeout', 'The judge did not answer in time'), ('connection', 'The judge could not be reached'), ('auth', "The judge's key was refused"), ('refused', 'The judge declined to grade this session'), ('unparsable_verdict', "The judge's reply was not a verdict"), ('input_too_large', 'Too much evidence for one request'), ('needs_attention', 'An answer nobody expected; a person must look'), ('declined', 'Handed in as history, without a verdict'), ('no_transcript', 'No transcript was submitted'), ('log_too_small', 'The log is too small for a session this long'), ('log_overwritten', 'The log belongs to another session'), ('log_shared', 'The same log was submitted for another session'), ('stub_no_tool_calls', 'Stub transcript: no tool calls in it'), ('format_unknown', "The transcript's format is unknown"), ('format_blind', 'Nothing in the transcript was recognised'), ('unreadable', 'The evidence could not be read'), ('nothing_observable', 'No effect and no failure to see'), ('carried', 'All of it was carried over from another session'), ('no_journal', 'No journal was submitted'), ('no_signal', 'The journal names no outcome'), ('no_artifacts', 'No ideas, tasks, posts or notes'), ('not_consumption', 'Not a reading session, and nothing was left behind'), ('no_evidence', 'No source could grade this session'), ('excluded', 'A person excluded this session'), ('withdrawn', 'The correction was undone'), ('infrastructure', 'The session died of infrastructure')], default='', max_length=32)),
                ('detail', models.TextField(blank=True)),
                ('input_tokens', models.PositiveIntegerField(blank=True, null=True)),
                ('output_tokens', models.PositiveIntegerField(blank=True, null=True)),
                ('cost_usd', models.FloatField(blank=True, null=True)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['started_at'], name='judge_key_test_recent')],
                'constraints': [models.CheckConstraint(condition=models.Q(('reason__in', ['', 'not_configured', 'awaiting_judge', 'quota_exhausted', 'budget_spent', 'paused', 'rate_limited', 'overloaded', 'timeout', 'connection', 'auth', 'refused', 'unparsable_verdict', 'input_too_large', 'needs_attention', 'declined', 'no_transcript', 'log_too_small', 'log_overwritten', 'log_shared', 'stub_no_tool_calls', 'format_unknown', 'format_blind', 'unreadable', 'nothing_observable', 'carried', 'no_journal', 'no_signal', 'no_artifacts', 'not_consumption', 'no_evidence', 'excluded', 'withdrawn', 'infrastructure'])), name='judge_key_test_reason_known')],
            },
        ),
    ]
