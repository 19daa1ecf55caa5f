"""The items of the queue get their ranks in the random order: as those do that come from now on.

Answers from before count over all as soon as their turn in that order has come; none is lost meanwhile.
"""

from django.db import migrations

from bandit.chance import chance

CHUNK = 500


def fill(apps, schema_editor):
    items = apps.get_model("grading", "ReviewItem").objects.select_related("session__agent")
    some = []
    for item in items.order_by("pk").iterator(CHUNK):
        item.rank = chance("review order", "", item.session.agent.name, item.session.external_id)
        some.append(item)
        if len(some) == CHUNK:
            items.bulk_update(some, ["rank"])
            some = []
    items.bulk_update(some, ["rank"])


class Migration(migrations.Migration):
    dependencies = [("grading", "0026_review_places")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]
