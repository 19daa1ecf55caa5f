"""The list of decisions begins with the latest, however many there are."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bandit", "0020_what_was_erased")]

    operations = [
        migrations.AddIndex(
            "selection", models.Index(fields=["-created", "-id"], name="bandit_selection_recent")
        ),
    ]
