"""The review queue (mutable rows), and what people did: answers, reveals and comments (append-only)."""

from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.packed import PackedJSONField
from grading.models.fields import enum_field, one_of, redacted_text, unit_interval
from grading.models.grades import Grade, Settlement
from grading.models.sessions import Session, yours
from grading.vocabulary import LabelledEnum


class QueueEntry(LabelledEnum):
    """How a session came into the queue."""

    RULE = "rule", "raised by a rule"
    SLICE = "slice", "random check of the judge"
    PERSON = "person", "put here by a person"
    EVIDENCE = "evidence", "new evidence after a person's grade"
    OUTCOME = "outcome", "what became of the work contradicts the verdict"


class Place(StrEnum):
    """How the queue chose an item for a reviewer: by impact, or from the random slice."""

    IMPACT = "impact"
    CHANCE = "chance"


class ItemState(StrEnum):
    """A person graded a DONE item, or removed a DISMISSED one from the queue: no rule adds it again."""

    OPEN = "open"
    DONE = "done"
    DISMISSED = "dismissed"


class ReviewItemQuerySet(models.QuerySet["ReviewItem"]):
    def open(self) -> "ReviewItemQuerySet":
        return self.filter(state=ItemState.OPEN)

    def in_slice(self) -> "ReviewItemQuerySet":
        """Items of the random slice, including those that a rule or a person added to the queue."""
        return self.filter(slice_probability__isnull=False)

    def with_people(self) -> "ReviewItemQuerySet":
        return self.select_related("session__agent", "session__category", "session__harness", "claimed_by")


class ReviewItem(models.Model):
    """A session that awaits review, or did. `ReviewAnswer` records what people did."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="review_item")
    state = enum_field(ItemState, default=ItemState.OPEN)
    entered_as = enum_field(QueueEntry)
    why = redacted_text(blank=True)
    entered_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    # The probability, in (0, 1], of being drawn into the random slice. None if it isn't in the slice.
    slice_probability = models.FloatField(null=True, blank=True)
    # The place in the slice's random order, in [0, 1), and when its turn came: all earlier ones have been answered.
    rank = models.FloatField(default=0.0)
    drawn_at = models.DateTimeField(null=True, blank=True)
    impact = models.FloatField(default=0.0)  # how far a correction is expected to move the arm's estimate, in reward
    wanted = models.PositiveSmallIntegerField(default=1)  # how many people should answer
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    claimed_until = models.DateTimeField(null=True, blank=True)
    # Names the browser page of the claim: two pages of one person are two claims.
    claim = models.CharField(max_length=64, blank=True)
    # How the queue chose the item for the claim. Empty if the person opened it directly.
    place = enum_field(Place, blank=True)

    objects = ReviewItemQuerySet.as_manager()

    class Meta:
        ordering = ["-impact", "pk"]
        constraints = [
            one_of("review_item", "state", ItemState),
            one_of("review_item", "entered_as", QueueEntry),
            models.CheckConstraint(
                condition=Q(slice_probability=None) | Q(slice_probability__gt=0, slice_probability__lte=1),
                name="review_item_slice_probability",
            ),
            models.CheckConstraint(condition=Q(impact__gte=0), name="review_item_impact_from_0"),
            models.CheckConstraint(condition=Q(rank__gte=0, rank__lt=1), name="review_item_rank_range"),
            models.CheckConstraint(
                condition=Q(place="") | (Q(place__in=[str(each) for each in Place]) & ~Q(claim="")),
                name="review_item_place_of_a_claim",
            ),
            models.CheckConstraint(condition=Q(wanted__gte=1), name="review_item_wants_someone"),
            models.CheckConstraint(
                condition=(Q(state=ItemState.OPEN) & Q(closed_at=None))
                | (~Q(state=ItemState.OPEN) & Q(closed_at__isnull=False)),
                name="review_item_closed_iff_not_open",
            ),
            models.CheckConstraint(
                condition=Q(claim="", claimed_until=None)
                | (~Q(claim="") & Q(claimed_until__isnull=False, claimed_by__isnull=False)),
                name="review_item_claim_is_whole",
            ),
            models.CheckConstraint(
                condition=Q(state=ItemState.OPEN) | Q(claim=""), name="review_item_claimed_only_open"
            ),
        ]
        indexes = [
            models.Index(fields=["state", "-impact", "id"], name="review_item_order"),
            models.Index(fields=["state", "rank"], name="review_item_turns"),
            models.Index(fields=["session"], condition=Q(drawn_at__isnull=False), name="review_item_drawn"),
        ]

    def __str__(self) -> str:
        return f"{self.session} {self.state}"


class Answer(StrEnum):
    """ACCEPT is a grade equal to the current reward. UNDO withdraws an earlier answer."""

    GRADE = "grade"
    ACCEPT = "accept"
    EXCLUDE = "exclude"
    CANNOT_JUDGE = "cannot judge"
    SKIP = "skip"
    UNDO = "undo"


GRADING = (Answer.GRADE, Answer.ACCEPT)


class ReviewAnswerQuerySet(models.QuerySet["ReviewAnswer"]):
    def effective(self) -> "ReviewAnswerQuerySet":
        """Answers that weren't undone and aren't an undo."""
        return self.filter(undone_by=None).exclude(answer=Answer.UNDO)

    def with_values(self) -> "ReviewAnswerQuerySet":
        return self.filter(answer__in=GRADING)

    def blind(self) -> "ReviewAnswerQuerySet":
        """Blind grades in the random slice, on which all calibration rests: typed before the person saw the verdict.

        Accepting the displayed reward counts only if the person had typed a grade before. Sample sessions are left out.
        """
        # Who looked before accepting typed a grade first, or `blind_value` is null.
        typed = Q(answer=Answer.GRADE) | Q(answer=Answer.ACCEPT, revealed=True)
        return self.effective().filter(yours(), typed, blind_value__isnull=False, slice_probability__isnull=False)

    def drawn(self) -> "ReviewAnswerQuerySet":
        """Answers on sessions whose turn in the random order has come, however they were chosen. Those that
        are `blind` are on a random sample of all sessions.
        """
        turns = ReviewItem.objects.filter(drawn_at__isnull=False).order_by().values("session")
        return self.filter(session__in=turns)


class ReviewAnswer(models.Model):
    """One answer of one person on one session. Never updated or deleted."""

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="answers")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    answer = enum_field(Answer)
    value = models.FloatField(null=True, blank=True)  # in [0, 1] for a grade, otherwise None
    # The grade before the verdict was revealed (`value` if it never was). None if the person revealed it first.
    blind_value = models.FloatField(null=True, blank=True)
    revealed = models.BooleanField(default=False)
    reason = redacted_text(blank=True)
    seconds = models.FloatField(null=True, blank=True)  # from opening to answering
    # The reward, verdict and evidence that were displayed.
    settlement = models.ForeignKey(Settlement, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    judge = models.ForeignKey(Grade, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    evidence_sha256 = models.CharField(max_length=64, blank=True)
    # The grade that entered the reward chain. None for an opinion beside it, and without a value.
    grade = models.OneToOneField(Grade, null=True, blank=True, on_delete=models.PROTECT, related_name="answer")
    # These three are copied from the queue's item.
    slice_probability = models.FloatField(null=True, blank=True)
    stratum = models.CharField(max_length=40, blank=True)
    place = enum_field(Place, blank=True)
    effects = PackedJSONField(default=dict, blank=True)  # what it changed, before and after
    bulk = models.CharField(max_length=36, blank=True)  # shared by the answers of one bulk correction
    claim = models.CharField(max_length=64, blank=True)  # the page that sent it: an idempotency key
    undoes = models.OneToOneField("self", null=True, blank=True, on_delete=models.PROTECT, related_name="undone_by")
    created_at = models.DateTimeField(default=timezone.now)

    objects = ReviewAnswerQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("review_answer", "answer", Answer),
            models.CheckConstraint(
                condition=Q(place__in=["", *(str(each) for each in Place)]), name="review_answer_place_known"
            ),
            models.CheckConstraint(
                condition=Q(answer__in=GRADING, value__isnull=False) | (~Q(answer__in=GRADING) & Q(value=None)),
                name="review_answer_value_iff_graded",
            ),
            unit_interval("value", "review_answer_value_range", null=True),
            unit_interval("blind_value", "review_answer_blind_value_range", null=True),
            models.CheckConstraint(
                condition=Q(answer=Answer.UNDO, undoes__isnull=False) | (~Q(answer=Answer.UNDO) & Q(undoes=None)),
                name="review_answer_undo_names_what",
            ),
        ]
        indexes = [
            models.Index(fields=["session", "-id"], name="review_answer_of_session"),
            models.Index(fields=["undoes"], condition=Q(undoes__isnull=False), name="review_answer_undone"),
            models.Index(fields=["reviewer", "-id"], name="review_answer_of_reviewer"),
            models.Index(fields=["-created_at"], name="review_answer_recent"),
            models.Index(fields=["bulk"], condition=~Q(bulk=""), name="review_answer_of_bulk"),
            models.Index(
                fields=["session"],
                condition=Q(blind_value__isnull=False, slice_probability__isnull=False),
                name="review_answer_blind",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.answer} of {self.session}" + ("" if self.value is None else f": {self.value:.2f}")


class Reveal(models.Model):
    """A person revealed the verdict before grading. Never updated or deleted."""

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="reveals")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    judge = models.ForeignKey(Grade, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    # The grade, in [0, 1], that the person had typed by then. If None, their answer isn't blind.
    value = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [unit_interval("value", "reveal_value_range", null=True)]
        indexes = [
            models.Index(fields=["session", "reviewer"], name="reveal_of_session"),
            models.Index(fields=["-created_at", "-id"], name="reveal_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.session} revealed"


class Comment(models.Model):
    """A person's comment on a session. Never updated or deleted."""

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="comments")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = redacted_text(max_length=4000)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="comment_says_something")]
        indexes = [models.Index(fields=["-created_at", "-id"], name="comment_recent")]

    def __str__(self) -> str:
        return f"{self.session}: {self.text[:40]}"


class FilteredList(StrEnum):
    """Lists whose filters can be saved."""

    REVIEW = "review"
    SESSIONS = "sessions"
    HISTORY = "history"


class SavedView(models.Model):
    """Filters of a list, saved under a name."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    page = enum_field(FilteredList)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000, blank=True)  # a URL's query string
    shared = models.BooleanField(default=False)  # whether everyone sees it
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            one_of("saved_view", "page", FilteredList),
            models.CheckConstraint(condition=~Q(name=""), name="saved_view_named"),
            models.UniqueConstraint(fields=["owner", "page", "name"], name="saved_view_once"),
        ]

    def __str__(self) -> str:
        return self.name
