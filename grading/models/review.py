"""What waits for a person (working rows), and what people did: answers, reveals and comments, append-only."""

from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.packed import PackedJSONField
from grading.models.fields import enum_field, one_of
from grading.models.grades import Grade, Settlement
from grading.models.redacted import redacted_text
from grading.models.sessions import Session, yours


class QueueEntry(StrEnum):
    """How a session came into the queue."""

    RULE = "rule"
    SLICE = "slice"
    PERSON = "person"
    EVIDENCE = "evidence"

    @property
    def words(self) -> str:
        return {
            QueueEntry.RULE: "raised by a rule",
            QueueEntry.SLICE: "random slice",
            QueueEntry.PERSON: "put here by a person",
            QueueEntry.EVIDENCE: "new evidence after a person's grade",
        }[self]


class Place(StrEnum):
    """Which place of the queue handed an item out: one by impact, or one of the random slice's, by chance."""

    IMPACT = "impact"
    CHANCE = "chance"


class ItemState(StrEnum):
    """Open: waits for a person. Done: a person graded it. Dismissed: a person took it off, and no rule puts it back."""

    OPEN = "open"
    DONE = "done"
    DISMISSED = "dismissed"


class ReviewItemQuerySet(models.QuerySet["ReviewItem"]):
    def open(self) -> "ReviewItemQuerySet":
        return self.filter(state=ItemState.OPEN)

    def in_slice(self) -> "ReviewItemQuerySet":
        """Those of the random slice, also where a rule or a person brought them in as well."""
        return self.filter(slice_probability__isnull=False)

    def with_people(self) -> "ReviewItemQuerySet":
        return self.select_related("session__agent", "session__category", "session__harness", "claimed_by")


class ReviewItem(models.Model):
    """A session that waits for a person, or did. A working row, one a session; the record of what people did is in
    `ReviewAnswer`.

    `why` is in words. `slice_probability` in (0, 1] is set iff the session is in the random slice: the chance with
    which it came in. `rank` in [0, 1) is its place in the slice's random order, and `drawn_at` says since when its
    turn there has come: all before it have been answered. `impact` is how far a correction is expected to move what its
    arm has learned, in reward. `wanted` is how many people shall answer. A claim is live until `claimed_until`; `claim`
    names the page that holds it, so that one person's two pages are two; `place` is the queue's that handed it to them,
    empty where they opened it themselves.
    """

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="review_item")
    state = enum_field(ItemState, default=ItemState.OPEN)
    entered_as = enum_field(QueueEntry)
    why = redacted_text(blank=True)
    entered_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    slice_probability = models.FloatField(null=True, blank=True)
    rank = models.FloatField(default=0.0)
    drawn_at = models.DateTimeField(null=True, blank=True)
    impact = models.FloatField(default=0.0)
    wanted = models.PositiveSmallIntegerField(default=1)
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    claimed_until = models.DateTimeField(null=True, blank=True)
    claim = models.CharField(max_length=64, blank=True)
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
    """What a person said of a session. `undo` withdraws an earlier answer; `accept` is a grade equal to the reward."""

    GRADE = "grade"
    ACCEPT = "accept"
    EXCLUDE = "exclude"
    CANNOT_JUDGE = "cannot judge"
    SKIP = "skip"
    UNDO = "undo"


GRADING = (Answer.GRADE, Answer.ACCEPT)


class ReviewAnswerQuerySet(models.QuerySet["ReviewAnswer"]):
    def holding(self) -> "ReviewAnswerQuerySet":
        """Those that were not undone, and undo nothing."""
        return self.filter(undone_by=None).exclude(answer=Answer.UNDO)

    def with_values(self) -> "ReviewAnswerQuerySet":
        return self.filter(answer__in=GRADING)

    def blind(self) -> "ReviewAnswerQuerySet":
        """What people typed before they saw the judge's answer, in the random slice: the only calibration. Of your own
        sessions alone, whatever somebody tried out on a sample.

        Agreeing with a reward that was on the screen is no grade of one's own, unless one was typed before.
        """
        typed = Q(answer=Answer.GRADE) | Q(answer=Answer.ACCEPT, revealed=True)
        return self.holding().filter(yours(), typed, blind_value__isnull=False, slice_probability__isnull=False)

    def drawn(self) -> "ReviewAnswerQuerySet":
        """Those to sessions whose turn in the random order has come, in whichever place they were handed out: of blind
        ones, the random sample of all sessions.
        """
        turns = ReviewItem.objects.filter(drawn_at__isnull=False).order_by().values("session")
        return self.filter(session__in=turns)


class ReviewAnswer(models.Model):
    """One act of one person on one session. Never updated, never deleted (L3).

    `value` in [0, 1] iff a grade was given. `blind_value` is what the person said before the judge's answer was
    revealed (equal to `value` where it never was), None where they looked first. `settlement`, `judge` and
    `evidence_sha256` are what was on the screen. `grade` is the row in the chain that it made; None where it
    stands beside as an opinion, or says nothing of the value. `slice_probability` and `stratum` are the item's at that
    time; `place` is where the queue handed it out, empty where it was opened by hand; `seconds` from opening to
    answering. `effects` lists what it changed, before and after. Answers of one bulk correction share `bulk`; `claim`
    names the page that sent it, by which a request sent twice is told from two.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="answers")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    answer = enum_field(Answer)
    value = models.FloatField(null=True, blank=True)
    blind_value = models.FloatField(null=True, blank=True)
    revealed = models.BooleanField(default=False)
    reason = redacted_text(blank=True)
    seconds = models.FloatField(null=True, blank=True)
    settlement = models.ForeignKey(Settlement, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    judge = models.ForeignKey(Grade, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    evidence_sha256 = models.CharField(max_length=64, blank=True)
    grade = models.OneToOneField(Grade, null=True, blank=True, on_delete=models.PROTECT, related_name="answer")
    slice_probability = models.FloatField(null=True, blank=True)
    stratum = models.CharField(max_length=40, blank=True)
    place = enum_field(Place, blank=True)
    effects = PackedJSONField(default=dict, blank=True)
    bulk = models.CharField(max_length=36, blank=True)
    claim = models.CharField(max_length=64, blank=True)
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
            models.CheckConstraint(
                condition=Q(value=None) | Q(value__gte=0, value__lte=1), name="review_answer_value_range"
            ),
            models.CheckConstraint(
                condition=Q(blind_value=None) | Q(blind_value__gte=0, blind_value__lte=1),
                name="review_answer_blind_value_range",
            ),
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
    """That a person looked at the judge's answer before grading, and what they would have said until then.

    `value` in [0, 1], None where nothing was typed yet: such an answer is not blind. Never updated, never deleted.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="reveals")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    judge = models.ForeignKey(Grade, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    value = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=Q(value=None) | Q(value__gte=0, value__lte=1), name="reveal_value_range"),
        ]
        indexes = [
            models.Index(fields=["session", "reviewer"], name="reveal_of_session"),
            models.Index(fields=["-created_at", "-id"], name="reveal_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.session} revealed"


class Comment(models.Model):
    """What a person noted on a session for others. Never updated, never deleted (L3)."""

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
    """The lists whose filters can be saved."""

    REVIEW = "review"
    SESSIONS = "sessions"
    HISTORY = "history"


class SavedView(models.Model):
    """A list with its filters under a name; `shared` shows it to everyone. `query` is the address' query string."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    page = enum_field(FilteredList)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000, blank=True)
    shared = models.BooleanField(default=False)
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
