"""All that grading's migrations up to here come to: the tables, what the database refuses, and what a site begins with.

A site that has run some of those runs the rest of them; a new one runs this.
"""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

from bandit.migrations._append_only import append_only
from grading.migrations import _first_rubric
from grading.migrations._first_rubric import rubric_sha256
from grading.migrations._first_rubrics import FIRST


POSTS = "**/{tweets,posts,drafts,_posts,replies}/**/*.{md,txt,yml,yaml}"
RULES = [
    # kind, path glob, line pattern, new files only, weight, least characters
    ("idea", "**/idea-backlog.md", r"(?i)^\s*\|.*\bideas?(?![a-z])", False, 0.4, 12),
    ("task", "tasks/**", "", True, 0.2, 200),
    ("engagement", POSTS, "", True, 0.2, 200),
    ("knowledge", "knowledge/**", "", True, 0.1, 200),
    ("non-null", "", "", False, 0.1, 200),
]


def add_rules(apps, schema_editor):
    for kind, path_glob, line_pattern, new_files_only, weight, least_characters in RULES:
        apps.get_model("grading", "ArtifactRule").objects.create(
            kind=kind,
            path_glob=path_glob,
            line_pattern=line_pattern,
            new_files_only=new_files_only,
            weight=weight,
            least_characters=least_characters,
        )


def add_rubrics(apps, schema_editor):
    """One in force for each kind of work, and the one from before there were kinds, to go back to."""
    rubrics = apps.get_model("grading", "Rubric").objects
    first = _first_rubric
    parent = rubrics.create(
        sha256=rubric_sha256(first.TEXT, first.DIMENSIONS, first.BANDS),
        title=first.TITLE,
        text=first.TEXT,
        dimensions=first.DIMENSIONS,
        bands=first.BANDS,
    )
    for kind, content in FIRST.items():
        is_production = kind == "production"
        rubrics.create(
            sha256=rubric_sha256(content.text, content.dimensions, content.bands),
            kind=kind,
            title=content.title,
            text=content.text,
            dimensions=content.dimensions,
            bands=content.bands,
            parent=parent if is_production else None,
            note="Each band says what one sees in a session that belongs there" if is_production else "",
            is_active=True,
        )


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("grading", "0001_initial"),
        ("grading", "0002_append_only"),
        ("grading", "0003_artifact_rules"),
        ("grading", "0004_first_rubric"),
        ("grading", "0005_judging_at_scale"),
        ("grading", "0006_batches"),
        ("grading", "0007_rules"),
        ("grading", "0008_rubrics"),
        ("grading", "0009_checks"),
        ("grading", "0010_review"),
        ("grading", "0011_answer_claim"),
        ("grading", "0012_first_items"),
        ("grading", "0013_audit_indexes"),
        ("grading", "0014_notices"),
        ("grading", "0015_forecast_indexes"),
        ("grading", "0016_lessons_and_models"),
        ("grading", "0017_reasons_to_abstain"),
        ("grading", "0018_outcome_claimed"),
        ("grading", "0019_claims_of_outcome"),
        ("grading", "0020_claims_end"),
        ("grading", "0021_owners"),
        ("grading", "0022_artifacts_with_substance"),
        ("grading", "0023_verdicts"),
        ("grading", "0024_silence"),
        ("grading", "0025_readings_and_kinds"),
    ]

    dependencies = [
        ("auth", "__first__"),
        ("bandit", "0012_first_calibrations"),
    ]

    operations = [
        migrations.CreateModel(
            name="Agent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=80, unique=True)),
                ("title", models.CharField(blank=True, max_length=120)),
                ("is_sample", models.BooleanField(default=False, editable=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="RuleRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rule", models.CharField(max_length=16, unique=True)),
                ("ran_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("external_id", models.CharField(max_length=200)),
                ("title", models.CharField(blank=True, max_length=300)),
                ("category_claimed", models.CharField(blank=True, max_length=200)),
                ("model", models.CharField(blank=True, max_length=120)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField()),
                ("received_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("exit_code", models.IntegerField(blank=True, null=True)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("refused", "refused"),
                            ("infrastructure", "infrastructure"),
                        ],
                        default="completed",
                        max_length=32,
                    ),
                ),
                ("outcome_reason", models.CharField(blank=True, max_length=300)),
                (
                    "outcome_claimed",
                    models.CharField(
                        choices=[
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("refused", "refused"),
                            ("infrastructure", "infrastructure"),
                        ],
                        default="completed",
                        max_length=32,
                    ),
                ),
                ("claim_reason", models.CharField(blank=True, max_length=300)),
                ("cost_usd", models.FloatField(blank=True, null=True)),
                ("signals", models.JSONField(blank=True, null=True)),
                ("signals_version", models.CharField(blank=True, max_length=40)),
                ("is_sample", models.BooleanField(default=False)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sessions", to="grading.agent"
                    ),
                ),
                (
                    "category",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="bandit.arm",
                    ),
                ),
                (
                    "harness",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="bandit.arm",
                    ),
                ),
                (
                    "model_arm",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="bandit.arm",
                    ),
                ),
                (
                    "selection",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="bandit.selection",
                    ),
                ),
            ],
            options={
                "ordering": ["-ended_at", "-pk"],
                "indexes": [
                    models.Index(fields=["-ended_at", "-id"], name="session_recent"),
                    models.Index(fields=["category", "-ended_at"], name="session_by_category"),
                    models.Index(condition=models.Q(("is_sample", True)), fields=["id"], name="session_samples"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("agent", "external_id"), name="session_once_per_agent"),
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", ["completed", "failed", "refused", "infrastructure"])),
                        name="session_outcome_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("outcome_claimed__in", ["completed", "failed", "refused", "infrastructure"])
                        ),
                        name="session_outcome_claimed_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("outcome", "completed"), models.Q(("outcome_reason", ""), _negated=True), _connector="OR"
                        ),
                        name="session_failed_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("external_id", ""), _negated=True), name="session_has_id"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Artifact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("idea", "idea"),
                            ("task", "task"),
                            ("engagement", "engagement"),
                            ("knowledge", "knowledge"),
                            ("commit", "commit"),
                            ("pull_request", "pull_request"),
                            ("check_failed", "check_failed"),
                        ],
                        max_length=32,
                    ),
                ),
                ("key", models.CharField(max_length=500)),
                (
                    "origin",
                    models.CharField(
                        choices=[("facts", "facts"), ("patch", "patch"), ("transcript", "transcript")], max_length=32
                    ),
                ),
                ("seen_at", models.CharField(blank=True, max_length=300)),
                ("rule", models.CharField(blank=True, max_length=64)),
                ("subject", models.CharField(blank=True, max_length=100)),
                ("lookup", models.CharField(blank=True, max_length=40)),
                ("receipt", models.BigIntegerField(default=0)),
                ("left_out", models.CharField(blank=True, max_length=400)),
                (
                    "owned_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="grading.session",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="artifacts", to="grading.session"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("lookup", ""), _negated=True), fields=["lookup"], name="artifact_claims"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "kind", "key", "origin"), name="artifact_once_per_session"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("kind__in", ("commit", "pull_request")), ("origin", "facts"), ("owned_by", None)
                        ),
                        fields=("kind", "key"),
                        name="artifact_one_owner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                ["idea", "task", "engagement", "knowledge", "commit", "pull_request", "check_failed"],
                            )
                        ),
                        name="artifact_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("origin__in", ["facts", "patch", "transcript"])),
                        name="artifact_origin_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Alarm",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rule", models.CharField(max_length=16)),
                ("about", models.CharField(blank=True, max_length=300)),
                ("detail", models.TextField()),
                ("opened_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("acknowledged_at", models.DateTimeField(blank=True, null=True)),
                ("resolved_at", models.DateTimeField(blank=True, null=True)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-opened_at"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("resolved_at", None)), fields=("rule", "about"), name="alarm_one_open"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("acknowledged_at", None), ("acknowledged_by__isnull", False), _connector="OR"
                        ),
                        name="alarm_acknowledged_by_name",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("hint", models.CharField(editable=False, max_length=4)),
                ("note", models.CharField(blank=True, max_length=120)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tokens", to="grading.agent"
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
            },
        ),
        migrations.CreateModel(
            name="ArtifactSketch",
            fields=[
                (
                    "artifact",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="sketch",
                        serialize=False,
                        to="grading.artifact",
                    ),
                ),
                ("shingles", models.BinaryField()),
                ("ended_at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sketches", to="grading.session"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ArtifactMark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("mark", models.BigIntegerField()),
                (
                    "sketch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="marks", to="grading.artifactsketch"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("mark", "sketch"), name="artifact_mark_once")],
            },
        ),
        migrations.CreateModel(
            name="ArtifactRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.SlugField(max_length=32, unique=True)),
                ("path_glob", models.CharField(blank=True, max_length=200)),
                ("line_pattern", models.CharField(blank=True, max_length=300)),
                ("new_files_only", models.BooleanField(default=False)),
                ("weight", models.FloatField()),
                ("scale", models.FloatField(default=1.0)),
                (
                    "least_characters",
                    models.PositiveIntegerField(
                        default=200, help_text="Of text without markup that a file, or a row, must have to count."
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "ordering": ["-weight", "kind"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("weight__gte", 0), ("weight__lte", 1)), name="artifact_rule_weight_range"
                    ),
                    models.CheckConstraint(condition=models.Q(("scale__gt", 0)), name="artifact_rule_scale_positive"),
                    models.CheckConstraint(
                        condition=models.Q(("least_characters__lte", 5000)), name="artifact_rule_characters_range"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Grade",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("judge", "judge"),
                            ("trajectory", "trajectory"),
                            ("journal", "journal"),
                            ("consumption", "consumption"),
                            ("floor", "floor"),
                            ("human", "human"),
                        ],
                        max_length=32,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("scored", "scored"),
                            ("unscored", "unscored"),
                            ("skipped", "skipped"),
                            ("failed", "failed"),
                        ],
                        max_length=32,
                    ),
                ),
                ("value", models.FloatField(blank=True, null=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("not_configured", "No judge is configured"),
                            ("awaiting_judge", "Waiting for the judge"),
                            ("quota_exhausted", "Quota exhausted"),
                            ("budget_spent", "Today's budget is spent"),
                            ("paused", "An operator paused the judge"),
                            ("rate_limited", "Rate limited"),
                            ("overloaded", "The judge's service is overloaded"),
                            ("timeout", "The judge did not answer in time"),
                            ("connection", "The judge could not be reached"),
                            ("auth", "The judge's key was refused"),
                            ("refused", "The judge declined to grade this session"),
                            ("unparsable_verdict", "The judge's reply was not a verdict"),
                            ("input_too_large", "Too much evidence for one request"),
                            ("needs_attention", "An answer nobody expected; a person must look"),
                            ("no_transcript", "No transcript was submitted"),
                            ("log_too_small", "The log is too small for a session this long"),
                            ("log_overwritten", "The log belongs to another session"),
                            ("log_shared", "The same log was submitted for another session"),
                            ("stub_no_tool_calls", "Stub transcript: no tool calls in it"),
                            ("format_unknown", "The transcript's format is unknown"),
                            ("format_blind", "Nothing in the transcript was recognised"),
                            ("unreadable", "The evidence could not be read"),
                            ("nothing_observable", "No effect and no failure to see"),
                            ("carried", "All of it was carried over from another session"),
                            ("no_journal", "No journal was submitted"),
                            ("no_signal", "The journal names no outcome"),
                            ("no_artifacts", "No ideas, tasks, posts or notes"),
                            ("not_consumption", "Not a reading session, and nothing was left behind"),
                            ("no_evidence", "No source could grade this session"),
                            ("excluded", "A person excluded this session"),
                            ("withdrawn", "The correction was undone"),
                            ("infrastructure", "The session died of infrastructure"),
                        ],
                        default="",
                        max_length=32,
                    ),
                ),
                ("detail", models.TextField(blank=True)),
                ("evidence", models.JSONField(blank=True, default=dict)),
                ("version", models.CharField(blank=True, max_length=80)),
                ("model", models.CharField(blank=True, max_length=120)),
                ("route", models.CharField(blank=True, max_length=120)),
                ("rubric", models.CharField(blank=True, max_length=64)),
                ("inputs_sha256", models.CharField(blank=True, max_length=64)),
                ("replicate", models.PositiveSmallIntegerField(default=0)),
                ("parallel", models.BooleanField(default=False)),
                ("sample", models.PositiveSmallIntegerField(default=1)),
                ("cost_usd", models.FloatField(blank=True, null=True)),
                ("duration_ms", models.PositiveIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "author",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "sample_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="read_again",
                        to="grading.grade",
                    ),
                ),
                (
                    "withdraws",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="withdrawn_by",
                        to="grading.grade",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="grades", to="grading.session"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["session", "source", "-id"], name="grade_current"),
                    models.Index(
                        condition=models.Q(("parallel", False), ("source", "judge"), ("status", "scored")),
                        fields=["-id"],
                        name="grade_verdicts",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("source__in", ["judge", "trajectory", "journal", "consumption", "floor", "human"])
                        ),
                        name="grade_source_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["scored", "unscored", "skipped", "failed"])),
                        name="grade_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "reason__in",
                                [
                                    "",
                                    "not_configured",
                                    "awaiting_judge",
                                    "quota_exhausted",
                                    "budget_spent",
                                    "paused",
                                    "rate_limited",
                                    "overloaded",
                                    "timeout",
                                    "connection",
                                    "auth",
                                    "refused",
                                    "unparsable_verdict",
                                    "input_too_large",
                                    "needs_attention",
                                    "no_transcript",
                                    "log_too_small",
                                    "log_overwritten",
                                    "log_shared",
                                    "stub_no_tool_calls",
                                    "format_unknown",
                                    "format_blind",
                                    "unreadable",
                                    "nothing_observable",
                                    "carried",
                                    "no_journal",
                                    "no_signal",
                                    "no_artifacts",
                                    "not_consumption",
                                    "no_evidence",
                                    "excluded",
                                    "withdrawn",
                                    "infrastructure",
                                ],
                            )
                        ),
                        name="grade_reason_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "scored"), ("value__isnull", False)),
                            models.Q(models.Q(("status", "scored"), _negated=True), ("value", None)),
                            _connector="OR",
                        ),
                        name="grade_value_iff_scored",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("value", None), models.Q(("value__gte", 0), ("value__lte", 1)), _connector="OR"
                        ),
                        name="grade_value_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status", "scored"), models.Q(("reason", ""), _negated=True), _connector="OR"
                        ),
                        name="grade_unscored_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("source", "human"), _negated=True), ("author__isnull", False), _connector="OR"
                        ),
                        name="grade_human_has_author",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("parallel", False), ("source", "judge"), _connector="OR"),
                        name="grade_parallel_is_judge",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("sample", 1), ("sample_of", None)),
                            models.Q(
                                ("parallel", False),
                                ("sample__gt", 1),
                                ("sample_of__isnull", False),
                                ("source", "judge"),
                                ("status", "scored"),
                            ),
                            _connector="OR",
                        ),
                        name="grade_further_readings_are_verdicts",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "scored"), models.Q(("source", "human"), _negated=True)),
                        fields=(
                            "session",
                            "source",
                            "inputs_sha256",
                            "version",
                            "model",
                            "route",
                            "rubric",
                            "sample",
                            "replicate",
                        ),
                        name="grade_once_per_inputs_and_identity",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JudgeBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("provider_id", models.CharField(blank=True, max_length=120)),
                (
                    "judge",
                    models.CharField(
                        choices=[("first", "first"), ("fallback", "fallback"), ("second", "second")],
                        default="first",
                        max_length=32,
                    ),
                ),
                ("model", models.CharField(blank=True, max_length=120)),
                (
                    "state",
                    models.CharField(
                        choices=[("sending", "sending"), ("running", "running"), ("ended", "ended"), ("lost", "lost")],
                        default="sending",
                        max_length=32,
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("polled_at", models.DateTimeField(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("detail", models.TextField(blank=True)),
            ],
            options={
                "verbose_name_plural": "judge batches",
                "ordering": ["-pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["sending", "running", "ended", "lost"])),
                        name="judge_batch_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("judge__in", ["first", "fallback", "second"])),
                        name="judge_batch_judge_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JudgePolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "daily_budget_usd",
                    models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0)]),
                ),
                (
                    "reserved_share",
                    models.FloatField(
                        default=0.2,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "repeat_share",
                    models.FloatField(
                        default=0.05,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "second_share",
                    models.FloatField(
                        default=0.25,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "abstention_share",
                    models.FloatField(
                        default=0.1,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                ("use_batches", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "judge policies",
                "ordering": ["-pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reserved_share__gte", 0), ("reserved_share__lte", 1)),
                        name="judge_policy_reserved_share",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("repeat_share__gte", 0), ("repeat_share__lte", 1)),
                        name="judge_policy_repeat_share",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("second_share__gte", 0), ("second_share__lte", 1)),
                        name="judge_policy_second_share",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("abstention_share__gte", 0), ("abstention_share__lte", 1)),
                        name="judge_policy_abstention_share",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("daily_budget_usd", None), ("daily_budget_usd__gte", 0), _connector="OR"),
                        name="judge_policy_budget",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.UUIDField(default=uuid.uuid4, unique=True)),
                ("channel", models.CharField(choices=[("email", "e-mail"), ("webhook", "webhook")], max_length=32)),
                (
                    "about",
                    models.CharField(
                        choices=[("opened", "opened"), ("resolved", "resolved"), ("test", "test")], max_length=32
                    ),
                ),
                ("subject", models.CharField(max_length=300)),
                ("body", models.TextField()),
                (
                    "state",
                    models.CharField(
                        choices=[("queued", "queued"), ("sent", "sent"), ("failed", "failed")],
                        default="queued",
                        max_length=32,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_error", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                (
                    "alarm",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="grading.alarm",
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(condition=models.Q(("state", "queued")), fields=["next_attempt_at"], name="notice_due")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("channel__in", ["email", "webhook"])), name="notice_channel_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("about__in", ["opened", "resolved", "test"])), name="notice_about_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["queued", "sent", "failed"])), name="notice_state_known"
                    ),
                    models.UniqueConstraint(fields=("alarm", "about", "channel"), name="notice_once"),
                    models.CheckConstraint(
                        condition=models.Q(("alarm__isnull", False), ("about", "test"), _connector="OR"),
                        name="notice_has_a_cause",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "sent"), ("sent_at__isnull", False)),
                            models.Q(models.Q(("state", "sent"), _negated=True), ("sent_at", None)),
                            _connector="OR",
                        ),
                        name="notice_sent_has_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "failed"), _negated=True),
                            models.Q(("last_error", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="notice_failed_says_why",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Quota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                ("model", models.CharField(max_length=120)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("pacing", "pacing"),
                            ("exhausted", "exhausted"),
                            ("misconfigured", "misconfigured"),
                            ("paused", "paused"),
                        ],
                        default="open",
                        max_length=32,
                    ),
                ),
                ("until", models.DateTimeField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("not_configured", "No judge is configured"),
                            ("awaiting_judge", "Waiting for the judge"),
                            ("quota_exhausted", "Quota exhausted"),
                            ("budget_spent", "Today's budget is spent"),
                            ("paused", "An operator paused the judge"),
                            ("rate_limited", "Rate limited"),
                            ("overloaded", "The judge's service is overloaded"),
                            ("timeout", "The judge did not answer in time"),
                            ("connection", "The judge could not be reached"),
                            ("auth", "The judge's key was refused"),
                            ("refused", "The judge declined to grade this session"),
                            ("unparsable_verdict", "The judge's reply was not a verdict"),
                            ("input_too_large", "Too much evidence for one request"),
                            ("needs_attention", "An answer nobody expected; a person must look"),
                            ("no_transcript", "No transcript was submitted"),
                            ("log_too_small", "The log is too small for a session this long"),
                            ("log_overwritten", "The log belongs to another session"),
                            ("log_shared", "The same log was submitted for another session"),
                            ("stub_no_tool_calls", "Stub transcript: no tool calls in it"),
                            ("format_unknown", "The transcript's format is unknown"),
                            ("format_blind", "Nothing in the transcript was recognised"),
                            ("unreadable", "The evidence could not be read"),
                            ("nothing_observable", "No effect and no failure to see"),
                            ("carried", "All of it was carried over from another session"),
                            ("no_journal", "No journal was submitted"),
                            ("no_signal", "The journal names no outcome"),
                            ("no_artifacts", "No ideas, tasks, posts or notes"),
                            ("not_consumption", "Not a reading session, and nothing was left behind"),
                            ("no_evidence", "No source could grade this session"),
                            ("excluded", "A person excluded this session"),
                            ("withdrawn", "The correction was undone"),
                            ("infrastructure", "The session died of infrastructure"),
                        ],
                        default="",
                        max_length=32,
                    ),
                ),
                ("detail", models.TextField(blank=True)),
                ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("limits", models.JSONField(blank=True, default=dict)),
                ("limits_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("key", "model"), name="quota_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["open", "pacing", "exhausted", "misconfigured", "paused"])),
                        name="quota_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "reason__in",
                                [
                                    "",
                                    "not_configured",
                                    "awaiting_judge",
                                    "quota_exhausted",
                                    "budget_spent",
                                    "paused",
                                    "rate_limited",
                                    "overloaded",
                                    "timeout",
                                    "connection",
                                    "auth",
                                    "refused",
                                    "unparsable_verdict",
                                    "input_too_large",
                                    "needs_attention",
                                    "no_transcript",
                                    "log_too_small",
                                    "log_overwritten",
                                    "log_shared",
                                    "stub_no_tool_calls",
                                    "format_unknown",
                                    "format_blind",
                                    "unreadable",
                                    "nothing_observable",
                                    "carried",
                                    "no_journal",
                                    "no_signal",
                                    "no_artifacts",
                                    "not_consumption",
                                    "no_evidence",
                                    "excluded",
                                    "withdrawn",
                                    "infrastructure",
                                ],
                            )
                        ),
                        name="quota_reason_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="QuotaTransition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("pacing", "pacing"),
                            ("exhausted", "exhausted"),
                            ("misconfigured", "misconfigured"),
                            ("paused", "paused"),
                        ],
                        max_length=32,
                    ),
                ),
                ("until", models.DateTimeField(blank=True, null=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("not_configured", "No judge is configured"),
                            ("awaiting_judge", "Waiting for the judge"),
                            ("quota_exhausted", "Quota exhausted"),
                            ("budget_spent", "Today's budget is spent"),
                            ("paused", "An operator paused the judge"),
                            ("rate_limited", "Rate limited"),
                            ("overloaded", "The judge's service is overloaded"),
                            ("timeout", "The judge did not answer in time"),
                            ("connection", "The judge could not be reached"),
                            ("auth", "The judge's key was refused"),
                            ("refused", "The judge declined to grade this session"),
                            ("unparsable_verdict", "The judge's reply was not a verdict"),
                            ("input_too_large", "Too much evidence for one request"),
                            ("needs_attention", "An answer nobody expected; a person must look"),
                            ("no_transcript", "No transcript was submitted"),
                            ("log_too_small", "The log is too small for a session this long"),
                            ("log_overwritten", "The log belongs to another session"),
                            ("log_shared", "The same log was submitted for another session"),
                            ("stub_no_tool_calls", "Stub transcript: no tool calls in it"),
                            ("format_unknown", "The transcript's format is unknown"),
                            ("format_blind", "Nothing in the transcript was recognised"),
                            ("unreadable", "The evidence could not be read"),
                            ("nothing_observable", "No effect and no failure to see"),
                            ("carried", "All of it was carried over from another session"),
                            ("no_journal", "No journal was submitted"),
                            ("no_signal", "The journal names no outcome"),
                            ("no_artifacts", "No ideas, tasks, posts or notes"),
                            ("not_consumption", "Not a reading session, and nothing was left behind"),
                            ("no_evidence", "No source could grade this session"),
                            ("excluded", "A person excluded this session"),
                            ("withdrawn", "The correction was undone"),
                            ("infrastructure", "The session died of infrastructure"),
                        ],
                        default="",
                        max_length=32,
                    ),
                ),
                ("detail", models.TextField(blank=True)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "quota",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="transitions", to="grading.quota"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["open", "pacing", "exhausted", "misconfigured", "paused"])),
                        name="quota_transition_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "reason__in",
                                [
                                    "",
                                    "not_configured",
                                    "awaiting_judge",
                                    "quota_exhausted",
                                    "budget_spent",
                                    "paused",
                                    "rate_limited",
                                    "overloaded",
                                    "timeout",
                                    "connection",
                                    "auth",
                                    "refused",
                                    "unparsable_verdict",
                                    "input_too_large",
                                    "needs_attention",
                                    "no_transcript",
                                    "log_too_small",
                                    "log_overwritten",
                                    "log_shared",
                                    "stub_no_tool_calls",
                                    "format_unknown",
                                    "format_blind",
                                    "unreadable",
                                    "nothing_observable",
                                    "carried",
                                    "no_journal",
                                    "no_signal",
                                    "no_artifacts",
                                    "not_consumption",
                                    "no_evidence",
                                    "excluded",
                                    "withdrawn",
                                    "infrastructure",
                                ],
                            )
                        ),
                        name="quota_transition_reason_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Rubric",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sha256", models.CharField(max_length=64, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("production", "production"), ("consumption", "reading"), ("looking", "looking")],
                        default="production",
                        max_length=32,
                    ),
                ),
                ("title", models.CharField(max_length=120)),
                ("text", models.TextField()),
                ("dimensions", models.JSONField(default=list)),
                ("bands", models.JSONField(default=list)),
                ("examples", models.JSONField(blank=True, default=list)),
                ("note", models.CharField(blank=True, max_length=300)),
                ("is_active", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "author",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="grading.rubric",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["production", "consumption", "looking"])),
                        name="rubric_kind_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_active", True)), fields=("kind",), name="rubric_one_active"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JudgeRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("why", models.CharField(blank=True, max_length=300)),
                ("estimated_usd", models.FloatField(blank=True, null=True)),
                ("sessions", models.JSONField(blank=True, default=list)),
                ("total", models.PositiveIntegerField(default=0)),
                ("placed", models.PositiveIntegerField(default=0)),
                ("left_out", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("cancelled_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "cancelled_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "rubric",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="grading.rubric"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("placed__lte", models.F("total"))), name="judge_run_placed_within_total"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="JudgeJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("leased", "leased"),
                            ("sent", "sent"),
                            ("done", "done"),
                            ("abandoned", "abandoned"),
                            ("cancelled", "cancelled"),
                        ],
                        default="queued",
                        max_length=32,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("not_configured", "No judge is configured"),
                            ("awaiting_judge", "Waiting for the judge"),
                            ("quota_exhausted", "Quota exhausted"),
                            ("budget_spent", "Today's budget is spent"),
                            ("paused", "An operator paused the judge"),
                            ("rate_limited", "Rate limited"),
                            ("overloaded", "The judge's service is overloaded"),
                            ("timeout", "The judge did not answer in time"),
                            ("connection", "The judge could not be reached"),
                            ("auth", "The judge's key was refused"),
                            ("refused", "The judge declined to grade this session"),
                            ("unparsable_verdict", "The judge's reply was not a verdict"),
                            ("input_too_large", "Too much evidence for one request"),
                            ("needs_attention", "An answer nobody expected; a person must look"),
                            ("no_transcript", "No transcript was submitted"),
                            ("log_too_small", "The log is too small for a session this long"),
                            ("log_overwritten", "The log belongs to another session"),
                            ("log_shared", "The same log was submitted for another session"),
                            ("stub_no_tool_calls", "Stub transcript: no tool calls in it"),
                            ("format_unknown", "The transcript's format is unknown"),
                            ("format_blind", "Nothing in the transcript was recognised"),
                            ("unreadable", "The evidence could not be read"),
                            ("nothing_observable", "No effect and no failure to see"),
                            ("carried", "All of it was carried over from another session"),
                            ("no_journal", "No journal was submitted"),
                            ("no_signal", "The journal names no outcome"),
                            ("no_artifacts", "No ideas, tasks, posts or notes"),
                            ("not_consumption", "Not a reading session, and nothing was left behind"),
                            ("no_evidence", "No source could grade this session"),
                            ("excluded", "A person excluded this session"),
                            ("withdrawn", "The correction was undone"),
                            ("infrastructure", "The session died of infrastructure"),
                        ],
                        default="awaiting_judge",
                        max_length=32,
                    ),
                ),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("verdict", "verdict"),
                            ("sample", "read again"),
                            ("repeat", "asked twice"),
                            ("second", "second opinion"),
                            ("trial", "trial of a rubric"),
                        ],
                        default="verdict",
                        max_length=32,
                    ),
                ),
                (
                    "judge",
                    models.CharField(
                        choices=[("first", "first"), ("fallback", "fallback"), ("second", "second")],
                        default="first",
                        max_length=32,
                    ),
                ),
                ("stale", models.BooleanField(default=False)),
                ("unread", models.CharField(blank=True, default="", max_length=16)),
                ("reserved", models.BooleanField(default=False)),
                ("sample", models.PositiveSmallIntegerField(default=1)),
                ("backlog", models.BooleanField(default=False)),
                ("worth", models.FloatField(default=0)),
                ("input_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("losses", models.PositiveIntegerField(default=0)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("lease_token", models.UUIDField(blank=True, null=True)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "sample_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="grading.grade",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="grading.judgerun",
                    ),
                ),
                ("rubric", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="grading.rubric")),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="judge_jobs", to="grading.session"
                    ),
                ),
            ],
            options={
                "ordering": ["-stale", "-reserved", "backlog", "-worth", "pk"],
                "indexes": [
                    models.Index(fields=["state", "next_attempt_at"], name="judge_job_due"),
                    models.Index(
                        fields=["state", "-stale", "-reserved", "backlog", "-worth", "id"], name="judge_job_promised"
                    ),
                    models.Index(fields=["created_at"], name="judge_job_came"),
                    models.Index(fields=["finished_at", "created_at"], name="judge_job_went"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["queued", "leased", "sent", "done", "abandoned", "cancelled"])
                        ),
                        name="judge_job_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("purpose__in", ["verdict", "sample", "repeat", "second", "trial"])),
                        name="judge_job_purpose_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("judge__in", ["first", "fallback", "second"])), name="judge_job_judge_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "reason__in",
                                [
                                    "",
                                    "not_configured",
                                    "awaiting_judge",
                                    "quota_exhausted",
                                    "budget_spent",
                                    "paused",
                                    "rate_limited",
                                    "overloaded",
                                    "timeout",
                                    "connection",
                                    "auth",
                                    "refused",
                                    "unparsable_verdict",
                                    "input_too_large",
                                    "needs_attention",
                                    "no_transcript",
                                    "log_too_small",
                                    "log_overwritten",
                                    "log_shared",
                                    "stub_no_tool_calls",
                                    "format_unknown",
                                    "format_blind",
                                    "unreadable",
                                    "nothing_observable",
                                    "carried",
                                    "no_journal",
                                    "no_signal",
                                    "no_artifacts",
                                    "not_consumption",
                                    "no_evidence",
                                    "excluded",
                                    "withdrawn",
                                    "infrastructure",
                                ],
                            )
                        ),
                        name="judge_job_reason_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("queued", "leased", "sent"))),
                        fields=("session", "purpose"),
                        name="judge_job_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "leased"), _negated=True),
                            models.Q(("lease_token__isnull", False), ("leased_until__isnull", False)),
                            _connector="OR",
                        ),
                        name="judge_job_leased_has_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("purpose", "sample"), ("sample__gt", 1), ("sample_of__isnull", False)),
                            models.Q(
                                models.Q(("purpose", "sample"), _negated=True), ("sample", 1), ("sample_of", None)
                            ),
                            _connector="OR",
                        ),
                        name="judge_job_sample_is_of_a_verdict",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JudgeAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("lease_token", models.UUIDField()),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("graded", "graded"),
                            ("deferred", "deferred"),
                            ("refused", "refused"),
                            ("invalid", "invalid"),
                            ("lost", "lost"),
                        ],
                        default="running",
                        max_length=32,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("not_configured", "No judge is configured"),
                            ("awaiting_judge", "Waiting for the judge"),
                            ("quota_exhausted", "Quota exhausted"),
                            ("budget_spent", "Today's budget is spent"),
                            ("paused", "An operator paused the judge"),
                            ("rate_limited", "Rate limited"),
                            ("overloaded", "The judge's service is overloaded"),
                            ("timeout", "The judge did not answer in time"),
                            ("connection", "The judge could not be reached"),
                            ("auth", "The judge's key was refused"),
                            ("refused", "The judge declined to grade this session"),
                            ("unparsable_verdict", "The judge's reply was not a verdict"),
                            ("input_too_large", "Too much evidence for one request"),
                            ("needs_attention", "An answer nobody expected; a person must look"),
                            ("no_transcript", "No transcript was submitted"),
                            ("log_too_small", "The log is too small for a session this long"),
                            ("log_overwritten", "The log belongs to another session"),
                            ("log_shared", "The same log was submitted for another session"),
                            ("stub_no_tool_calls", "Stub transcript: no tool calls in it"),
                            ("format_unknown", "The transcript's format is unknown"),
                            ("format_blind", "Nothing in the transcript was recognised"),
                            ("unreadable", "The evidence could not be read"),
                            ("nothing_observable", "No effect and no failure to see"),
                            ("carried", "All of it was carried over from another session"),
                            ("no_journal", "No journal was submitted"),
                            ("no_signal", "The journal names no outcome"),
                            ("no_artifacts", "No ideas, tasks, posts or notes"),
                            ("not_consumption", "Not a reading session, and nothing was left behind"),
                            ("no_evidence", "No source could grade this session"),
                            ("excluded", "A person excluded this session"),
                            ("withdrawn", "The correction was undone"),
                            ("infrastructure", "The session died of infrastructure"),
                        ],
                        default="",
                        max_length=32,
                    ),
                ),
                ("http_status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("error_type", models.CharField(blank=True, max_length=80)),
                ("request_id", models.CharField(blank=True, max_length=120)),
                (
                    "judge",
                    models.CharField(
                        choices=[("first", "first"), ("fallback", "fallback"), ("second", "second")],
                        default="first",
                        max_length=32,
                    ),
                ),
                ("model", models.CharField(blank=True, max_length=120)),
                ("input_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("output_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("cache_read_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("cache_write_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("estimated_usd", models.FloatField(blank=True, null=True)),
                ("cost_usd", models.FloatField(blank=True, null=True)),
                ("retry_at", models.DateTimeField(blank=True, null=True)),
                ("prompt_sha256", models.CharField(blank=True, max_length=64)),
                ("read", models.JSONField(blank=True, default=dict)),
                ("inputs_sha256", models.CharField(blank=True, max_length=64)),
                ("citable", models.JSONField(blank=True, default=list)),
                ("detail", models.TextField(blank=True)),
                (
                    "batch",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempt_rows",
                        to="grading.judgebatch",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="attempt_rows", to="grading.judgejob"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["started_at"], name="judge_attempt_recent"),
                    models.Index(fields=["outcome", "finished_at"], name="judge_attempt_by_outcome"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("outcome__in", ["running", "graded", "deferred", "refused", "invalid", "lost"])
                        ),
                        name="judge_attempt_outcome_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "reason__in",
                                [
                                    "",
                                    "not_configured",
                                    "awaiting_judge",
                                    "quota_exhausted",
                                    "budget_spent",
                                    "paused",
                                    "rate_limited",
                                    "overloaded",
                                    "timeout",
                                    "connection",
                                    "auth",
                                    "refused",
                                    "unparsable_verdict",
                                    "input_too_large",
                                    "needs_attention",
                                    "no_transcript",
                                    "log_too_small",
                                    "log_overwritten",
                                    "log_shared",
                                    "stub_no_tool_calls",
                                    "format_unknown",
                                    "format_blind",
                                    "unreadable",
                                    "nothing_observable",
                                    "carried",
                                    "no_journal",
                                    "no_signal",
                                    "no_artifacts",
                                    "not_consumption",
                                    "no_evidence",
                                    "excluded",
                                    "withdrawn",
                                    "infrastructure",
                                ],
                            )
                        ),
                        name="judge_attempt_reason_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("judge__in", ["first", "fallback", "second"])),
                        name="judge_attempt_judge_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("outcome", "running"), ("finished_at__isnull", False), _connector="OR"),
                        name="judge_attempt_ended_has_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RubricActivation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "rubric",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="activations", to="grading.rubric"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "page",
                    models.CharField(
                        choices=[("review", "review"), ("sessions", "sessions"), ("history", "history")], max_length=32
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(blank=True, max_length=1000)),
                ("shared", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("page__in", ["review", "sessions", "history"])),
                        name="saved_view_page_known",
                    ),
                    models.CheckConstraint(condition=models.Q(("name", ""), _negated=True), name="saved_view_named"),
                    models.UniqueConstraint(fields=("owner", "page", "name"), name="saved_view_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SessionLog",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="log",
                        serialize=False,
                        to="grading.session",
                    ),
                ),
                ("files", models.JSONField(default=list)),
                ("size", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0)),
                ("resumed", models.BooleanField(default=False)),
                ("receipt", models.BigIntegerField(default=0)),
                ("carried", models.JSONField(default=dict)),
                ("parent", models.CharField(blank=True, max_length=200)),
                ("digest", models.CharField(blank=True, max_length=16)),
                (
                    "part_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="parts",
                        to="grading.session",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("parent", ""), _negated=True), fields=["parent"], name="session_log_parents"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "open"), ("done", "done"), ("dismissed", "dismissed")],
                        default="open",
                        max_length=32,
                    ),
                ),
                (
                    "entered_as",
                    models.CharField(
                        choices=[
                            ("rule", "raised by a rule"),
                            ("slice", "random slice"),
                            ("person", "put here by a person"),
                            ("evidence", "new evidence after a person's grade"),
                        ],
                        max_length=32,
                    ),
                ),
                ("why", models.TextField(blank=True)),
                ("entered_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("slice_probability", models.FloatField(blank=True, null=True)),
                ("impact", models.FloatField(default=0.0)),
                ("wanted", models.PositiveSmallIntegerField(default=1)),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                ("claim", models.CharField(blank=True, max_length=64)),
                (
                    "assigned_to",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "claimed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="review_item", to="grading.session"
                    ),
                ),
            ],
            options={
                "ordering": ["-impact", "pk"],
                "indexes": [models.Index(fields=["state", "-impact", "id"], name="review_item_order")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["open", "done", "dismissed"])), name="review_item_state_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("entered_as__in", ["rule", "slice", "person", "evidence"])),
                        name="review_item_entered_as_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("slice_probability", None),
                            models.Q(("slice_probability__gt", 0), ("slice_probability__lte", 1)),
                            _connector="OR",
                        ),
                        name="review_item_slice_probability",
                    ),
                    models.CheckConstraint(condition=models.Q(("impact__gte", 0)), name="review_item_impact_from_0"),
                    models.CheckConstraint(condition=models.Q(("wanted__gte", 1)), name="review_item_wants_someone"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "open"), ("closed_at", None)),
                            models.Q(models.Q(("state", "open"), _negated=True), ("closed_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="review_item_closed_iff_not_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("claim", ""), ("claimed_until", None)),
                            models.Q(
                                models.Q(("claim", ""), _negated=True),
                                ("claimed_by__isnull", False),
                                ("claimed_until__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="review_item_claim_is_whole",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state", "open"), ("claim", ""), _connector="OR"),
                        name="review_item_claimed_only_open",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reveal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("value", models.FloatField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "judge",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="grading.grade",
                    ),
                ),
                (
                    "reviewer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="reveals", to="grading.session"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["session", "reviewer"], name="reveal_of_session"),
                    models.Index(fields=["-created_at", "-id"], name="reveal_recent"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("value", None), models.Q(("value__gte", 0), ("value__lte", 1)), _connector="OR"
                        ),
                        name="reveal_value_range",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RecordAnchor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("record", models.BigIntegerField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="anchors", to="grading.session"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("record", "session"), name="anchor_once")],
            },
        ),
        migrations.CreateModel(
            name="Flag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rule", models.CharField(max_length=16)),
                ("detail", models.TextField()),
                ("raised_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("cleared_at", models.DateTimeField(blank=True, null=True)),
                ("cleared_why", models.CharField(blank=True, max_length=300)),
                (
                    "cleared_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "raised_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="flags", to="grading.session"
                    ),
                ),
            ],
            options={
                "ordering": ["-raised_at"],
                "indexes": [models.Index(fields=["rule", "raised_at"], name="flag_recent")],
                "constraints": [models.UniqueConstraint(fields=("session", "rule"), name="flag_once")],
            },
        ),
        migrations.CreateModel(
            name="Evidence",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("transcript", "transcript"),
                            ("journal", "journal"),
                            ("patch", "patch"),
                            ("facts", "facts"),
                            ("metadata", "metadata"),
                        ],
                        max_length=32,
                    ),
                ),
                ("sha256", models.CharField(max_length=64)),
                ("size", models.BigIntegerField()),
                ("filename", models.CharField(blank=True, max_length=255)),
                ("format", models.CharField(blank=True, max_length=40)),
                ("coverage", models.FloatField(blank=True, null=True)),
                ("report", models.JSONField(blank=True, default=dict)),
                (
                    "problem",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("not_configured", "No judge is configured"),
                            ("awaiting_judge", "Waiting for the judge"),
                            ("quota_exhausted", "Quota exhausted"),
                            ("budget_spent", "Today's budget is spent"),
                            ("paused", "An operator paused the judge"),
                            ("rate_limited", "Rate limited"),
                            ("overloaded", "The judge's service is overloaded"),
                            ("timeout", "The judge did not answer in time"),
                            ("connection", "The judge could not be reached"),
                            ("auth", "The judge's key was refused"),
                            ("refused", "The judge declined to grade this session"),
                            ("unparsable_verdict", "The judge's reply was not a verdict"),
                            ("input_too_large", "Too much evidence for one request"),
                            ("needs_attention", "An answer nobody expected; a person must look"),
                            ("no_transcript", "No transcript was submitted"),
                            ("log_too_small", "The log is too small for a session this long"),
                            ("log_overwritten", "The log belongs to another session"),
                            ("log_shared", "The same log was submitted for another session"),
                            ("stub_no_tool_calls", "Stub transcript: no tool calls in it"),
                            ("format_unknown", "The transcript's format is unknown"),
                            ("format_blind", "Nothing in the transcript was recognised"),
                            ("unreadable", "The evidence could not be read"),
                            ("nothing_observable", "No effect and no failure to see"),
                            ("carried", "All of it was carried over from another session"),
                            ("no_journal", "No journal was submitted"),
                            ("no_signal", "The journal names no outcome"),
                            ("no_artifacts", "No ideas, tasks, posts or notes"),
                            ("not_consumption", "Not a reading session, and nothing was left behind"),
                            ("no_evidence", "No source could grade this session"),
                            ("excluded", "A person excluded this session"),
                            ("withdrawn", "The correction was undone"),
                            ("infrastructure", "The session died of infrastructure"),
                        ],
                        default="",
                        max_length=32,
                    ),
                ),
                ("detail", models.TextField(blank=True)),
                ("received_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="evidence", to="grading.session"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "evidence",
                "ordering": ["pk"],
                "indexes": [models.Index(fields=["sha256", "kind"], name="evidence_by_hash")],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "kind", "sha256"), name="evidence_once"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["transcript", "journal", "patch", "facts", "metadata"])),
                        name="evidence_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "problem__in",
                                [
                                    "",
                                    "not_configured",
                                    "awaiting_judge",
                                    "quota_exhausted",
                                    "budget_spent",
                                    "paused",
                                    "rate_limited",
                                    "overloaded",
                                    "timeout",
                                    "connection",
                                    "auth",
                                    "refused",
                                    "unparsable_verdict",
                                    "input_too_large",
                                    "needs_attention",
                                    "no_transcript",
                                    "log_too_small",
                                    "log_overwritten",
                                    "log_shared",
                                    "stub_no_tool_calls",
                                    "format_unknown",
                                    "format_blind",
                                    "unreadable",
                                    "nothing_observable",
                                    "carried",
                                    "no_journal",
                                    "no_signal",
                                    "no_artifacts",
                                    "not_consumption",
                                    "no_evidence",
                                    "excluded",
                                    "withdrawn",
                                    "infrastructure",
                                ],
                            )
                        ),
                        name="evidence_problem_known",
                    ),
                    models.CheckConstraint(condition=models.Q(("size__gte", 0)), name="evidence_size_not_negative"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField(max_length=4000)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="comments", to="grading.session"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [models.Index(fields=["-created_at", "-id"], name="comment_recent")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("text", ""), _negated=True), name="comment_says_something"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AbstentionDraw",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("drawn", models.BooleanField()),
                ("chance", models.FloatField()),
                ("key_id", models.CharField(max_length=8)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "arm",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="bandit.arm"
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="abstention_draws",
                        to="grading.session",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["arm", "-id"], name="abstention_draw_of_arm"),
                    models.Index(
                        condition=models.Q(("drawn", True)), fields=["arm", "-id"], name="abstention_draw_drawn"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "arm"), name="abstention_draw_once"),
                    models.CheckConstraint(
                        condition=models.Q(("chance__gte", 0), ("chance__lte", 1)), name="abstention_draw_chance_0_to_1"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("drawn", False), ("chance__gt", 0), _connector="OR"),
                        name="abstention_draw_was_possible",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("drawn", True), ("chance__lt", 1), _connector="OR"),
                        name="abstention_draw_certain_is_drawn",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("key_id", ""), _negated=True), name="abstention_draw_names_its_key"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SessionLesson",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("taken", models.BooleanField(default=True)),
                ("salience", models.FloatField(blank=True, null=True)),
                (
                    "arm",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="bandit.arm"),
                ),
                (
                    "assignment",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="bandit.assignment",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="lessons", to="grading.session"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("session", "arm"), name="session_lesson_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("salience__isnull", True),
                            models.Q(("salience__gte", 0), ("salience__lte", 1)),
                            _connector="OR",
                        ),
                        name="lesson_salience_0_to_1",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Settlement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("revision", models.PositiveIntegerField()),
                ("value", models.FloatField(null=True)),
                ("source", models.CharField(blank=True, max_length=32)),
                ("final", models.BooleanField()),
                ("weight", models.FloatField()),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("not_configured", "No judge is configured"),
                            ("awaiting_judge", "Waiting for the judge"),
                            ("quota_exhausted", "Quota exhausted"),
                            ("budget_spent", "Today's budget is spent"),
                            ("paused", "An operator paused the judge"),
                            ("rate_limited", "Rate limited"),
                            ("overloaded", "The judge's service is overloaded"),
                            ("timeout", "The judge did not answer in time"),
                            ("connection", "The judge could not be reached"),
                            ("auth", "The judge's key was refused"),
                            ("refused", "The judge declined to grade this session"),
                            ("unparsable_verdict", "The judge's reply was not a verdict"),
                            ("input_too_large", "Too much evidence for one request"),
                            ("needs_attention", "An answer nobody expected; a person must look"),
                            ("no_transcript", "No transcript was submitted"),
                            ("log_too_small", "The log is too small for a session this long"),
                            ("log_overwritten", "The log belongs to another session"),
                            ("log_shared", "The same log was submitted for another session"),
                            ("stub_no_tool_calls", "Stub transcript: no tool calls in it"),
                            ("format_unknown", "The transcript's format is unknown"),
                            ("format_blind", "Nothing in the transcript was recognised"),
                            ("unreadable", "The evidence could not be read"),
                            ("nothing_observable", "No effect and no failure to see"),
                            ("carried", "All of it was carried over from another session"),
                            ("no_journal", "No journal was submitted"),
                            ("no_signal", "The journal names no outcome"),
                            ("no_artifacts", "No ideas, tasks, posts or notes"),
                            ("not_consumption", "Not a reading session, and nothing was left behind"),
                            ("no_evidence", "No source could grade this session"),
                            ("excluded", "A person excluded this session"),
                            ("withdrawn", "The correction was undone"),
                            ("infrastructure", "The session died of infrastructure"),
                        ],
                        default="",
                        max_length=32,
                    ),
                ),
                ("sentence", models.TextField(blank=True)),
                ("steps", models.JSONField()),
                ("policy_version", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "grade",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="grading.grade"
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="settlements", to="grading.session"
                    ),
                ),
            ],
            options={
                "ordering": ["session", "revision"],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "revision"), name="settlement_revision_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("value", None), models.Q(("value__gte", 0), ("value__lte", 1)), _connector="OR"
                        ),
                        name="settlement_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("weight__gte", 0), ("weight__lte", 1)), name="settlement_weight_range"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("revision__gte", 1)), name="settlement_revision_from_one"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("value__isnull", False), ("weight", 0), _connector="OR"),
                        name="settlement_no_reward_no_weight",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "answer",
                    models.CharField(
                        choices=[
                            ("grade", "grade"),
                            ("accept", "accept"),
                            ("exclude", "exclude"),
                            ("cannot judge", "cannot judge"),
                            ("skip", "skip"),
                            ("undo", "undo"),
                        ],
                        max_length=32,
                    ),
                ),
                ("value", models.FloatField(blank=True, null=True)),
                ("blind_value", models.FloatField(blank=True, null=True)),
                ("revealed", models.BooleanField(default=False)),
                ("reason", models.TextField(blank=True)),
                ("seconds", models.FloatField(blank=True, null=True)),
                ("evidence_sha256", models.CharField(blank=True, max_length=64)),
                ("slice_probability", models.FloatField(blank=True, null=True)),
                ("stratum", models.CharField(blank=True, max_length=40)),
                ("effects", models.JSONField(blank=True, default=dict)),
                ("bulk", models.CharField(blank=True, max_length=36)),
                ("claim", models.CharField(blank=True, max_length=64)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "grade",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answer",
                        to="grading.grade",
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="grading.grade",
                    ),
                ),
                (
                    "reviewer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "undoes",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="undone_by",
                        to="grading.reviewanswer",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="answers", to="grading.session"
                    ),
                ),
                (
                    "settlement",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="grading.settlement",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["session", "-id"], name="review_answer_of_session"),
                    models.Index(fields=["reviewer", "-id"], name="review_answer_of_reviewer"),
                    models.Index(fields=["-created_at"], name="review_answer_recent"),
                    models.Index(
                        condition=models.Q(("bulk", ""), _negated=True), fields=["bulk"], name="review_answer_of_bulk"
                    ),
                    models.Index(
                        condition=models.Q(("blind_value__isnull", False), ("slice_probability__isnull", False)),
                        fields=["session"],
                        name="review_answer_blind",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("answer__in", ["grade", "accept", "exclude", "cannot judge", "skip", "undo"])
                        ),
                        name="review_answer_answer_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("answer__in", ("grade", "accept")), ("value__isnull", False)),
                            models.Q(models.Q(("answer__in", ("grade", "accept")), _negated=True), ("value", None)),
                            _connector="OR",
                        ),
                        name="review_answer_value_iff_graded",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("value", None), models.Q(("value__gte", 0), ("value__lte", 1)), _connector="OR"
                        ),
                        name="review_answer_value_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("blind_value", None),
                            models.Q(("blind_value__gte", 0), ("blind_value__lte", 1)),
                            _connector="OR",
                        ),
                        name="review_answer_blind_value_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("answer", "undo"), ("undoes__isnull", False)),
                            models.Q(models.Q(("answer", "undo"), _negated=True), ("undoes", None)),
                            _connector="OR",
                        ),
                        name="review_answer_undo_names_what",
                    ),
                ],
            },
        ),
        *append_only("grading", "Evidence"),
        *append_only("grading", "Grade"),
        *append_only("grading", "Settlement"),
        *append_only("grading", "JudgePolicy"),
        *append_only("grading", "RubricActivation"),
        *append_only("grading", "ReviewAnswer"),
        *append_only("grading", "Reveal"),
        *append_only("grading", "Comment"),
        *append_only("grading", "AbstentionDraw"),
        migrations.RunPython(add_rules, migrations.RunPython.noop),
        migrations.RunPython(add_rubrics, migrations.RunPython.noop),
    ]
