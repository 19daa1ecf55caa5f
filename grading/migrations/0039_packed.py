"""What was packed takes the place of what it was made of."""

from django.db import migrations, models

from bandit.migrations._append_only import append_only
from bandit.migrations._packing import instead


class Migration(migrations.Migration):
    dependencies = [("grading", "0038_pack")]

    operations = [
        *instead("grade", evidence=models.BinaryField(blank=True)),
        *instead("settlement", steps=models.BinaryField()),
        *instead("evidence", report=models.BinaryField(blank=True)),
        *instead("reviewanswer", effects=models.BinaryField(blank=True)),
        *instead("submission", before=models.BinaryField(blank=True), after=models.BinaryField(blank=True)),
        *instead("judgeattempt", read=models.BinaryField(blank=True)),
        *append_only("grading", "Grade"),
        *append_only("grading", "Settlement"),
        *append_only("grading", "Evidence"),
        *append_only("grading", "ReviewAnswer"),
        *append_only("grading", "Submission"),
    ]
