"""The desk's middle column (the chain, the work, the evidence in tabs), and the lower part of its panel (rationale,
history, answers, comments). `hides`: leave out the grades of judges and people, because this person has not answered.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db.models import prefetch_related_objects
from django.http import HttpRequest

from grading.evidence import store
from grading.models import Artifact, Grade, JudgeAttempt, JudgeJob, ReviewAnswer, Session, Settlement
from grading.models.evidence import ArtifactKind, EvidenceKind
from grading.models.judging import Purpose
from grading.reward import calibrating
from grading.reward.explain import StepState
from grading.screens import forge
from grading.screens.desk import story
from grading.screens.quota.judge_state import first_quota
from grading.screens.quota.view import not_before
from grading.screens.session import blind, chain, outcomes, panes, transcript
from grading.screens.session.activity import TranscriptEvents
from grading.templatetags.gradingsite_tags import CITATION, NUMBER
from grading.vocabulary import Source

LISTED = 50
TABS = {"evidence": "Evidence", "transcript": "Transcript", "journal": "Journal", "attempts": "Attempts"}


def load_context(
    request: HttpRequest, session: Session, settlements: list[Settlement], person: User, *, hides: bool, waits: bool
) -> dict[str, Any]:
    """The context of the middle column and of the lower part of the panel. `hides`: this person is to grade blind, so
    grades are left out; `waits`: the session waits for their grade.

    A constant number of queries, whatever the session's history. Only the current tab's evidence is read.
    """
    grades = list(session.grades.select_related("author").order_by("pk"))
    flags = list(session.flags.select_related("cleared_by", "raised_by"))
    open_flags = [flag for flag in flags if flag.cleared_at is None]
    all_answers = list(ReviewAnswer.objects.filter(session=session).select_related("reviewer", "undone_by"))
    prefetch_related_objects([session], "evidence")  # the tabs and the history read it again
    received = list(session.evidence.all())
    judge = chain.latest_grade(grades, Source.JUDGE)
    graded = [each for each in reversed(all_answers) if each.value is not None]
    current_answers = [each for each in graded if getattr(each, "undone_by", None) is None]
    settlement = settlements[-1] if settlements else None
    scaled = chain.calibrated_grades(session, settlement, grades, calibrating.CalibrationReader())
    tiles = chain.tiles(settlement, scaled=scaled)
    if waits:
        _await_person(tiles)
    return {
        "tiles": blind.tiles(tiles, grades) if hides else tiles,
        "reward_scaled": scaled.get(settlement.grade_id) if settlement and settlement.grade_id and not hides else None,
        "flags": blind.flags(open_flags) if hides else open_flags,
        "judge": judge is not None,
        "rationale": None if hides or judge is None else rationale(judge),
        "history": story.lines(
            session,
            person,
            received=received,
            grades=grades,
            settlements=settlements,
            flags=flags,
            answers=all_answers,
            hides=hides,
        ),
        # The grades that people gave and did not take back, newest first.
        "answers": [] if hides else current_answers,
        "comments": list(session.comments.select_related("author").order_by("-pk")[:LISTED]),
        **outcomes.context(session),
        **_tab(request, session, received, citations=[] if hides else chain.citations(judge)),
    }


def _await_person(tiles: list[dict[str, Any]]) -> None:
    """Let the tile of people, if nobody has graded yet, say that it waits for the person at the desk."""
    for tile in tiles:
        if tile["source"] == Source.HUMAN and tile["state"] == StepState.SKIPPED:
            tile |= {"css": str(StepState.WAITING), "headline": "Awaiting you", "why": "Your grade is final"}


def rationale(judge: Grade) -> dict[str, Any]:
    """The judge's words, its dimensions, and the citations that its words leave out."""
    text = str(judge.evidence.get("rationale") or judge.detail)[:4000]
    cited = chain.citations(judge)
    named = {int(digits) for group in CITATION.findall(text) for digits in NUMBER.findall(group)}
    return {
        "text": text,
        "rest": [number for number in cited if number not in named],
        "dimensions": chain.dimensions(judge),
        "reached": judge.evidence.get("reached", ""),
        "model": judge.model,
        "value": judge.value,
    }


def _tab(request: HttpRequest, session: Session, received: list[Any], *, citations: list[int]) -> dict[str, Any]:
    """What the current tab shows, and the row of tabs above it."""
    current = request.GET.get("tab", "")
    if current not in TABS:
        current = "transcript" if "event" in request.GET else "evidence"
    attempts = JudgeAttempt.objects.filter(job__session=session).order_by("-pk")
    context: dict[str, Any] = {
        "work_counts": work_counts(session),
        "tab": current,
        "tabs": _tabs(request, current, counts={"attempts": attempts.count()}),
        "refused": [row for row in received if row.problem],
        "citations": citations,
    }
    if current == "transcript":
        context |= transcript.context(request, session, citations)
    elif current == "evidence":
        log = TranscriptEvents(store.usable(session, EvidenceKind.TRANSCRIPT))
        consumption = session.grades.filter(source=Source.CONSUMPTION).order_by("pk").last()
        context |= {
            "patch": panes.patch(session),
            "terms": consumption.evidence.get("terms", []) if consumption else [],
            **panes.what_it_did(session, panes.signals_of(session), log),
        }
    elif current == "journal":
        context["journal"] = panes.journal(session)
    else:
        job = JudgeJob.objects.filter(session=session, purpose=Purpose.VERDICT).order_by("-pk").first()
        at = not_before(job.next_attempt_at, first_quota()) if job and job.is_open else None
        context |= {"attempts": attempts[:LISTED], "job": job, "next_attempt": at}
    return context


def _tabs(request: HttpRequest, current: str, *, counts: Mapping[str, int]) -> list[panes.Tab]:
    """The row of tabs. Each links to the same page without the parameters of other tabs and of an answer just saved."""
    query = request.GET.copy()
    for key in ("tab", "event", "page", "q", "after", "saved"):
        query.pop(key, None)
    tabs = []
    for name, title in TABS.items():
        query["tab"] = name
        url = f"?{query.urlencode()}"
        tabs.append(panes.Tab(name=name, title=title, url=url, current=name == current, count=counts.get(name)))
    return tabs


def work_counts(session: Session) -> list[dict[str, Any]]:
    """The session's artifacts by kind. `url` and `name` are of its first pull request on a known forge, else empty."""
    by_kind: dict[str, list[Artifact]] = {}
    for artifact in session.artifacts.all():
        by_kind.setdefault(artifact.kind, []).append(artifact)
    groups = []
    for kind, artifacts in by_kind.items():
        url = ""
        if kind == ArtifactKind.PULL_REQUEST:
            url = next(filter(None, (forge.pull_request(each.key) for each in artifacts)), "")
        name = forge.pull_request_name(url)
        groups.append({"kind": kind.replace("_", " "), "items": artifacts, "url": url, "name": name})
    return groups
