"""The verdicts that count for the chain: which of them are stale, and what need not be asked again."""

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
    """What the judge said for the chain, the latest first, when it read a session for the first time.

    Trials, repeats and second opinions stand beside it; further readings are of sessions that somebody disputes.
    """
    return Grade.objects.chain().verdicts().first_readings().order_by("-pk")


def with_verdict(sessions: SessionQuerySet) -> SessionQuerySet:
    """Each session with `is_stale`: its verdict is of another rubric than the one in force for its kind of work, or of
    an older digest.

    NULL where it has no verdict. A stale verdict holds until there is another one.
    """
    own = _asked()
    others = [When(category=pk, then=Value(own[kind])) for pk, kind in kinds.of_categories().items()]
    asked = Case(*others, default=Value(own[WorkKind.PRODUCTION]))
    fresh = When(verdict_question=asked, then=Value(value=False))
    known = Case(fresh, default=Value(value=True), output_field=BooleanField())
    return sessions.annotate(is_stale=Case(When(verdict__isnull=False, then=known), default=None))


def has_stale() -> Q:
    """What every session with a stale verdict fulfils, and none with another: a condition that an index answers, of the
    categories alone that have such sessions. Three queries, and up to three for each question to which verdicts were
    given.
    """
    own, special, stale = _asked(), kinds.of_categories(), Q(pk__in=[])
    every = {pk: special.get(pk, WorkKind.PRODUCTION) for pk in kinds.categories()}
    for question in _answered():
        others = {kind for kind in WorkKind if own[kind] != question}
        judged = Session.objects.filter(verdict__isnull=False, verdict_question=question).order_by()
        found = Arm.objects.filter(pk__in=[pk for pk, kind in every.items() if kind in others])
        categories = Q(pk__in=[])
        if held := list(found.filter(Exists(judged.filter(category=OuterRef("pk")))).values_list("pk", flat=True)):
            categories |= Q(category__in=held)
        if WorkKind.PRODUCTION in others and judged.filter(category=None).exists():
            categories |= Q(category=None)
        stale |= Q(verdict_question=question) & categories
    return Q(verdict__isnull=False) & stale


def _asked() -> dict[WorkKind, int]:
    """The question that is asked now, by the kind of work."""
    in_force = Rubric.objects.in_force()
    return {kind: question_of(in_force[kind].sha256 if kind in in_force else "", VERSION) for kind in WorkKind}


def _answered() -> Iterator[int]:
    """The questions to which verdicts that hold were given, each found by the index alone."""
    judged = Session.objects.filter(verdict__isnull=False).order_by("verdict_question")
    first = judged.values_list("verdict_question", flat=True)
    found = first.first()
    while found is not None:
        yield found
        found = first.filter(verdict_question__gt=found).first()


def staleness(verdict: Grade | None, active: Rubric | None) -> str:
    """Why a verdict is stale, in a sentence; empty where it is not. `active` is in force for the session's work."""
    if verdict is None:
        return ""
    if active is None or verdict.rubric != active.sha256:
        given = f"under rubric {verdict.rubric[:4]}" if verdict.rubric else "under a rubric that is not on record"
        now = f"{active.sha256[:4]} is in force for {active.work} now" if active else "none is in force now"
        return f"Given {given}; {now}."
    if verdict.version != VERSION:
        return f"Given by {verdict.version}; {VERSION} is used now."
    return ""


def answers(session: Session, rubric: Rubric, held: dict[str, str]) -> QuerySet[Grade]:
    """Verdicts on this very evidence (as of `judgeable`), under this rubric, by the first judge: never asked for twice.

    Trials are among them. The latest first.
    """
    judge = judges.first()
    return session.grades.answering(
        inputs_sha256=inputs.inputs_sha256(held),
        rubric=rubric.sha256,
        version=VERSION,
        model=judge.model if judge else "",
    ).order_by("-pk")
