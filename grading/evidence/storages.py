"""Where evidence is stored: in files, in the database, or in a bucket (the setting EVIDENCE).

Each is one of Django's storages with the methods of `EvidenceStorage`. A name stands for one content for ever, so that
saving the same again is harmless, whichever host does it.
"""

import datetime as dt
import os
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.utils import timezone

from gradingsite.evidence import evidence_storage


class EvidenceStorage(Storage):
    """What the store needs of a storage, beside Django's methods."""

    def require(self) -> None:
        """Raise StorageAway if the storage cannot be used. Otherwise everything in it would seem to be missing."""

    def renew(self, name: str) -> bool:
        """Set the time of a stored file to now, so that `remove_older` spares it. False if there is no such file."""
        raise NotImplementedError

    def put(self, name: str, path: Path) -> None:
        """Store the file at `path` under this name, in place of what is stored there. The file may be moved."""
        raise NotImplementedError

    def sync(self, name: str) -> None:
        """Return once a stored file, whose bytes were on disk before, survives a power cut."""

    def remove_older(self, name: str, before: float) -> bool:
        """Delete a file that was stored or renewed before `before` (a timestamp in seconds). Whether it did."""
        raise NotImplementedError


class EvidenceFiles(EvidenceStorage, FileSystemStorage):
    """Files in the folder `evidence` of the state folder."""

    def renew(self, name: str) -> bool:
        try:
            os.utime(self.path(name))
        except FileNotFoundError:
            return False
        return True

    def put(self, name: str, path: Path) -> None:
        target = Path(self.path(name))
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.replace(target)

    def sync(self, name: str) -> None:
        # Without the folder's entry on disk, the file would have no name.
        folder = os.open(Path(self.path(name)).parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove_older(self, name: str, before: float) -> bool:
        path = Path(self.path(name))
        # Renamed first and then deleted: `put` and `renew` may run in another process meanwhile.
        renamed = path.with_suffix(".expiring")
        try:
            if path.stat().st_mtime >= before:
                return False
            path.rename(renamed)
        except FileNotFoundError:
            return False
        if renamed.stat().st_mtime >= before and not path.exists():  # it was renewed after the check above
            renamed.rename(path)
        else:
            renamed.unlink()
        return not path.exists()


class EvidenceRows(EvidenceStorage):
    """Rows of the database, for small sites on several hosts. A file is read into memory as a whole."""

    def renew(self, name: str) -> bool:
        return bool(_blobs().filter(pk=name).update(stored_at=timezone.now()))

    def put(self, name: str, path: Path) -> None:
        _blobs().update_or_create(pk=name, defaults={"data": path.read_bytes(), "stored_at": timezone.now()})

    def remove_older(self, name: str, before: float) -> bool:
        return bool(_blobs().filter(pk=name, stored_at__lt=dt.datetime.fromtimestamp(before, dt.UTC)).delete()[0])

    def _open(self, name: str, _mode: str = "rb") -> File:  # type: ignore[type-arg]  # generic in the stubs only
        data = _blobs().filter(pk=name).values_list("data", flat=True).first()
        if data is None:
            raise FileNotFoundError(f"there is no evidence {name}")
        return ContentFile(bytes(data), name=name)

    def _save(self, name: str, content: Any) -> str:
        _blobs().create(pk=name, data=content.read())
        return name

    def exists(self, name: str) -> bool:
        return bool(_blobs().filter(pk=name).exists())

    def delete(self, name: str) -> None:
        _blobs().filter(pk=name).delete()

    def size(self, name: str) -> int:
        return len(self._open(name).read())

    def get_modified_time(self, name: str) -> dt.datetime:
        stored_at: dt.datetime | None = _blobs().filter(pk=name).values_list("stored_at", flat=True).first()
        if stored_at is None:
            raise FileNotFoundError(f"there is no evidence {name}")
        return stored_at

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        names = _blobs().order_by("pk").values_list("pk", flat=True)
        if path:
            return [], [name.partition("/")[2] for name in names.filter(pk__startswith=f"{path}/")]
        return sorted({name.partition("/")[0] for name in names.iterator()}), []


def _blobs() -> Any:
    from grading.models import EvidenceBlob

    return EvidenceBlob.objects.all()


def storage_of(evidence: str) -> EvidenceStorage:
    """The storage that a value of EVIDENCE names, to copy from or to. Raises ImproperlyConfigured."""
    is_own = evidence == settings.EVIDENCE
    storage = storages["default"] if is_own else storages.create_storage(evidence_storage(evidence))
    return cast("EvidenceStorage", storage)
