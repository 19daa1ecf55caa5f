"""Pack what is only read as a whole: batch by batch, so that it can be interrupted and goes on where it was."""

from django.db import migrations

from bandit.migrations._packing import fill


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bandit", "0022_packed_columns")]

    operations = [fill("bandit", "Selection", "eligible", "explanation", append_only=False)]
