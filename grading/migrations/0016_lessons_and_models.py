"""The lessons that a session was given, and its model by name."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('bandit', '0007_policies_are_rows'),
        ('grading', '0015_forecast_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='session',
            name='model_arm',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.arm'),
        ),
        migrations.CreateModel(
            name='SessionLesson',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('taken', models.BooleanField(default=True)),
                ('salience', models.FloatField(blank=True, null=True)),
                ('arm', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.arm')),
                ('assignment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.assignment')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lessons', to='grading.session')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('session', 'arm'), name='session_lesson_once'), models.CheckConstraint(condition=models.Q(('salience__isnull', True), models.Q(('salience__gte', 0), ('salience__lte', 1)), _connector='OR'), name='lesson_salience_0_to_1')],
            },
        ),
    ]
