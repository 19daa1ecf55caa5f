"""The first steps fold by themselves: nobody hides them any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("grading", "0069_quota_state_labels")]

    operations = [migrations.DeleteModel("HiddenChecklist")]
