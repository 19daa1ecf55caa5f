"""How much text an artifact must have to count, why one does not, and what each says, so that copies are found."""

import django.db.models.deletion
from django.db import migrations, models

# A row of a table is one line: it is not held to the length of a file.
IN_A_ROW = 12


def ask_less_of_rows(apps, schema_editor):
    rules = apps.get_model("grading", "ArtifactRule").objects.exclude(line_pattern="")
    rules.update(least_characters=IN_A_ROW)


class Migration(migrations.Migration):
    dependencies = [("grading", "0021_owners")]

    operations = [
        migrations.AddField(
            model_name="artifactrule",
            name="least_characters",
            field=models.PositiveIntegerField(
                default=200, help_text="Of text without markup that a file, or a row, must have to count."
            ),
        ),
        migrations.AddConstraint(
            model_name="artifactrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("least_characters__lte", 5000)), name="artifact_rule_characters_range"
            ),
        ),
        migrations.RunPython(ask_less_of_rows, migrations.RunPython.noop),
        migrations.AddField(
            model_name="artifact", name="left_out", field=models.CharField(blank=True, max_length=400)
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
        ),
        migrations.AddConstraint(
            model_name="artifactmark",
            constraint=models.UniqueConstraint(fields=("mark", "sketch"), name="artifact_mark_once"),
        ),
    ]
