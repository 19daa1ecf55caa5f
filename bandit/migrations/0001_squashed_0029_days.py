"""The schema of bandit as of 0029, with its triggers and the rows that a new site starts with.

Replaces the migrations of earlier versions. A database that has only some of them is upgraded by an older version first:
see `gradingsite.schema`.
"""

import django.db.models.deletion
import django.db.models.expressions
import django.utils.timezone
from django.db import migrations, models

from bandit.migrations._append_only import append_only, refuse
from bandit.migrations._defaults import first_caps


LEDGER = "bandit_ledgerentry"
ERASURE = "bandit_erasure"


def entry(condition):
    """SQL: whether NEW's bandit, arm and observation have a row for which `condition` holds."""
    return (
        f"EXISTS (SELECT 1 FROM {LEDGER} e WHERE e.bandit_id = NEW.bandit_id AND e.arm_id = NEW.arm_id "
        f"AND e.observation = NEW.observation AND {condition})"
    )


OWN_ARM = "EXISTS (SELECT 1 FROM bandit_arm a WHERE a.id = NEW.arm_id AND a.bandit_id = NEW.bandit_id)"
UNDONE_BEFORE = entry("e.op = 'reverse' AND e.revision = NEW.revision - 1")
SAME_APPLY = entry(
    "e.op = 'apply' AND e.revision = NEW.revision "
    "AND e.value_micro = NEW.value_micro AND COALESCE(e.cost_micro, -1) = COALESCE(NEW.cost_micro, -1) "
    "AND e.effective_day = NEW.effective_day AND e.grader_id = NEW.grader_id"
)
CHOOSES = "EXISTS (SELECT 1 FROM bandit_bandit b WHERE b.id = NEW.bandit_id AND b.kind = 'choice')"
REVERSED = (
    f"EXISTS (SELECT 1 FROM {LEDGER} r WHERE r.bandit_id = e.bandit_id AND r.arm_id = e.arm_id "
    "AND r.observation = e.observation AND r.revision = e.revision AND r.op = 'reverse')"
)
LIVE_ELSEWHERE = (
    f"EXISTS (SELECT 1 FROM {LEDGER} e WHERE e.bandit_id = NEW.bandit_id AND e.observation = NEW.observation "
    f"AND e.arm_id <> NEW.arm_id AND e.op = 'apply' AND NOT {REVERSED})"
)

BANDITS = {
    # name: (title, kind, whether its rewards are read net of the category's mean)
    "category": ("Category", "choice", False),
    "harness": ("Harness × model", "choice", True),
    "lesson": ("Lesson", "many", True),
    "model": ("Model", "names", False),
}
ARMS = {
    "category": ["code", "infra", "triage", "content", "cross-repo", "research", "news", "social"],
    "harness": ["claude-code", "gptme", "codex"],
}
TITLES = {"claude-code": "Claude Code", "codex": "Codex CLI"}
CONSUMPTION = {"research", "news", "social"}
LOOKING = {"triage"}
LOW_STAKES = {"triage", "content", "research", "news", "social"}
ALIASES = {
    "category": {"infrastructure": "infra", "crossrepo": "cross-repo", "social-media": "social"},
    "harness": {"claude": "claude-code", "claudecode": "claude-code", "cc": "claude-code", "codex-cli": "codex"},
}
POLICY = {"by": "installation", "note": "The numbers it began with."}
# What differs from the defaults of the columns, by bandit.
POLICIES = {
    "category": {"holdout": 0.1, "holdout_decided": None},
    "harness": {"holdout": 0.1, "holdout_decided": None, "pooling": True},
    "lesson": {},
    "model": {"holdout": 0.1, "holdout_decided": None},
}
# The calibration of a site without verdicts.
SCALE = {
    "sources": ["journal", "trajectory"],
    "floored": ["failed"],
    "lines": [],
    "weights": {},
    "variance": 0.04,
    "latest": None,
}


def begin(apps, schema_editor):
    """Add the bandits that every site has, with their first arms, policies and calibrations."""
    Bandit, Arm, ArmAlias, PolicyVersion, CalibrationVersion = (
        apps.get_model("bandit", name) for name in ("Bandit", "Arm", "ArmAlias", "PolicyVersion", "CalibrationVersion")
    )
    bandits = {}
    for name, (title, kind, is_net_of_category) in BANDITS.items():
        baseline = bandits["category"] if is_net_of_category else None
        bandits[name] = Bandit.objects.create(name=name, title=title, kind=kind, baseline=baseline)
    for name, names in ARMS.items():
        arms = {
            arm: Arm.objects.create(
                bandit=bandits[name],
                name=arm,
                title=TITLES.get(arm, arm),
                is_consumption=arm in CONSUMPTION,
                is_looking=arm in LOOKING,
                is_low_stakes=arm in LOW_STAKES,
            )
            for arm in names
        }
        for alias, arm in ALIASES[name].items():
            ArmAlias.objects.create(bandit=bandits[name], alias=alias, arm=arms[arm])
    for name, bandit in bandits.items():
        PolicyVersion.objects.create(bandit=bandit, version=1, **POLICY, **POLICIES[name])
        if bandit.kind != "names":
            CalibrationVersion.objects.create(
                bandit=bandit, version=1, scale=SCALE, accepted=True, by="the site, at the start"
            )


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("bandit", "0001_initial"),
        ("bandit", "0001_squashed_0012_first_calibrations"),
        ("bandit", "0002_triggers"),
        ("bandit", "0003_first_arms"),
        ("bandit", "0004_rectifier"),
        ("bandit", "0005_policies"),
        ("bandit", "0006_first_policies"),
        ("bandit", "0007_policies_are_rows"),
        ("bandit", "0008_looking_arms"),
        ("bandit", "0009_first_looking_arms"),
        ("bandit", "0010_wider_grader_key"),
        ("bandit", "0011_calibrations"),
        ("bandit", "0012_first_calibrations"),
        ("bandit", "0013_calibration_constraint_names"),
        ("bandit", "0014_one_live_reward"),
        ("bandit", "0015_change"),
        ("bandit", "0016_first_numbers"),
        ("bandit", "0017_holdout_until_decided"),
        ("bandit", "0018_pooling"),
        ("bandit", "0019_of_an_agent"),
        ("bandit", "0020_what_was_erased"),
        ("bandit", "0021_recent_decisions"),
        ("bandit", "0022_packed_columns"),
        ("bandit", "0023_pack"),
        ("bandit", "0024_packed"),
        ("bandit", "0025_kept_up"),
        ("bandit", "0026_longer_names"),
        ("bandit", "0027_policy_texts"),
        ("bandit", "0028_narrow_indexes"),
        ("bandit", "0029_days"),
    ]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='Bandit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(unique=True)),
                ('title', models.CharField(max_length=100)),
                ('kind', models.CharField(choices=[('choice', 'one of its arms is chosen'), ('many', 'each of several arms is taken, or held out by chance'), ('names', 'its arms are only names: nothing is learnt or chosen')], default='choice', max_length=6)),
                ('revision', models.PositiveBigIntegerField(default=0, editable=False)),
                ('history', models.PositiveBigIntegerField(editable=False, null=True)),
                ('latest', models.PositiveBigIntegerField(editable=False, null=True)),
                ('baseline', models.ForeignKey(blank=True, help_text="Whose arms' means are taken out.", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.bandit')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('kind__in', ['choice', 'many', 'names'])), name='bandit_kind_known'),
                    models.CheckConstraint(condition=models.Q(('baseline__isnull', True), models.Q(('baseline', models.F('pk')), _negated=True), _connector='OR'), name='bandit_baseline_is_another', violation_error_message="A bandit is not freed of its own arms' means: nothing would be left to learn."),
                ],
            },
        ),
        migrations.CreateModel(
            name='Erasure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('who', models.CharField(max_length=200)),
                ('why', models.TextField()),
                ('opened_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('counts', models.JSONField(default=dict)),
                ('digests', models.JSONField(null=True)),
            ],
            options={
                'ordering': ['-opened_at'],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('who', ''), _negated=True), models.Q(('why', ''), _negated=True)), name='bandit_erasure_says_who_and_why'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Grader',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.CharField(max_length=20)),
                ('model', models.CharField(blank=True, default='', max_length=120)),
                ('route', models.CharField(blank=True, default='', max_length=120)),
                ('rubric', models.CharField(blank=True, default='', max_length=64)),
                ('stratum', models.CharField(blank=True, default='', max_length=40)),
                ('context', models.CharField(blank=True, default='', max_length=100)),
                ('salience', models.PositiveSmallIntegerField(default=100)),
                ('version', models.CharField(blank=True, default='', max_length=80)),
                ('view', models.CharField(blank=True, default='', max_length=40)),
                ('witness', models.CharField(blank=True, default='', max_length=20)),
                ('standing', models.CharField(blank=True, default='', max_length=20)),
                ('agent', models.CharField(blank=True, default='', max_length=80)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('source', 'model', 'route', 'rubric', 'stratum', 'context', 'salience', 'version', 'view', 'witness', 'standing', 'agent'), name='bandit_grader_once'),
                    models.CheckConstraint(condition=models.Q(('source', ''), _negated=True), name='bandit_grader_has_source'),
                    models.CheckConstraint(condition=models.Q(('salience__gte', 0), ('salience__lte', 100)), name='bandit_salience_in_percent'),
                ],
            },
        ),
        migrations.CreateModel(
            name='PolicyText',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.CharField(max_length=200, unique=True)),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='bandit_policy_text_said'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Arm',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('title', models.CharField(blank=True, max_length=100)),
                ('is_consumption', models.BooleanField(default=False, help_text='Its sessions read rather than produce.')),
                ('is_looking', models.BooleanField(default=False, help_text='Its sessions look (triage, monitoring, review), and may rightly find nothing to do.')),
                ('is_low_stakes', models.BooleanField(default=False, help_text='Arms of other bandits may be tried out here.')),
                ('paused', models.BooleanField(default=False, help_text='Not chosen until this is cleared.')),
                ('probation', models.BooleanField(default=False, help_text='New: few sessions a day until some earned a reward.')),
                ('retired_at', models.DateTimeField(blank=True, help_text='Not chosen any more; its record stays.', null=True)),
                ('merged_into', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='merged', to='bandit.arm')),
                ('bandit', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='arms', to='bandit.bandit')),
            ],
            options={
                'ordering': ['name'],
                'constraints': [
                    models.UniqueConstraint(fields=('bandit', 'name'), name='bandit_arm_once'),
                    models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='bandit_arm_named'),
                    models.CheckConstraint(condition=models.Q(('is_consumption', True), ('is_looking', True), _negated=True), name='bandit_arm_looks_or_reads'),
                    models.CheckConstraint(condition=models.Q(('merged_into__isnull', True), models.Q(('merged_into', models.F('pk')), _negated=True), _connector='OR'), name='bandit_arm_not_into_itself'),
                ],
            },
        ),
        migrations.CreateModel(
            name='CalibrationVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('enabled', models.BooleanField(default=True)),
                ('note', models.CharField(blank=True, max_length=500)),
                ('by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('scale', models.JSONField(blank=True, default=dict)),
                ('target', models.CharField(blank=True, max_length=300)),
                ('accepted', models.BooleanField(default=False)),
                ('bandit', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='calibrations', to='bandit.bandit')),
            ],
            options={
                'ordering': ['-version'],
                'abstract': False,
                'constraints': [
                    models.UniqueConstraint(fields=('bandit', 'version'), name='bandit_calibrationversion_once'),
                    models.CheckConstraint(condition=models.Q(('version__gte', 1)), name='bandit_calibrationversion_from_1'),
                    models.CheckConstraint(condition=models.Q(('by', ''), _negated=True), name='bandit_calibrationversion_says_who'),
                ],
            },
        ),
        migrations.CreateModel(
            name='PolicyVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('half_life_days', models.FloatField(default=45, help_text='Evidence this old counts half.')),
                ('long_run_half_life_days', models.FloatField(default=180, help_text="The same, for an arm's long-run mean.")),
                ('prior_strength', models.FloatField(default=12, help_text='Pseudo-observations behind the long-run mean, from 5.')),
                ('evidence_scale', models.FloatField(blank=True, help_text='Pseudo-observations a grade is worth, 1 to 8. Empty: estimated from grades.', null=True)),
                ('exploration', models.FloatField(blank=True, default=0.005, help_text='The chance that all eligible arms share, whatever is known of them. Empty: each has the floor.', null=True)),
                ('floor', models.FloatField(default=0.01, help_text='The least chance of an eligible arm, where there is no exploration to share.')),
                ('sharpness', models.FloatField(default=2, help_text='The power of P(best) that arms are chosen by: 1 is Thompson sampling, 2 tries less.')),
                ('follows_change', models.BooleanField(default=True, help_text='What an arm was before it broke does not count, and what drifts is forgotten sooner.')),
                ('varies_by_day', models.BooleanField(default=True, help_text="An arm's sessions of one day count less the more its days differ.")),
                ('weights', models.JSONField(blank=True, default=dict)),
                ('caps', models.JSONField(blank=True, default=first_caps)),
                ('evidence_cap', models.FloatField(blank=True, help_text='The most pseudo-observations of one arm. Empty: no cap.', null=True)),
                ('cost_weight', models.FloatField(default=0, help_text='Reward lost per dollar that a session cost.')),
                ('consumption_per_agent', models.PositiveIntegerField(blank=True, default=2, help_text='Reading sessions of one agent a day, at most. Empty: any.', null=True)),
                ('consumption_per_day', models.PositiveIntegerField(blank=True, help_text='Reading sessions of all agents a day, at most. Empty: any.', null=True)),
                ('consumption_boost', models.FloatField(default=1.1, help_text="Factor on a reading arm's chance at .5 and more.")),
                ('consumption_penalty', models.FloatField(default=0.8, help_text="Factor on a reading arm's chance below .3.")),
                ('consumption_window_days', models.PositiveIntegerField(default=14)),
                ('consumption_min_samples', models.PositiveIntegerField(default=5, help_text='Rewards before a penalty.')),
                ('probation_sessions', models.PositiveIntegerField(default=3, help_text='Rewarded sessions that end a probation.')),
                ('probation_per_agent', models.PositiveIntegerField(blank=True, default=1, help_text='Sessions of one agent a day with an arm on probation. Empty: any.', null=True)),
                ('probation_per_day', models.PositiveIntegerField(blank=True, help_text='Sessions of all agents a day with an arm on probation. Empty: any.', null=True)),
                ('salience_floor', models.FloatField(default=0.3, help_text='What a lesson that had no part in a session counts.')),
                ('holdout', models.FloatField(default=0.4, help_text='Chance with which a matched lesson is held out.')),
                ('holdout_decided', models.FloatField(blank=True, default=0.05, help_text='The same, of a lesson that has a verdict. Empty: as of any other.', null=True)),
                ('open_decisions', models.PositiveIntegerField(blank=True, default=8, help_text='Decisions of one agent that may wait for a session. Empty: any.', null=True)),
                ('agent_cap', models.PositiveIntegerField(blank=True, default=3, help_text='Sessions of one agent on an arm and day that count in full, where others work too. Empty: all.', null=True)),
                ('pooling', models.BooleanField(default=False, help_text='Arms of two parts, first/second, share what is known of them.')),
                ('note', models.CharField(blank=True, max_length=500)),
                ('by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('bandit', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='policies', to='bandit.bandit')),
            ],
            options={
                'ordering': ['-version'],
                'constraints': [
                    models.UniqueConstraint(fields=('bandit', 'version'), name='bandit_policy_once'),
                    models.CheckConstraint(condition=models.Q(('half_life_days__gt', 0)), name='bandit_half_life_positive', violation_error_message='A half-life is a number of days above 0.'),
                    models.CheckConstraint(condition=models.Q(('long_run_half_life_days__gte', models.F('half_life_days'))), name='bandit_long_run_is_longer', violation_error_message='The long-run half-life is at least as long as the half-life.'),
                    models.CheckConstraint(condition=models.Q(('prior_strength__gte', 5)), name='bandit_prior_from_5', violation_error_message='The prior needs a strength of at least 5 pseudo-observations.'),
                    models.CheckConstraint(condition=models.Q(('evidence_scale__isnull', True), models.Q(('evidence_scale__gte', 1), ('evidence_scale__lte', 8)), _connector='OR'), name='bandit_evidence_scale_1_to_8', violation_error_message='The evidence scale is from 1 to 8, or empty to estimate it.'),
                    models.CheckConstraint(condition=models.Q(('floor__gte', 0), ('floor__lte', 1)), name='bandit_floor_0_to_1', violation_error_message='The floor is a chance from 0 to 1.'),
                    models.CheckConstraint(condition=models.Q(('exploration__isnull', True), models.Q(('exploration__gte', 0), ('exploration__lte', 0.5)), _connector='OR'), name='bandit_exploration_0_to_half', violation_error_message='Exploration is a chance from 0 to .5, or empty for a floor of each arm.'),
                    models.CheckConstraint(condition=models.Q(('sharpness__gte', 1), ('sharpness__lte', 4)), name='bandit_sharpness_1_to_4', violation_error_message='The sharpness is a power from 1 to 4.'),
                    models.CheckConstraint(condition=models.Q(('evidence_cap__isnull', True), ('evidence_cap__gt', 0), _connector='OR'), name='bandit_evidence_cap_positive', violation_error_message='A cap on evidence is above 0, or empty for none.'),
                    models.CheckConstraint(condition=models.Q(('cost_weight__gte', 0)), name='bandit_cost_weight_not_negative', violation_error_message='What a dollar costs in reward is a number from 0.'),
                    models.CheckConstraint(condition=models.Q(('consumption_boost__gte', 1), ('consumption_penalty__gt', 0), ('consumption_penalty__lte', 1)), name='bandit_feedback_in_range', violation_error_message='The boost is a factor of at least 1, the penalty one above 0, up to 1.'),
                    models.CheckConstraint(condition=models.Q(('consumption_min_samples__gte', 1), ('consumption_window_days__gte', 1)), name='bandit_feedback_counts_from_1', violation_error_message='The window has days and a penalty needs rewards: at least 1 of each.'),
                    models.CheckConstraint(condition=models.Q(('probation_sessions__gte', 1)), name='bandit_probation_from_1', violation_error_message='A probation ends with at least 1 rewarded session.'),
                    models.CheckConstraint(condition=models.Q(('holdout__gte', 0), ('holdout__lte', 0.5), ('salience_floor__gte', 0), ('salience_floor__lte', 1)), name='bandit_lesson_shares_in_range', violation_error_message='The salience floor is from 0 to 1, the holdout a chance from 0 to .5.'),
                    models.CheckConstraint(condition=models.Q(('holdout_decided__isnull', True), models.Q(('holdout_decided__gte', 0), ('holdout_decided__lte', 0.5)), _connector='OR'), name='bandit_decided_holdout_in_range', violation_error_message='The holdout of a decided lesson is a chance from 0 to .5, or empty.'),
                    models.CheckConstraint(condition=models.Q(('open_decisions__isnull', True), ('open_decisions__gte', 1), _connector='OR'), name='bandit_open_decisions_from_1', violation_error_message='At least 1 decision may wait for its session, or empty for any number.'),
                    models.CheckConstraint(condition=models.Q(('agent_cap__isnull', True), ('agent_cap__gte', 1), _connector='OR'), name='bandit_agent_cap_from_1', violation_error_message='At least 1 session of an agent counts, or empty for all.'),
                    models.CheckConstraint(condition=models.Q(('by', ''), _negated=True), name='bandit_policy_says_who'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Rectifier',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('enabled', models.BooleanField(default=True)),
                ('note', models.CharField(blank=True, max_length=500)),
                ('by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('offsets', models.JSONField(blank=True, default=list)),
                ('calibration', models.PositiveIntegerField(blank=True, help_text='The last calibration that a person had accepted when these were fitted.', null=True)),
                ('bandit', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rectifiers', to='bandit.bandit')),
            ],
            options={
                'ordering': ['-version'],
                'abstract': False,
                'constraints': [
                    models.UniqueConstraint(fields=('bandit', 'version'), name='bandit_rectifier_once'),
                    models.CheckConstraint(condition=models.Q(('version__gte', 1)), name='bandit_rectifier_from_1'),
                    models.CheckConstraint(condition=models.Q(('by', ''), _negated=True), name='bandit_rectifier_says_who'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ArmAlias',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('alias', models.CharField(max_length=100)),
                ('arm', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aliases', to='bandit.arm')),
                ('bandit', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.bandit')),
            ],
            options={
                'verbose_name_plural': 'arm aliases',
                'constraints': [
                    models.UniqueConstraint(fields=('bandit', 'alias'), name='bandit_alias_once'),
                    models.CheckConstraint(condition=models.Q(('alias', ''), _negated=True), name='bandit_alias_named'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ArmEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('act', models.CharField(choices=[('added', 'Added'), ('renamed', 'Renamed'), ('paused', 'Paused'), ('resumed', 'Resumed'), ('retired', 'Retired'), ('returned', 'Returned'), ('merged', 'Merged'), ('parted', 'Parted'), ('tried', 'put on probation'), ('passed', 'probation ended')], max_length=8)),
                ('by', models.CharField(max_length=200)),
                ('why', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('arm', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='events', to='bandit.arm')),
                ('other', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.arm')),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('by', ''), _negated=True), name='bandit_arm_event_says_who'),
                    models.CheckConstraint(condition=models.Q(('act__in', ['added', 'renamed', 'paused', 'resumed', 'retired', 'returned', 'merged', 'parted', 'tried', 'passed'])), name='bandit_arm_act_known'),
                ],
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
                ('key_id', models.CharField(blank=True, default='', max_length=8)),
                ('created', models.DateTimeField()),
                ('observation', models.CharField(blank=True, default='', max_length=200)),
                ('arm', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='bandit.arm')),
                ('bandit', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='bandit.bandit')),
            ],
            options={
                'ordering': ['-created', '-pk'],
                'indexes': [
                    models.Index(fields=['bandit', 'arm', 'created'], name='bandit_assignment_arm'),
                    models.Index(fields=['observation'], name='bandit_assignment_of'),
                    models.Index(condition=models.Q(('observation', '')), fields=['bandit', 'agent', 'created'], name='bandit_assignment_open'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('bandit', 'agent', 'decision_id', 'arm'), name='bandit_assigned_once'),
                    models.CheckConstraint(condition=models.Q(('chance__gt', 0), ('chance__lte', 1)), name='bandit_chance_0_to_1'),
                    models.CheckConstraint(condition=models.Q(('taken', True), ('chance__lt', 1), _connector='OR'), name='bandit_certain_is_taken'),
                    models.CheckConstraint(condition=models.Q(('decision_id', ''), _negated=True), name='bandit_assignment_named'),
                ],
            },
        ),
        migrations.CreateModel(
            name='BreakDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('kept', models.BooleanField()),
                ('by', models.CharField(max_length=200)),
                ('note', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('arm', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='break_decisions', to='bandit.arm')),
                ('bandit', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='break_decisions', to='bandit.bandit')),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('by', ''), _negated=True), name='bandit_break_decision_says_who'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Bucket',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('effective_day', models.DateField()),
                ('n', models.BigIntegerField(default=0)),
                ('s', models.BigIntegerField(default=0)),
                ('q', models.BigIntegerField(default=0)),
                ('cost', models.BigIntegerField(default=0)),
                ('costed', models.BigIntegerField(default=0)),
                ('productive', models.BigIntegerField(default=0)),
                ('arm', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='buckets', to='bandit.arm')),
                ('bandit', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.bandit')),
                ('grader', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.grader')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['bandit', 'effective_day'], name='bandit_bucket_day'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('bandit', 'arm', 'grader', 'effective_day'), name='bandit_bucket_once'),
                    models.CheckConstraint(condition=models.Q(('cost__gte', 0), ('costed__gte', 0), ('costed__lte', models.F('n'))), name='bandit_bucket_cost_in_range'),
                    models.CheckConstraint(condition=models.Q(('n__gte', 0), ('q__gte', 0), ('s__gte', 0)), name='bandit_bucket_not_negative'),
                    models.CheckConstraint(condition=models.Q(('s__lte', django.db.models.expressions.CombinedExpression(models.F('n'), '*', models.Value(1000000)))), name='bandit_bucket_sum_in_range'),
                    models.CheckConstraint(condition=models.Q(('q__lte', django.db.models.expressions.CombinedExpression(models.F('s'), '*', models.Value(1000000)))), name='bandit_bucket_squares_in_range'),
                ],
            },
        ),
        migrations.CreateModel(
            name='LedgerEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('observation', models.CharField(max_length=200)),
                ('revision', models.PositiveIntegerField()),
                ('op', models.CharField(choices=[('apply', 'Apply'), ('reverse', 'Reverse')], max_length=7)),
                ('value_micro', models.PositiveIntegerField(help_text='The reward in millionths.')),
                ('cost_micro', models.PositiveBigIntegerField(blank=True, help_text="The session's cost in millionths of a dollar; empty where it is not known.", null=True)),
                ('effective_day', models.DateField()),
                ('recorded_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('settlement', models.CharField(blank=True, max_length=100)),
                ('provisional', models.BooleanField(default=False, help_text='What was known when this row was written.')),
                ('arm', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='bandit.arm')),
                ('bandit', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.bandit')),
                ('grader', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.grader')),
                ('policy', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bandit.policytext', verbose_name='policy version')),
            ],
            options={
                'verbose_name_plural': 'ledger entries',
                'constraints': [
                    models.UniqueConstraint(fields=('observation', 'op', 'arm', 'revision'), name='bandit_ledger_once'),
                    models.CheckConstraint(condition=models.Q(('value_micro__gte', 0), ('value_micro__lte', 1000000)), name='bandit_value_0_to_1'),
                    models.CheckConstraint(condition=models.Q(('revision__gte', 1)), name='bandit_revision_from_1'),
                    models.CheckConstraint(condition=models.Q(('op__in', ['apply', 'reverse'])), name='bandit_op_known'),
                    models.CheckConstraint(condition=models.Q(('observation', ''), _negated=True), name='bandit_observation_named'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Selection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('decision_id', models.CharField(max_length=200)),
                ('agent', models.CharField(blank=True, max_length=100)),
                ('context', models.CharField(blank=True, default='', max_length=100)),
                ('requested', models.JSONField(default=dict)),
                ('eligible', models.BinaryField()),
                ('propensity', models.FloatField()),
                ('posterior_version', models.CharField(max_length=64)),
                ('explanation', models.BinaryField()),
                ('override', models.JSONField(blank=True, null=True)),
                ('key_id', models.CharField(blank=True, default='', max_length=8)),
                ('created', models.DateTimeField()),
                ('observation', models.CharField(blank=True, default='', max_length=200)),
                ('completed_at', models.DateTimeField(blank=True, null=True)),
                ('arm', models.ForeignKey(help_text='The arm chosen.', on_delete=django.db.models.deletion.PROTECT, related_name='selections', to='bandit.arm')),
                ('bandit', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='selections', to='bandit.bandit')),
                ('executed_arm', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='executions', to='bandit.arm')),
            ],
            options={
                'ordering': ['-created', '-pk'],
                'indexes': [
                    models.Index(fields=['bandit', 'created'], name='bandit_selection_created'),
                    models.Index(fields=['-created', '-id'], name='bandit_selection_recent'),
                    models.Index(condition=models.Q(('completed_at', None)), fields=['bandit', 'agent', 'created'], name='bandit_selection_open'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('bandit', 'agent', 'decision_id'), name='bandit_decision_once'),
                    models.UniqueConstraint(condition=models.Q(('observation', ''), _negated=True), fields=('bandit', 'observation'), name='bandit_session_closes_one'),
                    models.CheckConstraint(condition=models.Q(('propensity__gt', 0), ('propensity__lte', 1)), name='bandit_propensity_0_to_1'),
                    models.CheckConstraint(condition=models.Q(('decision_id', ''), _negated=True), name='bandit_decision_named'),
                    models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', True), ('executed_arm__isnull', True), ('observation', '')), models.Q(('completed_at__isnull', False), ('executed_arm__isnull', False)), _connector='OR'), name='bandit_completed_names_its_arm'),
                ],
            },
        ),
        *append_only("bandit", "LedgerEntry"),
        *append_only("bandit", "Rectifier"),
        *append_only("bandit", "PolicyVersion"),
        *append_only("bandit", "ArmEvent"),
        *append_only("bandit", "CalibrationVersion"),
        *append_only("bandit", "BreakDecision"),
        refuse(LEDGER, "own_arm", "INSERT", f"NOT {OWN_ARM}", f"{LEDGER}: the arm belongs to another bandit."),
        refuse(
            LEDGER,
            "one_live",
            "INSERT",
            f"(NEW.op = 'apply' AND NEW.revision > 1 AND NOT {UNDONE_BEFORE})",
            f"{LEDGER}: reverse the revision before this one first; revisions have no gaps.",
        ),
        refuse(
            LEDGER,
            "exact_reverse",
            "INSERT",
            f"(NEW.op = 'reverse' AND NOT {SAME_APPLY})",
            f"{LEDGER}: a reverse repeats the value, cost, day and grader of an apply of the same revision.",
        ),
        refuse(
            LEDGER,
            "one_arm",
            "INSERT",
            f"(NEW.op = 'apply' AND {CHOOSES} AND {LIVE_ELSEWHERE})",
            f"{LEDGER}: another arm of this bandit has a live reward of this observation; reverse that first.",
        ),
        refuse(
            ERASURE,
            "closed_stays",
            "UPDATE",
            "OLD.closed_at IS NOT NULL",
            "bandit_erasure: the record of an erasure never changes once it is closed.",
        ),
        refuse(ERASURE, "no_delete", "DELETE", "1 = 1", "bandit_erasure: the record of an erasure is never deleted."),
        migrations.RunPython(begin, migrations.RunPython.noop),
    ]
