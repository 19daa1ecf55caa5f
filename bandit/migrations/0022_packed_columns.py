"""Columns for what the next migration packs; `bandit_selection_created` begins with the bandit, too."""

import django.db.models.deletion
from django.db import migrations, models

from bandit.migrations._packing import beside, without_index


class Migration(migrations.Migration):
    dependencies = [("bandit", "0021_recent_decisions")]

    operations = [
        *without_index(
            "bandit",
            "selection",
            bandit=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="selections",
                to="bandit.bandit",
            ),
        ),
        *beside("selection", "eligible", "explanation"),
    ]
