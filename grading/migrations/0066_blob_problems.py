"""`ExpiredBlob` and `DamagedBlob` become one table. A blob that is in both has expired: nobody misses its bytes."""

import django.utils.timezone
from django.db import migrations, models

COPY = """
INSERT INTO grading_blobproblem (sha256, kind, since, what)
SELECT sha256, 'expired', expired_at, '' FROM grading_expiredblob
UNION ALL
SELECT sha256, 'damaged', found_at, what FROM grading_damagedblob
WHERE sha256 NOT IN (SELECT sha256 FROM grading_expiredblob)
"""


class Migration(migrations.Migration):
    dependencies = [("grading", "0065_delete_session_state")]

    operations = [
        migrations.CreateModel(
            "BlobProblem",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(choices=[("expired", "expired"), ("damaged", "damaged")], max_length=32),
                ),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
                ("what", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["expired", "damaged"])), name="blob_problem_kind_known"
                    )
                ],
            },
        ),
        migrations.RunSQL(COPY, migrations.RunSQL.noop, elidable=True),
        migrations.DeleteModel("ExpiredBlob"),
        migrations.DeleteModel("DamagedBlob"),
    ]
