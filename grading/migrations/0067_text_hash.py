"""Copies are artifacts with equal texts: a hash in `Artifact` replaces the tables with sketches of texts.

The texts of stored artifacts are not in the database, so their hash stays empty until their session is graded again, for
example after a later submission. Until then later copies of them count, as long as 30 days after the upgrade. A text
that is read again was received when the site received the patch or log that it is in. Texts with a changed word, and
excerpts, are no longer caught.
"""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("grading", "0066_blob_problems")]

    operations = [
        migrations.DeleteModel("ArtifactMark"),
        migrations.DeleteModel("ArtifactSketch"),
        migrations.AddField("artifact", "text_hash", models.BigIntegerField(blank=True, null=True)),
        migrations.AddField("artifact", "text_ended_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("artifact", "text_received_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddIndex(
            "artifact",
            models.Index(fields=["text_hash"], condition=Q(text_hash__isnull=False), name="artifact_texts"),
        ),
        migrations.AddConstraint(
            "artifact",
            models.CheckConstraint(
                condition=Q(text_hash=None, text_ended_at=None, text_received_at=None)
                | Q(text_hash__isnull=False, text_ended_at__isnull=False, text_received_at__isnull=False),
                name="artifact_text_dated",
            ),
        ),
    ]
