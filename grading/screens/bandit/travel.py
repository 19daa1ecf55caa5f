"""The posterior of a past day (valid time), as recorded until a past time (transaction time)."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from django.utils import timezone
from django.utils.safestring import SafeString

from bandit import versions
from bandit.core.policy import Policy
from bandit.core.posterior import Outlook
from bandit.core.residual import Baseline
from bandit.core.table import ABSTAINED, RewardRows
from bandit.eligibility import is_on_probation
from bandit.models import Arm, Bandit, Bucket, CalibrationVersion, LedgerEntry, PolicyVersion
from bandit.reading import BanditReading, EffectivePolicy, effective_policy
from grading.days import midnight
from grading.judging.outlook.standing import JudgeStanding
from grading.screens.bandit.query import QueryRefused, quoted
from grading.screens.charts import timelines
from grading.screens.charts.timelines import OutageSpan
from grading.screens.quota.outage_marks import outage_marks
from grading.templatetags.gradingsite_tags import stamp

DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)
# The sliders reach back to the first evidence, but this many days at most and at least.
MAX_DAYS, MIN_DAYS = 365, 13
FIRST_YEAR = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The evidence of the days up to `day`, as recorded until `known_by`; all of it if that is None."""

    now: dt.datetime
    day: dt.date
    known_by: dt.datetime | None = None

    @property
    def is_past(self) -> bool:
        return self.known_by is not None or self.day < timezone.localdate(self.now)

    @property
    def until(self) -> dt.datetime:
        """The end of the evidence shown: the end of `day`, or now if that is today, and at the latest `known_by`."""
        end = self.now if self.day == timezone.localdate(self.now) else midnight(self.day + DAY)
        return min(end, self.known_by or end)

    @property
    def as_then(self) -> str:
        """The query for the same day as recorded until its end; empty if that is displayed already."""
        then = midnight(self.day + DAY)
        if not self.is_past or then > self.now or self.known_by == then:
            return ""
        return f"?at={self.day}&known={timezone.localtime(then):%Y-%m-%dT%H:%M}"

    @property
    def in_hindsight(self) -> str:
        """The query for the same day as recorded until now; empty if that is displayed already."""
        return f"?at={self.day}" if self.known_by is not None and self.day < timezone.localdate(self.now) else ""


@dataclass(frozen=True, kw_only=True)
class BanditSnapshot:
    """A bandit at some moment: the policy in effect then, the reading and the outlook.

    The reading's rows include abstentions if the calibration gives them a value.
    """

    current: EffectivePolicy
    reading: BanditReading
    outlook: Outlook

    @property
    def bandit(self) -> Bandit:
        return self.current.bandit

    @property
    def version(self) -> PolicyVersion:
        return self.current.version

    @property
    def calibration(self) -> CalibrationVersion | None:
        return versions.if_enabled(self.current.calibration)

    @property
    def policy(self) -> Policy:
        return self.outlook.posterior.policy

    def is_tried(self, arm: Arm) -> bool:
        """Whether the arm was on probation."""
        return is_on_probation(arm, self.rewarded(arm.name), self.version)

    def rewarded(self, arm: str) -> int:
        """The number of the arm's rewards."""
        return self.reading.rewarded.get(arm, 0)

    @cached_property
    def rewards(self) -> RewardRows:
        """The rows without abstentions."""
        rows = self.reading.rows
        return rows.select(rows.mask(lambda kind: kind.source != ABSTAINED))

    @property
    def baseline(self) -> Baseline | None:
        """The baseline that the rewards are corrected by; None if the bandit has none."""
        return None if self.bandit.baseline is None else Baseline(offsets=self.policy.baseline, mean=0)

    @property
    def is_calibrated(self) -> bool:
        """Whether the calibration changes how grades are read."""
        fallbacks = self.policy.calibration
        return bool(self.policy.offsets) or (fallbacks is not None and bool(fallbacks.kinds))

    @property
    def read_as(self) -> str:
        """The heading of the column of means: how rewards are read."""
        parts = []
        if self.policy.cost_weight:
            parts.append("less their cost")
        if self.policy.baseline:
            parts.append("residual")
        if self.is_calibrated:
            parts.append("calibrated")
        return f"Adjusted mean: {', '.join(parts)}" if parts else "Adjusted mean"

    @property
    def how(self) -> str:
        """How rewards are read, as two sentences."""
        baseline, calibration = self.bandit.baseline, self.calibration
        parts = []
        if self.policy.cost_weight:
            parts.append(f"less {self.policy.cost_weight:g} for each dollar")
        if baseline is not None and self.policy.baseline:
            parts.append(f"less the {baseline.name} mean")
        if calibration is not None and self.is_calibrated:
            parts.append(f"by calibration version {calibration.version}")
        read = f"Adjusted: {', '.join(parts)}." if parts else "Rewards are used unchanged."
        return f"{read} “Raw” means as the graders gave them."

    @property
    def offsets(self) -> list[tuple[str, float]]:
        """What the baseline adds to the rewards of each context, the largest first."""
        return sorted(self.policy.baseline.items(), key=lambda each: -each[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliders:
    """The range of the two sliders, from `start` to now in `days` and `hours`, and the outages to mark on them."""

    start: dt.datetime
    days: int
    hours: int
    picture: SafeString
    marks: list[OutageSpan]

    @property
    def last(self) -> str:
        """The latest outage as text; empty without any."""
        return self.marks[-1].label if self.marks else ""


def moments(params: Mapping[str, str], now: dt.datetime) -> Moments:
    """The parameters `at` (a day) and `known` (a time), by default now. Raises QueryRefused."""
    day: dt.date | None = None
    known_by: dt.datetime | None = None
    today = timezone.localdate(now)
    if text := params.get("at", "").strip():
        try:
            day = dt.date.fromisoformat(text)
        except ValueError:
            expected = "expected a day such as 2026-03-31, or nothing for today"
            raise QueryRefused(f"{quoted(text)} is not a date; {expected}.") from None
        _refuse_early(day, text)
    if text := params.get("known", "").strip():
        try:
            known_by = dt.datetime.fromisoformat(text)
        except ValueError:
            expected = "expected a time such as 2026-03-31T19:40, or nothing for now"
            raise QueryRefused(f"{quoted(text)} is not a time; {expected}.") from None
        _refuse_early(known_by, text)
        known_by = known_by if timezone.is_aware(known_by) else timezone.make_aware(known_by)
    if day is not None and day > today:
        raise QueryRefused(f"{day:%-d %B %Y} is in the future; expected a day up to today.")
    if known_by is not None and known_by > now:
        raise QueryRefused(f"{stamp(known_by)} is in the future; expected a time up to now, or nothing for now.")
    return Moments(now=now, day=day or today, known_by=known_by)


def _refuse_early(date: dt.date, text: str) -> None:
    if date.year < FIRST_YEAR:
        raise QueryRefused(f"{quoted(text)} is before the first data; expected a day from {FIRST_YEAR} on.")


def read(bandit: Bandit, at: Moments) -> BanditSnapshot:
    """The reading of this freshly loaded bandit at these moments.

    Some eight queries, and four more with a baseline.
    """
    current = effective_policy(bandit, at.known_by)
    reading, outlook = current.outlook(at.day)
    return BanditSnapshot(current=current, reading=reading, outlook=outlook)


def sliders(bandit: Bandit, first: JudgeStanding | None, now: dt.datetime) -> Sliders:
    """How far back the sliders reach, with the outages of the first judge in that time."""
    today = timezone.localdate(now)
    # The first day that has a reward, or on which one was recorded.
    days_with_rewards = Bucket.objects.rewards().filter(bandit=bandit).order_by("effective_day")
    entries = LedgerEntry.objects.rewards().filter(bandit=bandit).order_by("pk")
    first_days = list(days_with_rewards.values_list("effective_day", flat=True)[:1])
    first_days += [timezone.localdate(at) for at in entries.values_list("recorded_at", flat=True)[:1]]
    begin = min(first_days, default=today)
    days = min(max((today - begin).days, MIN_DAYS), MAX_DAYS)
    since = midnight(today - days * DAY)
    marks = outage_marks(first, now, days + 1)
    return Sliders(
        start=timezone.localtime(since),
        days=days,
        hours=(now - since) // HOUR,
        picture=timelines.track(marks, timezone.localtime(since), timezone.localtime(now)),
        marks=marks,
    )
