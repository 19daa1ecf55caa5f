"""Requests about sessions, and proposals: descriptions that an agent sent after the initial one was final."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.packed import PackedJSONField
from grading.models.agents import ApiToken, TokenScope
from grading.models.fields import enum_field, hash_field, one_of, redacted_json, redacted_packed
from grading.models.sessions import Session
from grading.vocabulary import LabelledEnum
from grading.witness import Witness


class Submission(models.Model):
    """One request about a session. Append-only.

    The same content sent again with the same token adds no row, unless it adds evidence or changes the session.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="submissions")
    # None for an import on the site itself.
    token = models.ForeignKey(
        ApiToken, null=True, blank=True, on_delete=models.PROTECT, related_name="submissions", db_index=False
    )
    scope = enum_field(TokenScope, blank=True, default=TokenScope.UNSCOPED)
    witness = enum_field(Witness, default=Witness.UNKNOWN)
    body_sha256 = hash_field()  # of its metadata and its files' hashes
    added = PackedJSONField(default=list, blank=True)  # the kinds of evidence that were new
    # The session's columns that it changed.
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
    """The address that a submission came from. Deleted after 30 days."""

    submission = models.OneToOneField(Submission, primary_key=True, on_delete=models.CASCADE, related_name="sent_from")
    address = models.GenericIPAddressField()
    received_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return self.address


class ProposedField(LabelledEnum):
    OUTCOME = "outcome"
    CATEGORY = "category"
    TITLE = "title"
    DATES = "dates"
    ENGINE = "engine", "harness or model"
    RUN = "run", "exit code or cost"
    PROJECT = "project", "project or task"
    SELECTION = "selection", "decision"
    LESSONS = "lessons"
    FACTS = "facts"


class Proposal(models.Model):
    """What an agent submitted about a session after its initial description was final.

    It changes nothing until it is adopted: by a person, or because a runner submits the same.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="proposals")
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="proposals")
    field = enum_field(ProposedField)
    value = redacted_json()  # as in a submission
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
    def summary(self) -> str:
        """The proposed values as text, each with its name unless that is the field's."""
        labels = {name: "" if name == self.field else f"{name.replace('_', ' ')} " for name in self.value}
        return ", ".join(f"{labels[name]}{value}" for name, value in sorted(self.value.items()))
