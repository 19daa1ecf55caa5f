"""What stands on every page: navigation with its counts, the judge's state, open alarms, notices."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from grading import monitoring
from grading.health import pulse
from grading.models import Alarm, ReviewItem, Session
from grading.monitoring.outage import about_quota
from grading.review import calibration
from grading.review.calibration import CalibrationStatus
from grading.screens.quota.judge_state import Banner, JudgeState, answering, banner, first_quota, judge_state

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
class PageContext:
    now: dt.datetime
    nav: list[dict[str, Any]]
    judge: JudgeState
    # Whether anybody knows how good its grades are; None before its first verdict.
    calibration: CalibrationStatus | None
    banner: Banner | None
    # What of the site itself does not work, in a few words; empty where all of it does.
    stopped: str
    # Why this process could not write to the database a moment ago.
    cannot_write: str
    # Said by the banner, and acknowledged there.
    judge_alarm: Alarm | None
    alarms: tuple[Alarm, ...]
    simulated: bool
    samples: bool
    may_correct: bool
    may_operate: bool
    may_remove_samples: bool

    @property
    def uncalibrated(self) -> str:
        """What nobody knows of the judge in use, and how to find it out; empty for a calibrated judge, or for none."""
        if self.calibration is None or self.calibration.is_calibrated:
            return ""
        return (
            f"{self.calibration.grader}: nobody knows how far its grades are from people’s. "
            f"Grade {self.calibration.missing} more of the random slice before you reveal its answer."
        )


def page_context(request: HttpRequest) -> PageContext:
    """Five queries, whatever the page, and one more while grades wait for the judge."""
    alarms, quota = tuple(monitoring.open_alarms()), first_quota()
    cannot_write = pulse.trouble()
    stopped = "Nothing can be saved" if cannot_write else monitoring.standing_still(alarms)
    said = None if request.path == reverse("admin:quota") else banner(quota)
    counts = {"Review": ReviewItem.objects.open().count(), "Alarms": len(alarms)}
    nav = []
    for title, name, prefix in NAV:
        url = reverse(name)
        current = request.path == url or (prefix != "/" and request.path.startswith(url))
        nav.append({"title": title, "url": url, "current": current, "count": counts.get(title, 0)})
    # The alarm of the first judge's outage, as long as nobody has put a name on it.
    out = None
    if said and quota is not None:
        unseen = (each for each in alarms if each.rule == monitoring.JUDGE_OUT and each.acknowledged_at is None)
        out = next((each for each in unseen if each.about == about_quota(quota)), None)
    return PageContext(
        now=timezone.now(),
        nav=nav,
        judge=answering(judge_state(quota), alarms, stopped),
        calibration=calibration.in_use(),
        banner=said,
        stopped=stopped,
        cannot_write=cannot_write,
        judge_alarm=out,
        alarms=alarms,
        simulated=settings.SIMULATED,
        samples=Session.objects.samples().exists(),
        may_correct=request.user.has_perm("grading.add_grade"),
        may_operate=request.user.has_perm("grading.change_quota"),
        may_remove_samples=request.user.has_perm("grading.delete_session"),
    )
