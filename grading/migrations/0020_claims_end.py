"""An item that is closed is nobody's: claims that were left on closed items are given back, and no new ones are kept."""

from django.db import migrations, models


def give_back(apps, schema_editor):
    closed = apps.get_model("grading", "ReviewItem").objects.exclude(state="open")
    closed.exclude(claim="").update(claim="", claimed_until=None, claimed_by=None)


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0019_claims_of_outcome'),
    ]

    operations = [
        migrations.RunPython(give_back, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(
                condition=models.Q(('state', 'open'), ('claim', ''), _connector='OR'),
                name='review_item_claimed_only_open',
            ),
        ),
    ]
