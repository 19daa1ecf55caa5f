"""Who says of which category a session is, the rules that say it, and what people did."""

import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('bandit', '0026_longer_names'),
        ('grading', '0041_indexes'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SessionTraits',
            fields=[
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='traits', serialize=False, to='grading.session')),
                ('data', models.BinaryField()),
            ],
            options={
                'verbose_name_plural': 'session traits',
            },
        ),
        migrations.AddField(
            model_name='session',
            name='category_from',
            field=models.CharField(blank=True, choices=[('person', 'set by a person'), ('runner', 'given by its runner'), ('decision', 'the arm that was selected'), ('rule', 'set by a rule'), ('agent', 'the agent’s own word')], default='', max_length=32),
        ),
        migrations.CreateModel(
            name='CategoryChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.UUIDField(default=uuid.uuid4, unique=True)),
                ('origin', models.CharField(choices=[('person', 'set by a person'), ('runner', 'given by its runner'), ('decision', 'the arm that was selected'), ('rule', 'set by a rule'), ('agent', 'the agent’s own word')], max_length=32)),
                ('reason', models.TextField(blank=True)),
                ('total', models.PositiveIntegerField(default=0)),
                ('todo', models.JSONField(blank=True, default=list)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('undone_at', models.DateTimeField(blank=True, null=True)),
                ('undone_why', models.TextField(blank=True)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('undone_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='CategoryRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField(default=1)),
                ('conditions', models.JSONField(default=list)),
                ('is_on', models.BooleanField(default=True)),
                ('changed_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('category', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.arm')),
            ],
            options={
                'ordering': ['position', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='CategoryWord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('origin', models.CharField(choices=[('person', 'set by a person'), ('runner', 'given by its runner'), ('decision', 'the arm that was selected'), ('rule', 'set by a rule'), ('agent', 'the agent’s own word')], max_length=32)),
                ('why', models.CharField(blank=True, max_length=400)),
                ('said_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('undone_at', models.DateTimeField(blank=True, null=True)),
                ('by', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('category', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.arm')),
                ('change', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='words', to='grading.categorychange')),
                ('rule', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='grading.categoryrule')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='category_words', to='grading.session')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.AddIndex(
            model_name='categorychange',
            index=models.Index(fields=['-created_at', '-id'], name='category_change_recent'),
        ),
        migrations.AddConstraint(
            model_name='categorychange',
            constraint=models.CheckConstraint(condition=models.Q(('origin__in', ['person', 'runner', 'decision', 'rule', 'agent'])), name='category_change_origin_known'),
        ),
        migrations.AddConstraint(
            model_name='categorychange',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('undone_at', None), ('undone_by', None)), models.Q(('undone_at__isnull', False), ('undone_by__isnull', False)), _connector='OR'), name='category_change_undone_by_somebody'),
        ),
        migrations.AddConstraint(
            model_name='categoryword',
            constraint=models.CheckConstraint(condition=models.Q(('origin__in', ['person', 'runner', 'decision', 'rule', 'agent'])), name='category_word_origin_known'),
        ),
    ]
