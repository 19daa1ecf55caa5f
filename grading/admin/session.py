"""One session: its facts, the reward chain, the evidence, and everything that ever happened to its reward."""

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from bandit import ledger
from bandit.models import LedgerEntry
from bandit.reading import version_of, weights_of
from grading import evidence
from grading.admin import history, transcript
from grading.admin.judge_state import first_quota
from grading.admin.quota import not_before
from grading.core.explain import StepState
from grading.core.vocabulary import Reason, Source
from grading.judging.rubrics.verdicts import staleness
from grading.models import Grade, JudgeAttempt, JudgeJob, Rubric, Session, Settlement
from grading.models.evidence import ArtifactKind, EvidenceKind
from grading.models.judging import AttemptOutcome, Purpose

PATCH_LIMIT = 60_000
PATCH_LINES = 600
JOURNAL_LIMIT = 60_000
DIFF_CLASSES = {"+": "add", "-": "del", "@": "hd"}
DIFF_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ", "Binary ")


def show(request: HttpRequest, pk: int) -> TemplateResponse:
    """A constant number of queries, whatever the session's history."""
    session = get_object_or_404(Session.objects.with_people().select_related("selection__arm"), pk=pk)
    settlements = list(session.settlements.order_by("revision"))
    grades = list(session.grades.select_related("author", "withdrawn_by").order_by("pk"))
    flags = list(session.flags.select_related("cleared_by"))
    entries = list(ledger.history(session.observation))
    received = list(session.evidence.all())
    settlement = settlements[-1] if settlements else None
    judge = latest_of(grades, Source.JUDGE)
    stale = staleness(judge, Rubric.objects.active())
    job = JudgeJob.objects.filter(session=session, purpose=Purpose.VERDICT).order_by("-pk").first()
    context = {
        "title": f"Session {session.short_id}",
        "session": session,
        "settlement": settlement,
        "tiles": tiles(settlement, stale=stale),
        "stale": stale,
        "again_usd": _last_cost(session) if judge else None,
        "flags": [flag for flag in flags if flag.cleared_at is None],
        "work": work(session),
        "terms": consumption_terms(grades),
        "evidence": received,
        "refused": [row for row in received if row.problem],
        "patch": patch(session),
        "journal": text(session, EvidenceKind.JOURNAL, JOURNAL_LIMIT),
        "transcript": transcript.page(session, request.GET.get("event", "1")),
        "job": job,
        "next_attempt": not_before(job.next_attempt_at, first_quota()) if job and job.is_open else None,
        "attempts": JudgeAttempt.objects.filter(job__session=session).order_by("-pk")[:50],
        "judge": judge,
        "citations": citations(judge),
        "dimensions": dimensions(judge),
        "opinions": opinions(grades, judge),
        "sums": sums(grades),
        "history": history.of(
            session, received=received, grades=grades, settlements=settlements, flags=flags, entries=entries
        ),
        "live": _live(entries),
    }
    return TemplateResponse(request, "gradingsite/session.html", context)


def tiles(settlement: Settlement | None, *, stale: str = "") -> list[dict[str, Any]]:
    """The chain as stored in the settlement's steps, each with its tile's class; the judge's with why it is stale."""
    if settlement is None:
        return []
    return [
        {**step, "css": _css(step), "stale": stale if step["source"] == Source.JUDGE else ""}
        for step in settlement.steps
    ]


def _css(step: dict[str, Any]) -> str:
    state = StepState(step["state"])
    return f"{state} prov" if step["provisional"] and state is StepState.DECIDES else str(state)


def consumption_terms(grades: list[Grade]) -> list[dict[str, Any]]:
    """The rows of the consumption sum that holds, as its grade recorded them; none where nothing counts any more."""
    latest = next((grade for grade in reversed(grades) if grade.source == Source.CONSUMPTION), None)
    return [] if latest is None else list(latest.evidence.get("terms", []))


def sums(grades: list[Grade]) -> list[dict[str, Any]]:
    """How trajectory and journal came to their latest grades, in the terms that these recorded."""
    found = [latest_of(grades, source) for source in (Source.TRAJECTORY, Source.JOURNAL)]
    return [
        {
            "source": grade.source,
            "value": grade.value,
            "terms": grade.evidence["terms"],
            "units": grade.evidence.get("units"),
            "before_penalties": grade.evidence.get("before_penalties"),
            "penalty": -grade.evidence.get("penalty", 0.0),
        }
        for grade in found
        if grade is not None and grade.evidence.get("terms")
    ]


def latest_of(grades: list[Grade], source: Source) -> Grade | None:
    """What a source said last to the chain, where it gave a value."""
    scored = (grade for grade in reversed(grades) if grade.source == source and grade.value is not None)
    return next((grade for grade in scored if not grade.parallel), None)


def opinions(grades: list[Grade], judge: Grade | None) -> list[dict[str, Any]]:
    """What judges said beside the chain, each with its distance from the verdict, latest first."""
    return [
        {
            "grade": grade,
            "gap": _gap(grade, judge),
        }
        for grade in reversed(grades)
        if grade.parallel
    ]


def _gap(grade: Grade, judge: Grade | None) -> float | None:
    """Between the numbers as they are shown."""
    if judge is None or judge.value is None or grade.value is None:
        return None
    return round(grade.value, 2) - round(judge.value, 2)


def _last_cost(session: Session) -> float | None:
    """What the last verdict cost, in dollars: about what another one would."""
    paid = JudgeAttempt.objects.filter(job__session=session, outcome=AttemptOutcome.GRADED)
    return paid.filter(job__purpose=Purpose.VERDICT).order_by("-pk").values_list("cost_usd", flat=True).first()


def citations(judge: Grade | None) -> list[int]:
    """The events that the judge rests its verdict on."""
    return [] if judge is None else list(judge.evidence.get("citations", []))


def dimensions(judge: Grade | None) -> list[tuple[str, float]]:
    found = {} if judge is None else judge.evidence.get("dimensions", {})
    return [(name.replace("_", " ").capitalize(), value) for name, value in found.items()]


def work(session: Session) -> list[dict[str, Any]]:
    """Artifacts, commits and pull requests by kind, with where each was seen."""
    kinds: dict[str, list[Any]] = {}
    for artifact in session.artifacts.all():
        kinds.setdefault(artifact.kind, []).append(artifact)
    return [{"kind": ArtifactKind(kind).replace("_", " "), "items": items} for kind, items in kinds.items()]


def text(session: Session, kind: EvidenceKind, limit: int) -> dict[str, Any]:
    """Some evidence as text, cut at `limit`; `problem` says in words why there is none."""
    try:
        text = evidence.text(session, kind, limit)
    except OSError as error:
        return {"text": "", "problem": f"{Reason.UNREADABLE.words}: {error}"}
    return {"text": text or "", "problem": "", "cut": text is not None and len(text.encode()) >= limit}


def patch(session: Session) -> dict[str, Any]:
    found = text(session, EvidenceKind.PATCH, PATCH_LIMIT)
    lines = found["text"].splitlines()
    found["lines"] = [{"css": _diff_class(line), "text": line} for line in lines[:PATCH_LINES]]
    found["more"] = max(len(lines) - PATCH_LINES, 0)
    found["added"] = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    found["removed"] = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return found


def _diff_class(line: str) -> str:
    return "hd" if line.startswith(DIFF_HEADS) else DIFF_CLASSES.get(line[:1], "")


def _live(entries: list[LedgerEntry]) -> list[dict[str, Any]]:
    """What counts in the bandits now: rewards that are applied and not reversed."""
    undone = {(e.arm_id, e.revision) for e in entries if e.op == LedgerEntry.Op.REVERSE}
    held = [e for e in entries if e.op == LedgerEntry.Op.APPLY and (e.arm_id, e.revision) not in undone]
    held = [e for e in held if not e.is_abstention]
    weights = {bandit: weights_of(version_of(bandit)) for bandit in {entry.bandit for entry in held}}
    return [{"entry": entry, "weight": weights[entry.bandit].get(entry.grader.source, 0)} for entry in held]
