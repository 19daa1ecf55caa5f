"""What a person was looking at when they answered: evidence, the judge's answer, and whether they saw that first."""

import hashlib
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q

from grading.models import Evidence, Grade, Reveal, ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import GRADING, Answer
from grading.reward import rewards
from grading.vocabulary import Reason, Source

# Who skipped or took back has not answered.
LOOKS_ONLY = (Answer.SKIP, Answer.UNDO)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindGrade:
    """`value` in [0, 1]: what a person said before the judge's answer was shown; None where they looked first."""

    value: float | None
    revealed: bool


def evidence_version(session: Session) -> str:
    """A name for exactly the evidence that a session has now: a SHA-256 over the kinds and hashes of its parts."""
    parts = sorted(f"{kind} {sha256}" for kind, sha256 in session.evidence.values_list("kind", "sha256"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def added_since(session: Session, settlement: Settlement) -> list[Evidence]:
    """The evidence that came after a settlement."""
    return list(session.evidence.filter(received_at__gt=settlement.created_at))


def persons_grade(session: Session) -> Grade | None:
    """The verdict of a person that holds: the latest that was not withdrawn."""
    rows = list(session.grades.all())
    withdrawn = {row.withdraws_id for row in rows}
    mine = [row for row in rows if row.source == Source.HUMAN and row.reason != Reason.WITHDRAWN]
    return next((row for row in reversed(mine) if row.pk not in withdrawn), None)


def is_outdated(grade: Grade) -> bool:
    """Whether evidence came after a person gave this grade.

    A grade says which evidence it saw; for one from before that was kept, the time of arrival decides.
    """
    if sha256 := grade.evidence.get("evidence_sha256"):
        return bool(sha256 != evidence_version(grade.session))
    return grade.session.evidence.filter(received_at__gt=grade.created_at).exists()


def judges_answer(session: Session) -> Grade | None:
    """The judge's verdict that the chain reads, or another family's beside it."""
    current = rewards.current_grades(session).get(Source.JUDGE)
    verdicts = session.grades.verdicts()
    return verdicts.order_by("-pk").first() if current is None or current.value is None else verdicts.get(pk=current.id)


def judged(session: str = "session") -> Exists:
    """Whether a judge has answered, as a condition in a query; `session` is the path to the session's id."""
    return Exists(Grade.objects.verdicts().filter(session=OuterRef(session)))


def hidden(reviewer: User, session: str = "session") -> Q:
    """Whether the judge's answer is kept from this person: while there is one that they neither graded nor revealed.

    A condition in a query, as `judged`.
    """
    mine = {"session": OuterRef(session), "reviewer": reviewer}
    answered = ReviewAnswer.objects.filter(**mine).exclude(answer__in=LOOKS_ONLY)
    return Q(judged(session)) & ~Q(Exists(Reveal.objects.filter(**mine)) | Exists(answered))


def hides_judge(session: Session, reviewer: User) -> bool:
    """Whether the judge's answer to this session is `hidden` from this person."""
    return Session.objects.filter(hidden(reviewer, "pk"), pk=session.pk).exists()


def awaits_blind_grade(session: Session, reviewer: User) -> bool:
    """Whether the queue asks this person for a grade of the session, and the judge's answer is `hidden` from them."""
    theirs = Q(assigned_to=None) | Q(assigned_to=reviewer)
    return ReviewItem.objects.open().filter(theirs, hidden(reviewer), session=session).exists()


def blind(session: Session, reviewer: User, answer: Answer, value: float | None, live: Settlement | None) -> BlindGrade:
    """What this person said of the session before they saw the judge's answer, now that they answer `value`.

    The first thing they said remains that, whatever they say later. Who accepts what the judge or another person
    decided says nothing of their own.
    """
    first = Reveal.objects.filter(session=session, reviewer=reviewer).order_by("pk").first()
    if first is not None:
        return BlindGrade(value=first.value, revealed=True)
    mine = ReviewAnswer.objects.filter(session=session, reviewer=reviewer, answer__in=GRADING)
    earlier = mine.order_by("pk").first()
    if earlier is not None:
        return BlindGrade(value=earlier.blind_value, revealed=True)
    follows = answer is Answer.ACCEPT and live is not None and live.source in (Source.JUDGE, Source.HUMAN)
    return BlindGrade(value=None if follows else value, revealed=False)
