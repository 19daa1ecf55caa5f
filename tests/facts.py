"""Grades, settlements, ledger rows, buckets and posteriors of a site, as plain rows and as one digest per kind.

An upgrade must not change any of them.
"""

import hashlib
import json
from datetime import datetime
from typing import Any

from django.db.models import F

from bandit.models import Bandit, Bucket, LedgerEntry
from bandit.reading import posterior_of
from grading.models import Grade, Settlement

GRADER = (
    "source",
    "model",
    "route",
    "rubric",
    "stratum",
    "context",
    "salience",
    "version",
    "view",
    "witness",
    "standing",
    "agent",
)
BUCKET = ("bandit__name", "arm__name", "effective_day", *(f"grader__{name}" for name in GRADER), "n", "s", "q")
ENTRY = (
    *("bandit__name", "arm__name", "observation", "revision", "op", *(f"grader__{name}" for name in GRADER)),
    *("value_micro", "cost_micro", "effective_day", "settlement", "policy_text", "provisional"),
)
GRADE = (
    *("pk", "session", "source", "status", "value", "reason", "detail", "version", "model", "route", "rubric"),
    *("inputs_sha256", "replicate", "parallel", "sample", "sample_of", "cost_usd", "author__username", "withdraws"),
)
SETTLEMENT = (
    *("session", "revision", "value", "source", "final", "weight", "reason", "grade", "policy_text", "sentence"),
    "steps",
)
Rows = list[list[Any]]


def facts(now: datetime) -> dict[str, Rows]:
    """Return the rows by kind. Posteriors are those at `now`, as hexadecimal floats."""
    grades = Grade.objects.order_by("pk").values_list(*GRADE, "evidence")
    settlements = Settlement.objects.annotate(policy_text=F("policy__text")).order_by("session", "revision")
    ledger = LedgerEntry.objects.annotate(policy_text=F("policy__text")).order_by("pk")
    buckets = Bucket.objects.exclude(n=0, s=0, q=0).order_by(*BUCKET)
    rows: dict[str, Any] = {
        "grades": grades,
        "settlements": settlements.values_list(*SETTLEMENT),
        "ledger": ledger.values_list(*ENTRY),
        "buckets": buckets.values_list(*BUCKET),
        "posteriors": [
            [bandit.name, name, float(arm.alpha).hex(), float(arm.beta).hex()]
            for bandit in Bandit.objects.order_by("name")
            for name, arm in sorted(posterior_of(bandit.name, now).arms.items())
        ],
    }
    return {kind: json.loads(json.dumps(list(each), default=str)) for kind, each in rows.items()}


def digests(rows_by_kind: dict[str, Rows]) -> dict[str, str]:
    """Return the SHA-256 of each kind's rows, written as JSON."""
    return {kind: hashlib.sha256(json.dumps(rows).encode()).hexdigest() for kind, rows in rows_by_kind.items()}
