"""What stands on every page: navigation with its counts, the judge's state, open alarms, notices."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from grading import monitoring
from grading.core.vocabulary import Reason
from grading.models import Alarm, Quota, Session
from grading.models.quota import QuotaState

NAV = (
    ("Dashboard", "admin:index", "/"),
    ("Review", "admin:review", "/review/"),
    ("Sessions", "admin:sessions", "/sessions/"),
    ("Bandits", "admin:bandits", "/bandits/"),
    ("Quota", "admin:quota", "/quota/"),
    ("Alarms", "admin:alarms", "/alarms/"),
    ("Settings", "admin:settings", "/settings/"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NavItem:
    title: str
    url: str
    current: bool
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeState:
    """The pill in the top bar: its words, whether it is trouble, whether verdicts come in."""

    words: str
    title: str = ""
    trouble: bool = False
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    now: dt.datetime
    nav: tuple[NavItem, ...]
    judge: JudgeState
    alarms: tuple[Alarm, ...]
    simulated: bool
    samples: bool
    may_correct: bool
    may_operate: bool
    may_remove_samples: bool


def house(request: HttpRequest) -> House:
    """Four queries, whatever the page."""
    alarms = tuple(monitoring.open_alarms())
    counts = {"Review": monitoring.flagged_sessions().values("session").distinct().count(), "Alarms": len(alarms)}
    return House(
        now=timezone.now(),
        nav=tuple(_item(title, name, prefix, counts, request.path) for title, name, prefix in NAV),
        judge=answering(judge_state(worst_quota()), alarms),
        alarms=alarms,
        simulated=settings.SIMULATED,
        samples=Session.objects.samples().exists(),
        may_correct=request.user.has_perm("grading.add_grade"),
        may_operate=request.user.has_perm("grading.change_quota"),
        may_remove_samples=request.user.has_perm("grading.delete_session"),
    )


def _item(title: str, name: str, prefix: str, counts: dict[str, int], path: str) -> NavItem:
    url = reverse(name)
    current = path == url or (prefix != "/" and path.startswith(url))
    return NavItem(title=title, url=url, current=current, count=counts.get(title, 0))


def worst_quota() -> Quota | None:
    """The quota row that matters most: one that is out, else the one that changed last."""
    rows = list(Quota.objects.order_by("-changed_at"))
    out = [row for row in rows if row.is_out]
    return next(iter(out or rows), None)


def judge_state(quota: Quota | None) -> JudgeState:
    """The judge in a few words, from settings and the quota row."""
    if not settings.ANTHROPIC_API_KEY:
        return JudgeState(
            words="No judge configured",
            title="Set ANTHROPIC_API_KEY and restart: until then trajectory and journal decide, provisionally.",
        )
    simulated = ", simulated" if settings.SIMULATED else ""
    if quota is None or quota.state == QuotaState.OPEN:
        return JudgeState(words=f"Judge open{simulated}", title="Verdicts come in as sessions do.", open=True)
    why = Reason(quota.reason).words or quota.detail
    if quota.state == QuotaState.PACING:
        return JudgeState(words=f"Judge paced{simulated}", title=why, open=True)
    if quota.state == QuotaState.MISCONFIGURED:
        return JudgeState(words=f"Judge misconfigured{simulated}", title=why, trouble=True)
    return JudgeState(words=f"Judge out{until(quota.until)}{simulated}", title=why, trouble=True)


def answering(state: JudgeState, alarms: Iterable[Alarm]) -> JudgeState:
    """The state, unless the judge's calls fail: that the quota is open says nothing of that (I90)."""
    if not state.open or not monitoring.says_judge_fails(alarms):
        return state
    return JudgeState(words="Judge not answering", title="The quota is open, but calls fail.", trouble=True)


def until(moment: dt.datetime | None) -> str:
    """The words " until 00:00 UTC", with the day where that isn't within a day; empty where nobody knows."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    near = abs(moment - timezone.now()) < dt.timedelta(days=1)
    return f" until {local:%H:%M %Z}" if near else f" until {local:%-d %b, %H:%M %Z}"
