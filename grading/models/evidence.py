"""What a session left behind: evidence files, artifacts, the rules that detect artifacts, and facts about its logs."""

from enum import StrEnum

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.packed import PackedJSONField
from grading.models.fields import (
    HashListField,
    enum_field,
    hash_field,
    one_of,
    redacted_char,
    redacted_text,
    unit_interval,
)
from grading.models.sessions import Session
from grading.redaction import redact
from grading.signals.artifacts import MAX_LEAST_CHARACTERS, MIN_CHARACTERS, RULE_FIELDS, ArtifactDefinition, InvalidRule
from grading.vocabulary import Reason
from grading.witness import Witness


class EvidenceKind(StrEnum):
    TRANSCRIPT = "transcript"
    JOURNAL = "journal"
    PATCH = "patch"
    FACTS = "facts"
    METADATA = "metadata"


class Evidence(models.Model):
    """One file of evidence, whose bytes are in `grading.evidence.store`. Another witness's copy is another row."""

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="evidence", db_index=False)
    kind = enum_field(EvidenceKind)
    sha256 = hash_field()
    size = models.BigIntegerField()
    # Not redacted, because parsers read the format from it. Show people `shown_name`.
    filename = models.CharField(max_length=255, blank=True)
    format = models.CharField(max_length=40, blank=True)
    # The share of a transcript's lines that was recognised, from 0 to 1.
    coverage = models.FloatField(null=True, blank=True)
    report = PackedJSONField(default=dict, blank=True)
    # Why it must not be used for grading (log_overwritten, format_unknown, ...), and what was expected and what came.
    problem = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = redacted_text(blank=True)
    witness = enum_field(Witness, default=Witness.UNKNOWN)  # who vouches for it
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "evidence"
        constraints = [
            # In this order, its index also finds other sessions with the same bytes.
            models.UniqueConstraint(fields=["sha256", "kind", "witness", "session"], name="evidence_once"),
            one_of("evidence", "witness", Witness),
            one_of("evidence", "kind", EvidenceKind),
            one_of("evidence", "problem", Reason),
            models.CheckConstraint(condition=Q(size__gte=0), name="evidence_size_not_negative"),
        ]
        indexes = [models.Index(fields=["session"], name="evidence_of_session")]

    def __str__(self) -> str:
        return f"{self.kind} {self.sha256[:12]}"

    @property
    def shown_name(self) -> str:
        """The redacted file name, for people."""
        return redact(self.filename)


class ArtifactKind(StrEnum):
    IDEA = "idea"
    TASK = "task"
    ENGAGEMENT = "engagement"
    KNOWLEDGE = "knowledge"
    COMMIT = "commit"
    PULL_REQUEST = "pull_request"
    CHECK_FAILED = "check_failed"


class Origin(StrEnum):
    """Where an artifact was detected. FACTS are what the caller observed itself, independent of the transcript."""

    FACTS = "facts"
    PATCH = "patch"
    TRANSCRIPT = "transcript"


class EvidenceBlob(models.Model):
    """Stored bytes of evidence, if EVIDENCE is `database`, under the name that a file of them would have."""

    name = models.CharField(max_length=200, primary_key=True)
    data = models.BinaryField()
    stored_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class LogInPlace(models.Model):
    """A log that `gradingsite try` reads where its harness keeps it (`grading.evidence.in_place`).

    The path is not redacted, because the file is opened by it. Nothing shows it but this machine's own trial.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    path = models.TextField()
    size = models.BigIntegerField()  # bytes that were read; the log may have more since
    modified = models.BigIntegerField()  # nanoseconds since 1970

    class Meta:
        verbose_name_plural = "logs in place"
        indexes = [models.Index(fields=["path"], name="log_in_place_by_path")]

    def __str__(self) -> str:
        return self.path


class ArtifactRule(models.Model):
    """A rule that detects artifacts of one kind and gives their worth. Migrations create the initial rules."""

    kind = models.SlugField(max_length=32, unique=True)
    path_glob = models.CharField(max_length=200, blank=True)
    line_pattern = models.CharField(max_length=300, blank=True)
    new_files_only = models.BooleanField(default=False)
    weight = models.FloatField()
    scale = models.FloatField(default=1.0)
    least_characters = models.PositiveIntegerField(
        default=MIN_CHARACTERS,
        help_text="Of text without markup that a file, or a row, must have to count.",
    )
    note = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-weight", "kind"]
        constraints = [
            unit_interval("weight", "artifact_rule_weight_range"),
            models.CheckConstraint(condition=Q(scale__gt=0), name="artifact_rule_scale_positive"),
            models.CheckConstraint(
                condition=Q(least_characters__lte=MAX_LEAST_CHARACTERS), name="artifact_rule_characters_range"
            ),
        ]

    def __str__(self) -> str:
        return self.kind

    def clean(self) -> None:
        if problem := self.problem():
            raise ValidationError(problem)

    def problem(self) -> str:
        """Why the rule is invalid, or an empty string."""
        try:
            ArtifactDefinition(**{name: getattr(self, name) for name in RULE_FIELDS})
        except InvalidRule as error:
            return str(error)
        except TypeError:  # a number is missing, which the form reports
            pass
        return ""


# Several sessions may claim the same one of these, and one of them owns it.
LINKS = (ArtifactKind.COMMIT, ArtifactKind.PULL_REQUEST)
MAX_SEEN_AT = 300  # characters


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def owned(self) -> "ArtifactQuerySet":
        """Artifacts other than commits and pull requests that belong to another session."""
        return self.filter(owned_by=None)


class Artifact(models.Model):
    """Something that a session left behind (an idea, a task, a post, a note), a mandatory check that failed according
    to the latest facts, or a claim of a commit or pull request by the facts or a confirmed call in the log.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="artifacts", db_index=False)
    kind = enum_field(ArtifactKind)
    key = models.CharField(max_length=500)  # path, URL, commit hash, line, or name of the check
    origin = enum_field(Origin)
    seen_at = redacted_char(max_length=MAX_SEEN_AT, blank=True)
    rule = models.CharField(max_length=64, blank=True)
    # For a claim: what tells equal short hashes apart, what equal claims have in common, and the key of the first
    # evidence that shows it.
    subject = models.CharField(max_length=100, blank=True)
    lookup = models.CharField(max_length=40, blank=True)
    receipt = models.BigIntegerField(default=0)
    # The session that owns the commit or pull request, if it is another one. Set by `grading.evidence.ownership`.
    owned_by = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    # Why it doesn't count for the consumption grade. Empty if it counts.
    left_out = redacted_char(max_length=400, blank=True)
    # Who vouches for it: who sent the facts, the patch or the log.
    witness = enum_field(Witness, default=Witness.UNKNOWN)
    # The hash of its text (`grading.signals.substance`), when its session ended, and when the site first received the
    # artifact with this text. Empty without a text to compare.
    text_hash = models.BigIntegerField(null=True, blank=True)
    text_ended_at = models.DateTimeField(null=True, blank=True)
    text_received_at = models.DateTimeField(null=True, blank=True)

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["session", "kind", "key", "origin"], name="artifact_once_per_session"),
            models.UniqueConstraint(
                fields=["kind", "key"],
                condition=Q(origin=Origin.FACTS, kind__in=LINKS, owned_by=None),
                name="artifact_one_owner",
            ),
            one_of("artifact", "kind", ArtifactKind),
            one_of("artifact", "origin", Origin),
            one_of("artifact", "witness", Witness),
            models.CheckConstraint(
                condition=Q(text_hash=None, text_ended_at=None, text_received_at=None)
                | Q(text_hash__isnull=False, text_ended_at__isnull=False, text_received_at__isnull=False),
                name="artifact_text_dated",
            ),
        ]
        indexes = [
            models.Index(fields=["lookup"], condition=~Q(lookup=""), name="artifact_claims"),
            models.Index(fields=["owned_by"], condition=Q(owned_by__isnull=False), name="artifact_elsewhere"),
            models.Index(fields=["text_hash"], condition=Q(text_hash__isnull=False), name="artifact_texts"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class SessionLog(models.Model):
    """Which of a session's logs count and which of their records are its own (from `grading.evidence.ownership`)."""

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="log")
    # The hashes of the logs that count: its own first, then those of its subagents.
    files = HashListField(default=list)
    # The records in the first of these, and those in all of them and in its subagents' sessions.
    size = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    # Whether one of the logs begins with records that name another session.
    resumed = models.BooleanField(default=False)
    # The key of the first of its logs that the site received.
    receipt = models.BigIntegerField(default=0)
    # How many of the records belong to other sessions, by session key.
    carried = models.JSONField(default=dict)
    # The agent's id for the session that started this one, and the session that gets this one's work and reward.
    parent = models.CharField(max_length=200, blank=True)
    part_of = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="parts", db_index=False
    )
    # Changes whenever other records are left out or other logs are read.
    digest = models.CharField(max_length=16, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["parent"], condition=~Q(parent=""), name="session_log_parents"),
            models.Index(fields=["part_of"], condition=Q(part_of__isnull=False), name="session_log_parts"),
        ]

    def __str__(self) -> str:
        return f"logs of {self.session}"


class SessionSignals(models.Model):
    """The signals extracted from a session's log, by extractor `version`. `data` is None if no log could be read.

    They have a row of their own because they are large and rarely read.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="extracted")
    version = models.CharField(max_length=40, blank=True)
    data = PackedJSONField(null=True)

    class Meta:
        verbose_name_plural = "session signals"

    def __str__(self) -> str:
        return f"signals of {self.session_id}"


class RecordAnchor(models.Model):
    """A log record by which copies of a session's log are detected: the first record, and a bounded number of those
    with a confirmed effect or file change.
    """

    pk = models.CompositePrimaryKey("record", "session_id")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="anchors")
    record = models.BigIntegerField()  # a hash of the record's id

    def __str__(self) -> str:
        return f"record {self.record:x} of {self.session}"
