"""Who vouches for what: scopes of tokens, witnesses, every submission a row, and what was said too late."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):
    dependencies = [
        ("bandit", "0018_pooling"),
        ("grading", "0027_random_order"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Proposal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "field",
                    models.CharField(
                        choices=[
                            ("outcome", "outcome"),
                            ("category", "category"),
                            ("title", "title"),
                            ("dates", "dates"),
                            ("engine", "harness or model"),
                            ("run", "exit code or cost"),
                            ("selection", "decision"),
                            ("lessons", "lessons"),
                            ("facts", "facts"),
                        ],
                        max_length=32,
                    ),
                ),
                ("value", models.JSONField()),
                ("said_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                ("adopted", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Submission",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "scope",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "made before scopes"),
                            ("agent", "the agent itself"),
                            ("hook", "a hook on the agent’s machine"),
                            ("runner", "a runner that the agent cannot read"),
                            ("read", "reading only"),
                        ],
                        default="",
                        max_length=32,
                    ),
                ),
                (
                    "witness",
                    models.CharField(
                        choices=[
                            ("claimed", "the agent’s own word"),
                            ("unknown", "nobody has said"),
                            ("hook", "the hook on its machine"),
                            ("observed", "its runner"),
                            ("verified", "this site"),
                        ],
                        default="unknown",
                        max_length=32,
                    ),
                ),
                ("body_sha256", models.CharField(max_length=64)),
                ("added", models.JSONField(blank=True, default=list)),
                ("before", models.JSONField(blank=True, default=dict)),
                ("after", models.JSONField(blank=True, default=dict)),
                ("received_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.RemoveConstraint(
            model_name="evidence",
            name="evidence_once",
        ),
        migrations.AddField(
            model_name="apitoken",
            name="expires_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="scope",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "made before scopes"),
                    ("agent", "the agent itself"),
                    ("hook", "a hook on the agent’s machine"),
                    ("runner", "a runner that the agent cannot read"),
                    ("read", "reading only"),
                ],
                default="",
                max_length=32,
            ),
        ),
        migrations.AddField(
            model_name="artifact",
            name="witness",
            field=models.CharField(
                choices=[
                    ("claimed", "the agent’s own word"),
                    ("unknown", "nobody has said"),
                    ("hook", "the hook on its machine"),
                    ("observed", "its runner"),
                    ("verified", "this site"),
                ],
                default="unknown",
                max_length=32,
            ),
        ),
        migrations.AddField(
            model_name="evidence",
            name="witness",
            field=models.CharField(
                choices=[
                    ("claimed", "the agent’s own word"),
                    ("unknown", "nobody has said"),
                    ("hook", "the hook on its machine"),
                    ("observed", "its runner"),
                    ("verified", "this site"),
                ],
                default="unknown",
                max_length=32,
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="exit_witness",
            field=models.CharField(
                choices=[
                    ("claimed", "the agent’s own word"),
                    ("unknown", "nobody has said"),
                    ("hook", "the hook on its machine"),
                    ("observed", "its runner"),
                    ("verified", "this site"),
                ],
                default="unknown",
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="revoked_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(("scope__in", ["", "agent", "hook", "runner", "read"])), name="apitoken_scope_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.CheckConstraint(
                condition=models.Q(("witness__in", ["claimed", "unknown", "hook", "observed", "verified"])),
                name="artifact_witness_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="evidence",
            constraint=models.UniqueConstraint(fields=("session", "kind", "sha256", "witness"), name="evidence_once"),
        ),
        migrations.AddConstraint(
            model_name="evidence",
            constraint=models.CheckConstraint(
                condition=models.Q(("witness__in", ["claimed", "unknown", "hook", "observed", "verified"])),
                name="evidence_witness_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="session",
            constraint=models.CheckConstraint(
                condition=models.Q(("exit_witness__in", ["claimed", "unknown", "hook", "observed", "verified"])),
                name="session_exit_witness_known",
            ),
        ),
        migrations.AddField(
            model_name="proposal",
            name="answered_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="proposal",
            name="session",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="proposals", to="grading.session"
            ),
        ),
        migrations.CreateModel(
            name="SubmissionAddress",
            fields=[
                (
                    "submission",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="sent_from",
                        serialize=False,
                        to="grading.submission",
                    ),
                ),
                ("address", models.GenericIPAddressField()),
                ("received_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
        ),
        migrations.AddField(
            model_name="submission",
            name="session",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="submissions", to="grading.session"
            ),
        ),
        migrations.AddField(
            model_name="submission",
            name="token",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="submissions",
                to="grading.apitoken",
            ),
        ),
        migrations.AddField(
            model_name="proposal",
            name="submission",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="proposals", to="grading.submission"
            ),
        ),
        migrations.AddConstraint(
            model_name="submission",
            constraint=models.CheckConstraint(
                condition=models.Q(("scope__in", ["", "agent", "hook", "runner", "read"])),
                name="submission_scope_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="submission",
            constraint=models.CheckConstraint(
                condition=models.Q(("witness__in", ["claimed", "unknown", "hook", "observed", "verified"])),
                name="submission_witness_known",
            ),
        ),
        migrations.AddIndex(
            model_name="proposal",
            index=models.Index(condition=models.Q(("answered_at", None)), fields=["session"], name="proposal_open"),
        ),
        migrations.AddConstraint(
            model_name="proposal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "field__in",
                        ["outcome", "category", "title", "dates", "engine", "run", "selection", "lessons", "facts"],
                    )
                ),
                name="proposal_field_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="proposal",
            constraint=models.CheckConstraint(
                condition=models.Q(("adopted", False), ("answered_at__isnull", False), _connector="OR"),
                name="proposal_adopted_is_answered",
            ),
        ),
        # Rebuilding the table dropped its triggers.
        *append_only("grading", "Evidence"),
        *append_only("grading", "Submission"),
    ]
