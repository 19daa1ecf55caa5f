"""The judge in a few words: the pill in the top bar, and the line on every page while grades wait for it."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from grading import monitoring
from grading.judging.earlier import RECENT_DAYS
from grading.judging.outlook.standing import standings
from grading.models import Alarm, JudgeJob, JudgeKey, Quota, Session
from grading.models.judging import JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.models.sessions import yours
from grading.vocabulary import Reason

# Of a judge that nothing is known against, and nothing for it either.
UNHEARD = "Nothing has answered yet with this key, model and address. Test the key in Settings."
SET_A_KEY = "Add a key in Settings. Until then rewards come from trajectory and journal, and stay provisional."


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeState:
    """The pill in the top bar: its words, whether it is trouble, whether verdicts come in. `calls`: whether the site
    asks the judge as sessions come in.
    """

    words: str
    title: str = ""
    trouble: bool = False
    open: bool = False
    calls: bool = False

    @property
    def look(self) -> str:
        """Which mark stands before the words."""
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
        """How many sessions have no final grade because of it; whether they have a provisional one differs."""
        if self.sessions == 0:
            return "No session lacks a final grade because of it so far."
        noun, verb = ("session", "has") if self.sessions == 1 else ("sessions", "have")
        recent = "" if self.since else f" of the last {RECENT_DAYS} days"
        return f"{self.sessions:,} {noun}{recent} {verb} no final grade because of it."


def first_quota() -> Quota | None:
    """The first judge's row; None where none is configured. Other judges decide no grade."""
    standing = standings().get(JudgeRole.FIRST)
    return None if standing is None else standing.quota


def judge_state(quota: Quota | None) -> JudgeState:
    """The judge in a few words, from the first judge's quota row; None where there is no judge."""
    if quota is None:
        return JudgeState(words="No judge", title=JudgeKey.objects.access().trouble or SET_A_KEY)
    simulated = ", simulated" if settings.SIMULATED else ""
    if quota.is_untested:
        return JudgeState(words=f"Judge has not answered yet{simulated}", title=UNHEARD, calls=True)
    if quota.state == QuotaState.OPEN:
        return JudgeState(
            words=f"Judge open{simulated}", title="Verdicts come in as sessions do.", open=True, calls=True
        )
    why = Reason(quota.reason).words or quota.detail
    if quota.state == QuotaState.PACING:
        return JudgeState(words=f"Judge {quota.state_label}{simulated}", title=why, open=quota.has_answered, calls=True)
    label = "Budget spent" if quota.reason == Reason.BUDGET_SPENT else f"Judge {quota.state_label}"
    ends = until(quota.until) if quota.state == QuotaState.EXHAUSTED else ""
    return JudgeState(words=f"{label}{ends}{simulated}", title=why, trouble=True)


def answering(state: JudgeState, alarms: Iterable[Alarm], stopped: str) -> JudgeState:
    """The state, unless the site itself does not ask, or the judge's calls fail: that the quota is open says nothing
    of either. `stopped`: what of the site does not work.
    """
    if stopped:
        return JudgeState(words=stopped, title="No verdicts come in meanwhile: see the alarm.", trouble=True)
    if not state.calls or not monitoring.says_judge_fails(alarms):
        return state
    return JudgeState(words="Judge failing", title="It may be called, but calls fail: see the alarm.", trouble=True)


def judge_trouble(quota: Quota | None, alarms: Iterable[Alarm]) -> str:
    """What keeps the first judge from answering, as the beginning of a sentence; empty while it answers."""
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
    if monitoring.says_judge_fails(alarms):
        return "Calls to the judge fail"
    return "The judge has not answered yet" if quota.is_untested else ""


def banner(quota: Quota | None) -> Banner | None:
    """What to say on every page; None while verdicts come in, or while nothing lacks one for want of a judge."""
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
    """Without a judge no job waits to be counted, so that sessions are: those of the last RECENT_DAYS."""
    since = timezone.now() - dt.timedelta(days=RECENT_DAYS)
    lacking = Session.objects.yours().filter(ended_at__gt=since, reward_final=False)
    return lacking.filter(reward_reason=Reason.NOT_CONFIGURED).count()


def until(moment: dt.datetime | None) -> str:
    """The words " until 00:00 UTC", with the day where that isn't within a day; empty where nobody knows.

    Once that time has come, the next job asks.
    """
    if moment is None:
        return ""
    if moment <= timezone.now():
        return ", asking again"
    local = timezone.localtime(moment)
    near = abs(moment - timezone.now()) < dt.timedelta(days=1)
    return f" until {local:%H:%M %Z}" if near else f" until {local:%-d %b, %H:%M %Z}"
