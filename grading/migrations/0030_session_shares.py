"""Which shares of all sessions each is in, as rows that nothing draws again.

Sessions from before keep what a public hash, or the queue, said of them, so that running comparisons go on.
"""

import hashlib

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

from bandit.migrations._append_only import append_only

CHUNK = 1000
NO_REWARD = ("infrastructure", "refused")


def fill(apps, schema_editor):
    Session, Item, Policy, Shares = (
        apps.get_model("grading", name) for name in ("Session", "ReviewItem", "JudgePolicy", "SessionShares")
    )
    policy = Policy.objects.order_by("-pk").first() or Policy()
    queued = dict(Item.objects.values_list("session", "slice_probability"))
    some = []
    rows = Session.objects.filter(shares=None).order_by("pk").values_list("pk", "external_id", "agent__name", "outcome")
    for pk, name, agent, outcome in rows.iterator(CHUNK):
        # What came out of the slice had a place in the queue, but for what cannot be graded: nobody has looked yet.
        held = queued.get(pk)
        if pk not in queued and outcome in NO_REWARD:
            held = share_of(f"review/{agent}/{name}", settings.REVIEW_SLICE)
        repeat, second = share_of(f"repeat/{name}", policy.repeat_share), share_of(f"second/{name}", policy.second_share)
        some.append(Shares(session_id=pk, review_slice=held, repeat=repeat, second=second))
        if len(some) == CHUNK:
            Shares.objects.bulk_create(some)
            some = []
    Shares.objects.bulk_create(some)


def share_of(name, share):
    """The share, where the hash of a name, read as a number in [0, 1), falls into it; else None."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return share if number < share * 2**64 else None


def chance(name):
    condition = Q((name, None), Q((f"{name}__gt", 0), (f"{name}__lte", 1)), _connector="OR")
    return models.CheckConstraint(
        condition=condition, name=f"session_shares_{name.removeprefix('review_')}_is_a_chance"
    )


class Migration(migrations.Migration):
    dependencies = [("bandit", "0019_of_an_agent"), ("grading", "0029_audit_events")]

    operations = [
        migrations.CreateModel(
            name="SessionShares",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("review_slice", models.FloatField(blank=True, null=True)),
                ("repeat", models.FloatField(blank=True, null=True)),
                ("second", models.FloatField(blank=True, null=True)),
                ("key_id", models.CharField(blank=True, default="", max_length=8)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="shares", to="grading.session"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "session shares",
                "constraints": [chance("review_slice"), chance("repeat"), chance("second")],
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        *append_only("grading", "SessionShares"),
    ]
