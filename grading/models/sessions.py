"""Finished sessions of agents, and the lessons that they were given."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator

from grading.models.agents import Agent
from grading.models.fields import enum_field, one_of, redacted_char
from grading.vocabulary import CostUnknown, JudgeChoice, LabelledEnum, Outcome, WorkKind
from grading.witness import Witness

if TYPE_CHECKING:
    from bandit.models import Arm

# The bandits identify a session by this prefix and its key: an observation's name.
OBSERVATION = "session:"
MICRODOLLARS = 1_000_000
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class CategoryOrigin(LabelledEnum):
    """Where a session's category came from, in order of precedence."""

    PERSON = "person", "set by a person"
    RUNNER = "runner", "given by its runner"
    DECISION = "decision", "the arm that was selected"
    RULE = "rule", "set by a rule"
    AGENT = "agent", "the agent’s own word"

    @property
    def rank(self) -> int:
        """The place in the order of precedence, from 0 for a person."""
        return list(CategoryOrigin).index(self)

    @property
    def is_inferred(self) -> bool:
        """Whether the category was derived, not set for this session by a person, its runner or its agent."""
        return self in {CategoryOrigin.DECISION, CategoryOrigin.RULE}


class Whose(StrEnum):
    """Which sessions a figure covers: the site's own, or the samples that it was installed with. Never both."""

    YOURS = "yours"
    SAMPLES = "samples"

    def rows(self, session: str = "session") -> Q:
        """A condition for rows of such sessions. `session` is the lookup path to the session ("pk" for sessions).

        A subquery of the few samples, so that the database still uses the indexes of the rows.
        """
        samples = Q(**{f"{session}__in": Session.objects.samples().order_by().values("pk")})
        return samples if self is Whose.SAMPLES else ~samples


def yours(session: str = "session") -> Q:
    """A condition for rows of the site's own sessions, as `Whose.rows`."""
    return Whose.YOURS.rows(session)


def observation_of(pk: int) -> str:
    """The bandits' name for the session with this key."""
    return f"{OBSERVATION}{pk}"


def session_of(observation: str) -> int | None:
    """The key of the session that `observation` names, or None if it names no session."""
    key = observation.removeprefix(OBSERVATION)
    return int(key) if key.isdecimal() and len(key) < len(observation) else None


class SessionQuerySet(models.QuerySet["Session"]):
    def by_observation(self, names: Iterable[str]) -> "dict[str, Session]":
        """The sessions that the bandits know by these names, in one query. Ignores names of anything else."""
        keys = [name.removeprefix(OBSERVATION) for name in names]
        sessions = self.filter(pk__in=[int(key) for key in keys if key.isdecimal()])
        return {session.observation: session for session in sessions}

    def with_people(self) -> "SessionQuerySet":
        """With the agent, the arms, the decision, and the session that each one is part of."""
        return self.select_related(
            "agent",
            "category__merged_into",
            "harness__merged_into",
            "model_arm__merged_into",
            "project",
            "selection",
            "log__part_of",
        )

    def for_settling(self) -> "SessionQuerySet":
        """Locked, with the rows that settling reads but never adds to."""
        names = ("agent", "category", "harness", "model_arm", "log")
        return self.select_for_update(of=("self",)).select_related(*names).prefetch_related("lessons__arm__merged_into")

    def for_grading(self) -> "SessionQuerySet":
        """Locked, with the rows that grading and settling read.

        Don't add evidence or lessons to these sessions and then read the relation again: load the session again.
        """
        return self.for_settling().select_related("extracted", "facts").prefetch_related("evidence")

    def uncategorised(self) -> "SessionQuerySet":
        """Sessions without a category, from which the category bandit learns nothing."""
        return self.yours().filter(category=None)

    def yours(self) -> "SessionQuerySet":
        """The site's own sessions, which figures, lists and rules are about."""
        return self.filter(yours("pk"))

    def samples(self) -> "SessionQuerySet":
        return self.filter(is_sample=True)


def work_of(category: "Arm | None") -> WorkKind:
    """The kind of work that an arm of the category bandit is, or production for None."""
    if category is None:
        return WorkKind.PRODUCTION
    if category.current.is_consumption:
        return WorkKind.CONSUMPTION
    return WorkKind.LOOKING if category.current.is_looking else WorkKind.PRODUCTION


class Session(models.Model):
    """One finished session, identified by its agent and the agent's own id for it.

    The reward columns repeat the current settlement, the first judge's latest first reading (`verdict`) and the number
    of open flags, so that lists can filter and sort by them. They depend on no clock and no setting. They are written
    in the transaction that changes the reward and audited at night; `manage.py rebuild` compares and repairs them.
    """

    # Other indexes begin with the agent and with the category.
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="sessions", db_index=False)
    external_id = models.CharField(max_length=200)
    title = redacted_char(max_length=300, blank=True)
    # `category`, `harness` and `model_arm` are the arms that ran. None if unknown.
    category = models.ForeignKey(
        "bandit.Arm", null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # Where the category came from. Empty without a category, and in rows of earlier versions.
    category_from = enum_field(CategoryOrigin, blank=True, default="")
    # The category as submitted, which may be a name that no arm has.
    category_claimed = redacted_char(max_length=200, blank=True)
    harness = models.ForeignKey("bandit.Arm", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    # The model as the transcript names it.
    model = models.CharField(max_length=120, blank=True)
    model_arm = models.ForeignKey("bandit.Arm", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    # The repository that it worked in, and the caller's id of the piece of work that it was about. Filters and figures
    # use the project's name.
    project = models.ForeignKey(
        "grading.Project", null=True, blank=True, on_delete=models.PROTECT, related_name="sessions", db_index=False
    )
    task = redacted_char(max_length=200, blank=True)
    selection = models.ForeignKey("bandit.Selection", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField()  # event time, which gives the effective day
    received_at = models.DateTimeField(default=timezone.now)  # ingestion time
    exit_code = models.IntegerField(null=True, blank=True)
    exit_witness = enum_field(Witness, default=Witness.UNKNOWN)
    # The outcome that the log or the runner shows, and the one that was submitted.
    outcome = enum_field(Outcome, default=Outcome.COMPLETED)
    outcome_reason = redacted_char(max_length=300, blank=True)
    outcome_claimed = enum_field(Outcome, default=Outcome.COMPLETED)
    claim_reason = redacted_char(max_length=300, blank=True)
    # What the caller or the log reported that it cost.
    cost_usd = models.FloatField(null=True, blank=True)
    # The sums of its `SessionUsage`: all tokens, and the cost in millionths of a dollar, or why that is unknown. Only
    # `grading.spending` writes them.
    tokens = models.BigIntegerField(null=True, editable=False)
    cost_micro = models.BigIntegerField(null=True, editable=False)
    cost_unknown = enum_field(CostUnknown, blank=True, default=CostUnknown.NOT_READ, editable=False)
    # For history (`intake.first_word`): whether it is to be judged. Otherwise empty.
    history = enum_field(JudgeChoice, blank=True, default="")
    is_sample = models.BooleanField(default=False)
    # The reward columns. `grading.reward.state` alone writes them: save a session with `update_fields`. The references
    # have no constraint, as an erasure deletes what they refer to first, and no index, as nothing is looked up by them.
    settlement = models.ForeignKey(
        "grading.Settlement",
        null=True,
        editable=False,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    reward_value = models.FloatField(null=True, editable=False)
    reward_source = models.CharField(max_length=32, blank=True, editable=False)
    reward_final = models.BooleanField(null=True, editable=False)
    reward_weight = models.FloatField(null=True, editable=False)
    reward_reason = models.CharField(max_length=32, blank=True, editable=False)
    open_flags = models.PositiveSmallIntegerField(default=0, editable=False)
    verdict = models.ForeignKey(
        "grading.Grade",
        null=True,
        editable=False,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    verdict_question = models.BigIntegerField(null=True, editable=False)

    objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ["-ended_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "external_id"], name="session_once_per_agent"),
            one_of("session", "outcome", Outcome),
            one_of("session", "outcome_claimed", Outcome),
            one_of("session", "exit_witness", Witness),
            models.CheckConstraint(
                condition=Q(history__in=["", *(choice.value for choice in JudgeChoice)]), name="session_history_known"
            ),
            models.CheckConstraint(
                condition=Q(outcome=Outcome.COMPLETED) | ~Q(outcome_reason=""), name="session_failed_has_reason"
            ),
            models.CheckConstraint(condition=~Q(external_id=""), name="session_has_id"),
            models.CheckConstraint(
                condition=Q(cost_micro__isnull=False, cost_unknown="")
                | Q(cost_micro=None, cost_unknown__in=[reason.value for reason in CostUnknown]),
                name="session_cost_or_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["-ended_at", "-id"], name="session_recent"),
            models.Index(fields=["category", "-ended_at"], name="session_by_category"),
            models.Index(fields=["id"], condition=Q(is_sample=True), name="session_samples"),
            models.Index(
                fields=["model", "-ended_at"], condition=Q(model_arm=None) & ~Q(model=""), name="session_nameless"
            ),
            models.Index(
                fields=["ended_at"], condition=Q(outcome=Outcome.INFRASTRUCTURE), name="session_infrastructure"
            ),
            models.Index(fields=["reward_source", "-ended_at", "-id"], name="session_by_source"),
            models.Index(
                fields=["project", "-ended_at"], condition=Q(project__isnull=False), name="session_by_project"
            ),
            models.Index(fields=["task", "-ended_at"], condition=~Q(task=""), name="session_by_task"),
            models.Index(fields=["cost_unknown", "-ended_at"], name="session_by_cost_reason"),
            models.Index(
                fields=["verdict_question", "category", "-ended_at"],
                condition=Q(verdict__isnull=False),
                name="session_by_question",
            ),
            models.Index(fields=["-ended_at", "-id"], condition=Q(reward_final=False), name="session_provisional"),
            models.Index(fields=["-ended_at", "-id"], condition=Q(reward_value=None), name="session_without_reward"),
            models.Index(fields=["-ended_at", "-id"], condition=Q(open_flags__gt=0), name="session_flagged"),
        ]

    def __str__(self) -> str:
        return f"{self.category or 'session'} {self.short_id}"

    def get_absolute_url(self) -> str:
        return reverse("admin:session", args=[self.pk])

    @property
    def short_id(self) -> str:
        """The first eight characters of a UUID, or another id cut to 28."""
        is_uuid = UUID.fullmatch(self.external_id) is not None
        return self.external_id[:8] if is_uuid else Truncator(self.external_id).chars(28)

    @property
    def observation(self) -> str:
        """The bandits' name for this session."""
        return observation_of(self.pk)

    @property
    def signals(self) -> "dict[str, Any] | None":
        """The signals extracted from its log, as JSON. None if no log could be read. May run a query."""
        row = getattr(self, "extracted", None)
        return None if row is None else row.data

    @property
    def work(self) -> WorkKind:
        """The kind of work that its category is."""
        return work_of(self.category)

    @property
    def cost(self) -> float | None:
        """What it cost in dollars, None if unknown."""
        return None if self.cost_micro is None else self.cost_micro / MICRODOLLARS

    @property
    def duration_seconds(self) -> float | None:
        return None if self.started_at is None else max(0.0, (self.ended_at - self.started_at).total_seconds())


class SessionLessonManager(models.Manager["SessionLesson"]):
    def get_queryset(self) -> "models.QuerySet[SessionLesson]":
        """With each lesson's arm and in the arms' order, also when a session's lessons are prefetched."""
        return super().get_queryset().select_related("arm").order_by("arm")


class SessionLesson(models.Model):
    """A lesson that matched a session, as an arm of the lesson bandit: given to the session, or held out at random."""

    # The index of session_lesson_once begins with the session.
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="lessons", db_index=False)
    arm = models.ForeignKey("bandit.Arm", on_delete=models.PROTECT, related_name="+")
    taken = models.BooleanField(default=True)
    # How relevant the lesson was, from 0 to 1, according to the caller. None if not submitted.
    salience = models.FloatField(null=True, blank=True)
    # The random draw that gave the lesson or held it out. None if there was no draw.
    assignment = models.ForeignKey(
        "bandit.Assignment", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    objects = SessionLessonManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "arm"], name="session_lesson_once"),
            models.CheckConstraint(
                condition=Q(salience__isnull=True) | Q(salience__gte=0, salience__lte=1), name="lesson_salience_0_to_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.arm} {'given to' if self.taken else 'held out from'} {self.session}"
