"""What a session ran with and what happened in it, its project and its task. Older sessions have none of it."""

import django.db.models.deletion
from django.db import migrations, models

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):

    dependencies = [("grading", "0074_remove_channel_mail_servers")]

    operations = [
        migrations.CreateModel(
            name='InstructionKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('secret', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Project',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=300, unique=True)),
                ('name', models.CharField(db_index=True, max_length=200)),
            ],
            options={
                'ordering': ['name', 'key'],
            },
        ),
        migrations.CreateModel(
            name='SessionFacts',
            fields=[
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='facts', serialize=False, to='grading.session')),
                ('version', models.CharField(blank=True, max_length=40)),
                ('stated', models.JSONField(blank=True, default=dict)),
                ('sources', models.JSONField(blank=True, default=dict)),
                ('harness_version', models.CharField(blank=True, max_length=60)),
                ('model_calls', models.JSONField(blank=True, default=dict)),
                ('reasoning_effort', models.CharField(blank=True, max_length=40)),
                ('permission_mode', models.CharField(blank=True, max_length=40)),
                ('mcp_servers', models.JSONField(blank=True, null=True)),
                ('skills', models.JSONField(blank=True, null=True)),
                ('subagents', models.JSONField(blank=True, null=True)),
                ('instruction_files', models.JSONField(blank=True, null=True)),
                ('minutes', models.FloatField(blank=True, null=True)),
                ('active_minutes', models.FloatField(blank=True, null=True)),
                ('user_turns', models.PositiveIntegerField(blank=True, null=True)),
                ('interruptions', models.PositiveIntegerField(blank=True, null=True)),
                ('refusals', models.PositiveIntegerField(blank=True, null=True)),
                ('tool_calls', models.PositiveIntegerField(blank=True, null=True)),
                ('known_calls', models.PositiveIntegerField(blank=True, null=True)),
                ('failed_calls', models.PositiveIntegerField(blank=True, null=True)),
                ('failed_share', models.FloatField(blank=True, null=True)),
                ('reads_before_edit', models.PositiveIntegerField(blank=True, null=True)),
                ('unread_edits', models.PositiveIntegerField(blank=True, null=True)),
                ('test_runs', models.PositiveIntegerField(blank=True, null=True)),
                ('suites', models.JSONField(blank=True, null=True)),
                ('retries', models.PositiveIntegerField(blank=True, null=True)),
                ('compactions', models.PositiveIntegerField(blank=True, null=True)),
                ('claimed_without_green', models.BooleanField(blank=True, null=True)),
            ],
            options={
                'verbose_name_plural': 'session facts',
            },
        ),
        migrations.RemoveConstraint(
            model_name='auditevent',
            name='auditevent_kind_known',
        ),
        migrations.RemoveConstraint(
            model_name='proposal',
            name='proposal_field_known',
        ),
        migrations.AddField(
            model_name='session',
            name='task',
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AlterField(
            model_name='auditevent',
            name='kind',
            field=models.CharField(choices=[('sign-in', 'sign-in'), ('token', 'token'), ('person', 'person'), ('download', 'download'), ('raw', 'raw'), ('category', 'category'), ('project', 'project')], max_length=32),
        ),
        migrations.AlterField(
            model_name='proposal',
            name='field',
            field=models.CharField(choices=[('outcome', 'outcome'), ('category', 'category'), ('title', 'title'), ('dates', 'dates'), ('engine', 'harness or model'), ('run', 'exit code or cost'), ('project', 'project or task'), ('selection', 'decision'), ('lessons', 'lessons'), ('facts', 'facts')], max_length=32),
        ),
        migrations.AddConstraint(
            model_name='auditevent',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['sign-in', 'token', 'person', 'download', 'raw', 'category', 'project'])), name='auditevent_kind_known'),
        ),
        migrations.AddConstraint(
            model_name='proposal',
            constraint=models.CheckConstraint(condition=models.Q(('field__in', ['outcome', 'category', 'title', 'dates', 'engine', 'run', 'project', 'selection', 'lessons', 'facts'])), name='proposal_field_known'),
        ),
        migrations.AddConstraint(
            model_name='instructionkey',
            constraint=models.CheckConstraint(condition=models.Q(('pk', 1)), name='instruction_key_once'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('key', ''), _negated=True), name='project_has_key'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='project_has_name'),
        ),
        migrations.AddField(
            model_name='session',
            name='project',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='sessions', to='grading.project'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('project__isnull', False)), fields=['project', '-ended_at'], name='session_by_project'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('task', ''), _negated=True), fields=['task', '-ended_at'], name='session_by_task'),
        ),
        migrations.AddIndex(
            model_name='sessionfacts',
            index=models.Index(condition=models.Q(('harness_version', ''), _negated=True), fields=['harness_version'], name='facts_by_version'),
        ),
        migrations.AddConstraint(
            model_name='sessionfacts',
            constraint=models.CheckConstraint(condition=models.Q(('failed_share', None), models.Q(('failed_share__gte', 0), ('failed_share__lte', 1)), _connector='OR'), name='facts_failed_share_range'),
        ),
        migrations.AddConstraint(
            model_name='sessionfacts',
            constraint=models.CheckConstraint(condition=models.Q(('minutes', None), ('minutes__gte', 0), _connector='OR'), name='facts_minutes_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='sessionfacts',
            constraint=models.CheckConstraint(condition=models.Q(('active_minutes', None), ('active_minutes__gte', 0), _connector='OR'), name='facts_active_not_negative'),
        ),
        *append_only('grading', 'AuditEvent'),
    ]
