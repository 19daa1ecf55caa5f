"""Outcomes of sessions, followed repositories, and the commits of sessions that are looked up in them."""

import django.db.models.deletion
import django.utils.timezone
from bandit.migrations._append_only import append_only
from django.conf import settings
from django.db import migrations, models

from grading.migrations._redactable import redactable


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0079_weekly_letters'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='CommitSighting',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sha', models.CharField(max_length=64)),
                ('seen_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='OutcomeRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('result', models.CharField(choices=[('pass', 'passed'), ('fail', 'failed'), ('unknown', 'unknown'), ('number', 'a share from 0 to 1')], max_length=32)),
                ('number', models.FloatField(blank=True, null=True)),
                ('observed_at', models.DateTimeField()),
                ('url', models.CharField(blank=True, max_length=500)),
                ('detail', models.CharField(blank=True, max_length=300)),
                ('source', models.CharField(max_length=60)),
                ('witness', models.CharField(choices=[('claimed', 'the agent’s own word'), ('unknown', 'nobody has said'), ('hook', 'the hook on its machine'), ('observed', 'its runner'), ('verified', 'this site')], max_length=32)),
                ('recorded_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-observed_at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='Repository',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('url', models.CharField(max_length=500, unique=True)),
                ('default_branch', models.CharField(default='main', max_length=200)),
                ('credits_history', models.BooleanField(default=False)),
                ('is_paused', models.BooleanField(default=False)),
                ('sealed_token', models.TextField(blank=True, editable=False)),
                ('sealed_webhook_secret', models.TextField(blank=True, editable=False)),
                ('added_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('first_fetched_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('fetched_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('tips', models.JSONField(default=list, editable=False)),
                ('has_branches', models.BooleanField(default=True, editable=False)),
                ('error', models.CharField(blank=True, editable=False, max_length=600)),
            ],
            options={
                'verbose_name_plural': 'repositories',
                'ordering': ['name', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='SessionCommit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('claim', models.CharField(max_length=64)),
                ('sha', models.CharField(blank=True, max_length=64)),
                ('authorship', models.CharField(choices=[('own', 'made by the session'), ('not_found', 'in no followed repository'), ('outside', 'made before or after the session'), ('shared', 'another agent’s session claims it too'), ('seen_before', 'it was there before the session began'), ('public', 'others could read it before the session was submitted'), ('history', 'it was there when the repository was added')], default='not_found', max_length=32)),
                ('state', models.CharField(choices=[('landed', 'on the default branch'), ('reverted', 'landed and reverted'), ('open', 'not on the default branch'), ('unknown', 'not found')], default='unknown', max_length=32)),
                ('landed_as', models.CharField(blank=True, max_length=64)),
                ('reverted_by', models.CharField(blank=True, max_length=64)),
                ('committer', models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='SessionLanding',
            fields=[
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='landing', serialize=False, to='grading.session')),
                ('state', models.CharField(choices=[('landed', 'landed'), ('partly', 'partly landed'), ('reverted', 'reverted'), ('open', 'not landed'), ('unknown', 'unknown')], default='unknown', max_length=32)),
                ('landed', models.PositiveIntegerField(default=0)),
                ('reverted', models.PositiveIntegerField(default=0)),
                ('open', models.PositiveIntegerField(default=0)),
                ('claimed', models.PositiveIntegerField(default=0)),
                ('checked_at', models.DateTimeField(blank=True, null=True)),
                ('next_check_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='apitoken',
            name='apitoken_scope_known',
        ),
        migrations.RemoveConstraint(
            model_name='submission',
            name='submission_scope_known',
        ),
        migrations.AlterField(
            model_name='apitoken',
            name='scope',
            field=models.CharField(blank=True, choices=[('', 'made before scopes'), ('agent', 'the agent itself'), ('hook', 'a hook on the agent’s machine'), ('runner', 'a runner that the agent cannot read'), ('read', 'reading only'), ('outcomes', 'CI that reports outcomes')], default='', max_length=32),
        ),
        migrations.AlterField(
            model_name='submission',
            name='scope',
            field=models.CharField(blank=True, choices=[('', 'made before scopes'), ('agent', 'the agent itself'), ('hook', 'a hook on the agent’s machine'), ('runner', 'a runner that the agent cannot read'), ('read', 'reading only'), ('outcomes', 'CI that reports outcomes')], default='', max_length=32),
        ),
        migrations.AddConstraint(
            model_name='apitoken',
            constraint=models.CheckConstraint(condition=models.Q(('scope__in', ['', 'agent', 'hook', 'runner', 'read', 'outcomes'])), name='apitoken_scope_known'),
        ),
        migrations.AddConstraint(
            model_name='submission',
            constraint=models.CheckConstraint(condition=models.Q(('scope__in', ['', 'agent', 'hook', 'runner', 'read', 'outcomes'])), name='submission_scope_known'),
        ),
        migrations.AddField(
            model_name='outcomerecord',
            name='session',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='outcomes', to='grading.session'),
        ),
        migrations.AddField(
            model_name='repository',
            name='added_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='repository',
            name='project',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='repository', to='grading.project'),
        ),
        migrations.AddField(
            model_name='commitsighting',
            name='repository',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sightings', to='grading.repository'),
        ),
        migrations.AddField(
            model_name='sessioncommit',
            name='repository',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='session_commits', to='grading.repository'),
        ),
        migrations.AddField(
            model_name='sessioncommit',
            name='session',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='commits', to='grading.session'),
        ),
        migrations.AddIndex(
            model_name='sessionlanding',
            index=models.Index(condition=models.Q(('next_check_at__isnull', False)), fields=['next_check_at'], name='session_landing_due'),
        ),
        migrations.AddIndex(
            model_name='sessionlanding',
            index=models.Index(fields=['state'], name='session_landing_by_state'),
        ),
        migrations.AddConstraint(
            model_name='sessionlanding',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['landed', 'partly', 'reverted', 'open', 'unknown'])), name='session_landing_state_known'),
        ),
        migrations.AddConstraint(
            model_name='outcomerecord',
            constraint=models.UniqueConstraint(fields=('session', 'kind', 'observed_at', 'source'), name='outcome_record_once'),
        ),
        migrations.AddConstraint(
            model_name='outcomerecord',
            constraint=models.CheckConstraint(condition=models.Q(('result__in', ['pass', 'fail', 'unknown', 'number'])), name='outcome_record_result_known'),
        ),
        migrations.AddConstraint(
            model_name='outcomerecord',
            constraint=models.CheckConstraint(condition=models.Q(('witness__in', ['claimed', 'unknown', 'hook', 'observed', 'verified'])), name='outcome_record_witness_known'),
        ),
        migrations.AddConstraint(
            model_name='outcomerecord',
            constraint=models.CheckConstraint(condition=models.Q(('number', None), models.Q(('number__gte', 0), ('number__lte', 1)), _connector='OR'), name='outcome_record_number_range'),
        ),
        migrations.AddConstraint(
            model_name='outcomerecord',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('number__isnull', False), ('result', 'number')), models.Q(models.Q(('result', 'number'), _negated=True), ('number', None)), _connector='OR'), name='outcome_record_number_or_result'),
        ),
        migrations.AddConstraint(
            model_name='outcomerecord',
            constraint=models.CheckConstraint(condition=models.Q(('kind', ''), _negated=True), name='outcome_record_has_kind'),
        ),
        migrations.AddConstraint(
            model_name='repository',
            constraint=models.CheckConstraint(condition=models.Q(('url', ''), _negated=True), name='repository_has_url'),
        ),
        migrations.AddConstraint(
            model_name='commitsighting',
            constraint=models.UniqueConstraint(fields=('repository', 'sha'), name='commit_sighting_once'),
        ),
        migrations.AddConstraint(
            model_name='sessioncommit',
            constraint=models.UniqueConstraint(fields=('session', 'claim'), name='session_commit_once'),
        ),
        migrations.AddConstraint(
            model_name='sessioncommit',
            constraint=models.CheckConstraint(condition=models.Q(('authorship__in', ['own', 'not_found', 'outside', 'shared', 'seen_before', 'public', 'history'])), name='session_commit_authorship_known'),
        ),
        migrations.AddConstraint(
            model_name='sessioncommit',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['landed', 'reverted', 'open', 'unknown'])), name='session_commit_state_known'),
        ),
        migrations.RemoveConstraint(
            model_name='reviewitem',
            name='review_item_entered_as_known',
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='entered_as',
            field=models.CharField(choices=[('rule', 'raised by a rule'), ('slice', 'random slice'), ('person', 'put here by a person'), ('evidence', "new evidence after a person's grade"), ('outcome', 'what became of the work contradicts the verdict')], max_length=32),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('entered_as__in', ['rule', 'slice', 'person', 'evidence', 'outcome'])), name='review_item_entered_as_known'),
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('delivery', models.CharField(max_length=100)),
                ('received_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('repository', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='grading.repository')),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
                'constraints': [models.UniqueConstraint(fields=('repository', 'delivery'), name='webhook_delivery_once')],
            },
        ),
        *append_only('grading', 'OutcomeRecord'),
        redactable('OutcomeRecord', 'url', 'detail'),
        # Its table was built anew.
        *append_only('grading', 'Submission'),
        redactable('Submission', 'before', 'after'),
    ]
