"""The first steps fold by themselves: nobody hides them any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("grading", "0071_remove_rule_edits")]

    operations = [migrations.DeleteModel("HiddenChecklist")]
