"""Two clocks: the posterior of a day, from what was known at a moment."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from django.utils import timezone
from django.utils.safestring import SafeString

from bandit import versions
from bandit.core.policy import Policy
from bandit.core.residual import Baseline
from bandit.core.table import ABSTAINED, RewardRows
from bandit.eligibility import is_on_probation
from bandit.models import Arm, Bandit, Bucket, CalibrationVersion, LedgerEntry, PolicyVersion
from bandit.reading import BanditReading, EffectivePolicy, effective_policy
from bandit.selection import Outlook
from grading.days import midnight
from grading.judging.outlook.standing import JudgeStanding
from grading.screens import charts
from grading.screens.bandit.asked import QueryRefused, shown
from grading.screens.quota.outage_marks import outage_marks
from grading.templatetags.gradingsite_tags import stamp

DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)
# The sliders reach back to the first evidence, but no further than a year, and at least a fortnight.
FARTHEST, NEAREST = 365, 13
FIRST_YEAR = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The evidence of the days up to `day`, as far as it was known by `known_by` (None: all that is known)."""

    now: dt.datetime
    day: dt.date
    known_by: dt.datetime | None = None

    @property
    def is_past(self) -> bool:
        return self.known_by is not None or self.day < timezone.localdate(self.now)

    @property
    def until(self) -> dt.datetime:
        """What happened later is not shown."""
        end = self.now if self.day == timezone.localdate(self.now) else midnight(self.day + DAY)
        return min(end, self.known_by or end)

    @property
    def as_then(self) -> str:
        """The address of the same day with nothing known of later ones; empty where that is what is shown."""
        then = midnight(self.day + DAY)
        if not self.is_past or then > self.now or self.known_by == then:
            return ""
        return f"?at={self.day}&known={timezone.localtime(then):%Y-%m-%dT%H:%M}"

    @property
    def in_hindsight(self) -> str:
        """The address of the same day with all that is known now; empty where that is what is shown."""
        return f"?at={self.day}" if self.known_by is not None and self.day < timezone.localdate(self.now) else ""


@dataclass(frozen=True, kw_only=True)
class Belief:
    """A bandit as of some moments: what was in force then, the rows that it read and what it believed.

    Abstentions are among the rows where the calibration says what they are worth; none of them is a reward.
    """

    held: EffectivePolicy
    reading: BanditReading
    ungraded: Mapping[str, int]
    outlook: Outlook

    @property
    def bandit(self) -> Bandit:
        return self.held.bandit

    @property
    def version(self) -> PolicyVersion:
        return self.held.version

    @property
    def calibration(self) -> CalibrationVersion | None:
        return versions.if_enabled(self.held.calibration)

    @property
    def rows(self) -> RewardRows:
        return self.reading.rows

    @property
    def policy(self) -> Policy:
        return self.outlook.posterior.policy

    def is_tried(self, arm: Arm) -> bool:
        """Whether the arm was on probation."""
        return is_on_probation(arm, self.rewarded(arm.name), self.version)

    def rewarded(self, arm: str) -> int:
        """How many rewards the arm has had."""
        return self.reading.rewarded.get(arm, 0)

    @cached_property
    def rewards(self) -> RewardRows:
        """The rows without abstentions."""
        return self.rows.select(self.rows.mask(lambda kind: kind.source != ABSTAINED))

    @property
    def plain_means(self) -> Mapping[str, float]:
        """The mean of each arm's rewards as they are read, without prior and decay."""
        return self.reading.plain_means

    @property
    def baseline(self) -> Baseline | None:
        """What the rewards were freed of; None where this bandit has no such baseline."""
        return None if self.bandit.baseline is None else Baseline(offsets=self.policy.baseline, mean=0)

    @property
    def is_calibrated(self) -> bool:
        """Whether the calibration changes how grades are read."""
        fallbacks = self.policy.calibration
        return bool(self.policy.offsets) or (fallbacks is not None and bool(fallbacks.kinds))

    @property
    def read_as(self) -> str:
        """What the rewards are once they are read, in the head of a column."""
        parts = ["less their cost"] * bool(self.policy.cost_weight) + ["residual"] * bool(self.policy.baseline)
        parts += ["calibrated"] * self.is_calibrated
        return f"Mean as read{': ' if parts else ''}{', '.join(parts)}"

    @property
    def how(self) -> str:
        """What became of the rewards when they were read."""
        parts = [f"less {self.policy.cost_weight:g} for each dollar"] * bool(self.policy.cost_weight)
        parts += [f"freed of the {self.bandit.baseline and self.bandit.baseline.name} mean"] * bool(
            self.policy.baseline
        )
        parts += [f"by calibration version {self.calibration and self.calibration.version}"] * self.is_calibrated
        read = f"As read: {', '.join(parts)}." if parts else "Rewards are read as given."
        return f"{read} Raw: as the graders gave them."

    @property
    def offsets(self) -> list[tuple[str, float]]:
        """What the baseline adds to the rewards of each context, the most first."""
        return sorted(self.policy.baseline.items(), key=lambda each: -each[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliders:
    """The two lines from `start` to now, `days` and `hours` long, with the outages as `marks`."""

    start: dt.datetime
    days: int
    hours: int
    picture: SafeString
    marks: list[charts.OutageSpan]

    @property
    def last(self) -> str:
        """The latest outage in words."""
        return self.marks[-1].label if self.marks else ""


def moments(asked: Mapping[str, str], now: dt.datetime) -> Moments:
    """The moments that `at` (a day) and `known` (a moment) name; what is empty is now. Raises QueryRefused."""
    day: dt.date | None = None
    known: dt.datetime | None = None
    today = timezone.localdate(now)
    if text := asked.get("at", "").strip():
        try:
            day = dt.date.fromisoformat(text)
        except ValueError:
            expected = "expected one like 2026-03-31, or nothing for today"
            raise QueryRefused(f"{shown(text)} is not a date; {expected}.") from None
        _refuse_early(day, text)
    if text := asked.get("known", "").strip():
        try:
            known = dt.datetime.fromisoformat(text)
        except ValueError:
            expected = "expected one like 2026-03-31T19:40, or nothing for now"
            raise QueryRefused(f"{shown(text)} is not a time; {expected}.") from None
        _refuse_early(known, text)
        known = known if timezone.is_aware(known) else timezone.make_aware(known)
    if day is not None and day > today:
        raise QueryRefused(f"{day:%-d %B %Y} is in the future; expected a day up to today.")
    if known is not None and known > now:
        raise QueryRefused(f"{stamp(known)} is in the future; expected a moment up to now, or nothing for now.")
    return Moments(now=now, day=day or today, known_by=known)


def _refuse_early(found: dt.date, text: str) -> None:
    if found.year < FIRST_YEAR:
        raise QueryRefused(f"{shown(text)} is before any of this; expected a day from {FIRST_YEAR} on.")


def read(bandit: Bandit, at: Moments) -> Belief:
    """What the bandit, fresh from the database, believed then: what was in force, and the rewards then known.

    Some eight queries, and four more with a baseline.
    """
    held = effective_policy(bandit, at.known_by)
    reading, outlook = held.outlook(at.day)
    return Belief(held=held, reading=reading, ungraded=reading.abstentions, outlook=outlook)


def sliders(bandit: Bandit, first: JudgeStanding | None, now: dt.datetime) -> Sliders:
    """How far back one may look, and the first judge's outages of that time."""
    today = timezone.localdate(now)
    # The first day of which anything is recorded, or on which anything was.
    days_with_rewards = Bucket.objects.rewards().filter(bandit=bandit).order_by("effective_day")
    entries = LedgerEntry.objects.rewards().filter(bandit=bandit).order_by("pk")
    first_days = list(days_with_rewards.values_list("effective_day", flat=True)[:1])
    first_days += [timezone.localdate(moment) for moment in entries.values_list("recorded_at", flat=True)[:1]]
    begin = min(first_days, default=today)
    days = min(max((today - begin).days, NEAREST), FARTHEST)
    since = midnight(today - days * DAY)
    marks = outage_marks(first, now, days + 1)
    return Sliders(
        start=timezone.localtime(since),
        days=days,
        hours=(now - since) // HOUR,
        picture=charts.track(marks, timezone.localtime(since), timezone.localtime(now)),
        marks=marks,
    )
