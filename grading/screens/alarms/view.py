"""Alarms: what the rules found, what can be done about it, and who has acknowledged it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from bandit import ledger
from bandit.models import Arm
from grading.judging.rubrics import plans
from grading.models import Alarm, Flag, Rubric, RuleRun, Session, Settlement
from grading.models.review import Answer
from grading.monitoring import watch
from grading.monitoring.arms import silent_failure
from grading.monitoring.flag_rule import FlagRule
from grading.monitoring.flags import open_flags_newest_first
from grading.monitoring.rule import RULES, Rule, is_advisory, title_of
from grading.plain import counted
from grading.review import bulk, priority
from grading.reward import calibrating
from grading.screens.alarms import reach
from grading.screens.http import StaffRequest, staff_view
from grading.screens.quota.judge_state import first_quota
from grading.witness import Witness

LISTED = 50
# What acknowledging does to an alarm that opens at a number of sessions within some days.
RATE_ALARM_CLOSES = "The alarm closes. It opens again if another such session makes it three or more in seven days."
# The names of the pages where people act on alarms.
PAGES = {
    "admin:quota": "the quota",
    "admin:review": "the review queue",
    "admin:notices": "the notices",
    "admin:calibration": "the calibration",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRow:
    """A session of an alarm. `why` the rule flagged it is empty if it did not. `since` is the latest settlement by a
    judge or a person after the flag, if any. `weight` is that of its reward in the category bandit, in [0, 1]; None
    without a reward.
    """

    session: Session
    why: str
    since: Settlement | None
    settlement: Settlement | None
    weight: float | None

    @property
    def witness(self) -> str:
        """Who vouches for the evidence of the grade, as a value of Witness; empty if there is no grade."""
        grade = None if self.settlement is None else self.settlement.grade
        return "" if grade is None else Witness.parse(grade.evidence.get("witness"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmAnswer:
    """A button to act on an alarm: a form if it `posts`, else a link. `price` is in dollars, None without a cost."""

    label: str
    effect: str
    url: str
    price: float | None = None
    posts: bool = False


@staff_view("grading.view_alarm")
def show(request: StaffRequest) -> TemplateResponse:
    """The open alarms; with `tab`, the past alarms or the rules."""
    tab = request.GET.get("tab", "")
    alarms = Alarm.objects.select_related("acknowledged_by")
    context: dict[str, Any] = {"title": "Alarms", "tab": tab}
    if tab == "past":
        context["past"] = alarms.exclude(resolved_at=None)[:LISTED]
    elif tab == "rules":
        context["groups"] = _rules_by_group()
    else:
        open_alarms = list(alarms.filter(resolved_at=None))
        silence_alarms = [alarm for alarm in open_alarms if alarm.rule == silent_failure.id]
        links_by_arm = _silence_links() if silence_alarms else {}
        for alarm in silence_alarms:
            alarm.silence_links = links_by_arm.get(alarm.about)  # type: ignore[attr-defined] # for the page
        flags = open_flags_newest_first().select_related(None)
        flags = flags.prefetch_related(Prefetch("session", Session.objects.with_people()))
        newest_flags: dict[int, Flag] = {}
        for flag in flags[:LISTED]:
            newest_flags.setdefault(flag.session_id, flag)
        context |= {
            "alarms": [alarm for alarm in open_alarms if not is_advisory(alarm.rule)],
            "advisories": [alarm for alarm in open_alarms if is_advisory(alarm.rule)],
            "flags": list(newest_flags.values()),
        }
    return TemplateResponse(request, "alarms/alarms.html", context)


def _rules_by_group() -> dict[str, list[dict[str, Any]]]:
    """The rules in order of their titles, under the heads "Open now", "Alarms" and "Advisories". Two queries."""
    ran = dict(RuleRun.objects.values_list("rule", "ran_at"))
    open_rules = set(Alarm.objects.filter(resolved_at=None).values_list("rule", flat=True))
    groups: dict[str, list[dict[str, Any]]] = {"Open now": [], "Alarms": [], "Advisories": []}
    for rule in sorted(RULES.values(), key=lambda rule: rule.title):
        kind = "Advisories" if is_advisory(rule.id) else "Alarms"
        group = "Open now" if rule.id in open_rules else kind
        first, _, more = rule.means.partition(". ")
        groups[group].append(
            {
                "title": rule.title,
                "first": f"{first.removesuffix('.')}.",
                "more": more,
                "every": rule.every,
                "ran_at": ran.get(rule.id),
            }
        )
    return {title: rules for title, rules in groups.items() if rules}


@staff_view("grading.view_alarm")
def detail(request: StaffRequest, pk: int) -> TemplateResponse:
    """One alarm: what was expected, what came, what to do, and its sessions."""
    alarm = get_object_or_404(Alarm.objects.select_related("acknowledged_by"), pk=pk)
    rule = RULES.get(alarm.rule)
    keys = [] if rule is None or alarm.resolved_at else list(rule.sessions(alarm.about, timezone.now()))
    is_silence = alarm.rule == silent_failure.id and alarm.resolved_at is None
    latest = keys[-bulk.MAX_SESSIONS :]
    sessions = Session.objects.with_people().select_related("settlement__grade").in_bulk(latest)
    sessions_in_order = [sessions[key] for key in latest if key in sessions]
    why = dict(Flag.objects.filter(rule=alarm.rule, session__in=latest).values_list("session", "detail"))
    since = bulk.graded_since_flagged(alarm.rule, latest)
    weights = _weights([each for each in sessions_in_order[-LISTED:] if each.reward_value is not None])
    rows = [
        AlarmRow(
            session=each,
            why=why.get(each.pk, ""),
            since=since.get(each.pk),
            settlement=each.settlement,
            weight=weights.get(each.pk),
        )
        for each in reversed(sessions_in_order[-LISTED:])
    ]
    # The reward of a session that a judge or a person has graded since is no longer the alarm's doing.
    affected = [session for session in sessions_in_order if session.pk not in since]
    reached = reach.load_reach(affected, timezone.now())
    context = {
        "title": f"{title_of(alarm.rule)}, alarm",
        "alarm": alarm,
        "rule": rule,
        "silence_links": _silence_links().get(alarm.about) if is_silence else None,
        "rows": rows,
        "effective": _count_effective([row for row in rows if row.since is None], reached),
        "reach": reached,
        "affected": len(affected),
        "answers": list(_answers(request, alarm, rule, sessions_in_order, reached, since=since)),
        "total": len(keys),
        "ran_at": RuleRun.objects.filter(rule=alarm.rule).values_list("ran_at", flat=True).first(),
    }
    return TemplateResponse(request, "alarms/alarm.html", context)


def _weights(sessions: Sequence[Session]) -> dict[int, float]:
    """The weight in [0, 1] of each session's reward in the category bandit, by the session's primary key. If the bandit
    has not learned from a reward, the weight is that of its settlement.
    """
    reader = calibrating.CalibrationReader(priority.BANDIT)
    weights = {session.pk: session.settlement.weight for session in sessions if session.settlement is not None}
    keys = {session.observation: session.pk for session in sessions}
    for entry in ledger.live_entries(priority.BANDIT, list(keys)):
        if not entry.is_abstention:
            weights[keys[entry.observation]] = reader.weight_of(entry)
    return weights


def _count_effective(rows: Sequence[AlarmRow], reached: reach.AlarmReach | None) -> int | None:
    """How many rewards of the most affected arm have a weight above 0; None outside the category bandit."""
    if reached is None or reached.bandit != priority.BANDIT:
        return None
    own = [row for row in rows if row.session.category and row.session.category.current.name == reached.arm]
    return sum(bool(row.weight) for row in own)


def _verdicts_label(verdicts: int, count: int) -> str:
    """The label of the button for that many verdicts on `count` sessions. While the judge is out, they are queued."""
    quota = first_quota()
    if quota is not None and quota.is_out:
        when = f" for {timezone.localtime(quota.until):%H:%M %Z}" if quota.until else ""
        return f"Queue {counted(verdicts, 'verdict')}{when}"
    sessions = counted(count, "session")
    return f"Judge {sessions} again" if verdicts == count else f"Judge {verdicts:,} of {sessions}"


def _answers(
    request: HttpRequest,
    alarm: Alarm,
    rule: Rule | None,
    sessions: Sequence[Session],
    reached: reach.AlarmReach | None,
    *,
    since: Collection[int],
) -> Iterator[AlarmAnswer]:
    """What this person can do about an alarm, the best first. `since` holds the sessions that a judge or a person has
    graded since they were flagged.
    """
    if alarm.resolved_at is not None:
        return
    user, count = request.user, len(sessions)
    chosen = urlencode({"session": [session.pk for session in sessions]}, doseq=True)
    if sessions and user.has_perm("grading.change_quota"):
        rows = Session.objects.filter(pk__in=[session.pk for session in sessions])
        plan = plans.plan(rows, Rubric.objects.in_force())
        if plan is not None and plan.session_ids:
            yield AlarmAnswer(
                label=_verdicts_label(len(plan.session_ids), count),
                price=plan.estimate.usd,
                effect="Each new verdict replaces the current reward exactly, as if it had been the first grade.",
                url=f"{reverse('admin:run_plan')}?{chosen}",
            )
    # Sessions that a judge or a person has graded since need not be taken out of the bandits.
    waiting = [session for session in sessions if session.pk not in since]
    if waiting and user.has_perm("grading.add_grade"):
        them = counted(len(waiting), "session")
        chosen = urlencode({"session": [each.pk for each in waiting]}, doseq=True)
        back = ""
        if reached is not None and len(waiting) == count:
            move = reached.move_of_arm
            back = f"{move.arm} goes back to {move.share_before:.0f} of the next 100. "
        yield AlarmAnswer(
            label=f"Take {them} out of the bandits",
            effect=f"{back}You preview all changes, give one reason, and can undo everything in one step.",
            url=f"{reverse('admin:bulk')}?{chosen}&answer={Answer.EXCLUDE}&alarm={alarm.pk}",
        )
        yield AlarmAnswer(
            label=f"Grade {them} yourself",
            effect=(
                "Your grade is final. You preview all changes, give one reason, and can undo everything in one step."
            ),
            url=f"{reverse('admin:bulk')}?{chosen}&answer={Answer.GRADE}",
        )
    if rule is not None and rule.page != "admin:alarms":
        yield AlarmAnswer(label=f"Go to {PAGES.get(rule.page, 'its page')}", effect="", url=reverse(rule.page))
    if alarm.acknowledged_by is None and user.has_perm("grading.change_alarm"):
        banner = "" if is_advisory(alarm.rule) else "The banner disappears. "
        then = RATE_ALARM_CLOSES if _is_rate(rule) else "The alarm closes automatically once its cause is gone."
        yield AlarmAnswer(
            label="Acknowledge: I know the cause" if _is_rate(rule) else "Acknowledge: I know about this",
            effect=f"{banner}Your name is recorded. {then}",
            url=reverse("admin:alarm_acknowledge", args=[alarm.pk]),
            posts=True,
        )


def _is_rate(rule: Rule | None) -> bool:
    return isinstance(rule, FlagRule) and rule.is_rate


def _silence_links() -> dict[str, dict[str, Any]]:
    """What the buttons for each silent arm's sessions need, by the subject of its alarm."""
    links_by_arm = {}
    for finding in silent_failure.find(timezone.now()):
        chosen = urlencode({"session": finding.sessions[-bulk.MAX_SESSIONS :]}, doseq=True)
        bulk_url = f"{reverse('admin:bulk')}?{chosen}&answer="
        links_by_arm[finding.about] = {
            "infrastructure": bulk_url + Answer.EXCLUDE,
            "bad": bulk_url + Answer.GRADE,
            "arm": Arm.objects.in_bandit(priority.BANDIT).select_related("bandit").filter(name=finding.about).first(),
            "total": len(finding.sessions),
            "shown": min(len(finding.sessions), bulk.MAX_SESSIONS),
        }
    return links_by_arm


@staff_view("grading.change_alarm", methods=["POST"])
def acknowledge(request: StaffRequest, pk: int) -> HttpResponse:
    alarm = get_object_or_404(Alarm, pk=pk)
    if watch.acknowledge(alarm, request.user):
        then = RATE_ALARM_CLOSES if _is_rate(RULES.get(alarm.rule)) else "The alarm stays open until its cause is gone."
        messages.success(request, f"Acknowledged by you: {title_of(alarm.rule)}. {then}")
    else:
        messages.info(request, f"Somebody else acknowledged this alarm first: {title_of(alarm.rule)}.")
    back = request.headers.get("Referer", "")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return redirect(back if safe else "admin:alarms")
