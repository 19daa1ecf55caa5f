"""What a person saw when they answered: the evidence, the judge's answer, and whether they had seen that before."""

import hashlib
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q

from grading.models import Evidence, Grade, Reveal, ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import GRADING, Answer
from grading.reward import rewards
from grading.vocabulary import Reason, Source

# Answers that grade nothing: a person who skipped or undid has not answered.
LOOKS_ONLY = (Answer.SKIP, Answer.UNDO)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindGrade:
    """A person's grade in [0, 1] from before they saw the judge's answer; None if they looked first.

    `revealed`: they have seen it by now.
    """

    value: float | None
    revealed: bool


def evidence_version(session: Session) -> str:
    """A SHA-256 that identifies the evidence that a session has now, over the kinds and hashes of its parts."""
    parts = sorted(f"{kind} {sha256}" for kind, sha256 in session.evidence.values_list("kind", "sha256"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def added_since(session: Session, settlement: Settlement) -> list[Evidence]:
    """The evidence that arrived after a settlement."""
    return list(session.evidence.filter(received_at__gt=settlement.created_at))


def persons_grade(session: Session) -> Grade | None:
    """The current verdict of a person: the latest one that was not withdrawn. None if there is none."""
    rows = list(session.grades.all())
    withdrawn = {row.withdraws_id for row in rows}
    verdicts = [row for row in rows if row.source == Source.HUMAN and row.reason != Reason.WITHDRAWN]
    return next((row for row in reversed(verdicts) if row.pk not in withdrawn), None)


def is_outdated(grade: Grade) -> bool:
    """Whether evidence arrived after a person gave this grade.

    A grade stores the version of the evidence; for old grades without one, the time of arrival decides.
    """
    sha256 = grade.evidence.get("evidence_sha256")
    if sha256:
        return bool(sha256 != evidence_version(grade.session))
    return grade.session.evidence.filter(received_at__gt=grade.created_at).exists()


def judges_answer(session: Session) -> Grade | None:
    """The judge's current verdict; without one the latest of any judge, such as a second opinion. None without any."""
    current = rewards.current_grades(session).get(Source.JUDGE)
    verdicts = session.grades.verdicts()
    if current is None or current.value is None:
        return verdicts.order_by("-pk").first()
    return verdicts.get(pk=current.id)


def judged(session: str = "session") -> Exists:
    """A condition on rows: a judge has answered. `session` is the path to the session's id."""
    return Exists(Grade.objects.verdicts().filter(session=OuterRef(session)))


def hidden(reviewer: User, session: str = "session") -> Q:
    """A condition on rows: the judge has answered, and this person may not see it, as they have neither answered
    themselves nor revealed it. `session` is the path to the session's id.
    """
    own = {"session": OuterRef(session), "reviewer": reviewer}
    reveals = Reveal.objects.filter(**own)
    answers = ReviewAnswer.objects.filter(**own).exclude(answer__in=LOOKS_ONLY)
    return Q(judged(session)) & ~Q(Exists(reveals) | Exists(answers))


def hides_judge(session: Session, reviewer: User) -> bool:
    """Whether the judge's answer on this session is `hidden` from this person."""
    return Session.objects.filter(hidden(reviewer, "pk"), pk=session.pk).exists()


def awaits_blind_grade(session: Session, reviewer: User) -> bool:
    """Whether the session's item is open for this person, and the judge's answer is `hidden` from them."""
    not_others = Q(assigned_to=None) | Q(assigned_to=reviewer)
    return ReviewItem.objects.open().filter(not_others, hidden(reviewer), session=session).exists()


def blind_grade(
    session: Session, reviewer: User, answer: Answer, value: float | None, live: Settlement | None
) -> BlindGrade:
    """The person's grade from before they saw the judge's answer, now that they answer `value`.

    Their first grade counts; later answers do not replace it. Accepting what the judge or another person decided is no
    grade of their own.
    """
    first = Reveal.objects.filter(session=session, reviewer=reviewer).order_by("pk").first()
    if first is not None:
        return BlindGrade(value=first.value, revealed=True)
    grades = ReviewAnswer.objects.filter(session=session, reviewer=reviewer, answer__in=GRADING)
    earlier = grades.order_by("pk").first()
    if earlier is not None:
        return BlindGrade(value=earlier.blind_value, revealed=True)
    follows = answer is Answer.ACCEPT and live is not None and live.source in (Source.JUDGE, Source.HUMAN)
    return BlindGrade(value=None if follows else value, revealed=False)
