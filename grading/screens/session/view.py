"""A session's page: its facts, the reward chain, the evidence, and the history of its reward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.utils import timezone

from bandit import ledger
from bandit.core.table import ABSTAINED
from bandit.reading import policy_of, posterior_of
from grading.evidence import material, store
from grading.judging.allowance import quota
from grading.judging.rubrics.verdicts import staleness
from grading.models import Evidence, Grade, JudgeAttempt, JudgeJob, Rubric, Session, Settlement
from grading.models.evidence import EvidenceKind
from grading.models.judging import Purpose
from grading.review import promises, seen
from grading.reward import calibrating, rewards
from grading.reward.decide import current
from grading.reward.explain import number
from grading.reward.freshness import EvidenceState
from grading.screens.categories import by_hand
from grading.screens.feed import page_version
from grading.screens.http import StaffRequest, staff_view
from grading.screens.quota.judge_state import first_quota
from grading.screens.quota.view import not_before
from grading.screens.session import blind, chain, facts, history, open_answers, outcomes, panes, reasons, transcript
from grading.screens.session.activity import TranscriptEvents
from grading.screens.session.panes import Tab
from grading.screens.session.reasons import NextJudging
from grading.signals import Signals
from grading.vocabulary import Source

MAX_ATTEMPTS = 50
# The lines of the history that are shown before it is unfolded.
LATEST = 4
TABS = {
    "did": "What it did",
    "transcript": "Transcript",
    "patch": "Patch",
    "journal": "Journal",
    "judge": "Judge",
    "files": "Files received",
}
# The sources whose grade is explained in a card.
CARDS = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """The rows of a session that several parts of its page read.

    `log` is the transcript in use, `job` the judge's latest job for a first reading, `next_judging` what the judge does
    next, None if no job is open.
    """

    session: Session
    settlement: Settlement | None
    received: Sequence[Evidence]
    signals: Signals | None
    log: TranscriptEvents
    job: JudgeJob | None
    next_judging: NextJudging | None

    @property
    def is_unreadable(self) -> bool:
        """Whether there is nothing that a judge could read."""
        return reasons.has_nothing_to_read(self.settlement)

    @property
    def can_be_judged(self) -> bool:
        """Whether a person may ask the judge: it is configured, has no open job, and there is something to read."""
        if self.next_judging is not None or reasons.has_no_reward(self.settlement) or self.is_unreadable:
            return False
        return quota.is_configured()


@staff_view("grading.view_session")
def show(request: StaffRequest, pk: int) -> TemplateResponse:
    """The page of a session, in a constant number of queries. Only the open tab's evidence is read."""
    session = get_object_or_404(Session.objects.with_people().select_related("selection__arm", "facts"), pk=pk)
    # Read first, so that the page is loaded again if the reward changes while it is rendered.
    version = page_version(request.frame.site, session.pk)
    settlements = list(session.settlements.order_by("revision"))
    settlement = settlements[-1] if settlements else None
    grades = list(session.grades.select_related("author").order_by("pk"))
    flags = list(session.flags.select_related("cleared_by"))
    entries = list(ledger.history(session.observation))
    received = list(session.evidence.all())
    current_grades = current(rewards.views([grade for grade in grades if not grade.parallel]))
    verdict = current_grades.get(Source.JUDGE)
    judge = chain.find_grade(verdict, grades)
    explained_grades = {source: grade for source in CARDS if (grade := chain.latest_grade(grades, source))}
    if judge is not None:
        explained_grades[Source.JUDGE] = judge
    page = load_context(session, settlement, received)
    reader = calibrating.CalibrationReader()
    scaled = chain.calibrated_grades(session, settlement, grades, reader)
    is_contested = chain.is_contested(settlement, current_grades)
    is_outdated = chain.has_stale_verdict(settlement, current_grades)
    is_open = is_contested or is_outdated or reasons.is_ungraded(settlement)
    applied_rewards = load_applied_rewards(session, reader, with_means=not is_open)
    weights = [row["weight"] for row in applied_rewards] if settlement is not None and settlement.weight > 0 else []
    category = by_hand.of_session(session)
    stale = staleness(judge, Rubric.objects.active(session.work))
    hides = request.user.has_perm("grading.add_grade") and seen.awaits_blind_grade(session, request.user)
    context = {
        "category": category,
        "expired_evidence": material.describe_expired({row.kind: row.sha256 for row in received}),
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
        "title": session.title or f"Session {session.short_id}",
        "session": session,
        "page_version": version,
        "settlement": settlement,
        "tiles": chain.tiles(settlement, stale=stale, next_judging=page.next_judging, scaled=scaled),
        "reward_scaled": scaled.get(settlement.grade_id) if settlement and settlement.grade_id else None,
        "category_reward": next((row for row in applied_rewards if row["entry"].bandit.name == reader.bandit), None),
        "no_reward": reasons.has_no_reward(settlement),
        "ungraded": reasons.is_ungraded(settlement),
        "stale": stale,
        "next_judging": page.next_judging,
        "judge": judge,
        "can_be_judged": page.can_be_judged,
        "judging_usd": reasons.last_cost(session) if judge else None,
        "flags": [flag for flag in flags if flag.cleared_at is None],
        "cards": reasons.cards(settlement, grades, explained_grades),
        "is_contested": is_contested,
        "is_open": is_open,
        "readings": chain.readings(grades, judge),
        "verdict": verdict,
        "consumption_note": chain.consumption_note(settlement, current_grades),
        "dimensions": chain.dimensions(judge),
        "citations": chain.citations(judge),
        "opinions": chain.opinions(grades, judge),
        "refused": [row for row in received if row.problem],
        "proposals": session.proposals.select_related("submission", "answered_by"),
        "history": history.lines(
            session,
            received=received,
            grades=grades,
            settlements=settlements,
            flags=flags,
            entries=entries,
            submissions=session.submissions.select_related("token"),
            categories=category["words"],
        ),
        "applied_rewards": applied_rewards,
        "how_read": list(dict.fromkeys(row["read"].how for row in applied_rewards if row["read"])),
        "counts_nowhere": bool(weights) and not any(weights),
        "counts_0_in_an_arm": 0 in weights,
        **facts.context(session),
        **outcomes.context(session),
        **_explanations(request, page),
        **_tabs(request, page, [] if hides else chain.citations(judge)),
    }
    if hides:
        context |= _blind_context(context, settlement, grades, scaled)
    elif is_open:
        context["open_answers"] = open_answers.open_answers(session, open_answers.at_issue(current_grades))
        context["is_estimated"] = reasons.is_ungraded(settlement) and _is_estimated(session)
        context["parts_read"] = _parts_read(grades) if is_outdated else []
    context["latest"] = [line for line in context["history"] if line.is_main][-LATEST:]
    return TemplateResponse(request, "session/session.html", context)


def load_context(session: Session, settlement: Settlement | None, received: Sequence[Evidence]) -> SessionContext:
    jobs = list(JudgeJob.objects.filter(session=session, purpose__in=[Purpose.VERDICT, Purpose.SAMPLE]).order_by("-pk"))
    job = next((each for each in jobs if each.is_first), None)
    open_job = next((each for each in jobs if each.is_open), None)
    return SessionContext(
        session=session,
        settlement=settlement,
        received=received,
        signals=panes.signals_of(session),
        log=TranscriptEvents(store.usable(session, EvidenceKind.TRANSCRIPT)),
        job=job,
        next_judging=reasons.next_judging(open_job),
    )


def _blind_context(
    context: Mapping[str, Any],
    settlement: Settlement | None,
    grades: list[Grade],
    scaled: Mapping[int, chain.ScaledGrade],
) -> dict[str, Any]:
    """Replaces everything in `context` that reveals the verdict, for a person who is to grade the session blind."""
    explained_grades = {source: grade for source in CARDS[1:] if (grade := chain.latest_grade(grades, source))}
    return {
        "blind": True,
        "tiles": blind.tiles(chain.tiles(settlement, scaled=scaled), grades),
        "flags": blind.flags(context["flags"]),
        "cards": reasons.cards(None, [], explained_grades),
        "history": list(blind.history(context["history"])),
        "judge": None,
        "verdict": None,
        "citations": [],
        "consumption_note": "",
        "opinions": [],
        "stale": "",
    }


def _explanations(request: HttpRequest, page: SessionContext) -> dict[str, Any]:
    """Why there is no reward, or what would give the session a grade; empty for a graded session."""
    session, settlement, signals = page.session, page.settlement, page.signals
    if reasons.has_no_reward(settlement):
        return {
            "ended_by": reasons.outcome_title(session),
            "tests": reasons.infrastructure(session, signals, page.log),
            "rule_for_runs": reasons.rule_for_runs(),
        }
    if not reasons.is_ungraded(settlement):
        return {}
    judge_way = None
    if not page.is_unreadable:
        may_operate = request.user.has_perm("grading.change_quota")
        judge_way = reasons.judge_way(session, page.job, page.next_judging, may_operate=may_operate)
    return {"ways": reasons.ways(session, signals, judge_way, request.user)}


def _tabs(request: HttpRequest, page: SessionContext, citations: list[int]) -> dict[str, Any]:
    """The tabs that have content, and the context of the open one: the requested tab, the transcript if one of its
    events is requested, else the first.
    """
    session, job = page.session, page.job
    kinds = {row.kind for row in page.received}
    has_content = {
        "did": True,
        "transcript": EvidenceKind.TRANSCRIPT in kinds,
        "patch": EvidenceKind.PATCH in kinds,
        "journal": EvidenceKind.JOURNAL in kinds,
        "judge": job is not None,
        "files": bool(page.received),
    }
    counts = {"transcript": page.log.last, "files": len(page.received)}
    requested = request.GET.get("tab", "transcript" if "event" in request.GET else "")
    open_tab = requested if requested in TABS else "did"
    tabs = [
        Tab(name=name, title=title, url=f"?tab={name}", current=name == open_tab, count=counts.get(name))
        for name, title in TABS.items()
        if has_content[name] or name == open_tab
    ]
    context: dict[str, Any] = {"tabs": tabs, "tab": open_tab}
    if open_tab == "transcript":
        context |= transcript.context(request, session, citations)
    elif open_tab == "patch":
        context["patch"] = panes.patch(session)
    elif open_tab == "journal":
        context["journal"] = panes.journal(session)
    elif open_tab == "judge":
        attempts = JudgeAttempt.objects.filter(job__session=session).order_by("-pk")[:MAX_ATTEMPTS]
        next_attempt = not_before(job.next_attempt_at, first_quota()) if job and job.is_open else None
        context |= {"job": job, "next_attempt": next_attempt, "attempts": attempts}
    elif open_tab == "files":
        context["evidence"] = page.received
    else:
        context |= panes.what_it_did(session, page.signals, page.log)
    return context


def load_applied_rewards(
    session: Session, reader: calibrating.CalibrationReader, *, with_means: bool = True
) -> list[dict[str, Any]]:
    """The session's rewards that count in bandits today, one row per ledger `entry`.

    `weight` is how much the reward counts, `read` how its bandit reads it, None if it uses no other number, and `mean`
    the arm's mean today, without and with the session, None unless `with_means`. `reader` reads the category bandit's
    rewards.
    """
    entries = ledger.history(session.observation).live().rewards().select_related("bandit", "arm__merged_into")
    if not entries:
        return []
    outlooks, means = {}, {}
    if with_means:
        for bandit, now, without_session, _arms in promises.outlooks([(session, None)]):
            outlooks[bandit] = now
            for name, arm in now.arms.items():
                means[bandit, name] = (without_session.arms[name].mean, arm.mean)
    readers = {reader.bandit: reader}
    rows = []
    for entry in entries:
        bandit, arm_name = entry.bandit.name, entry.arm.current.name
        if bandit not in readers:
            readers[bandit] = calibrating.CalibrationReader(bandit)
        if bandit not in outlooks:
            outlooks[bandit] = posterior_of(bandit, timezone.now())
        weight, read = readers[bandit].weight_of(entry), calibrating.read_reward(entry, outlooks[bandit])
        is_used = weight > 0 or read.is_estimated
        row = {
            "entry": entry,
            "weight": weight,
            "read": read if is_used and number(read.value) != number(entry.value) else None,
            "mean": means.get((bandit, arm_name)),
        }
        rows.append(row)
    return rows


def _parts_read(grades: Sequence[Grade]) -> list[reasons.EvidencePart]:
    """The parts of the evidence that the stale verdict did and did not read; empty if that is not known."""
    in_chain = [grade for grade in grades if not grade.parallel]
    verdict, now = rewards.first_reading(in_chain), rewards.latest_evidence(in_chain)
    read = None if verdict is None else EvidenceState.from_dict(verdict.evidence.get("read"))
    return [] if read is None or now is None else reasons.parts_read(read, now)


def _is_estimated(session: Session) -> bool:
    """Whether a bandit that learns from this ungraded session estimates it from judged sessions."""
    for entry in ledger.history(session.observation).live().abstentions().select_related("bandit"):
        calibration = policy_of(entry.bandit).calibration
        if calibration is not None and (ABSTAINED, entry.grader.view) in calibration.by_kind:
            return True
    return False
