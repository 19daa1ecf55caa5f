"""What was said of a session, by whom and when; and what was said too late to hold by itself."""

from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.packed import PackedJSONField
from grading.models.agents import ApiToken, TokenScope
from grading.models.fields import enum_field, hash_field, one_of
from grading.models.redacted import redacted_json, redacted_packed
from grading.models.sessions import Session
from grading.witness import Witness


class Submission(models.Model):
    """One request about a session. Append-only; the same sent again with the same token adds none.

    `body_sha256` is of its metadata and the hashes of its files. `added` are the kinds of evidence that were new, and
    `before` and `after` the columns of the session that it changed. `token` is None for an import at the site itself.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="submissions")
    token = models.ForeignKey(
        ApiToken, null=True, blank=True, on_delete=models.PROTECT, related_name="submissions", db_index=False
    )
    scope = enum_field(TokenScope, blank=True, default=TokenScope.UNSCOPED)
    witness = enum_field(Witness, default=Witness.UNKNOWN)
    body_sha256 = hash_field()
    added = PackedJSONField(default=list, blank=True)
    before = redacted_packed(default=dict, blank=True)
    after = redacted_packed(default=dict, blank=True)
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("submission", "scope", TokenScope),
            one_of("submission", "witness", Witness),
        ]
        indexes = [models.Index(fields=["token"], condition=Q(token__isnull=False), name="submission_tokens")]

    def __str__(self) -> str:
        return f"{self.received_at:%Y-%m-%d %H:%M} {self.witness}"


class SubmissionAddress(models.Model):
    """Where a submission came from. Kept for 30 days, and deleted."""

    submission = models.OneToOneField(Submission, primary_key=True, on_delete=models.CASCADE, related_name="sent_from")
    address = models.GenericIPAddressField()
    received_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return self.address


class ProposedField(StrEnum):
    OUTCOME = "outcome"
    CATEGORY = "category"
    TITLE = "title"
    DATES = "dates"
    ENGINE = "engine"
    RUN = "run"
    SELECTION = "selection"
    LESSONS = "lessons"
    FACTS = "facts"

    @property
    def words(self) -> str:
        return {
            ProposedField.ENGINE: "harness or model",
            ProposedField.RUN: "exit code or cost",
            ProposedField.SELECTION: "decision",
        }.get(self, self.value)


class Proposal(models.Model):
    """What the graded said of a session after its first word had bound it. It changes nothing until it is adopted: by a
    runner that says the same, or by a person. `value` is as it would stand in a submission.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="proposals")
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="proposals")
    field = enum_field(ProposedField)
    value = redacted_json()
    said_at = models.DateTimeField(default=timezone.now)
    answered_at = models.DateTimeField(null=True, blank=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    adopted = models.BooleanField(default=False)

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("proposal", "field", ProposedField),
            models.CheckConstraint(
                condition=Q(adopted=False) | Q(answered_at__isnull=False), name="proposal_adopted_is_answered"
            ),
        ]
        indexes = [
            models.Index(fields=["session"], condition=Q(answered_at=None), name="proposal_open"),
        ]

    def __str__(self) -> str:
        return f"{self.field} of {self.session_id}"

    @property
    def said(self) -> str:
        """What was said, in words."""
        named = {name: "" if name == self.field else f"{name.replace('_', ' ')} " for name in self.value}
        return ", ".join(f"{named[name]}{value}" for name, value in sorted(self.value.items()))
