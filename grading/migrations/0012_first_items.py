"""The queue of a site that had sessions before it had a queue: open flags, and the random slice of the last month."""

import datetime as dt
import hashlib

from django.conf import settings
from django.db import migrations
from django.utils import timezone

DAYS = 30
NO_REWARD = ("infrastructure", "refused")


def fill(apps, schema_editor):
    """An item for each session that `review.look` would have put in. One a person graded is done."""
    Session, Flag, ReviewItem = (apps.get_model("grading", name) for name in ("Session", "Flag", "ReviewItem"))
    sessions = Session.objects.exclude(outcome__in=NO_REWARD).filter(review_item=None)
    flags = Flag.objects.filter(cleared_at=None).order_by("-pk")
    raised = dict(flags.values_list("session", "detail"))
    items = [
        ReviewItem(session=session, entered_as="rule", why=raised[session.pk], slice_probability=chance(session))
        for session in sessions.filter(pk__in=flags.values("session")).select_related("agent")
    ]
    recent = sessions.filter(ended_at__gt=timezone.now() - dt.timedelta(days=DAYS)).exclude(pk__in=flags.values("session"))
    ungraded = recent.exclude(grades__source="human").select_related("agent")
    items += [
        ReviewItem(session=session, entered_as="slice", slice_probability=chance(session))
        for session in ungraded.iterator()
        if chance(session) is not None
    ]
    ReviewItem.objects.bulk_create(items, batch_size=500)


def chance(session):
    """The share, where the hash of the session's name, read as a number in [0, 1), falls into it; else None."""
    name = f"review/{session.agent.name}/{session.external_id}"
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return settings.REVIEW_SLICE if number < settings.REVIEW_SLICE * 2**64 else None


class Migration(migrations.Migration):
    dependencies = [("grading", "0011_answer_claim")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
