"""Takes in deliveries of a GitHub webhook: pull requests that were merged or closed, checks that ended, and pushes."""

import datetime as dt
import hashlib
import hmac
from collections.abc import Iterable
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from grading.evidence.owner_rule import PREFIX
from grading.models import Artifact, Repository, Session, WebhookDelivery
from grading.models.evidence import ArtifactKind
from grading.models.outcomes import OutcomeKind
from grading.outcomes.addresses import pull_number
from grading.outcomes.following import look_up_soon
from grading.outcomes.recording import ReportedOutcome, record
from grading.signals.links import pull_request
from grading.witness import Witness
from gradingsite.sealing import CannotBeRead, unseal

SECRET_PURPOSE = "webhook secret"  # noqa: S105 - no secret
# GitHub repeats a delivery only when a person asks for it, and only for some days.
REMEMBERED = dt.timedelta(days=30)
MAX_DELIVERY = 100
CONCLUSIONS: dict[str, Literal["pass", "fail"]] = {
    "success": "pass",
    "failure": "fail",
    "timed_out": "fail",
    "startup_failure": "fail",
}


def is_signed(repository: Repository, body: bytes, signature: str) -> bool:
    """Whether the header X-Hub-Signature-256 is that of the body under the repository's secret."""
    if not repository.sealed_webhook_secret:
        return False
    try:
        secret = unseal(repository.sealed_webhook_secret, purpose=SECRET_PURPOSE)
    except CannotBeRead:
        return False
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"sha256={expected}".encode(), signature.encode())


def take_in(repository: Repository, delivery: str, event: str, payload: Any) -> int:
    """Record the outcomes that a signed delivery reports. Returns the number of new ones; 0 for a repeated delivery.

    Raises ValueError if the payload is not of the event's form.
    """
    now = timezone.now()
    with transaction.atomic():
        WebhookDelivery.objects.filter(received_at__lt=now - REMEMBERED).delete()
        _, is_new = WebhookDelivery.objects.get_or_create(repository=repository, delivery=delivery[:MAX_DELIVERY])
        if not is_new:
            return 0
        try:
            reports = list(_read_event(repository, event, payload))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"expected a {event} event as GitHub sends it; {error} is missing or malformed") from None
        source = f"github {repository.pk}"
        results = [record(session, outcome, source=source, witness=Witness.OBSERVED) for session, outcome in reports]
        return sum(is_new for _row, is_new in results)


def _read_event(repository: Repository, event: str, payload: Any) -> Iterable[tuple[Session, ReportedOutcome]]:
    """The sessions that an event is about, each with the reported outcome.

    A push reports none: it makes sessions due for a look-up.
    """
    if event == "push":
        look_up_soon(repository, timezone.now())
    elif event == "pull_request" and payload["action"] == "closed":
        pull = payload["pull_request"]
        kind = OutcomeKind.MERGED if pull["merged"] else OutcomeKind.CLOSED
        ended_at = pull["merged_at"] if pull["merged"] else pull["closed_at"]
        outcome = ReportedOutcome(kind=kind, value="pass", observed_at=ended_at, url=pull["html_url"])
        yield from ((session, outcome) for session in _owners_of_pull(repository, pull["html_url"]))
    elif event == "check_suite" and payload["action"] == "completed":
        suite = payload["check_suite"]
        value: Literal["pass", "fail", "unknown"] = CONCLUSIONS.get(suite["conclusion"], "unknown")
        detail = f"{suite['app']['name']}: {suite['conclusion']}"[:300]
        outcome = ReportedOutcome(kind=OutcomeKind.CI, value=value, observed_at=suite["updated_at"], detail=detail)
        yield from ((session, outcome) for session in _owners_of_commit(suite["head_sha"]))


def _owners_of_pull(repository: Repository, url: str) -> Iterable[Session]:
    """The session that owns a pull request; none if the pull request is of another repository."""
    if not pull_number(url, repository.url):
        return []
    owned = Artifact.objects.filter(kind=ArtifactKind.PULL_REQUEST, key=pull_request(url), owned_by=None)
    return Session.objects.filter(pk__in=owned.values("session"))


def _owners_of_commit(sha: str) -> Iterable[Session]:
    """The session that owns a commit, by the commit's full hash."""
    owned = Artifact.objects.filter(kind=ArtifactKind.COMMIT, lookup=str(sha)[:PREFIX], owned_by=None)
    keys = {claim.session_id for claim in owned if str(sha).startswith(claim.key)}
    return Session.objects.filter(pk__in=keys)
