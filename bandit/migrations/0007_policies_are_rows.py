"""The numbers of a policy are its versions' alone."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("bandit", "0006_first_policies")]

    operations = [
        migrations.RemoveField(
            model_name='bandit',
            name='evidence_scale',
        ),
        migrations.RemoveField(
            model_name='bandit',
            name='floor',
        ),
        migrations.RemoveField(
            model_name='bandit',
            name='half_life_days',
        ),
        migrations.RemoveField(
            model_name='bandit',
            name='long_run_half_life_days',
        ),
        migrations.RemoveField(
            model_name='bandit',
            name='policy_version',
        ),
        migrations.RemoveField(
            model_name='bandit',
            name='prior_strength',
        ),
    ]
