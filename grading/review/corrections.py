"""People's corrections of grades, and their undo. Each appends a row and settles the session; nothing is deleted."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction

from grading.models import Evidence, Grade, Session, Settlement
from grading.monitoring.flags import clear_flags
from grading.monitoring.watch import reopen_flags
from grading.review.seen import added_since, evidence_version, persons_grade
from grading.reward import rewards
from grading.reward.explain import number
from grading.reward.grade import checked_value
from grading.vocabulary import Reason, Source, Status

# A correction that moves the reward by more than this needs a reason in words.
REASON_NEEDED_ABOVE = 0.2


class CorrectionError(Exception):
    """A correction cannot be recorded. The message says what was expected, what came, and what to do."""


class StaleReview(CorrectionError):
    """The reward or the evidence changed after the form was opened. Look at what changed, then decide again.

    `before` and `current` are the settlements when the form was opened and now. `added` is the evidence that arrived
    in between.
    """

    def __init__(self, current: Settlement | None, before: Settlement | None, added: Sequence[Evidence]) -> None:
        self.current = current
        self.before = before
        self.added = tuple(added)
        if current is None or before is None or current.pk == before.pk:
            reward = "" if current is None else f"The reward is {_describe(current)}: {current.sentence} "
            changed = f"New evidence arrived while this page was open. {reward}"
        else:
            changed = (
                f"The reward changed while this page was open: you saw {_describe(before)}, now it is "
                f"{_describe(current)}. The explanation is now: {current.sentence} "
            )
        names = ", ".join(f"{row.kind} {row.shown_name}".strip() for row in added)
        evidence = f"Evidence added since: {names}. " if names else ""
        super().__init__(f"{changed}{evidence}Nothing was saved. Check the session, then submit again.")


class AlreadyUndone(CorrectionError):
    """The verdict was undone before, so nothing was changed."""

    def __init__(self) -> None:
        super().__init__("Nothing was changed, because this grade has already been undone.")


def record_correction(
    session: Session,
    reviewer: User,
    *,
    value: float | None = None,
    exclude: bool = False,
    reason: str = "",
    seen_revision: int | None = None,
    seen_evidence: str = "",
) -> Settlement:
    """Record a person's verdict on a session: a value in [0, 1], or `exclude` for no reward at all.

    `seen_revision` is the revision of the settlement that the person saw, and `seen_evidence` the `evidence_version`.
    Raises StaleReview if either has changed since. Raises CorrectionError if neither or both of `value` and `exclude`
    are given, if the value is not in [0, 1], or if a reason is needed but missing.
    """
    with transaction.atomic():
        live = _lock_and_read_settlement(session)
        require_fresh(session, live, seen_revision, seen_evidence)
        value = checked_grade(value, exclude=exclude)
        before = rewards.graded_value(live)
        needs_reason = exclude or (
            before is not None and value is not None and abs(value - before) > REASON_NEEDED_ABOVE
        )
        if needs_reason and not reason.strip():
            raise CorrectionError(
                f"Give a short reason, because your grade differs by more than {REASON_NEEDED_ABOVE:g}."
            )
        evidence: dict[str, object] = {"evidence_sha256": evidence_version(session)}
        if live is not None:
            evidence |= {"settlement": live.pk, "revision": live.revision, "value": live.value, "source": live.source}
        Grade.objects.create(
            session=session,
            source=Source.HUMAN,
            status=Status.SKIPPED if exclude else Status.SCORED,
            value=value,
            reason=Reason.EXCLUDED if exclude else Reason.NONE,
            detail=reason.strip(),
            evidence=evidence,
            version="human/1",
            author=reviewer,
        )
        clear_flags(session, by=reviewer)
        return rewards.settle(session)


def undo(grade: Grade, reviewer: User, *, reason: str = "") -> Settlement:
    """Withdraw a person's verdict, so that the state before it is restored exactly.

    Raises CorrectionError if `grade` is not a person's verdict, or was undone before.
    """
    with transaction.atomic():
        _lock_and_read_settlement(grade.session)
        if grade.source != Source.HUMAN or grade.reason == Reason.WITHDRAWN:
            raise CorrectionError(f"Only a person's verdict can be undone; this is a {grade.source} row.")
        if Grade.objects.filter(withdraws=grade).exists():
            raise AlreadyUndone
        Grade.objects.create(
            session=grade.session,
            source=Source.HUMAN,
            status=Status.SKIPPED,
            reason=Reason.WITHDRAWN,
            detail=reason.strip(),
            withdraws=grade,
            version="human/1",
            author=reviewer,
        )
        settlement = rewards.settle(grade.session)
        if persons_grade(grade.session) is None:
            reopen_flags(grade.session)
        return settlement


def _lock_and_read_settlement(session: Session) -> Settlement | None:
    """Lock the session until the transaction ends, and return its current settlement."""
    Session.objects.select_for_update().get(pk=session.pk)
    return rewards.live(session)


def require_fresh(
    session: Session, current: Settlement | None, seen_revision: int | None, seen_evidence: str = ""
) -> None:
    """Raise StaleReview if the reward or the evidence is not what the person saw.

    The reward is not compared if `seen_revision` is None; nor is the evidence if `seen_evidence` is empty.
    """
    reward_changed = seen_revision is not None and current is not None and current.revision != seen_revision
    evidence_changed = bool(seen_evidence) and seen_evidence != evidence_version(session)
    if not reward_changed and not evidence_changed:
        return
    settlement = session.settlements.filter(revision=seen_revision or 0).first()
    raise StaleReview(current, settlement, added_since(session, settlement) if settlement else [])


def _describe(settlement: Settlement) -> str:
    by = f" by {settlement.source}" if settlement.source else ""
    return f"{number(settlement.value)}{by} (settlement {settlement.revision})"


def checked_grade(value: float | None, *, exclude: bool) -> float | None:
    """The grade if it is in [0, 1], or None for an exclusion.

    Raises CorrectionError for a number outside [0, 1], and if a person gave both or neither of grade and exclusion.
    """
    if exclude and value is not None:
        raise CorrectionError("Give either a grade from 0 to 1 or exclude the session; got both")
    if not exclude and value is None:
        raise CorrectionError("Give either a grade from 0 to 1 or exclude the session; got neither")
    try:
        return None if value is None else checked_value(value)
    except ValueError as error:
        raise CorrectionError(str(error)) from error
