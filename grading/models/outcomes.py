"""What became of sessions' work: reported outcomes, followed repositories, and the commits looked up in them."""

from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of, redacted_char, unit_interval
from grading.models.projects import Project
from grading.models.sessions import Session
from grading.vocabulary import LabelledEnum
from grading.witness import Witness

MAX_KIND = 40
# Who reported an outcome, by the first word of its source. For a token, its witness says it.
REPORTERS = {"repository": "this site", "github": "GitHub’s webhook", "person": "a person"}


class OutcomeKind(StrEnum):
    """The kinds of outcome that the site knows. A caller may use names of its own too."""

    LANDED = "landed"
    MERGED = "merged"
    CLOSED = "closed"
    REVERTED = "reverted"
    CI = "ci"
    TESTS = "tests"
    DEPLOYED = "deployed"
    RESOLVED = "resolved"


class OutcomeResult(LabelledEnum):
    PASS = "pass", "passed"
    FAIL = "fail", "failed"
    UNKNOWN = "unknown", "unknown"
    NUMBER = "number", "a share from 0 to 1"


class OutcomeRecordQuerySet(models.QuerySet["OutcomeRecord"]):
    def latest_per_kind(self) -> "dict[str, OutcomeRecord]":
        """The record in force of each kind, by kind: the one that was observed last."""
        return {record.kind: record for record in self.order_by("observed_at", "pk")}


class OutcomeRecord(models.Model):
    """An outcome of a session's work, reported once. Of each kind the one observed last is in force. Append-only.

    No outcome changes a grade or a reward.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="outcomes", db_index=False)
    kind = models.CharField(max_length=MAX_KIND)
    result = enum_field(OutcomeResult)
    # The share of a NUMBER, from 0 to 1.
    number = models.FloatField(null=True, blank=True)
    observed_at = models.DateTimeField()
    url = redacted_char(max_length=500, blank=True)
    detail = redacted_char(max_length=300, blank=True)
    # Who reported it: "repository 3", "token 7", "github 3", "person 2".
    source = models.CharField(max_length=60)
    witness = enum_field(Witness)
    recorded_at = models.DateTimeField(default=timezone.now)

    objects = OutcomeRecordQuerySet.as_manager()

    class Meta:
        ordering = ["-observed_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["session", "kind", "observed_at", "source"], name="outcome_record_once"),
            one_of("outcome_record", "result", OutcomeResult),
            one_of("outcome_record", "witness", Witness),
            unit_interval("number", "outcome_record_number_range", null=True),
            models.CheckConstraint(
                condition=Q(result=OutcomeResult.NUMBER, number__isnull=False)
                | (~Q(result=OutcomeResult.NUMBER) & Q(number=None)),
                name="outcome_record_number_or_result",
            ),
            models.CheckConstraint(condition=~Q(kind=""), name="outcome_record_has_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.shown_result} of {self.session_id}"

    @property
    def shown_result(self) -> str:
        """The result in words, or a NUMBER in percent."""
        return self.get_result_display() if self.number is None else f"{self.number:.0%}"

    @property
    def reporter(self) -> str:
        """Who reported it, in words."""
        return REPORTERS.get(self.source.partition(" ")[0]) or self.get_witness_display()


class Repository(models.Model):
    """A repository that an operator follows. Each host keeps a mirror of it, in which commits are looked up."""

    name = redacted_char(max_length=200)
    # Without password and query (`grading.outcomes.addresses`), or a folder of this machine.
    url = models.CharField(max_length=500, unique=True)
    default_branch = models.CharField(max_length=200, default="main")
    # The project of the sessions that work in it.
    project = models.OneToOneField(Project, null=True, blank=True, on_delete=models.SET_NULL, related_name="repository")
    # Whether commits that were there at the first fetch may be a session's. Who can read the repository could claim
    # any of them in a forged log.
    credits_history = models.BooleanField(default=False)
    is_paused = models.BooleanField(default=False)
    # A token for reading it and the secret of its webhook, both encrypted (`gradingsite.sealing`).
    sealed_token = models.TextField(blank=True, editable=False)
    sealed_webhook_secret = models.TextField(blank=True, editable=False)
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    added_at = models.DateTimeField(default=timezone.now)
    first_fetched_at = models.DateTimeField(null=True, blank=True, editable=False)
    fetched_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The hashes of all refs at the last fetch, by which new commits are recognised on any host.
    tips = models.JSONField(default=list, editable=False)
    # Whether the last fetch brought all branches, or the default branch alone.
    has_branches = models.BooleanField(default=True, editable=False)
    # Why the last fetch failed; empty if it did not.
    error = redacted_char(max_length=600, blank=True, editable=False)

    class Meta:
        verbose_name_plural = "repositories"
        ordering = ["name", "pk"]
        constraints = [models.CheckConstraint(condition=~Q(url=""), name="repository_has_url")]

    def __str__(self) -> str:
        return self.name


class CommitSighting(models.Model):
    """When a fetch first brought a commit. Commits of the first fetch have no row."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="sightings", db_index=False)
    sha = models.CharField(max_length=64)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "sha"], name="commit_sighting_once")]

    def __str__(self) -> str:
        return f"{self.sha[:12]} in {self.repository_id}"


class CommitState(LabelledEnum):
    """What became of a commit."""

    LANDED = "landed", "on the default branch"
    REVERTED = "reverted", "landed and reverted"
    OPEN = "open", "not on the default branch"
    UNKNOWN = "unknown", "not found"


class Authorship(LabelledEnum):
    """Whether a commit that a session claims counts as its own, or why not."""

    OWN = "own", "made by the session"
    NOT_FOUND = "not_found", "in no followed repository"
    OUTSIDE = "outside", "made before or after the session"
    SHARED = "shared", "another agent’s session claims it too"
    SEEN_BEFORE = "seen_before", "it was there before the session began"
    PUBLIC = "public", "others could read it before the session was submitted"
    HISTORY = "history", "it was there when the repository was added"


class SessionCommit(models.Model):
    """A commit that a session owns by the owner rule, as it was found in a followed repository. Derived, mutable."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="commits", db_index=False)
    # As the session claims it: a short or full hash.
    claim = models.CharField(max_length=64)
    repository = models.ForeignKey(
        Repository, null=True, blank=True, on_delete=models.SET_NULL, related_name="session_commits"
    )
    sha = models.CharField(max_length=64, blank=True)
    authorship = enum_field(Authorship, default=Authorship.NOT_FOUND)
    state = enum_field(CommitState, default=CommitState.UNKNOWN)
    # The commits of the default branch that brought its change, and undid it.
    landed_as = models.CharField(max_length=64, blank=True)
    reverted_by = models.CharField(max_length=64, blank=True)
    # A hash of the committer's address (`short_hash`), by which an agent's other commits are recognised.
    committer = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["session", "claim"], name="session_commit_once"),
            one_of("session_commit", "authorship", Authorship),
            one_of("session_commit", "state", CommitState),
        ]

    def __str__(self) -> str:
        return f"{self.claim[:12]} {self.state}"


class LandingState(LabelledEnum):
    """What became of all of a session's own commits."""

    LANDED = "landed", "landed"
    PARTLY = "partly", "partly landed"
    REVERTED = "reverted", "reverted"
    OPEN = "open", "not landed"
    UNKNOWN = "unknown", "unknown"


class SessionLanding(models.Model):
    """What became of a session's commits in all, and when to look again. Derived from its `SessionCommit` rows."""

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="landing")
    state = enum_field(LandingState, default=LandingState.UNKNOWN)
    # Counts of its own commits whose state is known, and of all that it claims.
    landed = models.PositiveIntegerField(default=0)
    reverted = models.PositiveIntegerField(default=0)
    open = models.PositiveIntegerField(default=0)
    claimed = models.PositiveIntegerField(default=0)
    checked_at = models.DateTimeField(null=True, blank=True)
    # None: it is not looked up any more.
    next_check_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [one_of("session_landing", "state", LandingState)]
        indexes = [
            models.Index(
                fields=["next_check_at"], condition=Q(next_check_at__isnull=False), name="session_landing_due"
            ),
            models.Index(fields=["state"], name="session_landing_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id}: {self.state}"


class WebhookDelivery(models.Model):
    """A delivery of a forge's webhook that was taken in, by the id that the forge gave it."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    delivery = models.CharField(max_length=100)
    received_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints = [models.UniqueConstraint(fields=["repository", "delivery"], name="webhook_delivery_once")]

    def __str__(self) -> str:
        return f"{self.delivery} of {self.repository_id}"
