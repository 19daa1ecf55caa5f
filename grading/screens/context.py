"""What stands on every page: navigation with its counts, the judge's state, open alarms, notices."""

import datetime as dt
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from grading import monitoring
from grading.health import pulse
from grading.models import Alarm, Quota, ReviewItem
from grading.models.judging import AttemptOutcome
from grading.models.sessions import yours
from grading.monitoring.judges import about_quota
from grading.review import calibration
from grading.review.calibration import CalibrationStatus
from grading.screens.quota.judge_state import Banner, JudgeState, answering, banner, first_quota, judge_state
from grading.screens.sample_data import SamplesHeld, held

# Each entry with the folders of its pages.
NAV = (
    ("Dashboard", "admin:index", ()),
    ("Review", "admin:review", ("/review/", "/history/")),
    ("Sessions", "admin:sessions", ("/sessions/",)),
    ("Bandits", "admin:bandits", ("/bandits/",)),
    ("Quota", "admin:quota", ("/quota/", "/rubrics/", "/runs/", "/calibration/")),
    ("Alarms", "admin:alarms", ("/alarms/",)),
    ("Settings", "admin:settings", ("/settings/", "/connect/", "/imports/", "/categories/", "/samples/")),
)


# Where a request keeps the grader in use, and what holds for everybody.
KEPT, NOW = "grader_in_use", "site_now"
# The latest session, settlement, grade and attempt, and how many attempts run: whatever changes a figure on a page
# leaves a row in one of them, but for a call that ends as the one before it did.
LATEST = """
SELECT (SELECT MAX(id) FROM grading_session), (SELECT MAX(id) FROM grading_settlement),
    (SELECT MAX(id) FROM grading_grade), (SELECT MAX(id) FROM grading_judgeattempt),
    (SELECT COUNT(*) FROM grading_judgeattempt WHERE outcome = %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNow:
    """What holds for everybody, whatever page they have open: the judge, the alarms, what waits for review.

    `latest` are the numbers that LATEST asks for. `stopped` says what of the site itself does not work, in a few
    words; empty where all of it does. `cannot_write`: why this process could not write to the database a moment ago.
    """

    alarms: tuple[Alarm, ...]
    quota: Quota | None
    stopped: str
    cannot_write: str
    judge: JudgeState
    counts: dict[str, int]
    latest: tuple[int, ...]

    @property
    def top(self) -> str:
        """A mark that changes with the lines at the top of the pages."""
        alarms = [(alarm.pk, alarm.detail, alarm.acknowledged_at) for alarm in self.alarms]
        quota = self.quota and (self.quota.state, self.quota.reason, self.quota.detail, self.quota.until)
        return mark([self.cannot_write, alarms, quota])

    @property
    def version(self) -> str:
        """A mark that changes with what any page shows."""
        return mark([self.top, self.latest, self.stopped, self.counts])


def mark(things: object) -> str:
    return hashlib.sha256(repr(things).encode()).hexdigest()[:12]


def site_now() -> SiteNow:
    """Four queries."""
    alarms, quota = tuple(monitoring.open_alarms()), first_quota()
    cannot_write = pulse.trouble()
    stopped = "Nothing can be saved" if cannot_write else monitoring.standing_still(alarms)
    return SiteNow(
        alarms=alarms,
        quota=quota,
        stopped=stopped,
        cannot_write=cannot_write,
        judge=answering(judge_state(quota), alarms, stopped),
        counts={
            "Review": ReviewItem.objects.open().filter(yours()).count(),
            "Alarms": sum(not monitoring.is_advisory(alarm.rule) for alarm in alarms),
        },
        latest=latest_rows(),
    )


def site_of(request: HttpRequest) -> SiteNow:
    """`site_now`, asked once a request."""
    if not hasattr(request, NOW):
        setattr(request, NOW, site_now())
    known: SiteNow = getattr(request, NOW)
    return known


def latest_rows() -> tuple[int, ...]:
    """The numbers that LATEST asks for, 0 where there is no row."""
    with connection.cursor() as cursor:
        cursor.execute(LATEST, [AttemptOutcome.RUNNING])
        return tuple(key or 0 for key in cursor.fetchone())


def navigation(path: str, counts: dict[str, int]) -> list[dict[str, Any]]:
    """The main entries, with what is open in each, as seen from the page at `path`."""
    return [
        {
            "title": title,
            "url": reverse(name),
            "current": path == reverse(name) or path.startswith(folders),
            "count": counts.get(title, 0),
        }
        for title, name, folders in NAV
    ]


def unseen_outage(quota: Quota | None, alarms: Iterable[Alarm]) -> Alarm | None:
    """The alarm of the first judge's outage, as long as nobody has put a name on it."""
    if quota is None:
        return None
    unseen = (each for each in alarms if each.rule == monitoring.JUDGE_OUT and each.acknowledged_at is None)
    return next((each for each in unseen if each.about == about_quota(quota)), None)


def grader_in_use(request: HttpRequest) -> CalibrationStatus | None:
    """`calibration.in_use`, asked once a request."""
    if not hasattr(request, KEPT):
        setattr(request, KEPT, calibration.in_use())
    known: CalibrationStatus | None = getattr(request, KEPT)
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """What holds for everybody, as the one sees it who asked for this page."""

    site: SiteNow
    now: dt.datetime
    nav: list[dict[str, Any]]
    # Whether anybody knows how good its grades are; None before its first verdict.
    calibration: CalibrationStatus | None
    banner: Banner | None
    # Said by the banner, and acknowledged there.
    judge_alarm: Alarm | None
    feed_seconds: float
    simulated: bool
    demo: bool
    samples: SamplesHeld
    site_zone: str
    may_correct: bool
    may_operate: bool
    may_remove_samples: bool

    @property
    def unacknowledged(self) -> list[Alarm]:
        """The alarms for the top of the page, the latest first: without advisories, and without the judge's outage."""
        return [
            alarm
            for alarm in self.site.alarms
            if alarm.acknowledged_at is None and alarm != self.judge_alarm and not monitoring.is_advisory(alarm.rule)
        ]

    @property
    def uncalibrated(self) -> str:
        """What nobody knows of the judge in use, and how to find it out; empty for a calibrated judge, or for none."""
        if self.calibration is None or self.calibration.is_calibrated:
            return ""
        return (
            f"{self.calibration.grader}: nobody knows how far its grades are from people’s. "
            f"Grade {self.calibration.missing} more of the random slice before you reveal its answer."
        )


def page_context(request: HttpRequest, now: SiteNow) -> PageContext:
    """Two queries, whatever the page, and one more while grades wait for the judge."""
    said = None if request.path == reverse("admin:quota") else banner(now.quota)
    return PageContext(
        site=now,
        now=timezone.now(),
        nav=navigation(request.path, now.counts),
        calibration=grader_in_use(request),
        banner=said,
        judge_alarm=unseen_outage(now.quota, now.alarms) if said else None,
        feed_seconds=settings.FEED_SECONDS,
        simulated=settings.SIMULATED,
        demo=settings.DEMO,
        samples=held(request),
        site_zone=settings.TIME_ZONE,
        may_correct=request.user.has_perm("grading.add_grade"),
        may_operate=request.user.has_perm("grading.change_quota"),
        may_remove_samples=request.user.has_perm("grading.delete_session"),
    )
