"""An anchor is its record and its session, and needs no number besides. The table is made anew: a minute for a million
sessions.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("grading", "0054_narrow_indexes")]

    operations = [
        migrations.RunSQL("CREATE TABLE grading_anchors_kept AS SELECT record, session_id FROM grading_recordanchor"),
        migrations.DeleteModel("RecordAnchor"),
        migrations.CreateModel(
            "RecordAnchor",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "record", "session_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("record", models.BigIntegerField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="anchors", to="grading.session"
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            "INSERT INTO grading_recordanchor (record, session_id) "
            "SELECT record, session_id FROM grading_anchors_kept ORDER BY record, session_id"
        ),
        migrations.RunSQL("DROP TABLE grading_anchors_kept"),
    ]
