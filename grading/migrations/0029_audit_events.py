import django.utils.timezone
from django.db import migrations, models

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):
    dependencies = [
        ("grading", "0028_witnesses"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("sign-in", "sign-in"),
                            ("token", "token"),
                            ("person", "person"),
                            ("download", "download"),
                            ("raw", "raw"),
                        ],
                        max_length=32,
                    ),
                ),
                ("who", models.CharField(blank=True, max_length=150)),
                ("what", models.CharField(max_length=300)),
                ("detail", models.CharField(blank=True, max_length=500)),
                ("address", models.CharField(blank=True, max_length=45)),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [models.Index(fields=["-at", "-id"], name="auditevent_recent")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["sign-in", "token", "person", "download", "raw"])),
                        name="auditevent_kind_known",
                    )
                ],
            },
        ),
        *append_only("grading", "AuditEvent"),
    ]
