"""A finished session of an agent. Its grades, settlements and evidence hang on it."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator

from grading.models.agents import Agent
from grading.models.fields import enum_field, one_of
from grading.models.redacted import redacted_char
from grading.vocabulary import JudgeChoice, Outcome, WorkKind
from grading.witness import Witness

# What the bandits know sessions by: this and the session's key.
OBSERVATION = "session:"
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class CategoryOrigin(StrEnum):
    """Who says of which category a session is, the strongest first: what one says holds against all after it."""

    PERSON = "person"
    RUNNER = "runner"
    DECISION = "decision"
    RULE = "rule"
    AGENT = "agent"

    @property
    def rank(self) -> int:
        """The smaller, the stronger."""
        return list(CategoryOrigin).index(self)

    @property
    def is_inferred(self) -> bool:
        """Whether nobody said it of this very session."""
        return self in {CategoryOrigin.DECISION, CategoryOrigin.RULE}

    @property
    def words(self) -> str:
        return {
            CategoryOrigin.PERSON: "set by a person",
            CategoryOrigin.RUNNER: "given by its runner",
            CategoryOrigin.DECISION: "the arm that was selected",
            CategoryOrigin.RULE: "set by a rule",
            CategoryOrigin.AGENT: "the agent’s own word",
        }[self]


class Whose(StrEnum):
    """Whose sessions a figure is about: the site's own, or the samples that came with it. No figure is about both."""

    YOURS = "yours"
    SAMPLES = "samples"

    def rows(self, session: str = "session") -> Q:
        """The rows that hang on such sessions, as a condition; `session` is the path to the session, "pk" for sessions
        themselves. Samples are few, so that whichever index finds the rows still does.
        """
        samples = Q(**{f"{session}__in": Session.objects.samples().order_by().values("pk")})
        return samples if self is Whose.SAMPLES else ~samples


def yours(session: str = "session") -> Q:
    """Rows of the site's own sessions: see `Whose.rows`."""
    return Whose.YOURS.rows(session)


def observation_of(pk: int) -> str:
    """The name under which the bandits know the session of that key."""
    return f"{OBSERVATION}{pk}"


def session_of(observation: str) -> int | None:
    """The key of the session that the bandits know by this name; None for a name of none."""
    key = observation.removeprefix(OBSERVATION)
    return int(key) if key.isdecimal() and len(key) < len(observation) else None


class SessionQuerySet(models.QuerySet["Session"]):
    def by_observation(self, names: Iterable[str]) -> "dict[str, Session]":
        """The sessions that the bandits know by these names, in one query; names of none are left out."""
        keys = [name.removeprefix(OBSERVATION) for name in names]
        return {each.observation: each for each in self.filter(pk__in=[int(key) for key in keys if key.isdecimal()])}

    def with_people(self) -> "SessionQuerySet":
        return self.select_related(
            "agent",
            "category__merged_into",
            "harness__merged_into",
            "model_arm__merged_into",
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
        return self.for_settling().select_related("extracted").prefetch_related("evidence")

    def uncategorised(self) -> "SessionQuerySet":
        """Those that teach the category bandit nothing, as nobody has said what kind of work they are."""
        return self.yours().filter(category=None)

    def of(self, whose: Whose) -> "SessionQuerySet":
        return self.filter(whose.rows("pk"))

    def yours(self) -> "SessionQuerySet":
        """Without samples: what every figure, list and rule is about."""
        return self.of(Whose.YOURS)

    def samples(self) -> "SessionQuerySet":
        return self.filter(is_sample=True)


class Session(models.Model):
    """One finished session, identified by (agent, the agent's own session id).

    `category` and `harness` are the arms that ran; None where they are not known (yet). `category_from` says whose word
    on the category holds, empty where there is none or where it is from before the site kept that. `category_claimed`
    is what the caller said, kept so that an unknown name loses nothing. `model` is what the transcript shows, and
    `model_arm` the name that people gave it. `ended_at` is event time and gives the effective day; `received_at` is
    ingestion time. `outcome` is what the log or its runner shows; `outcome_claimed` and `claim_reason` are what the
    caller said of it. `exit_witness` saw its `exit_code`. `history` is what was wanted of the judge for one that was
    handed in as history (`intake.history`).

    The reward columns repeat the current settlement, the first judge's latest first reading (`verdict`) and the number
    of open flags, so that lists can filter and sort by them. `verdict_question` is the `question_of` that verdict.
    Nothing in them depends on a clock or on settings. They are written in the transaction that moves the reward,
    audited at night, and `manage.py rebuild` compares and repairs them.
    """

    # Other indexes begin with the agent and with the category.
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="sessions", db_index=False)
    external_id = models.CharField(max_length=200)
    title = redacted_char(max_length=300, blank=True)
    category = models.ForeignKey(
        "bandit.Arm", null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    category_from = enum_field(CategoryOrigin, blank=True, default="")
    category_claimed = redacted_char(max_length=200, blank=True)
    harness = models.ForeignKey("bandit.Arm", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=120, blank=True)
    model_arm = models.ForeignKey("bandit.Arm", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    selection = models.ForeignKey("bandit.Selection", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField()
    received_at = models.DateTimeField(default=timezone.now)
    exit_code = models.IntegerField(null=True, blank=True)
    exit_witness = enum_field(Witness, default=Witness.UNKNOWN)
    outcome = enum_field(Outcome, default=Outcome.COMPLETED)
    outcome_reason = redacted_char(max_length=300, blank=True)
    outcome_claimed = enum_field(Outcome, default=Outcome.COMPLETED)
    claim_reason = redacted_char(max_length=300, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)
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
        """What people say aloud: the first eight characters of a UUID; else the id, cut."""
        is_uuid = UUID.fullmatch(self.external_id) is not None
        return self.external_id[:8] if is_uuid else Truncator(self.external_id).chars(28)

    @property
    def observation(self) -> str:
        """The name under which the bandits know this session."""
        return observation_of(self.pk)

    @property
    def signals(self) -> "dict[str, Any] | None":
        """What its log says happened, as JSON; None where no log could be read. A query."""
        row = getattr(self, "extracted", None)
        return None if row is None else row.data

    @property
    def work(self) -> WorkKind:
        """What kind of work its category is; production where that is not known."""
        category = None if self.category is None else self.category.current
        if category is not None and category.is_consumption:
            return WorkKind.CONSUMPTION
        return WorkKind.LOOKING if category is not None and category.is_looking else WorkKind.PRODUCTION

    @property
    def duration_seconds(self) -> float | None:
        return None if self.started_at is None else max(0.0, (self.ended_at - self.started_at).total_seconds())
