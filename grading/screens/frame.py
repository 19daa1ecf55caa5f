"""What every page shows around its own content: navigation with its counts, the judge's state, open alarms."""

import datetime as dt
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Exists
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property

from bandit.models import Arm
from grading.health import pulse
from grading.models import Alarm, Quota, ReviewItem, Session
from grading.models.judging import AttemptOutcome
from grading.models.sessions import yours
from grading.monitoring import judges
from grading.monitoring.alarms import open_alarms
from grading.monitoring.judges import CalibrationStatus, about_quota, judge_out
from grading.monitoring.operation import describe_stopped
from grading.monitoring.rule import is_advisory
from grading.plain import counted
from grading.screens.quota.judge_state import Banner, JudgeState, banner, first_quota, judge_state, with_alarms

# Each entry with the folders of its pages. The first entry that has a page's folder is the current one.
NAV = (
    ("Dashboard", "admin:index", ()),
    ("Review", "admin:review", ("/review/", "/history/")),
    ("Sessions", "admin:sessions", ("/sessions/",)),
    ("Bandits", "admin:bandits", ("/bandits/",)),
    ("Insight", "admin:insight", ("/insight/",)),
    ("Costs", "admin:spending", ("/costs/", "/quota/costs/")),
    ("Quota", "admin:quota", ("/quota/", "/rubrics/", "/runs/", "/calibration/")),
    ("Alarms", "admin:alarms", ("/alarms/",)),
    ("Settings", "admin:settings", ("/settings/", "/connect/", "/imports/", "/categories/", "/samples/")),
)

# The latest session, settlement, grade and attempt. Whatever changes a figure on a page adds a row to one of these,
# except a call that ends like the one before it; therefore also the number of running attempts.
LATEST = """
SELECT (SELECT MAX(id) FROM grading_session), (SELECT MAX(id) FROM grading_settlement),
    (SELECT MAX(id) FROM grading_grade), (SELECT MAX(id) FROM grading_judgeattempt),
    (SELECT COUNT(*) FROM grading_judgeattempt WHERE outcome = %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNow:
    """The state of the site, the same on every page and for everybody: the judge, the alarms, what waits for review.
    `latest` are the numbers that LATEST reads. `stopped` names the part of the site that does not work, "" if all of it
    does. `cannot_write` is why this process could not write to the database a moment ago.
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
        """A hash of what the banners at the top of the pages show."""
        alarms = [(alarm.pk, alarm.detail, alarm.acknowledged_at) for alarm in self.alarms]
        quota = self.quota
        quota_parts = None if quota is None else (quota.state, quota.reason, quota.detail, quota.until)
        return mark([self.cannot_write, alarms, quota_parts])

    @property
    def version(self) -> str:
        """A hash that changes when any page may have changed."""
        return mark([self.top, self.latest, self.stopped, self.counts])


def mark(things: object) -> str:
    return hashlib.sha256(repr(things).encode()).hexdigest()[:12]


def site_now() -> SiteNow:
    """Four queries."""
    alarms, quota = tuple(open_alarms()), first_quota()
    cannot_write = pulse.trouble()
    stopped = "Nothing can be saved" if cannot_write else describe_stopped(alarms)
    return SiteNow(
        alarms=alarms,
        quota=quota,
        stopped=stopped,
        cannot_write=cannot_write,
        judge=with_alarms(judge_state(quota), alarms, stopped),
        counts={
            "Review": ReviewItem.objects.open().filter(yours()).count(),
            "Alarms": sum(not is_advisory(alarm.rule) for alarm in alarms),
        },
        latest=latest_rows(),
    )


def latest_rows() -> tuple[int, ...]:
    """The numbers that LATEST reads, 0 where there is no row."""
    with connection.cursor() as cursor:
        cursor.execute(LATEST, [AttemptOutcome.RUNNING])
        return tuple(key or 0 for key in cursor.fetchone())


def navigation(path: str, counts: dict[str, int]) -> list[dict[str, Any]]:
    """The main entries, with what is open in each, as seen from the page at `path`."""
    here = (title for title, name, folders in NAV if path == reverse(name) or path.startswith(folders))
    current = next(here, "")
    return [
        {"title": title, "url": reverse(name), "current": title == current, "count": counts.get(title, 0)}
        for title, name, _folders in NAV
    ]


def unseen_outage(quota: Quota | None, alarms: Iterable[Alarm]) -> Alarm | None:
    """The open alarm of the first judge's outage, unless somebody has acknowledged it."""
    if quota is None:
        return None
    unseen = (each for each in alarms if each.rule == judge_out.id and each.acknowledged_at is None)
    return next((each for each in unseen if each.about == about_quota(quota)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCount:
    """How many sample sessions there are; `alone`: there are some, and no others."""

    count: int = 0
    alone: bool = False


def count_samples() -> SampleCount:
    """The number of samples, and whether the site has no other sessions. One query."""
    samples = Session.objects.samples().order_by().annotate(others=Exists(Session.objects.yours()))
    rows = list(samples.values_list("others").annotate(n=Count("pk")))  # one row, or none
    if not rows:
        return SampleCount()
    others, count = rows[0]
    return SampleCount(count=count, alone=not others)


class PageFrame:
    """What a page shows around its own content to the user of `request`. Each part is read at its first use."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.feed_seconds = settings.FEED_SECONDS
        self.simulated = settings.SIMULATED
        self.demo = settings.DEMO
        self.site_zone = settings.TIME_ZONE

    @cached_property
    def site(self) -> SiteNow:
        return site_now()

    @cached_property
    def now(self) -> dt.datetime:
        return timezone.now()

    @cached_property
    def nav(self) -> list[dict[str, Any]]:
        entries = navigation(self.request.path, self.site.counts)
        if settings.TRIAL:
            here = reverse("admin:trial")
            entries.insert(0, {"title": "What ran", "url": here, "current": self.request.path == here, "count": 0})
        return entries

    @cached_property
    def arm_titles(self) -> dict[tuple[str, str], str]:
        """The titles of arms that have one, by the names of the bandit and the arm."""
        arms = Arm.objects.exclude(title="").values_list("bandit__name", "name", "title")
        return {(bandit, name): title for bandit, name, title in arms}

    @cached_property
    def calibration(self) -> CalibrationStatus | None:
        """Whether the judge in use is calibrated; None before its first verdict."""
        return judges.grader_in_use()

    @property
    def uncalibrated(self) -> str:
        """What is unknown about the judge in use, and what to do; empty for a calibrated judge, or for none."""
        if self.calibration is None or self.calibration.is_calibrated:
            return ""
        missing = self.calibration.missing
        return (
            f"{self.calibration.grader} is not calibrated yet. Grade {counted(missing, 'more session')} of "
            "the random check without revealing its grade."
        )

    @cached_property
    def banner(self) -> Banner | None:
        if settings.TRIAL or self.request.path == reverse("admin:quota"):  # a trial judges nothing, whatever is set
            return None
        return banner(self.site.quota)

    @cached_property
    def judge_alarm(self) -> Alarm | None:
        """The alarm that the banner shows, with its button to acknowledge it."""
        return unseen_outage(self.site.quota, self.site.alarms) if self.banner else None

    @cached_property
    def samples(self) -> SampleCount:
        return count_samples()

    @property
    def unacknowledged(self) -> list[Alarm]:
        """The alarms for the top of the page, the latest first: without advisories, and without the judge's outage."""
        return [
            alarm
            for alarm in self.site.alarms
            if alarm.acknowledged_at is None and alarm != self.judge_alarm and not is_advisory(alarm.rule)
        ]

    @property
    def may_correct(self) -> bool:
        return self.request.user.has_perm("grading.add_grade")

    @property
    def may_operate(self) -> bool:
        return self.request.user.has_perm("grading.change_quota")

    @property
    def may_remove_samples(self) -> bool:
        return self.request.user.has_perm("grading.delete_session")


def page_frame(request: HttpRequest) -> dict[str, PageFrame]:
    """A context processor: `common` is the frame of pages, for staff who may see sessions."""
    # A request that a middleware refused has no user.
    user = getattr(request, "user", None)
    if not (user and user.is_staff and user.has_perm("grading.view_session")):
        return {}
    return {"common": getattr(request, "frame", None) or PageFrame(request)}
