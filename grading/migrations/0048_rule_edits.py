"""Edits of the rules for categories are kept, so that each can be undone."""

import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0047_notice_channels'),
    ]

    operations = [
        migrations.AlterModelManagers(
            name='categoryrule',
            managers=[
                ('everything', django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddField(
            model_name='categorychange',
            name='edit',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name='categoryrule',
            name='is_deleted',
            field=models.BooleanField(default=False, editable=False),
        ),
    ]
