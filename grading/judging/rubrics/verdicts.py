"""The verdicts that count for the chain: which of them are stale, and what need not be asked again."""

from collections.abc import Iterator

from django.db.models import BooleanField, Case, Exists, OuterRef, Q, QuerySet, Value, When

from bandit.models import Arm
from grading.judging import inputs, judges
from grading.judging.core.verdict_score import VERSION
from grading.judging.rubrics import kinds
from grading.models import Grade, Rubric, Session, SessionState
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
    own = _in_force()
    others = [When(category=pk, then=Value(own[kind])) for pk, kind in kinds.of_categories().items()]
    asked = Case(*others, default=Value(own[WorkKind.PRODUCTION]))
    fresh = When(state__rubric=asked, state__version=VERSION, then=Value(value=False))
    known = Case(fresh, default=Value(value=True), output_field=BooleanField())
    return sessions.annotate(is_stale=Case(When(state__verdict__isnull=False, then=known), default=None))


def has_stale() -> Q:
    """What every session with a stale verdict fulfils, and none with another: a condition that an index answers, of the
    categories alone that have such sessions. Three queries, and up to three for each rubric and version under which
    verdicts were given.
    """
    own, special, stale = _in_force(), kinds.of_categories(), Q(pk__in=[])
    every = {pk: special.get(pk, WorkKind.PRODUCTION) for pk in kinds.categories()}
    for rubric, version in _given_under():
        others = {kind for kind in WorkKind if own[kind] != rubric or version != VERSION}
        judged = SessionState.objects.filter(verdict__isnull=False, rubric=rubric, version=version)
        found = Arm.objects.filter(pk__in=[pk for pk, kind in every.items() if kind in others])
        categories = Q(pk__in=[])
        if held := list(found.filter(Exists(judged.filter(category=OuterRef("pk")))).values_list("pk", flat=True)):
            categories |= Q(state__category__in=held)
        if WorkKind.PRODUCTION in others and judged.filter(category=None).exists():
            categories |= Q(state__category=None)
        stale |= Q(state__rubric=rubric, state__version=version) & categories
    return Q(state__verdict__isnull=False) & stale


def _in_force() -> dict[WorkKind, str]:
    in_force = Rubric.objects.in_force()
    return {kind: in_force[kind].sha256 if kind in in_force else "" for kind in WorkKind}


def _given_under() -> Iterator[tuple[str, str]]:
    """The rubrics and versions of the verdicts that hold, each found by the index alone."""
    judged = SessionState.objects.filter(verdict__isnull=False).order_by("rubric", "version")
    first = judged.values_list("rubric", "version")
    found = first.first()
    while found is not None:
        yield found
        rubric, version = found
        found = first.filter(rubric=rubric, version__gt=version).first() or first.filter(rubric__gt=rubric).first()


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
