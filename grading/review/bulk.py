"""Bulk corrections: one verdict and one reason for many sessions, previewed, saved and undone together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Prefetch

from bandit.core.moves import ArmMove
from grading.models import Alarm, Flag, ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import Answer
from grading.review import answers, promises
from grading.review.corrections import CorrectionError, checked_grade
from grading.reward import rewards
from grading.reward.explain import number
from grading.vocabulary import Source

MAX_SESSIONS = 200
VERDICTS = (Answer.GRADE, Answer.ACCEPT, Answer.EXCLUDE)


class BulkRefused(CorrectionError):
    """Some sessions cannot be corrected, so nothing was saved. `problems` are these sessions, each with the reason."""

    def __init__(self, problems: Sequence[tuple[Session, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            f"Nothing was saved, because {len(problems)} of the sessions cannot be corrected like this. Untick them "
            "or choose another answer, then submit again."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleReward:
    """A session whose reward changed while the page was open: its settlement before (None if it had none) and now."""

    session: Session
    before: Settlement | None
    current: Settlement | None


class BulkStale(CorrectionError):
    """Some of the rewards changed after the page was opened, so nothing was saved."""

    def __init__(self, stale: Sequence[StaleReward], total: int) -> None:
        self.stale = tuple(stale)
        super().__init__(
            f"Nothing was saved, because {len(stale)} of {total} rewards changed while this page was open. The "
            "changes are marked below. Check them, then submit again."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSession:
    """A session to correct, its current settlement and the rules of its open flags.

    `is_opinion`: an answer would only be an opinion, and would not change the reward.
    """

    session: Session
    current: Settlement | None
    flags: tuple[str, ...]
    is_opinion: bool

    @property
    def value(self) -> float | None:
        """The reward in [0, 1]; None if there is none or it is the floor."""
        return rewards.graded_value(self.current)

    @property
    def revision(self) -> int:
        return 0 if self.current is None else self.current.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPreview:
    """What a bulk correction would do to `total` sessions.

    `moves` are the changes of the rewards that exist before and after. The other fields are numbers: of sessions that
    get their first grade, that lose their grade, whose reward is unchanged, and that get an opinion, which changes
    nothing; and of flags that would be cleared. `arms` are the moves of the bandits' arms.
    """

    total: int
    moves: tuple[float, ...]
    first_grades: int
    lost_grades: int
    unchanged: int
    opinions: int
    flags: int
    arms: tuple[ArmMove, ...]


def choose(ids: Iterable[int], reviewer: User) -> list[ChosenSession]:
    """The sessions with these ids, latest first. Unknown ids are left out. A constant number of queries."""
    flags = Prefetch("flags", Flag.objects.open().order_by("rule"), to_attr="prefetched_flags")
    rows = Session.objects.with_people().filter(pk__in=set(ids)).prefetch_related(flags, "lessons")
    sessions = list(rows.select_related("review_item"))
    settlements = _current_settlements(sessions)
    chosen = []
    for session in sessions:
        item: ReviewItem | None = getattr(session, "review_item", None)
        chosen.append(
            ChosenSession(
                session=session,
                current=settlements.get(session.pk),
                flags=tuple(flag.rule for flag in session.prefetched_flags),  # type: ignore[attr-defined] # prefetched above
                is_opinion=item is not None and answers.is_opinion(session, reviewer, item),
            )
        )
    return chosen


def graded_since_flagged(rule: str, ids: Iterable[int]) -> dict[int, Settlement]:
    """By session key, the current settlements that a judge or a person decided after `rule` flagged the session.

    Two queries.
    """
    flagged_at = dict(Flag.objects.filter(rule=rule, session__in=ids).values_list("session", "raised_at"))
    rows = Settlement.objects.filter(session__in=flagged_at).select_related("grade").defer("steps").order_by("revision")
    settlements = {row.session_id: row for row in rows}
    return {
        key: row
        for key, row in settlements.items()
        if row.source in (Source.JUDGE, Source.HUMAN)
        and row.value is not None
        and row.grade is not None
        and row.grade.created_at > flagged_at[key]
    }


def preview(chosen: Sequence[ChosenSession], answer: Answer, value: float | None) -> BulkPreview:
    """The effect of a bulk correction on rewards and bandits; nothing is saved. `value` is for Answer.GRADE.

    Raises CorrectionError if the grade is missing or not in [0, 1].
    """
    if answer is Answer.GRADE:
        value = checked_grade(value, exclude=False)
    corrected = [row for row in chosen if not row.is_opinion]
    new_values: dict[int, float | None] = {}  # by session key
    for row in corrected:
        if answer is Answer.GRADE:
            new_values[row.session.pk] = value
        else:
            new_values[row.session.pk] = row.value if answer is Answer.ACCEPT else None
    before_and_after = [(row.value, new_values[row.session.pk]) for row in corrected]
    moves = [new - old for old, new in before_and_after if old is not None and new is not None and new != old]
    return BulkPreview(
        total=len(chosen),
        moves=tuple(moves),
        first_grades=sum(old is None and new is not None for old, new in before_and_after),
        lost_grades=sum(old is not None and new is None for old, new in before_and_after),
        unchanged=sum(old == new for old, new in before_and_after),
        opinions=len(chosen) - len(corrected),
        flags=sum(len(row.flags) for row in corrected),
        arms=tuple(promises.arm_moves((row.session, new_values[row.session.pk]) for row in corrected)),
    )


def submit(
    revisions: Mapping[int, int],
    reviewer: User,
    *,
    answer: Answer,
    value: float | None = None,
    reason: str,
    bulk: str,
    alarm: Alarm | None = None,
) -> int:
    """Give all these sessions the same verdict, each like a single answer. If one can't be saved, none is.

    `revisions` maps a session's id to the settlement revision that was on the screen (0 for no settlement). `bulk` is
    an idempotency key: a repeat changes nothing. If the sessions come from an `alarm`, those that were graded after its
    rule flagged them can't be excluded. Returns the number of answers saved under `bulk`. Raises CorrectionError
    without a reason or for too many sessions, BulkStale, or BulkRefused.
    """
    if not reason.strip():
        raise CorrectionError("Give a short reason. It is stored with each session.")
    if not 0 < len(revisions) <= MAX_SESSIONS:
        raise CorrectionError(f"Choose from 1 to {MAX_SESSIONS} sessions; {len(revisions)} were chosen.")
    with transaction.atomic():
        sessions = _lock(revisions)
        if saved := ReviewAnswer.objects.filter(bulk=bulk).count():
            return saved
        current = _current_settlements(sessions)
        stale = []
        for session in sessions:
            settlement = current.get(session.pk)
            current_revision = 0 if settlement is None else settlement.revision
            if current_revision != revisions[session.pk]:
                before = session.settlements.filter(revision=revisions[session.pk]).first()
                stale.append(StaleReward(session=session, before=before, current=settlement))
        if stale:
            raise BulkStale(stale, len(sessions))
        problems = []
        graded_since: Mapping[int, Settlement] = {}
        if alarm is not None and answer is Answer.EXCLUDE:
            graded_since = graded_since_flagged(alarm.rule, revisions)
        for session in sessions:
            if session.pk in graded_since:
                who = "a person" if graded_since[session.pk].source == Source.HUMAN else "the judge"
                value_since = number(graded_since[session.pk].value)
                problems.append(
                    (
                        session,
                        f"This session can’t be excluded, because {who} graded it {value_since} after the alarm.",
                    )
                )
                continue
            try:
                answers.submit(
                    session,
                    reviewer,
                    answer=answer,
                    value=value if answer is Answer.GRADE else None,
                    reason=reason,
                    seen_revision=revisions[session.pk],
                    bulk=bulk,
                )
            except CorrectionError as error:
                problems.append((session, str(error)))
        if problems:
            raise BulkRefused(problems)
    return len(sessions)


def undo(bulk: str, reviewer: User, reason: str) -> int:
    """Undo every answer of a bulk correction that still counts, all or nothing. Returns how many.

    Raises CorrectionError if there is no such answer, or no reason.
    """
    if not reason.strip():
        raise CorrectionError("Give a short reason. It is stored in the history.")
    with transaction.atomic():
        effective = ReviewAnswer.objects.effective().filter(bulk=bulk)
        _lock(effective.values_list("session", flat=True))
        bulk_answers = list(effective.select_related("session", "grade").order_by("-pk"))
        if not bulk_answers:
            raise CorrectionError("Nothing was changed, because this correction has already been undone.")
        for answer in bulk_answers:
            answers.undo(answer, reviewer, reason)
    return len(bulk_answers)


def _lock(ids: Iterable[int]) -> list[Session]:
    """Lock the sessions in the order of their keys, so that two bulk corrections cannot deadlock. Returns them."""
    rows = Session.objects.select_for_update(of=("self",)).with_people().filter(pk__in=list(ids))
    return list(rows.order_by("pk"))


def _current_settlements(sessions: Iterable[Session]) -> dict[int, Settlement]:
    """The current settlement of each session (that with the highest revision), by the session's key."""
    rows = Settlement.objects.filter(session__in=sessions).defer("steps").order_by("revision")
    return {row.session_id: row for row in rows}
