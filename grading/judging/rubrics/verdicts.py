"""The verdicts that count for the chain: which of them are stale, and which questions have an answer."""

from collections.abc import Iterator

from django.db.models import BooleanField, Case, Exists, OuterRef, Q, QuerySet, Value, When

from bandit.models import Arm
from grading.judging import inputs, judges
from grading.judging.core.verdict_score import VERSION
from grading.judging.rubrics import kinds
from grading.models import Grade, Rubric, Session
from grading.models.grades import question_of
from grading.models.sessions import SessionQuerySet
from grading.vocabulary import WorkKind


def verdicts() -> QuerySet[Grade]:
    """The verdicts that count for the chain, latest first: no trials, repeats, second opinions or further readings."""
    return Grade.objects.chain().verdicts().first_readings().order_by("-pk")


def with_verdict(sessions: SessionQuerySet) -> SessionQuerySet:
    """Annotate each session with `is_stale`: its verdict is not by the active rubric for its kind of work, or is by an
    older digest. NULL if it has no verdict.
    """
    questions = _active_questions()
    other_kinds = [When(category=pk, then=Value(questions[kind])) for pk, kind in kinds.of_categories().items()]
    active_question = Case(*other_kinds, default=Value(questions[WorkKind.PRODUCTION]))
    not_stale = When(verdict_question=active_question, then=Value(value=False))
    is_stale = Case(not_stale, default=Value(value=True), output_field=BooleanField())
    return sessions.annotate(is_stale=Case(When(verdict__isnull=False, then=is_stale), default=None))


def has_stale() -> Q:
    """A condition on sessions: their verdict is stale. It names only categories that have such sessions, so that an
    index can be used.

    Three queries, and up to three more for each question with a verdict.
    """
    active = _active_questions()
    other_kinds = kinds.of_categories()
    kinds_by_category = {pk: other_kinds.get(pk, WorkKind.PRODUCTION) for pk in kinds.categories()}
    stale = Q(pk__in=[])  # matches nothing
    for question in _answered_questions():
        stale_kinds = {kind for kind in WorkKind if active[kind] != question}
        judged = Session.objects.filter(verdict__isnull=False, verdict_question=question).order_by()
        candidates = Arm.objects.filter(pk__in=[pk for pk, kind in kinds_by_category.items() if kind in stale_kinds])
        stale_categories = candidates.filter(Exists(judged.filter(category=OuterRef("pk"))))
        stale_keys = list(stale_categories.values_list("pk", flat=True))
        in_categories = Q(pk__in=[])  # matches nothing
        if stale_keys:
            in_categories |= Q(category__in=stale_keys)
        if WorkKind.PRODUCTION in stale_kinds and judged.filter(category=None).exists():
            in_categories |= Q(category=None)
        stale |= Q(verdict_question=question) & in_categories
    return Q(verdict__isnull=False) & stale


def _active_questions() -> dict[WorkKind, int]:
    """The question (rubric and digest) that the judge is asked now, by kind of work."""
    in_force = Rubric.objects.in_force()
    return {kind: question_of(in_force[kind].sha256 if kind in in_force else "", VERSION) for kind in WorkKind}


def _answered_questions() -> Iterator[int]:
    """The questions of all current verdicts. Each takes one look-up in an index."""
    judged = Session.objects.filter(verdict__isnull=False).order_by("verdict_question")
    questions = judged.values_list("verdict_question", flat=True)
    question = questions.first()
    while question is not None:
        yield question
        question = questions.filter(verdict_question__gt=question).first()


def staleness(verdict: Grade | None, active: Rubric | None) -> str:
    """Why a verdict is stale, in a sentence; empty if it is not. `active` is the rubric for the session's kind."""
    if verdict is None:
        return ""
    if active is None or verdict.rubric != active.sha256:
        origin = f"under rubric {verdict.rubric[:4]}" if verdict.rubric else "under a rubric that is not on record"
        now = f"{active.sha256[:4]} is in force for {active.work} now" if active else "none is in force now"
        return f"Given {origin}; {now}."
    if verdict.version != VERSION:
        return f"Given by {verdict.version}; {VERSION} is used now."
    return ""


def answers(session: Session, rubric: Rubric, hashes: dict[str, str]) -> QuerySet[Grade]:
    """Verdicts (trials too) on this evidence by this rubric and the first judge, latest first.

    `hashes` are from `judgeable`. While there is such a verdict, the judge is not asked again.
    """
    judge = judges.first()
    return session.grades.answering(
        inputs_sha256=inputs.inputs_sha256(hashes),
        rubric=rubric.sha256,
        version=VERSION,
        model=judge.model if judge else "",
    ).order_by("-pk")
