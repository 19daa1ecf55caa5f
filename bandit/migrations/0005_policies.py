"""Policies as versioned rows; arms that merge and are tried; costs; baselines; randomised holdouts."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from bandit.migrations._append_only import append_only, drop, refuse
from bandit.migrations._defaults import first_caps

LEDGER = "bandit_ledgerentry"
OWN_ARM = "EXISTS (SELECT 1 FROM bandit_arm a WHERE a.id = NEW.arm_id AND a.bandit_id = NEW.bandit_id)"
SAME_APPLY = (
    f"EXISTS (SELECT 1 FROM {LEDGER} e WHERE e.bandit_id = NEW.bandit_id AND e.arm_id = NEW.arm_id "
    "AND e.observation = NEW.observation AND e.op = 'apply' AND e.revision = NEW.revision "
    "AND e.value_micro = NEW.value_micro AND COALESCE(e.cost_micro, -1) = COALESCE(NEW.cost_micro, -1) "
    "AND e.effective_day = NEW.effective_day AND e.grader_id = NEW.grader_id)"
)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0004_rectifier")]

    operations = [
        # SQLite rebuilds the arms' table, which this trigger of the ledger's reads.
        drop(LEDGER, "own_arm"),
        migrations.RemoveConstraint(
            model_name='bandit',
            name='bandit_half_life_positive',
        ),
        migrations.RemoveConstraint(
            model_name='bandit',
            name='bandit_long_run_is_longer',
        ),
        migrations.RemoveConstraint(
            model_name='bandit',
            name='bandit_prior_from_5',
        ),
        migrations.RemoveConstraint(
            model_name='bandit',
            name='bandit_evidence_scale_1_to_8',
        ),
        migrations.RemoveConstraint(
            model_name='bandit',
            name='bandit_floor_0_to_1',
        ),
        migrations.CreateModel(
            name='ArmEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('act', models.CharField(choices=[('added', 'Added'), ('renamed', 'Renamed'), ('paused', 'Paused'), ('resumed', 'Resumed'), ('retired', 'Retired'), ('returned', 'Returned'), ('merged', 'Merged'), ('parted', 'Parted'), ('tried', 'put on probation'), ('passed', 'probation ended')], max_length=8)),
                ('by', models.CharField(max_length=200)),
                ('why', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('decision_id', models.CharField(max_length=200)),
                ('agent', models.CharField(blank=True, max_length=100)),
                ('context', models.CharField(blank=True, default='', max_length=100)),
                ('taken', models.BooleanField()),
                ('chance', models.FloatField(help_text='Of being taken.')),
                ('created', models.DateTimeField()),
                ('observation', models.CharField(blank=True, db_index=True, default='', max_length=200)),
            ],
            options={
                'ordering': ['-created', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='PolicyVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('half_life_days', models.FloatField(default=21, help_text='Evidence this old counts half.')),
                ('long_run_half_life_days', models.FloatField(default=180, help_text="The same, for an arm's long-run mean.")),
                ('prior_strength', models.FloatField(default=12, help_text='Pseudo-observations behind the long-run mean, from 5.')),
                ('evidence_scale', models.FloatField(blank=True, help_text='Pseudo-observations a grade is worth, 1 to 8. Empty: estimated from grades.', null=True)),
                ('floor', models.FloatField(default=0.01, help_text='The least chance of an eligible arm.')),
                ('weights', models.JSONField(blank=True, default=dict)),
                ('caps', models.JSONField(blank=True, default=first_caps)),
                ('evidence_cap', models.FloatField(blank=True, help_text='The most pseudo-observations of one arm. Empty: no cap.', null=True)),
                ('cost_weight', models.FloatField(default=0, help_text='Reward lost per dollar that a session cost.')),
                ('consumption_per_day', models.PositiveIntegerField(default=2, help_text='Reading sessions a day, at most.')),
                ('consumption_boost', models.FloatField(default=1.1, help_text="Factor on a reading arm's chance at .5 and more.")),
                ('consumption_penalty', models.FloatField(default=0.8, help_text="Factor on a reading arm's chance below .3.")),
                ('consumption_window_days', models.PositiveIntegerField(default=14)),
                ('consumption_min_samples', models.PositiveIntegerField(default=5, help_text='Rewards before a penalty.')),
                ('probation_sessions', models.PositiveIntegerField(default=3, help_text='Rewarded sessions that end a probation.')),
                ('probation_per_day', models.PositiveIntegerField(default=1, help_text='Sessions a day of an arm on probation.')),
                ('salience_floor', models.FloatField(default=0.3, help_text='What a lesson that had no part in a session counts.')),
                ('holdout', models.FloatField(default=0.1, help_text='Chance with which a matched lesson is held out.')),
                ('note', models.CharField(blank=True, max_length=500)),
                ('by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-version'],
            },
        ),
        migrations.RemoveConstraint(
            model_name='grader',
            name='bandit_grader_once',
        ),
        migrations.AddField(
            model_name='arm',
            name='is_low_stakes',
            field=models.BooleanField(default=False, help_text='Arms of other bandits may be tried out here.'),
        ),
        migrations.AddField(
            model_name='arm',
            name='merged_into',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='merged', to='bandit.arm'),
        ),
        migrations.AddField(
            model_name='arm',
            name='probation',
            field=models.BooleanField(default=False, help_text='New: few sessions a day until some earned a reward.'),
        ),
        migrations.AddField(
            model_name='bandit',
            name='baseline',
            field=models.ForeignKey(blank=True, help_text="Whose arms' means are taken out.", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.bandit'),
        ),
        migrations.AddField(
            model_name='bandit',
            name='kind',
            field=models.CharField(choices=[('choice', 'one of its arms is chosen'), ('many', 'each of several arms is taken, or held out by chance'), ('names', 'its arms are only names: nothing is learnt or chosen')], default='choice', max_length=6),
        ),
        migrations.AddField(
            model_name='bandit',
            name='revision',
            field=models.PositiveBigIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name='bucket',
            name='cost',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='bucket',
            name='costed',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='grader',
            name='context',
            field=models.CharField(blank=True, default='', max_length=100),
        ),
        migrations.AddField(
            model_name='grader',
            name='salience',
            field=models.PositiveSmallIntegerField(default=100),
        ),
        migrations.AddField(
            model_name='ledgerentry',
            name='cost_micro',
            field=models.PositiveBigIntegerField(blank=True, help_text="The session's cost in millionths of a dollar; empty where it is not known.", null=True),
        ),
        migrations.AddField(
            model_name='selection',
            name='context',
            field=models.CharField(blank=True, default='', max_length=100),
        ),
        migrations.AddConstraint(
            model_name='arm',
            constraint=models.CheckConstraint(condition=models.Q(('merged_into__isnull', True), models.Q(('merged_into', models.F('pk')), _negated=True), _connector='OR'), name='bandit_arm_not_into_itself'),
        ),
        migrations.AddConstraint(
            model_name='bandit',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['choice', 'many', 'names'])), name='bandit_kind_known'),
        ),
        migrations.AddConstraint(
            model_name="bandit",
            constraint=models.CheckConstraint(
                condition=models.Q(("baseline__isnull", True), models.Q(("baseline", models.F("pk")), _negated=True), _connector="OR"),
                name="bandit_baseline_is_another",
                violation_error_message="A bandit is not freed of its own arms' means: nothing would be left to learn.",
            ),
        ),
        migrations.AddConstraint(
            model_name='bucket',
            constraint=models.CheckConstraint(condition=models.Q(('cost__gte', 0), ('costed__gte', 0), ('costed__lte', models.F('n'))), name='bandit_bucket_cost_in_range'),
        ),
        migrations.AddConstraint(
            model_name='grader',
            constraint=models.UniqueConstraint(fields=('source', 'model', 'route', 'rubric', 'stratum', 'context', 'salience'), name='bandit_grader_once'),
        ),
        migrations.AddConstraint(
            model_name='grader',
            constraint=models.CheckConstraint(condition=models.Q(('salience__gte', 0), ('salience__lte', 100)), name='bandit_salience_in_percent'),
        ),
        migrations.AddField(
            model_name='armevent',
            name='arm',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='events', to='bandit.arm'),
        ),
        migrations.AddField(
            model_name='armevent',
            name='other',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.arm'),
        ),
        migrations.AddField(
            model_name='assignment',
            name='arm',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='bandit.arm'),
        ),
        migrations.AddField(
            model_name='assignment',
            name='bandit',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='bandit.bandit'),
        ),
        migrations.AddField(
            model_name='policyversion',
            name='bandit',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='policies', to='bandit.bandit'),
        ),
        migrations.AddConstraint(
            model_name='armevent',
            constraint=models.CheckConstraint(condition=models.Q(('by', ''), _negated=True), name='bandit_arm_event_says_who'),
        ),
        migrations.AddConstraint(
            model_name='armevent',
            constraint=models.CheckConstraint(condition=models.Q(('act__in', ['added', 'renamed', 'paused', 'resumed', 'retired', 'returned', 'merged', 'parted', 'tried', 'passed'])), name='bandit_arm_act_known'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['bandit', 'arm', 'created'], name='bandit_assignment_arm'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(fields=('bandit', 'decision_id', 'arm'), name='bandit_assigned_once'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('chance__gt', 0), ('chance__lte', 1)), name='bandit_chance_0_to_1'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('taken', True), ('chance__lt', 1), _connector='OR'), name='bandit_certain_is_taken'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('decision_id', ''), _negated=True), name='bandit_assignment_named'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.UniqueConstraint(fields=('bandit', 'version'), name='bandit_policy_once'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('half_life_days__gt', 0)), name='bandit_half_life_positive', violation_error_message='A half-life is a number of days above 0.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('long_run_half_life_days__gte', models.F('half_life_days'))), name='bandit_long_run_is_longer', violation_error_message='The long-run half-life is at least as long as the half-life.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('prior_strength__gte', 5)), name='bandit_prior_from_5', violation_error_message='The prior needs a strength of at least 5 pseudo-observations.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('evidence_scale__isnull', True), models.Q(('evidence_scale__gte', 1), ('evidence_scale__lte', 8)), _connector='OR'), name='bandit_evidence_scale_1_to_8', violation_error_message='The evidence scale is from 1 to 8, or empty to estimate it.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('floor__gte', 0), ('floor__lte', 1)), name='bandit_floor_0_to_1', violation_error_message='The floor is a chance from 0 to 1.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('evidence_cap__isnull', True), ('evidence_cap__gt', 0), _connector='OR'), name='bandit_evidence_cap_positive', violation_error_message='A cap on evidence is above 0, or empty for none.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('cost_weight__gte', 0)), name='bandit_cost_weight_not_negative', violation_error_message='What a dollar costs in reward is a number from 0.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('consumption_boost__gte', 1), ('consumption_penalty__gt', 0), ('consumption_penalty__lte', 1)), name='bandit_feedback_in_range', violation_error_message='The boost is a factor of at least 1, the penalty one above 0, up to 1.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('consumption_min_samples__gte', 1), ('consumption_window_days__gte', 1)), name='bandit_feedback_counts_from_1', violation_error_message='The window has days and a penalty needs rewards: at least 1 of each.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('probation_sessions__gte', 1)), name='bandit_probation_from_1', violation_error_message='A probation ends with at least 1 rewarded session.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('holdout__gte', 0), ('holdout__lte', 0.5), ('salience_floor__gte', 0), ('salience_floor__lte', 1)), name='bandit_lesson_shares_in_range', violation_error_message='The salience floor is from 0 to 1, the holdout a chance from 0 to .5.'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.CheckConstraint(condition=models.Q(('by', ''), _negated=True), name='bandit_policy_says_who'),
        ),
        refuse(LEDGER, "own_arm", "INSERT", f"NOT {OWN_ARM}", f"{LEDGER}: the arm belongs to another bandit."),
        refuse(
            LEDGER,
            "exact_reverse",
            "INSERT",
            f"(NEW.op = 'reverse' AND NOT {SAME_APPLY})",
            f"{LEDGER}: a reverse repeats the value, cost, day and grader of an apply of the same revision.",
        ),
        *append_only("bandit", "PolicyVersion"),
        *append_only("bandit", "ArmEvent"),
    ]
