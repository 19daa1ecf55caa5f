"""The state of the judge: the pill in the top bar, and the banner on every page while grades wait for the judge."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from grading.judging.earlier import RECENT_DAYS
from grading.judging.outlook.standing import standings
from grading.models import Alarm, JudgeJob, JudgeKey, Quota, Session
from grading.models.judging import JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.models.sessions import yours
from grading.monitoring.judges import says_judge_fails
from grading.vocabulary import Reason

# The title while no call has succeeded or failed yet.
UNHEARD = "The judge has not answered yet with this key, model and address. Test the key in Settings."
SET_A_KEY = "Add a key in Settings. Until then rewards come from trajectory and journal, and stay provisional."


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeState:
    """The pill in the top bar. `short`: its text on a phone. `trouble`: needs attention. `open`: verdicts come in.
    `calls`: the site calls the judge for new sessions.
    """

    text: str
    short: str
    title: str = ""
    trouble: bool = False
    open: bool = False
    calls: bool = False

    @property
    def mark(self) -> str:
        """The mark before the text: "trouble", "open" or none."""
        if self.trouble:
            return "trouble"
        return "open" if self.open else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Banner:
    """Why sessions have no final grade, in one line."""

    what: str
    since: dt.datetime | None
    until: str
    sessions: int
    note: str = ""

    @property
    def effect(self) -> str:
        """How many sessions have no final grade because of it. Some of them have a provisional one."""
        if self.sessions == 0:
            return "So far, no session lacks a final grade because of this."
        noun, verb = ("session", "has") if self.sessions == 1 else ("sessions", "have")
        recent = "" if self.since else f" of the last {RECENT_DAYS} days"
        return f"{self.sessions:,} {noun}{recent} {verb} no final grade because of this."


def first_quota() -> Quota | None:
    """The first judge's row; None if none is configured. Other judges decide no grade."""
    standing = standings().get(JudgeRole.FIRST)
    return None if standing is None else standing.quota


def judge_state(quota: Quota | None) -> JudgeState:
    """The state of the judge for the pill. `quota` is the first judge's row, None without a judge."""
    if quota is None:
        return JudgeState(text="No judge", short="No judge", title=JudgeKey.objects.access().trouble or SET_A_KEY)
    simulated = ", simulated" if settings.SIMULATED else ""
    if quota.is_untested:
        return JudgeState(
            text=f"Judge has not answered yet{simulated}", short="Has not answered yet", title=UNHEARD, calls=True
        )
    if quota.state == QuotaState.OPEN:
        arriving = "Verdicts come in as sessions arrive."
        return JudgeState(text=f"Judge open{simulated}", short="Open", title=arriving, open=True, calls=True)
    why, short = Reason(quota.reason).words or quota.detail, quota.state_label.capitalize()
    if quota.state == QuotaState.PACING:
        text = f"Judge {quota.state_label}{simulated}"
        return JudgeState(text=text, short=short, title=why, open=quota.has_answered, calls=True)
    text = "Budget spent" if quota.reason == Reason.BUDGET_SPENT else f"Judge {quota.state_label}"
    if quota.state == QuotaState.EXHAUSTED:
        text, short = f"{text}{until(quota.until)}", f"{short}{until(quota.until, is_brief=True)}"
    return JudgeState(text=f"{text}{simulated}", short=short, title=why, trouble=True)


def with_alarms(state: JudgeState, alarms: Iterable[Alarm], stopped: str) -> JudgeState:
    """The state, corrected if the site itself has stopped or calls to the judge fail, which the quota doesn't show.
    `stopped` says which part of the site has stopped, "" if none has.
    """
    if stopped:
        return JudgeState(
            text=stopped, short=stopped, title="No verdicts come in until that is over. See the alarm.", trouble=True
        )
    if not state.calls or not says_judge_fails(alarms):
        return state
    why = "The judge can be called, but calls fail. See the alarm."
    return JudgeState(text="Judge failing", short="Failing", title=why, trouble=True)


def judge_trouble(quota: Quota | None, alarms: Iterable[Alarm]) -> str:
    """Why the first judge does not answer, as the beginning of a sentence; "" while it answers."""
    if quota is None:
        return "There is no judge"
    at = f"{timezone.localtime(quota.changed_at):%-d %b, %H:%M %Z}"
    if timezone.localdate(quota.changed_at) == timezone.localdate():
        at = f"{timezone.localtime(quota.changed_at):%H:%M %Z}"
    if quota.state == QuotaState.PAUSED:
        return f"The judge has been paused since {at}"
    if quota.state == QuotaState.MISCONFIGURED:
        return f"The judge has been misconfigured since {at}"
    if quota.reason == Reason.BUDGET_SPENT and quota.is_out:
        return f"The judge has had no budget left since {at}"
    if quota.is_out:
        return f"The judge has been out since {at}"
    if says_judge_fails(alarms):
        return "Calls to the judge fail"
    return "The judge has not answered yet" if quota.is_untested else ""


def banner(quota: Quota | None) -> Banner | None:
    """The banner for every page. None while verdicts come in, or without a judge while no session needs a verdict."""
    if quota is None:
        sessions = never_judged()
        todo = JudgeKey.objects.access().trouble.rstrip(".") or "Add a key in Settings"
        return Banner(what="No judge", since=None, until=todo, sessions=sessions) if sessions else None
    if not quota.is_out:
        return None
    what = Reason(quota.reason).words or "The judge is out"
    note = quota.detail if quota.state == QuotaState.PAUSED else ""
    ends = "until it answers again"
    if quota.state == QuotaState.PAUSED:
        ends = "until somebody resumes it"
    elif quota.state == QuotaState.MISCONFIGURED:
        ends = "until it is fixed"
    elif quota.until is not None and quota.until > timezone.now():
        ends = until(quota.until).strip()
    # Sessions without a final reward that wait for a verdict.
    waiting = JudgeJob.objects.open().filter(yours(), purpose=Purpose.VERDICT).order_by()
    affected = waiting.exclude(session__reward_final=True).count()
    return Banner(what=what, since=quota.changed_at, until=ends, sessions=affected, note=note)


def never_judged() -> int:
    """How many sessions of the last RECENT_DAYS have no verdict. Without a judge there are no jobs to count."""
    since = timezone.now() - dt.timedelta(days=RECENT_DAYS)
    lacking = Session.objects.yours().filter(ended_at__gt=since, reward_final=False)
    return lacking.filter(reward_reason=Reason.NOT_CONFIGURED).count()


def until(time: dt.datetime | None, *, is_brief: bool = False) -> str:
    """The end as " until 00:00 UTC", or " to 00:00" if brief, with the date if that is more than a day away; "" if the
    time is unknown.

    Once that time has passed, the next job tries the judge.
    """
    if time is None:
        return ""
    if time <= timezone.now():
        return ", asking again"
    local = timezone.localtime(time)
    is_near = time - timezone.now() < dt.timedelta(days=1)
    clock = f"{local:%H:%M}" if is_near else f"{local:%-d %b, %H:%M}"
    return f" to {clock}" if is_brief else f" until {clock} {local:%Z}"
