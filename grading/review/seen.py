"""What a person saw when they answered: the evidence, and whether they had seen the judge's answer before."""

import hashlib
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q

from grading.models import Evidence, Grade, Reveal, ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import GRADING, Answer
from grading.reward import rewards
from grading.vocabulary import Reason, Source

# Answers that grade nothing: a person who skipped or undid has not answered.
NON_ANSWERS = (Answer.SKIP, Answer.UNDO)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindGrade:
    """A person's grade in [0, 1] from before they saw the judge's answer; None if they saw that first.

    `revealed`: they have seen the judge's answer by now.
    """

    value: float | None
    revealed: bool


def evidence_version(session: Session) -> str:
    """A SHA-256 that identifies the evidence that a session has now, over the kinds and hashes of its files."""
    lines = sorted(f"{kind} {sha256}" for kind, sha256 in session.evidence.values_list("kind", "sha256"))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def added_since(session: Session, settlement: Settlement) -> list[Evidence]:
    """The evidence that arrived after a settlement."""
    return list(session.evidence.filter(received_at__gt=settlement.created_at))


def persons_grade(session: Session) -> Grade | None:
    """The current verdict of a person: the latest that was not withdrawn; None if there is none."""
    rows = list(session.grades.all())
    withdrawn = {row.withdraws_id for row in rows}
    verdicts = [row for row in rows if row.source == Source.HUMAN and row.reason != Reason.WITHDRAWN]
    return next((row for row in reversed(verdicts) if row.pk not in withdrawn), None)


def is_outdated(grade: Grade) -> bool:
    """Whether evidence arrived after a person gave this grade.

    A grade stores the version of the evidence. For old grades, which don't, the time of arrival decides.
    """
    sha256 = grade.evidence.get("evidence_sha256")
    if sha256:
        return bool(sha256 != evidence_version(grade.session))
    return grade.session.evidence.filter(received_at__gt=grade.created_at).exists()


def judges_answer(session: Session) -> Grade | None:
    """The judge's current verdict. Otherwise the latest verdict of any judge, such as a second opinion, or None."""
    current = rewards.current_grades(session).get(Source.JUDGE)
    verdicts = session.grades.verdicts()
    if current is None or current.value is None:
        return verdicts.order_by("-pk").first()
    return verdicts.get(pk=current.id)


def has_verdict(session: str = "session") -> Exists:
    """A condition on rows: a judge has answered. `session` is the path to the session's id."""
    return Exists(Grade.objects.verdicts().filter(session=OuterRef(session)))


def judge_hidden_from(reviewer: User, session: str = "session") -> Q:
    """A condition on rows: a judge has answered, and this person must not see the answer yet.

    They may see it once they have answered themselves or revealed it. `session` is the path to the session's id.
    """
    by_reviewer = {"session": OuterRef(session), "reviewer": reviewer}
    reveals = Reveal.objects.filter(**by_reviewer)
    answers = ReviewAnswer.objects.filter(**by_reviewer).exclude(answer__in=NON_ANSWERS)
    return Q(has_verdict(session)) & ~Q(Exists(reveals) | Exists(answers))


def hides_judge(session: Session, reviewer: User) -> bool:
    """Whether the judge's answer on this session is hidden from this person (`judge_hidden_from`)."""
    return Session.objects.filter(judge_hidden_from(reviewer, "pk"), pk=session.pk).exists()


def awaits_blind_grade(session: Session, reviewer: User) -> bool:
    """Whether the session's item is open for this person, and the judge's answer is hidden from them."""
    not_others = Q(assigned_to=None) | Q(assigned_to=reviewer)
    return ReviewItem.objects.open().filter(not_others, judge_hidden_from(reviewer), session=session).exists()


def blind_grade(
    session: Session, reviewer: User, answer: Answer, value: float | None, live: Settlement | None
) -> BlindGrade:
    """The person's grade from before they saw the judge's answer, now that they give `answer` with this `value`.

    Their first grade counts; later answers do not replace it. If they accept what the judge or another person decided,
    that is not a grade of their own. `live` is the session's current settlement.
    """
    first_reveal = Reveal.objects.filter(session=session, reviewer=reviewer).order_by("pk").first()
    if first_reveal is not None:
        return BlindGrade(value=first_reveal.value, revealed=True)
    grades = ReviewAnswer.objects.filter(session=session, reviewer=reviewer, answer__in=GRADING)
    earlier = grades.order_by("pk").first()
    if earlier is not None:
        return BlindGrade(value=earlier.blind_value, revealed=True)
    accepts_decision = answer is Answer.ACCEPT and live is not None and live.source in (Source.JUDGE, Source.HUMAN)
    return BlindGrade(value=None if accepts_decision else value, revealed=False)
