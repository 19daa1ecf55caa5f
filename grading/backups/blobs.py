"""Files of evidence in a backup: copied once and checked, and from then on hard links to the backup before."""

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

# Files are copied and linked by these; what is said of them are hashes of evidence.
Checksums = dict[str, str]


@dataclass(slots=True, kw_only=True)
class EvidenceCopy:
    """What became of the evidence: files copied and linked, and the hashes that need a word.

    `rescued` the site has lost, and the backup before still has; `lacking` neither has whole; `gone` were erased, or
    expired, while the backup was made.
    """

    copied: int = 0
    linked: int = 0
    rescued: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


class EvidenceFolder:
    """The evidence whose hashes begin with the same two digits, in a backup that is being made and in the one before.

    SHA256SUMS in each such folder says what its files are, so that a link need not be read again.
    """

    def __init__(self, backup: Path, last: Path | None, prefix: str) -> None:
        self.own = backup / EVIDENCE / prefix
        self.own.mkdir(mode=0o700, parents=True)
        self.last = None if last is None else last / EVIDENCE / prefix
        self.before = dict(sums(self.last)) if self.last is not None and (self.last / SUMS).is_file() else {}
        self.held: Checksums = {}

    def link(self, name: str) -> bool:
        """Have the file that the backup before has under this name, if it has one."""
        if self.last is None or name not in self.before:
            return False
        try:
            os.link(self.last / name, self.own / name)
        except OSError:  # it was taken away, or has as many links as it can have
            return False
        self.held[name] = self.before[name]
        return True

    def link_derived(self, path: str) -> bool:
        """The same for what was derived, and may have been derived anew since: unless its size or time is another."""
        name = Path(path).name
        with suppress(OSError):
            then = (self.last or self.own).joinpath(name).stat()
            if (then.st_size, int(then.st_mtime)) == (default_storage.size(path), changed_at(path)):
                return self.link(name)
        return False

    def copy(self, path: str) -> bool:
        """Copy the site's file of that path; False where it is gone meanwhile."""
        target, digest = self.own / Path(path).name, hashlib.sha256()
        try:
            with default_storage.open(path) as source, target.open("xb") as file:
                for chunk in iter(lambda: source.read(CHUNK), b""):
                    digest.update(chunk)
                    file.write(chunk)
            at = changed_at(path)
        except FileNotFoundError:
            target.unlink(missing_ok=True)
            return False
        os.utime(target, (at, at))
        self.held[target.name] = digest.hexdigest()
        return True

    def drop(self, name: str) -> None:
        (self.own / name).unlink()
        del self.held[name]

    def close(self) -> None:
        lines = (f"{digest}  {name}\n" for name, digest in sorted(self.held.items()))
        (self.own / SUMS).write_text("".join(lines))


def collect(backup: Path, last: Path | None, alias: str) -> EvidenceCopy:
    """Give a backup the evidence that the rows under `alias` name, and what was derived from it."""
    done = EvidenceCopy()
    for prefix, wanted in groupby(named(alias), key=lambda row: row[0][:2]):
        folder, there = EvidenceFolder(backup, last, prefix), store.listed(prefix)
        for sha256, size in wanted:
            blob = f"{sha256}.zst"
            paths = there.get(sha256, [])
            for path in (each for each in paths if not each.endswith(blob)):
                if folder.link_derived(path):
                    done.linked += 1
                else:
                    done.copied += folder.copy(path)
            is_there = f"{prefix}/{blob}" in paths
            if is_there and folder.link(blob):
                done.linked += 1
            elif is_there and folder.copy(f"{prefix}/{blob}") and holds(folder.own / blob, sha256, size):
                done.copied += 1
            else:
                if blob in folder.held:
                    folder.drop(blob)
                explain(done, folder, alias, sha256)
        folder.close()
    return done


def explain(done: EvidenceCopy, folder: EvidenceFolder, alias: str, sha256: str) -> None:
    """Why there is no whole file for that hash: it has expired, or went meanwhile, or the site has lost it."""
    if BlobProblem.objects.using(alias).expired().filter(pk=sha256).exists():
        return
    is_expired = BlobProblem.objects.expired().filter(pk=sha256).exists()
    if is_expired or not Evidence.objects.filter(sha256=sha256).exists():
        done.gone.append(sha256)
    elif folder.link(f"{sha256}.zst"):
        done.rescued.append(sha256)
    else:
        done.lacking.append(sha256)


def named(alias: str) -> Iterator[tuple[str, int]]:
    """The hash and size of every piece of evidence that the rows name, once and in order."""
    rows = Evidence.objects.using(alias).order_by("sha256").values_list("sha256", "size").distinct()
    yield from rows.iterator(chunk_size=5000)


def holds(path: Path, sha256: str, size: int) -> bool:
    """Whether a compressed file holds exactly the bytes of that hash."""
    with path.open("rb") as file:
        return not store.flaw(file, sha256, size)


def changed_at(path: str) -> int:
    return int(default_storage.get_modified_time(path).timestamp())
