"""Which bytes went by retention."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("grading", "0031_token_quotas")]

    operations = [
        migrations.CreateModel(
            name="ExpiredBlob",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("expired_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
    ]
