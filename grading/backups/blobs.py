"""Files of evidence in a backup: copied once and checked, and from then on hard links into the previous backup."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from django.core.files.storage import default_storage

from grading.backups.manifest import CHUNK, EVIDENCE, SUMS, sums
from grading.evidence import store
from grading.models import BlobProblem, Evidence


@dataclass(slots=True, kw_only=True)
class EvidenceCopy:
    """How many files of evidence a backup has copied and linked, and the hashes of evidence that the site lacks.

    `rescued`: the previous backup still has it. `lacking`: neither the site nor that backup has it undamaged. `gone`:
    it was erased or expired while the backup was made.
    """

    copied: int = 0
    linked: int = 0
    rescued: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


class EvidenceFolder:
    """The evidence whose hashes begin with the same two digits.

    `folder` is its folder in the backup that is being made, `previous` its folder in the previous backup (None if there
    is none). SHA256SUMS in each folder has the checksums of its files, so that a linked file need not be read again.
    `checksums` and `previous_checksums` are those of the two folders, by file name.
    """

    def __init__(self, backup: Path, previous: Path | None, prefix: str) -> None:
        self.folder = backup / EVIDENCE / prefix
        self.folder.mkdir(mode=0o700, parents=True)
        self.previous = None if previous is None else previous / EVIDENCE / prefix
        self.previous_checksums: dict[str, str] = {}
        if self.previous is not None and (self.previous / SUMS).is_file():
            self.previous_checksums = dict(sums(self.previous))
        self.checksums: dict[str, str] = {}

    def link(self, name: str) -> bool:
        """Link the previous backup's file of this name. False if there is no such file, or it can't be linked."""
        if self.previous is None or name not in self.previous_checksums:
            return False
        try:
            os.link(self.previous / name, self.folder / name)
        except OSError:  # it was removed, or has as many links as it can have
            return False
        self.checksums[name] = self.previous_checksums[name]
        return True

    def link_derived(self, path: str) -> bool:
        """Link the previous backup's copy of a derived file, unless it was derived again since (size and time differ).

        `path` is the file's path in the site's storage. False if nothing was linked.
        """
        name = Path(path).name
        if self.previous is None:
            return False
        with suppress(OSError):
            previous = (self.previous / name).stat()
            if (previous.st_size, int(previous.st_mtime)) == (default_storage.size(path), changed_at(path)):
                return self.link(name)
        return False

    def copy(self, path: str) -> bool:
        """Copy the file with this path from the site's storage. False if it is not there any more."""
        target = self.folder / Path(path).name
        digest = hashlib.sha256()
        try:
            with default_storage.open(path) as source, target.open("xb") as file:
                for chunk in iter(lambda: source.read(CHUNK), b""):
                    digest.update(chunk)
                    file.write(chunk)
            changed = changed_at(path)
        except FileNotFoundError:
            target.unlink(missing_ok=True)
            return False
        os.utime(target, (changed, changed))
        self.checksums[target.name] = digest.hexdigest()
        return True

    def drop(self, name: str) -> None:
        """Delete a copied file."""
        (self.folder / name).unlink()
        del self.checksums[name]

    def close(self) -> None:
        """Write SHA256SUMS."""
        lines = (f"{digest}  {name}\n" for name, digest in sorted(self.checksums.items()))
        (self.folder / SUMS).write_text("".join(lines))


def collect(backup: Path, previous: Path | None, alias: str) -> EvidenceCopy:
    """Copy or link the evidence of the database `alias` into a backup, and the files that were derived from it."""
    done = EvidenceCopy()
    for prefix, rows in groupby(evidence_hashes(alias), key=lambda row: row[0][:2]):
        folder = EvidenceFolder(backup, previous, prefix)
        stored_paths = store.listed(prefix)
        for sha256, size in rows:
            blob = f"{sha256}.zst"
            paths = stored_paths.get(sha256, [])
            for path in paths:
                if path.endswith(blob):
                    continue
                if folder.link_derived(path):
                    done.linked += 1
                else:
                    done.copied += folder.copy(path)
            is_stored = f"{prefix}/{blob}" in paths
            if is_stored and folder.link(blob):
                done.linked += 1
            elif is_stored and folder.copy(f"{prefix}/{blob}") and is_intact(folder.folder / blob, sha256, size):
                done.copied += 1
            else:
                if blob in folder.checksums:
                    folder.drop(blob)
                handle_missing(done, folder, alias, sha256)
        folder.close()
    return done


def handle_missing(done: EvidenceCopy, folder: EvidenceFolder, alias: str, sha256: str) -> None:
    """Record in `done` why the site has no intact file with this hash. If it was lost, link the previous backup's file.

    Nothing is recorded for evidence that had expired before the backup began.
    """
    if BlobProblem.objects.using(alias).expired().filter(pk=sha256).exists():
        return
    is_expired = BlobProblem.objects.expired().filter(pk=sha256).exists()
    if is_expired or not Evidence.objects.filter(sha256=sha256).exists():
        done.gone.append(sha256)
    elif folder.link(f"{sha256}.zst"):
        done.rescued.append(sha256)
    else:
        done.lacking.append(sha256)


def evidence_hashes(alias: str) -> Iterator[tuple[str, int]]:
    """The (hash, size) of each distinct piece of evidence in the database `alias`, in order of the hash."""
    rows = Evidence.objects.using(alias).order_by("sha256").values_list("sha256", "size").distinct()
    yield from rows.iterator(chunk_size=5000)


def is_intact(path: Path, sha256: str, size: int) -> bool:
    """Whether a compressed file contains exactly the bytes with this hash and size."""
    with path.open("rb") as file:
        return not store.flaw(file, sha256, size)


def changed_at(path: str) -> int:
    """When a stored file was last changed, as a Unix time."""
    return int(default_storage.get_modified_time(path).timestamp())
