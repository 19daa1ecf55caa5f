"""An index of the calls to a judge that something is said against: few, among very many."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("grading", "0049_words_of_reasons")]

    operations = [
        migrations.AddIndex(
            "judgeattempt",
            models.Index(
                fields=["model", "started_at"], condition=Q(reason__gt=""), name="judge_attempt_troubled"
            ),
        ),
    ]
