"""Facts: what a session ran with and what happened in it. They need no grader and never enter a grade."""

from django.db import models
from django.db.models import Q

from grading.models.fields import redacted_char, redacted_json, unit_interval
from grading.models.sessions import Session
from grading.vocabulary import LabelledEnum

# How many names of MCP servers, skills, subagents and models a session's facts list, and how many instruction files.
MAX_NAMES = 100
MAX_INSTRUCTION_FILES = 200


class FactSource(LabelledEnum):
    """Where a fact comes from, in order of precedence."""

    LOG = "log", "its log"
    HOOK = "hook", "the hook on its machine"
    CALLER = "caller", "whoever submitted it"


class InstructionKey(models.Model):
    """The site's key for the hashes of instruction files: one row, made at first use.

    It is not SECRET_KEY, so that hashes from before and after a rotation can be compared. Without the key, nobody can
    test whether a session was given a text that they guess.
    """

    secret = models.BinaryField(editable=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="instruction_key_once")]

    def __str__(self) -> str:
        return "the key for hashes of instruction files"


class SessionFacts(models.Model):
    """What a session ran with, and its vitals. `grading.evidence.session_facts` derives the row; None means unknown.

    A session without a row was never read for facts: an older version of the site took it in.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="facts")
    # What the facts were derived from: the version of the signals, or empty without a log.
    version = models.CharField(max_length=40, blank=True)
    # What the hook and the caller submitted, by `FactSource`. The log is read again instead.
    stated = redacted_json(default=dict, blank=True)
    # The source of each column that has a value, by the column's name.
    sources = models.JSONField(default=dict, blank=True)

    # What it ran with.
    harness_version = redacted_char(max_length=60, blank=True)
    # The calls by exact id of the model; None for a model whose calls are not recorded one by one.
    model_calls = redacted_json(default=dict, blank=True)
    reasoning_effort = redacted_char(max_length=40, blank=True)
    permission_mode = redacted_char(max_length=40, blank=True)
    # Lists of names.
    mcp_servers = redacted_json(null=True, blank=True)
    skills = redacted_json(null=True, blank=True)
    subagents = redacted_json(null=True, blank=True)
    # A list of {"name", "bytes", "hmac", "source"}, and "text" if it was sent. `hmac` is HMAC-SHA-256 of the text's
    # SHA-256 under the `InstructionKey`, in hexadecimal digits; `name` is relative to the repository or to ~.
    instruction_files = redacted_json(null=True, blank=True)

    # Vitals. `grading.signals.vitals` defines each.
    minutes = models.FloatField(null=True, blank=True)
    active_minutes = models.FloatField(null=True, blank=True)
    user_turns = models.PositiveIntegerField(null=True, blank=True)
    interruptions = models.PositiveIntegerField(null=True, blank=True)
    refusals = models.PositiveIntegerField(null=True, blank=True)
    tool_calls = models.PositiveIntegerField(null=True, blank=True)
    known_calls = models.PositiveIntegerField(null=True, blank=True)
    failed_calls = models.PositiveIntegerField(null=True, blank=True)
    # failed_calls / known_calls; None if the result of more than half of the calls is unknown.
    failed_share = models.FloatField(null=True, blank=True)
    reads_before_edit = models.PositiveIntegerField(null=True, blank=True)
    unread_edits = models.PositiveIntegerField(null=True, blank=True)
    test_runs = models.PositiveIntegerField(null=True, blank=True)
    # The state of the last run of each suite: a list of {"suite", "state"}, with a `TestState`.
    suites = redacted_json(null=True, blank=True)
    retries = models.PositiveIntegerField(null=True, blank=True)
    compactions = models.PositiveIntegerField(null=True, blank=True)
    claimed_without_green = models.BooleanField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "session facts"
        constraints = [
            unit_interval("failed_share", "facts_failed_share_range", null=True),
            models.CheckConstraint(condition=Q(minutes=None) | Q(minutes__gte=0), name="facts_minutes_not_negative"),
            models.CheckConstraint(
                condition=Q(active_minutes=None) | Q(active_minutes__gte=0), name="facts_active_not_negative"
            ),
        ]
        indexes = [
            models.Index(fields=["harness_version"], condition=~Q(harness_version=""), name="facts_by_version"),
        ]

    def __str__(self) -> str:
        return f"facts of {self.session_id}"
