"""Copying evidence from one storage to another, each file verified by its hash."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from grading.evidence import store
from grading.evidence.storages import EvidenceStorage
from grading.models import BlobProblem, Evidence


class CopyFailed(Exception):
    """A copy is not what was copied. The message names the file and says what to do."""


@dataclass(slots=True, kw_only=True)
class Copied:
    """Numbers of files that were `copied` and of those that were there `before`, and the hashes of blobs that the
    source lacks or has damaged.
    """

    copied: int
    before: int
    lacking: list[str]


def copy(source: EvidenceStorage, target: EvidenceStorage) -> Iterator[Copied]:
    """Copy to `target` what rows refer to, and what was derived from it, where it is not there yet.

    Yields what was done after each hash. After an interruption start it again. The site may run meanwhile: what comes
    later is copied by another run. Raises CopyFailed, or StorageAway.
    """
    done = Copied(copied=0, before=0, lacking=[])
    expired = set(BlobProblem.objects.expired().values_list("pk", flat=True))
    prefix, names, there = "", dict[str, list[str]](), set[str]()
    for sha256 in Evidence.objects.order_by("sha256").values_list("sha256", flat=True).distinct().iterator():
        if sha256[:2] != prefix:
            prefix = sha256[:2]
            names = store.listed(prefix, source)
            there = {name for each in store.listed(prefix, target).values() for name in each}
        blob = store.blob_name(sha256)
        is_lacking = blob not in names.get(sha256, []) and blob not in there and sha256 not in expired
        for name in names.get(sha256, []):
            if name in there:
                done.before += 1
            elif _copy_file(source, target, name, sha256 if name == blob else ""):
                done.copied += 1
            else:
                is_lacking = True
        if is_lacking:
            done.lacking.append(sha256)
        yield done


def _copy_file(source: EvidenceStorage, target: EvidenceStorage, name: str, sha256: str) -> bool:
    """Copy one file and read the copy back. `sha256`: the blob's, "" for derived data. False for a damaged blob."""
    with store.scratch_file() as scratch:
        digest = hashlib.sha256()
        with source.open(name) as file:
            while chunk := file.read(store.CHUNK):
                digest.update(chunk)
                scratch.write(chunk)
        scratch.flush()
        os.fsync(scratch.fileno())
        scratch.seek(0)
        if sha256 and store.flaw(cast("BinaryIO", scratch), sha256):
            return False
        target.put(name, scratch.path)
        target.sync(name)
    with target.open(name) as file:
        copy_digest = hashlib.sha256()
        while chunk := file.read(store.CHUNK):
            copy_digest.update(chunk)
    if copy_digest.digest() != digest.digest():
        target.delete(name)
        raise CopyFailed(f"{name} was copied but read back differently, and the copy was deleted: start again")
    return True
