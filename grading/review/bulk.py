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
from grading.review.corrections import CorrectionError, checked
from grading.reward import rewards
from grading.reward.explain import number
from grading.vocabulary import Source

MOST = 200
VERDICTS = (Answer.GRADE, Answer.ACCEPT, Answer.EXCLUDE)


class BulkRefused(CorrectionError):
    """Some of the sessions cannot be corrected, so none was. `problems` has these sessions and the reasons."""

    def __init__(self, problems: Sequence[tuple[Session, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            f"Nothing was saved, because {len(problems)} of the sessions cannot be corrected like this. Untick them "
            "or choose another answer, then submit again."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleReward:
    """A session whose reward changed meanwhile: its settlement before (None if it had none) and now."""

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
class Chosen:
    """A session to correct, its current settlement and the rules of its open flags.

    `beside`: an answer would be an opinion and not change the reward.
    """

    session: Session
    current: Settlement | None
    flags: tuple[str, ...]
    beside: bool

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

    `moves` are the changes of rewards that exist before and after. `first` sessions get their first grade, `lost` lose
    theirs, `same` do not change, and `beside` get an opinion that changes nothing. `flags` would be cleared.
    """

    total: int
    moves: tuple[float, ...]
    first: int
    lost: int
    same: int
    beside: int
    flags: int
    arms: tuple[ArmMove, ...]


def choose(ids: Iterable[int], reviewer: User) -> list[Chosen]:
    """The sessions of these ids, the latest first. A constant number of queries; what doesn't exist is left out."""
    flags = Prefetch("flags", Flag.objects.open().order_by("rule"), to_attr="prefetched_flags")
    wanted = Session.objects.with_people().filter(pk__in=set(ids)).prefetch_related(flags, "lessons")
    sessions = list(wanted.select_related("review_item"))
    settlements = _live(sessions)
    chosen = []
    for session in sessions:
        item: ReviewItem | None = getattr(session, "review_item", None)
        chosen.append(
            Chosen(
                session=session,
                current=settlements.get(session.pk),
                flags=tuple(flag.rule for flag in session.prefetched_flags),  # type: ignore[attr-defined] # prefetched above
                beside=item is not None and answers.is_opinion(session, reviewer, item),
            )
        )
    return chosen


def graded_since_flagged(rule: str, ids: Iterable[int]) -> dict[int, Settlement]:
    """The current settlements, by session, that a judge or a person decided after the rule flagged it. Two queries."""
    raised = dict(Flag.objects.filter(rule=rule, session__in=ids).values_list("session", "raised_at"))
    rows = Settlement.objects.filter(session__in=raised).select_related("grade").defer("steps").order_by("revision")
    settlements = {row.session_id: row for row in rows}
    return {
        key: row
        for key, row in settlements.items()
        if row.source in (Source.JUDGE, Source.HUMAN)
        and row.value is not None
        and row.grade is not None
        and row.grade.created_at > raised[key]
    }


def preview(chosen: Sequence[Chosen], answer: Answer, value: float | None) -> BulkPreview:
    """The effect of a bulk correction on rewards and bandits; nothing is saved. `value` is for Answer.GRADE.

    Raises CorrectionError if the grade is missing or not in [0, 1].
    """
    if answer is Answer.GRADE:
        value = checked(value, exclude=False)
    settled = [each for each in chosen if not each.beside]
    after: dict[int, float | None] = {}
    for each in settled:
        if answer is Answer.GRADE:
            after[each.session.pk] = value
        else:
            after[each.session.pk] = each.value if answer is Answer.ACCEPT else None
    pairs = [(each.value, after[each.session.pk]) for each in settled]
    moves = [new - old for old, new in pairs if old is not None and new is not None and new != old]
    return BulkPreview(
        total=len(chosen),
        moves=tuple(moves),
        first=sum(old is None and new is not None for old, new in pairs),
        lost=sum(old is not None and new is None for old, new in pairs),
        same=sum(old == new for old, new in pairs),
        beside=len(chosen) - len(settled),
        flags=sum(len(each.flags) for each in settled),
        arms=tuple(promises.effects((each.session, after[each.session.pk]) for each in settled)),
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
    """Give the sessions in `revisions` (id to the revision on the screen, 0 for none) one verdict, or none of them.

    Each is submitted like a single answer. `bulk` is an idempotency key: a repeat changes nothing. For an `alarm`,
    sessions that were graded after it flagged them can't be excluded. Returns the number of answers saved under `bulk`.
    Raises CorrectionError without a reason or for too many sessions, BulkStale, or BulkRefused.
    """
    if not reason.strip():
        raise CorrectionError("Give a short reason. It is stored with each session.")
    if not 0 < len(revisions) <= MOST:
        raise CorrectionError(f"Choose from 1 to {MOST} sessions; {len(revisions)} were chosen.")
    with transaction.atomic():
        sessions = _locked(revisions)
        if saved := ReviewAnswer.objects.filter(bulk=bulk).count():
            return saved
        current = _live(sessions)
        current_revisions = {key: settlement.revision for key, settlement in current.items()}
        changed = [each for each in sessions if current_revisions.get(each.pk, 0) != revisions[each.pk]]
        if changed:
            old = {each.pk: each.settlements.filter(revision=revisions[each.pk]).first() for each in changed}
            stale = [StaleReward(session=each, before=old[each.pk], current=current.get(each.pk)) for each in changed]
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
    """Undo all answers of a bulk correction that were not undone yet, or none of them. Returns how many.

    Raises CorrectionError without a reason or if there are none.
    """
    if not reason.strip():
        raise CorrectionError("Give a short reason. It is stored in the history.")
    with transaction.atomic():
        effective = ReviewAnswer.objects.effective().filter(bulk=bulk)
        _locked(effective.values_list("session", flat=True))
        bulk_answers = list(effective.select_related("session", "grade").order_by("-pk"))
        if not bulk_answers:
            raise CorrectionError("Nothing was changed, because this correction has already been undone.")
        for answer in bulk_answers:
            answers.undo(answer, reviewer, reason)
    return len(bulk_answers)


def _locked(ids: Iterable[int]) -> list[Session]:
    """The sessions, locked in the order of their keys, so that two bulk corrections cannot deadlock."""
    rows = Session.objects.select_for_update(of=("self",)).with_people().filter(pk__in=list(ids))
    return list(rows.order_by("pk"))


def _live(sessions: Iterable[Session]) -> dict[int, Settlement]:
    """The current settlement of each session, by the session's key: the one with the highest revision."""
    rows = Settlement.objects.filter(session__in=sessions).defer("steps").order_by("revision")
    return {row.session_id: row for row in rows}
