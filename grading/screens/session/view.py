"""One session: its facts, the reward chain, the evidence, and everything that ever happened to its reward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from bandit import ledger
from bandit.models import LedgerEntry
from grading import review
from grading.evidence import material, ownership, store
from grading.judging.allowance import quota
from grading.judging.rubrics.verdicts import staleness
from grading.models import Evidence, Grade, JudgeAttempt, JudgeJob, Rubric, Session, Settlement
from grading.models.evidence import ArtifactKind, EvidenceKind
from grading.models.judging import Purpose
from grading.models.submissions import ProposedField
from grading.redaction import MARGIN, redact_slice
from grading.review import promises
from grading.reward import calibrating, rewards, sources
from grading.reward.decide import (
    MAX_ADDED,
    MAX_READINGS,
    CurrentGrades,
    GradeView,
    contests,
    current,
    gap,
    is_claimed,
    value_of,
)
from grading.reward.explain import StepState, number, weight
from grading.screens.categories import by_hand
from grading.screens.feed import page_version
from grading.screens.http import StaffRequest, staff_view
from grading.screens.quota.judge_state import first_quota
from grading.screens.quota.view import not_before
from grading.screens.session import activity, blind, facts, history, outcomes, reasons, transcript
from grading.screens.session.activity import TranscriptEvents
from grading.screens.session.reasons import NextJudging
from grading.signals import Signals
from grading.vocabulary import Reason, Source
from grading.witness import Witness

PATCH_LIMIT = 60_000
ELSEWHERE = 12
LATEST = 4
PATCH_LINES = 600
JOURNAL_LIMIT = 60_000
TABS = {
    "did": "What it did",
    "transcript": "Transcript",
    "patch": "Patch",
    "journal": "Journal",
    "judge": "Judge",
    "files": "Files received",
}
# The sources of which a card says how they came to their grade.
CARDS = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)
DIFF_CLASSES = {"+": "add", "-": "del", "@": "hd"}
DIFF_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ", "Binary ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    name: str
    title: str
    url: str
    current: bool
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """What is known of a session, whatever is shown of it. `log` is the transcript that counts, `job` the judge's."""

    session: Session
    settlement: Settlement | None
    received: Sequence[Evidence]
    signals: Signals | None
    log: TranscriptEvents
    job: JudgeJob | None
    comes: NextJudging | None

    @property
    def is_unreadable(self) -> bool:
        """Whether there is nothing that a judge could read."""
        return reasons.has_nothing_to_read(self.settlement)

    @property
    def can_be_asked(self) -> bool:
        """Whether it makes sense to have the judge asked about it."""
        is_open = self.comes is None and not reasons.has_no_reward(self.settlement)
        return is_open and not self.is_unreadable and quota.is_configured()


@staff_view("grading.view_session")
def show(request: StaffRequest, pk: int) -> TemplateResponse:
    """A constant number of queries, whatever the session's history. The evidence of one tab only is read."""
    session = get_object_or_404(Session.objects.with_people().select_related("selection__arm", "facts"), pk=pk)
    # Read first, so that the page is loaded again if the reward changes while it is rendered.
    version = page_version(request.frame.site, session.pk)
    settlements = list(session.settlements.order_by("revision"))
    grades = list(session.grades.select_related("author").order_by("pk"))
    flags = list(session.flags.select_related("cleared_by"))
    open_flags = [flag for flag in flags if flag.cleared_at is None]
    entries = list(ledger.history(session.observation).select_related("bandit", "arm__merged_into", "grader"))
    received = list(session.evidence.all())
    settlement = settlements[-1] if settlements else None
    holds = current(rewards.views([grade for grade in grades if not grade.parallel]))
    scored = {source: grade for source in CARDS if (grade := latest_of(grades, source))}
    verdict = holds.get(Source.JUDGE)
    sampled = verdict if verdict is not None and verdict.samples else None
    judge = row_of(verdict, grades)
    if judge is not None:
        scored[Source.JUDGE] = judge
    hides = request.user.has_perm("grading.add_grade") and review.awaits_blind_grade(session, request.user)
    stale = staleness(judge, Rubric.objects.active(session.work))
    jobs = JudgeJob.objects.filter(session=session, purpose__in=[Purpose.VERDICT, Purpose.SAMPLE])
    latest = list(jobs.order_by("-pk"))
    job = next((each for each in latest if each.is_first), None)
    comes = reasons.following(next((each for each in latest if each.is_open), job))
    known = SessionContext(
        session=session,
        settlement=settlement,
        received=received,
        signals=signals_of(session),
        log=TranscriptEvents(store.usable(session, EvidenceKind.TRANSCRIPT)),
        job=job,
        comes=comes,
    )
    reader = calibrating.CalibrationReader()
    category = by_hand.of_session(session)
    scaled = calibrated(session, settlement, grades, reader)
    context = {
        "category": category,
        "lost": material.describe_expired({row.kind: row.sha256 for row in received}),
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
        "title": session.title or f"Session {session.short_id}",
        "session": session,
        "page_version": version,
        "settlement": settlement,
        "tiles": tiles(settlement, stale=stale, comes=comes, scaled=scaled),
        "reward_scaled": scaled.get(settlement.grade_id) if settlement else None,
        "fallback_weight": _fallback_weight(session, settlement, reader),
        "no_reward": reasons.has_no_reward(settlement),
        "ungraded": reasons.is_ungraded(settlement),
        "stale": stale,
        "comes": comes,
        "judge": judge,
        "can_ask": known.can_be_asked,
        "again_usd": reasons.last_cost(session) if judge else None,
        "flags": open_flags,
        "cards": reasons.cards(settlement, grades, scored),
        "is_contested": is_contested(settlement, holds),
        "readings": readings(grades, judge),
        # How far three readings are apart; None where there are not three.
        "spread": None if sampled is None else sampled.spread,
        "unsteady": sampled is not None and not sampled.readings_agree,
        "left_behind": beside_the_verdict(settlement, holds),
        "dimensions": dimensions(judge),
        "citations": citations(judge),
        "opinions": opinions(grades, judge),
        "refused": [row for row in received if row.problem],
        "proposals": [
            {
                "proposal": row,
                "words": ProposedField(row.field).words,
                "by": Witness(row.submission.witness).words,
            }
            for row in session.proposals.select_related("submission", "answered_by")
        ],
        "history": history.of(
            session,
            received=received,
            grades=grades,
            settlements=settlements,
            flags=flags,
            entries=entries,
            submissions=session.submissions.select_related("token"),
            categories=category["words"],
        ),
        "live": (live := _live(session, entries, reader)),
        "idle": settlement is not None and settlement.weight > 0 and any(row["weight"] == 0 for row in live),
        **facts.context(session),
        **outcomes.context(session),
        **_reasons(request, known),
        **_tabs(request, known, [] if hides else citations(judge)),
    }
    if hides:
        context |= _hidden(context, settlement, grades)
    context["latest"] = [line for line in context["history"] if line.is_main][-LATEST:]
    return TemplateResponse(request, "session/session.html", context)


def _hidden(context: Mapping[str, Any], settlement: Settlement | None, grades: list[Grade]) -> dict[str, Any]:
    """What the page shows instead to a person who is to grade the session blind: nothing that tells of the verdict."""
    scored = {source: grade for source in CARDS[1:] if (grade := latest_of(grades, source))}
    return {
        "blind": True,
        "tiles": blind.tiles(tiles(settlement), grades),
        "flags": blind.flags(context["flags"]),
        "cards": reasons.cards(None, [], scored),
        "history": list(blind.history(context["history"])),
        "judge": None,
        "citations": [],
        "left_behind": "",
        "opinions": [],
        "stale": "",
    }


def _reasons(request: HttpRequest, known: SessionContext) -> dict[str, Any]:
    """Why there is no reward, or none yet, where that is so."""
    session, settlement, signals = known.session, known.settlement, known.signals
    if reasons.has_no_reward(settlement):
        tests = reasons.infrastructure(session, signals, known.log)
        return {"ended_by": reasons.ended_by(session), "tests": tests, "rule_for_runs": reasons.rule_for_runs()}
    if reasons.is_ungraded(settlement):
        may_operate = request.user.has_perm("grading.change_quota")
        judge = reasons.judge_way(session, known.job, known.comes, may_operate=may_operate)
        return {"ways": reasons.ways(session, signals, None if known.is_unreadable else judge, request.user)}
    return {}


def signals_of(session: Session) -> Signals | None:
    """What was kept of its transcript; None where there is nothing, or where an older version kept something else."""
    try:
        if (data := session.signals) is None:
            return None
        kept = {name: value for name, value in data.items() if name != sources.HIDDEN}
        return Signals.from_dict(kept)
    except (KeyError, TypeError, ValueError):
        return None


def _tabs(request: HttpRequest, known: SessionContext, cited: list[int]) -> dict[str, Any]:
    """The tabs that have something in them, and what one shows: the first, unless another or an event is asked for."""
    session, job = known.session, known.job
    kinds = {row.kind for row in known.received}
    counts = {"transcript": known.log.last, "files": len(known.received)}
    there = {
        "did": True,
        "transcript": EvidenceKind.TRANSCRIPT in kinds,
        "patch": EvidenceKind.PATCH in kinds,
        "journal": EvidenceKind.JOURNAL in kinds,
        "judge": job is not None,
        "files": bool(known.received),
    }
    asked = request.GET.get("tab", "transcript" if "event" in request.GET else "")
    current = asked if asked in TABS else "did"
    tabs = [
        Tab(name=name, title=title, url=f"?tab={name}", current=name == current, count=counts.get(name))
        for name, title in TABS.items()
        if there[name] or name == current
    ]
    context: dict[str, Any] = {"tabs": tabs, "tab": current}
    if current == "transcript":
        context |= transcript.context(request, session, cited)
    elif current == "patch":
        context["patch"] = patch(session)
    elif current == "journal":
        context["journal"] = text(session, EvidenceKind.JOURNAL, JOURNAL_LIMIT)
    elif current == "judge":
        at = not_before(job.next_attempt_at, first_quota()) if job and job.is_open else None
        attempts = JudgeAttempt.objects.filter(job__session=session).order_by("-pk")[:50]
        context |= {"job": job, "next_attempt": at, "attempts": attempts}
    elif current == "files":
        context["evidence"] = known.received
    else:
        context |= what_it_did(session, known.signals, known.log)
    return context


def what_it_did(
    session: Session, signals: Signals | None = None, log: TranscriptEvents | None = None
) -> dict[str, Any]:
    """What was seen of a session, as the rows of a table; what it carried along; what is not its own."""
    artifacts = list(session.artifacts.select_related("owned_by"))
    return {
        "did": activity.rows(
            session,
            signals_of(session) if signals is None else signals,
            artifacts,
            log or TranscriptEvents(store.usable(session, EvidenceKind.TRANSCRIPT)),
        ),
        "carried": material.carried_over(session),
        "part_of": ownership.part_of(session),
        "elsewhere": [each for each in artifacts if each.owned_by is not None][:ELSEWHERE],
    }


def calibrated(
    session: Session, settlement: Settlement | None, grades: Sequence[Grade], reader: calibrating.CalibrationReader
) -> dict[int | None, calibrating.Calibrated]:
    """Each fallback's grade of the chain on the judge's scale, by the row's id, where the calibration maps it; where it
    decides, what it was settled at.
    """
    steps = [] if settlement is None else settlement.steps
    held = {step["grade"] for step in steps if step["source"] in calibrating.SOURCES and step["value"] is not None}
    if not held or settlement is None:
        return {}
    found = {
        grade.pk: reader.calibrate(session, grade, settlement.value if grade.pk == settlement.grade_id else None)
        for grade in grades
        if grade.pk in held
    }
    return {key: each for key, each in found.items() if each is not None}


def _fallback_weight(
    session: Session, settlement: Settlement | None, reader: calibrating.CalibrationReader
) -> float | None:
    """What the session counts in its category's arm, in [0, 1]; None unless a fallback decided its reward."""
    if settlement is None or session.category is None or settlement.source not in calibrating.SOURCES:
        return None
    return reader.weight(session.category.current.name, settlement.source)


def tiles(
    settlement: Settlement | None,
    *,
    stale: str = "",
    comes: NextJudging | None = None,
    scaled: Mapping[int | None, calibrating.Calibrated] | None = None,
) -> list[dict[str, Any]]:
    """The chain as stored in the settlement's steps, each with its tile's class; the judge's with why it is stale, or
    its place in the queue; a fallback's with what it is `scaled` to.
    """
    if settlement is None:
        return []
    shown: list[dict[str, Any]] = []
    for step in settlement.steps:
        state, is_floor = StepState(step["state"]), step["source"] == Source.FLOOR
        css = f"{state} prov" if step["provisional"] and state is StepState.DECIDES else str(state)
        # A floor that teaches nothing decides nothing; a link that has nothing to say is narrow.
        if state is StepState.SKIPPED or (is_floor and settlement.weight == 0):
            css = f"{StepState.SKIPPED} slim"
        shown.append({**step, "css": css, "stale": "", "scaled": (scaled or {}).get(step["grade"])})
    if reasons.has_no_reward(settlement):
        return _stopped(settlement.session, shown)
    for tile in shown:
        if tile["source"] == Source.FLOOR and reasons.is_ungraded(settlement):
            tile |= {"value": None, "headline": "–", "why": "Not graded yet; never learned"}
        if tile["source"] == Source.JUDGE:
            tile["stale"] = stale
            if comes is not None and comes.place and tile["state"] == StepState.WAITING:
                tile["headline"] = f"Queued, {comes.place}"
    return shown


def _stopped(session: Session, tiles: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outcome that stops the chain, before the first source. Behind it none is asked, and a person can still
    speak.
    """
    gate = {"source": "", "css": "gate", "state": "", "value": None}
    shown = [{**gate, "headline": reasons.ended_by(session), "why": session.outcome_reason}]
    for tile in tiles:
        if tile["source"] == Source.HUMAN:
            shown.append({**tile, "css": str(StepState.SKIPPED), "why": "A person can overrule the outcome"})
        elif tile["value"] is not None:
            shown.append({**tile, "join": ""})
        else:
            told = {"headline": "Not asked", "why": "", "reason": Reason.NONE, "join": ""}
            shown.append({**tile, "state": StepState.SKIPPED, "css": f"{StepState.SKIPPED} slim", **told})
    return shown


def consumption_terms(grades: list[Grade]) -> list[dict[str, Any]]:
    """The rows of the consumption sum that holds, as its grade recorded them; none where nothing counts any more."""
    latest = next((grade for grade in reversed(grades) if grade.source == Source.CONSUMPTION), None)
    return [] if latest is None else list(latest.evidence.get("terms", []))


def latest_of(grades: list[Grade], source: Source) -> Grade | None:
    """What a source said last to the chain, where it gave a value."""
    scored = (grade for grade in reversed(grades) if grade.source == source and grade.value is not None)
    return next((grade for grade in scored if not grade.parallel), None)


def row_of(view: GradeView | None, grades: Sequence[Grade]) -> Grade | None:
    """The row in `grades` of a current grade; None without a current grade, or if it has no value."""
    if view is None:
        return None
    return next((grade for grade in grades if grade.pk == view.id and grade.value is not None), None)


def is_contested(settlement: Settlement | None, holds: CurrentGrades) -> bool:
    """Whether what the session left behind contests its verdict, and nobody has settled it."""
    by = settlement is not None and settlement.source == Source.CONSUMPTION and not settlement.final
    return by and contests(holds)


def beside_the_verdict(settlement: Settlement | None, holds: CurrentGrades) -> str:
    """What becomes of artifacts that are worth more than the judge says, in words; empty where nothing does."""
    left = value_of(holds, Source.CONSUMPTION)
    if is_claimed(holds):
        return f"Only the agent itself vouches for this, so its {number(left)} can’t raise a verdict."
    if settlement is None or settlement.source != Source.CONSUMPTION or not contests(holds):
        return ""
    if is_contested(settlement, holds):
        said = f"{number(gap(holds))} above the judge’s verdict, so the reward is contested"
        return (
            f"Total {number(left)}: {said}. Until this is settled, the reward has a weight of "
            f"{weight(settlement.weight)}."
        )
    return f"Total {number(left)}. Three readings agree, so artifacts add at most {number(MAX_ADDED)} to their median."


def readings(grades: Sequence[Grade], judge: Grade | None) -> list[dict[str, Any]]:
    """What the judge said each time that it read the session; none where it did so once."""
    first = None if judge is None else judge.sample_of_id or judge.pk
    rows = [grade for grade in grades if first in (grade.pk, grade.sample_of_id)]
    if len(rows) < 2:  # noqa: PLR2004 - once is no comparison
        return []
    enough = len(rows) == MAX_READINGS
    return [{"grade": row, "counts": enough and row == judge} for row in rows]


def opinions(grades: list[Grade], judge: Grade | None) -> list[dict[str, Any]]:
    """What judges said beside the chain, each with its distance from the verdict as both are shown, latest first."""
    verdict = None if judge is None else judge.value
    found = []
    for grade in reversed(grades):
        if grade.parallel:
            gap = None if verdict is None or grade.value is None else round(grade.value, 2) - round(verdict, 2)
            found.append({"grade": grade, "gap": gap})
    return found


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
    """The start of some evidence as redacted text, about `limit` bytes; `problem` is why it can't be read, else ""."""
    row = store.usable(session, kind)
    if row is None:
        return {"text": "", "problem": "", "cut": False}
    try:
        text = store.text_of(row, limit + MARGIN)
    except OSError as error:
        return {"text": "", "problem": f"{Reason.UNREADABLE.words}: {error}"}
    end = max(len(text) - MARGIN, 0) if row.size > limit + MARGIN else limit
    return {"text": redact_slice(text, 0, end), "problem": "", "cut": row.size > limit}


def patch(session: Session) -> dict[str, Any]:
    found = text(session, EvidenceKind.PATCH, PATCH_LIMIT)
    lines = found["text"].splitlines()
    found["lines"] = [
        {"css": "hd" if line.startswith(DIFF_HEADS) else DIFF_CLASSES.get(line[:1], ""), "text": line}
        for line in lines[:PATCH_LINES]
    ]
    found["more"] = max(len(lines) - PATCH_LINES, 0)
    found["added"] = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    found["removed"] = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return found


def _live(session: Session, entries: list[LedgerEntry], reader: calibrating.CalibrationReader) -> list[dict[str, Any]]:
    """What counts in the bandits now: rewards that are applied and not reversed, each with what it counts, and what it
    is read as where that is something else; and the arm's mean today, without and with the session. `reader` is the
    category's.
    """
    undone = {(e.arm_id, e.revision) for e in entries if e.op == LedgerEntry.Op.REVERSE}
    held = [e for e in entries if e.op == LedgerEntry.Op.APPLY and (e.arm_id, e.revision) not in undone]
    held = [entry for entry in held if not entry.is_abstention]
    readers = {reader.bandit: reader}
    means = {
        (bandit, name): (without.arms[name].mean, arm.mean)
        for bandit, now, without, _arms in (promises.outlooks([(session, None)]) if held else ())
        for name, arm in now.arms.items()
    }
    rows = []
    for entry in held:
        name, said = entry.bandit.name, entry.grader
        if name not in readers:
            readers[name] = calibrating.CalibrationReader(name)
        scaled = readers[name].read(said.source, entry.value)
        weight = readers[name].weight(entry.arm.name, said.source) * settings.STANDING_WEIGHTS.get(said.standing, 1.0)
        mean = means.get((name, entry.arm.current.name))
        rows.append({"entry": entry, "weight": weight, "scaled": scaled, "mean": mean})
    return rows
