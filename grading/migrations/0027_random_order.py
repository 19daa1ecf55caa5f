"""The items of the queue get their ranks in the random order: as those do that come from now on.

Answers from before count over all as soon as their turn in that order has come; none is lost meanwhile.
"""

import hashlib
import hmac

from django.conf import settings
from django.db import migrations

CHUNK = 500


def fill(apps, schema_editor):
    items = apps.get_model("grading", "ReviewItem").objects.select_related("session__agent")
    some = []
    for item in items.order_by("pk").iterator(CHUNK):
        item.rank = rank(item.session)
        some.append(item)
        if len(some) == CHUNK:
            items.bulk_update(some, ["rank"])
            some = []
    items.bulk_update(some, ["rank"])


def rank(session):
    """`bandit.chance.chance("review order", "", agent, name)`, as it was when this was written."""
    texts = ("gradingsite/chance/1", "review order", "", session.agent.name, session.external_id)
    named = [text.encode("utf-8", "surrogatepass") for text in texts]
    asked = b"".join(len(text).to_bytes(8, "big") + text for text in named)
    digest = hmac.digest(settings.CHANCE_KEY, asked, hashlib.sha256)
    return (int.from_bytes(digest[:8], "big") >> 11) / 2.0**53


class Migration(migrations.Migration):
    dependencies = [("grading", "0026_review_places")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]
