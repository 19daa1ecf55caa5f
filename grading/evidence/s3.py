"""Evidence in a bucket of an object store with Amazon's protocol, by django-storages (requirements-s3.txt)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.files.base import File
from storages.backends.s3 import S3Storage

from grading.busy import StorageAway
from grading.evidence.storages import EvidenceStorage

NOT_FOUND = 404
# A request of the site must not wait for minutes on a server that does not answer.
TIMEOUTS = Config(connect_timeout=5, read_timeout=30, retries={"max_attempts": 2, "mode": "standard"})


@contextmanager
def answering() -> Iterator[None]:
    """Turn the errors of a server that is away, or refuses, into StorageAway; those of a missing object into
    FileNotFoundError.
    """
    try:
        yield
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == NOT_FOUND:
            raise FileNotFoundError(str(error)) from error
        raise StorageAway(f"the S3 server refused: {error}") from error
    except (Boto3Error, BotoCoreError) as error:
        raise StorageAway(f"the S3 server does not answer: {error}") from error


class EvidenceBucket(EvidenceStorage, S3Storage):  # type: ignore[misc]  # without types
    """The keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or as boto3 finds them."""

    def get_default_settings(self) -> dict[str, Any]:
        return {
            **super().get_default_settings(),
            "endpoint_url": settings.EVIDENCE_ENDPOINT or None,
            "region_name": settings.EVIDENCE_REGION or None,
            "client_config": TIMEOUTS,
            "addressing_style": "path" if settings.EVIDENCE_ENDPOINT else None,
            "max_memory_size": settings.FILE_UPLOAD_MAX_MEMORY_SIZE,
            "file_overwrite": True,
            "default_acl": None,
        }

    def require(self) -> None:
        try:
            with answering():
                self.connection.meta.client.head_bucket(Bucket=self.bucket_name)
        except FileNotFoundError:
            raise StorageAway(
                f"the S3 server has no bucket {self.bucket_name}: create it, or correct EVIDENCE"
            ) from None

    def renew(self, name: str) -> bool:
        key = self._normalize_name(name)
        try:
            with answering():
                # A copy onto itself has a new time. The protocol demands that something changes with it.
                self.bucket.Object(key).copy_from(
                    CopySource={"Bucket": self.bucket_name, "Key": key},
                    Metadata={"renewed": str(int(time.time()))},
                    MetadataDirective="REPLACE",
                )
        except FileNotFoundError:
            return False
        return True

    def put(self, name: str, path: Path) -> None:
        with answering():
            self.bucket.Object(self._normalize_name(name)).upload_file(str(path))

    def remove_older(self, name: str, before: float) -> bool:
        # Between the two requests another host may store the same bytes again. They are then reported as missing
        # until their sender sends them once more: buckets have no conditional delete.
        item = self.bucket.Object(self._normalize_name(name))
        try:
            with answering():
                if item.last_modified.timestamp() >= before:
                    return False
                item.delete()
        except FileNotFoundError:
            return False
        return True

    def _open(self, name: str, mode: str = "rb") -> File:  # type: ignore[type-arg]  # generic in the stubs only
        with answering():
            opened: File = super()._open(name, mode)  # type: ignore[type-arg]
            _ = opened.file  # downloads it
            return opened

    def _save(self, name: str, content: Any) -> str:
        with answering():
            return str(super()._save(name, content))

    def exists(self, name: str) -> bool:
        with answering():
            return bool(super().exists(name))

    def delete(self, name: str) -> None:
        with answering():
            super().delete(name)

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        with answering():
            folders, files = super().listdir(name)
            return folders, files

    def size(self, name: str) -> int:
        with answering():
            return int(super().size(name))

    def get_modified_time(self, name: str) -> Any:
        with answering():
            return super().get_modified_time(name)
