"""Drop two columns of Bandit that nothing reads or writes any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("bandit", "0001_squashed_0029_days")]

    operations = [
        migrations.RemoveField(model_name="bandit", name="history"),
        migrations.RemoveField(model_name="bandit", name="latest"),
    ]
