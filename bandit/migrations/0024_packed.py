"""What was packed takes the place of what it was made of."""

from django.db import migrations, models

from bandit.migrations._packing import instead


class Migration(migrations.Migration):
    dependencies = [("bandit", "0023_pack")]

    operations = [*instead("selection", eligible=models.BinaryField(), explanation=models.BinaryField())]
