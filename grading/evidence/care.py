"""Care for stored evidence: each night a share of it is read again in full, and what processes left behind goes."""

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage

from grading.evidence import store
from grading.models import DamagedBlob, Evidence, ExpiredBlob

# So many nights until all of it was read.
NIGHTS = 30
DAMAGE = 300
# A file on its way in that nobody has written to for so long has nobody any more.
LEFT_SECONDS = 3600.0


def check(now: dt.datetime) -> int:
    """Read tonight's share of the blobs that rows refer to, and those found damaged before; how many are damaged."""
    tonight = now.date().toordinal() % NIGHTS
    rows = Evidence.objects.order_by().values_list("sha256", flat=True).distinct()
    known = set(DamagedBlob.objects.values_list("pk", flat=True))
    for sha256 in {*(each for each in rows.iterator() if int(each[:8], 16) % NIGHTS == tonight), *known}:
        look_at(sha256, now)
    return DamagedBlob.objects.count()


def look_at(sha256: str, now: dt.datetime) -> None:
    """Read a blob in full, and write down what is wrong with it, or that nothing is any more."""
    what = store.damage(sha256)
    is_needed = Evidence.objects.filter(sha256=sha256).exists() and not ExpiredBlob.objects.filter(pk=sha256).exists()
    if what and is_needed:
        DamagedBlob.objects.update_or_create(pk=sha256, defaults={"found_at": now, "what": what[:DAMAGE]})
    else:
        DamagedBlob.objects.filter(pk=sha256).delete()


def healed() -> None:
    """Look once more at what is known to be damaged: the same bytes may have come again."""
    for blob in DamagedBlob.objects.all():
        look_at(blob.pk, blob.found_at)


def tidy() -> int:
    """Remove files on their way in whose process is gone; how many. None that was written to of late is touched."""
    before, removed = time.time() - LEFT_SECONDS, 0
    for path in left_over():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()
                removed += 1
    return removed


def left_over() -> Iterator[Path]:
    for folder in (Path(default_storage.path("incoming")), Path(settings.TEMP_DIR)):
        if folder.is_dir():
            yield from (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
