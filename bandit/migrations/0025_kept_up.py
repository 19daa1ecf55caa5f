"""What is read of a bandit is kept up with its ledger: its last row, and whether it has only grown. Buckets count their
productive rewards, those above half.
"""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Case, Max, Sum, Value, When

PRODUCTIVE, WRITTEN = 500_000, 500


def count(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ARG001 - Django's signature
    """One pass over the ledger."""
    bandit, bucket, entry = (apps.get_model("bandit", name) for name in ("Bandit", "Bucket", "LedgerEntry"))
    for row in entry.objects.order_by().values("bandit").annotate(last=Max("pk")):
        bandit.objects.filter(pk=row["bandit"]).update(latest=row["last"])
    sign = Case(When(op="apply", then=Value(1)), default=Value(-1), output_field=models.BigIntegerField())
    key = ("bandit", "arm", "grader", "effective_day")
    high = entry.objects.filter(value_micro__gt=PRODUCTIVE).order_by().values_list(*key)
    counts = {tuple(of): int(n) for *of, n in high.annotate(n=Sum(sign))}
    changed = []
    for each in bucket.objects.filter(n__gt=0).iterator():
        each.productive = counts.get((each.bandit_id, each.arm_id, each.grader_id, each.effective_day), 0)
        if each.productive:
            changed.append(each)
    bucket.objects.bulk_update(changed, ["productive"], batch_size=WRITTEN)


def number() -> models.PositiveBigIntegerField:
    """Without a default: SQLite would make the table anew, which refers to itself."""
    return models.PositiveBigIntegerField(editable=False, null=True)


class Migration(migrations.Migration):
    dependencies = [("bandit", "0024_packed")]

    operations = [
        migrations.AddField("bandit", "history", number()),
        migrations.AddField("bandit", "latest", number()),
        migrations.AddField("bucket", "productive", models.BigIntegerField(default=0)),
        migrations.RunPython(count, migrations.RunPython.noop, elidable=True),
    ]
