"""What people do to grades: correct, exclude, accept, undo. Each appends one row and settles; nothing is erased."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from bandit.core.posterior import ArmPosterior
from bandit.selection import what_if
from grading import monitoring, rewards
from grading.core.grade import checked_value
from grading.core.vocabulary import Reason, Source, Status
from grading.models import Grade, Session, Settlement

# A correction that moves the reward by more than this needs a reason in words.
REASON_NEEDED_ABOVE = 0.2


class CorrectionError(Exception):
    """The correction cannot be recorded as it stands; the message says what was expected, what came, what to do."""


class StaleReview(CorrectionError):
    """The reward changed after the form was opened; look at what changed, then decide again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a correction would do to the session's category arm, before anything is saved.

    `before` and `after` are the arm's posteriors; `share_before` and `share_after` its expected number of the next 100
    sessions. All None where the session has no category.
    """

    arm: str | None
    before: ArmPosterior | None
    after: ArmPosterior | None
    share_before: float | None
    share_after: float | None


def record_correction(
    session: Session,
    reviewer: User,
    *,
    value: float | None = None,
    exclude: bool = False,
    reason: str = "",
    seen_revision: int | None = None,
) -> Settlement:
    """A person's verdict on a session: a value in [0, 1], or `exclude` for no reward at all.

    `seen_revision` is the settlement the person was looking at; StaleReview where it moved on since (I149).
    CorrectionError where neither or both of value and exclude are given, the value is no number from 0 to 1, or a
    reason is needed and missing.
    """
    with transaction.atomic():
        held = _locked_settlement(session)
        _require_fresh(held, seen_revision)
        value = _checked(value, exclude=exclude)
        _require_reason(held, value, exclude=exclude, reason=reason)
        Grade.objects.create(
            session=session,
            source=Source.HUMAN,
            status=Status.SKIPPED if exclude else Status.SCORED,
            value=value,
            reason=Reason.EXCLUDED if exclude else Reason.NONE,
            detail=reason.strip(),
            evidence=_seen(held),
            version="human/1",
            author=reviewer,
        )
        monitoring.clear_flags(session, by=reviewer)
        return rewards.settle(session)


def undo(grade: Grade, reviewer: User, *, reason: str = "") -> Settlement:
    """Withdraw a person's verdict. What held before it holds again, exactly. CorrectionError if it can't be undone."""
    with transaction.atomic():
        _locked_settlement(grade.session)
        if grade.source != Source.HUMAN or grade.reason == Reason.WITHDRAWN:
            raise CorrectionError(f"Only a person's verdict can be undone; this is a {grade.source} row.")
        if Grade.objects.filter(withdraws=grade).exists():
            raise CorrectionError("This verdict was undone already; nothing was changed.")
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
        monitoring.reopen_flags(grade.session)
        return settlement


def preview(session: Session, value: float | None) -> Preview:
    """The category arm's posterior now, and as it would be after a person says `value` (None: exclude)."""
    if session.category is None:
        return Preview(arm=None, before=None, after=None, share_before=None, share_after=None)
    before, after = what_if(
        bandit="category",
        observation=session.observation,
        arm=session.category.name,
        value=None if value is None else checked_value(value),
        source=Source.HUMAN,
        effective_day=timezone.localdate(session.ended_at),
        now=timezone.now(),
    )
    name = session.category.name
    return Preview(
        arm=name,
        before=before.arms[name],
        after=after.arms[name],
        share_before=before.share_of_next_100(name),
        share_after=after.share_of_next_100(name),
    )


def _locked_settlement(session: Session) -> Settlement | None:
    Session.objects.select_for_update().get(pk=session.pk)
    return rewards.live(session)


def _require_fresh(held: Settlement | None, seen_revision: int | None) -> None:
    if seen_revision is None or held is None or held.revision == seen_revision:
        return
    raise StaleReview(
        f"The reward changed while you were looking: you saw settlement {seen_revision}, now it is {held.revision}. "
        f"It now says: {held.sentence} Nothing was saved; look again and submit."
    )


def _checked(value: float | None, *, exclude: bool) -> float | None:
    if exclude == (value is not None):
        raise CorrectionError(
            "Give either a grade from 0 to 1 or exclude the session; got " + ("both" if exclude else "neither")
        )
    try:
        return None if value is None else checked_value(value)
    except ValueError as error:
        raise CorrectionError(str(error)) from error


def _require_reason(held: Settlement | None, value: float | None, *, exclude: bool, reason: str) -> None:
    # The floor is no grade (L2), so that nothing is moved from it.
    before = None if held is None or held.source == Source.FLOOR else held.value
    moves = exclude or (before is not None and value is not None and abs(value - before) > REASON_NEEDED_ABOVE)
    if moves and not reason.strip():
        raise CorrectionError(
            f"A reason is needed: this moves the grade by more than {REASON_NEEDED_ABOVE:g}. Say in a few words why."
        )


def _seen(held: Settlement | None) -> dict[str, object]:
    """What the person was looking at (I148)."""
    if held is None:
        return {}
    return {"settlement": held.pk, "revision": held.revision, "value": held.value, "source": held.source}
