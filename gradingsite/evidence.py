"""The setting EVIDENCE: where evidence is stored."""

from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured

S3 = "s3://"


def evidence_storage(evidence: str) -> dict[str, Any]:
    """Django's settings of the storage that a value of EVIDENCE names: `files`, `database` or `s3://bucket/folder`.

    Raises ImproperlyConfigured for anything else, and for a bucket if django-storages isn't installed.
    """
    if evidence == "files":
        return {"BACKEND": "grading.evidence.storages.EvidenceFiles"}
    if evidence == "database":
        return {"BACKEND": "grading.evidence.storages.EvidenceRows"}
    bucket, _slash, folder = evidence.removeprefix(S3).partition("/")
    if not evidence.startswith(S3) or not bucket:
        raise ImproperlyConfigured(f"Unexpected value EVIDENCE={evidence!r}, use files, database or s3://bucket/folder")
    if find_spec("storages") is None:
        raise ImproperlyConfigured(
            f"EVIDENCE={evidence!r} needs django-storages: .venv/bin/pip install -r requirements-s3.txt"
        )
    options = {"bucket_name": bucket, "location": folder.strip("/")}
    return {"BACKEND": "grading.evidence.s3.EvidenceBucket", "OPTIONS": options}
