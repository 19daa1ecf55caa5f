"""What sessions used of models and what it cost, typed prices, and who owns a message that is in several logs.

Sessions from before are read for tokens when they are graded again.
"""

import django.db.models.deletion
import django.utils.timezone
from bandit.migrations._append_only import append_only
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('bandit', '0030_remove_unused_columns'),
        ('grading', '0075_facts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='MessageClaim',
            fields=[
                ('pk', models.CompositePrimaryKey('message', 'session_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('message', models.BigIntegerField()),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='message_claims', to='grading.session')),
            ],
        ),
        migrations.CreateModel(
            name='ModelPrice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(max_length=120)),
                ('valid_from', models.DateField()),
                ('input_price', models.PositiveIntegerField()),
                ('cached_price', models.PositiveIntegerField()),
                ('cache_write_price', models.PositiveIntegerField()),
                ('output_price', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['model', '-valid_from'],
            },
        ),
        migrations.CreateModel(
            name='SessionUsage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(blank=True, max_length=120)),
                ('day', models.DateField()),
                ('basis', models.CharField(choices=[('tokens', 'its tokens, at the model’s prices'), ('reported', 'reported by the caller or its log')], default='tokens', max_length=32)),
                ('input_tokens', models.BigIntegerField(null=True)),
                ('cached_tokens', models.BigIntegerField(null=True)),
                ('cache_write_tokens', models.BigIntegerField(null=True)),
                ('output_tokens', models.BigIntegerField(null=True)),
                ('list_cost_micro', models.BigIntegerField(null=True)),
                ('cost_micro', models.BigIntegerField(null=True)),
            ],
            options={
                'verbose_name_plural': 'session usage',
                'ordering': ['day', 'model'],
            },
        ),
        migrations.RemoveConstraint(
            model_name='auditevent',
            name='auditevent_kind_known',
        ),
        migrations.AddField(
            model_name='agent',
            name='has_subscription',
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.AddField(
            model_name='session',
            name='cost_micro',
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='session',
            name='cost_unknown',
            field=models.CharField(blank=True, choices=[('not_read', 'its log was not read for tokens yet'), ('no_log', 'it has no readable log, and nobody reported a cost'), ('no_tokens', 'its log records no tokens, or impossible ones'), ('no_price', 'no price is known for a model that it used'), ('elsewhere', 'counted in another session')], default='not_read', editable=False, max_length=32),
        ),
        migrations.AddField(
            model_name='session',
            name='tokens',
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AlterField(
            model_name='auditevent',
            name='kind',
            field=models.CharField(choices=[('sign-in', 'sign-in'), ('token', 'token'), ('person', 'person'), ('download', 'download'), ('raw', 'raw'), ('category', 'category'), ('project', 'project'), ('price', 'price')], max_length=32),
        ),
        migrations.AddConstraint(
            model_name='auditevent',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['sign-in', 'token', 'person', 'download', 'raw', 'category', 'project', 'price'])), name='auditevent_kind_known'),
        ),
        migrations.AddConstraint(
            model_name='session',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('cost_micro__isnull', False), ('cost_unknown', '')), models.Q(('cost_micro', None), ('cost_unknown__in', ['not_read', 'no_log', 'no_tokens', 'no_price', 'elsewhere'])), _connector='OR'), name='session_cost_or_reason'),
        ),
        migrations.AddField(
            model_name='modelprice',
            name='created_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='sessionusage',
            name='session',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='usage', to='grading.session'),
        ),
        migrations.AddConstraint(
            model_name='modelprice',
            constraint=models.UniqueConstraint(fields=('model', 'valid_from'), name='model_price_once_a_day'),
        ),
        migrations.AddConstraint(
            model_name='modelprice',
            constraint=models.CheckConstraint(condition=models.Q(('model', ''), _negated=True), name='model_price_has_model'),
        ),
        migrations.AddConstraint(
            model_name='modelprice',
            constraint=models.CheckConstraint(condition=models.Q(('cache_write_price__lte', 10000000), ('cached_price__lte', 10000000), ('input_price__lte', 10000000), ('output_price__lte', 10000000)), name='model_price_in_range'),
        ),
        migrations.AddIndex(
            model_name='sessionusage',
            index=models.Index(fields=['day'], name='usage_by_day'),
        ),
        migrations.AddIndex(
            model_name='sessionusage',
            index=models.Index(fields=['model', 'day'], name='usage_by_model'),
        ),
        migrations.AddConstraint(
            model_name='sessionusage',
            constraint=models.UniqueConstraint(fields=('session', 'day', 'model', 'basis'), name='usage_once'),
        ),
        migrations.AddConstraint(
            model_name='sessionusage',
            constraint=models.CheckConstraint(condition=models.Q(('basis__in', ['tokens', 'reported'])), name='sessionusage_basis_known'),
        ),
        migrations.AddConstraint(
            model_name='sessionusage',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('cache_write_tokens', None), ('cached_tokens', None), ('input_tokens', None), ('output_tokens', None)), models.Q(('cache_write_tokens__range', (0, 100000000000)), ('cached_tokens__range', (0, 100000000000)), ('input_tokens__range', (0, 100000000000)), ('output_tokens__range', (0, 100000000000))), _connector='OR'), name='usage_tokens_in_range'),
        ),
        migrations.AddConstraint(
            model_name='sessionusage',
            constraint=models.CheckConstraint(condition=models.Q(('cost_micro', None), ('cost_micro__gte', 0), _connector='OR'), name='usage_cost_not_negative'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(fields=['cost_unknown', '-ended_at'], name='session_by_cost_reason'),
        ),
        *append_only('grading', 'AuditEvent'),
    ]
