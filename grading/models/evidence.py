"""What a session left behind: evidence (bytes, by hash), artifacts found in it, and the rules that find them."""

from enum import StrEnum

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.packed import PackedJSONField
from grading.models.fields import HashListField, enum_field, hash_field, one_of
from grading.models.redacted import redacted_char, redacted_text
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
    """One piece of evidence: the hash and size of its bytes, never the bytes (`grading.evidence.store` has them).

    `witness` vouches for it; the same bytes from another one are another row.
    `problem` is set where it must not be used for grading (log_overwritten, log_shared, format_unknown, ...) and
    `detail` says what was expected and what came. `coverage` = recognised lines / lines of a transcript, in [0, 1].
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="evidence", db_index=False)
    kind = enum_field(EvidenceKind)
    sha256 = hash_field()
    size = models.BigIntegerField()
    filename = models.CharField(max_length=255, blank=True)
    format = models.CharField(max_length=40, blank=True)
    coverage = models.FloatField(null=True, blank=True)
    report = PackedJSONField(default=dict, blank=True)
    problem = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = redacted_text(blank=True)
    witness = enum_field(Witness, default=Witness.UNKNOWN)
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "evidence"
        constraints = [
            # In this order its index also finds the same bytes of other sessions.
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
        """Its file's name for people; `filename` tells parsers what it may be, so that nothing in it is hidden."""
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
    """Where an artifact was seen. `FACTS` is what the caller observed itself: independent of the transcript (L11)."""

    FACTS = "facts"
    PATCH = "patch"
    TRANSCRIPT = "transcript"


class ArtifactRule(models.Model):
    """A rule that finds artifacts and says what they are worth. A new site begins with the founding table."""

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
            models.CheckConstraint(condition=Q(weight__gte=0, weight__lte=1), name="artifact_rule_weight_range"),
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
        """Why the rule cannot work, in words; empty where it can."""
        try:
            ArtifactDefinition(**{name: getattr(self, name) for name in RULE_FIELDS})
        except InvalidRule as error:
            return str(error)
        except TypeError:  # a number that was not given, which the form says
            return ""
        return ""


# What several sessions may claim, and one owns.
LINKS = (ArtifactKind.COMMIT, ArtifactKind.PULL_REQUEST)


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def owned(self) -> "ArtifactQuerySet":
        """All but the commits and pull requests that belong to another session."""
        return self.filter(owned_by=None)


class Artifact(models.Model):
    """Something a session left behind: an idea, a task, a post, a note; or a mandatory check that failed, as the latest
    facts that name it say; or its claim of a commit or pull request: from facts, or because a confirmed call in its log
    made it.

    `key` is what it is (path, URL, commit hash, line, name of the check). Several sessions may claim one commit or pull
    request, and one owns it (`grading.evidence.ownership` decides and keeps `owned_by`): None means this session, as
    for everything that nobody contends. Of a claim, `lookup` finds the others of the same thing, `subject` tells short
    hashes apart, and `receipt` is the key of the first evidence that showed it.

    `left_out` says in words why it does not count for the consumption grade; empty where it does. `witness` vouches for
    it: whoever sent the facts, the patch or the log that shows it.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="artifacts", db_index=False)
    kind = enum_field(ArtifactKind)
    key = models.CharField(max_length=500)
    origin = enum_field(Origin)
    seen_at = redacted_char(max_length=300, blank=True)
    rule = models.CharField(max_length=64, blank=True)
    subject = models.CharField(max_length=100, blank=True)
    lookup = models.CharField(max_length=40, blank=True)
    receipt = models.BigIntegerField(default=0)
    owned_by = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    left_out = redacted_char(max_length=400, blank=True)
    witness = enum_field(Witness, default=Witness.UNKNOWN)

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
        ]
        indexes = [
            models.Index(fields=["lookup"], condition=~Q(lookup=""), name="artifact_claims"),
            models.Index(fields=["owned_by"], condition=Q(owned_by__isnull=False), name="artifact_elsewhere"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def is_independent(self) -> bool:
        return self.origin == Origin.FACTS


class SessionLog(models.Model):
    """What a session's logs amount to, as `grading.evidence.ownership` derives it: which count, and what is its own.

    `files` are the hashes of the logs that count, its own first and then those of its subagents. `size` are the records
    in the first of them, `total` those in all and in its subagents' sessions; `resumed`: one begins with what it says
    is another session's. `receipt` is the key of the first of its logs that the site received. `carried` says how many
    of the records belong to which other session (by key). `parent` is the agent's own id of the session that started
    this one, and `part_of` the session that has its work and its reward, where the site knows it. `digest` changes
    whenever other records are left out or other logs are read.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="log")
    files = HashListField(default=list)
    size = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    resumed = models.BooleanField(default=False)
    receipt = models.BigIntegerField(default=0)
    carried = models.JSONField(default=dict)
    parent = models.CharField(max_length=200, blank=True)
    part_of = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="parts", db_index=False
    )
    digest = models.CharField(max_length=16, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["parent"], condition=~Q(parent=""), name="session_log_parents"),
            models.Index(fields=["part_of"], condition=Q(part_of__isnull=False), name="session_log_parts"),
        ]

    def __str__(self) -> str:
        return f"logs of {self.session}"


class SessionSignals(models.Model):
    """What a session's log says happened, as extracted by `version`: a row of its own, because it is long and few
    look at it. `data` is None where no log could be read.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="extracted")
    version = models.CharField(max_length=40, blank=True)
    data = PackedJSONField(null=True)

    class Meta:
        verbose_name_plural = "session signals"

    def __str__(self) -> str:
        return f"signals of {self.session_id}"


class RecordAnchor(models.Model):
    """A record by which the copies of a session's log are found: its first, and those that a confirmed effect or change
    of a file came from (a bounded number of them). `record` is a hash of the record's id.
    """

    pk = models.CompositePrimaryKey("record", "session_id")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="anchors")
    record = models.BigIntegerField()

    def __str__(self) -> str:
        return f"record {self.record:x} of {self.session}"


class ArtifactSketch(models.Model):
    """What an artifact says, as the hashes that `grading.signals.substance` sketches a text by, eight bytes each.

    `ended_at` is its session's. `received_at` is when the site first received the artifact with this text.
    """

    artifact = models.OneToOneField(Artifact, primary_key=True, on_delete=models.CASCADE, related_name="sketch")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="sketches")
    shingles = models.BinaryField()
    ended_at = models.DateTimeField()
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"sketch of {self.artifact_id}"


class ArtifactMark(models.Model):
    """One of the few smallest hashes of a sketch: two near copies share some, so that one is found by the other's."""

    sketch = models.ForeignKey(ArtifactSketch, on_delete=models.CASCADE, related_name="marks")
    mark = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mark", "sketch"], name="artifact_mark_once")]

    def __str__(self) -> str:
        return f"mark {self.mark:x}"
