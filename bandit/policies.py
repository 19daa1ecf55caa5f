"""Changes of a bandit's policy: always a new version with an author, previewed before it takes effect."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import BooleanField, IntegerField
from django.utils import timezone

from bandit.core.policy import MIN_DAYS, MIN_HALF_LIFE, Memory, memory
from bandit.core.posterior import Outlook
from bandit.core.table import ABSTAINED, MICRO, RewardRows
from bandit.ledger import touch
from bandit.models import Bandit, BanditKind, PolicyVersion
from bandit.reading import effective_policy, site_day, version_of
from bandit.versions import require_next

METADATA = frozenset({"id", "bandit", "version", "note", "by", "created_at"})
FIELDS = [field for field in PolicyVersion._meta.concrete_fields if field.name not in METADATA]  # noqa: SLF001 - public API
# The policy's own columns: all of them, the whole numbers, and the switches.
NUMBERS = tuple(field.name for field in FIELDS)
COUNTS = frozenset(field.name for field in FIELDS if isinstance(field, IntegerField))
SWITCHES = frozenset(field.name for field in FIELDS if isinstance(field, BooleanField))
# Columns that map a source to a number.
BY_SOURCE = ("weights", "caps")
HOLDOUTS = frozenset({"holdout", "holdout_decided"})
# The floor never carries evidence.
WEIGHTLESS = "floor"
MAX_NUMBER = 1_000_000.0
# The days before today that a bandit's recent traffic is measured over.
TRAFFIC_DAYS = 28


# The first policy of a new site; numbers that are not listed have their column's default.
NEW_SITE: Mapping[str, Any] = {
    "half_life_days": 45.0,
    "exploration": 0.005,
    "sharpness": 2.0,
    "follows_change": True,
    "varies_by_day": True,
    "holdout": 0.4,
    "holdout_decided": 0.05,
    "consumption_per_agent": 2,
    "consumption_per_day": None,
    "probation_per_agent": 1,
    "probation_per_day": None,
    "open_decisions": 8,
    "agent_cap": 3,
    "agent_cap_alone": 10,
}
# The bandit whose arms are pairs of harness and model, which share evidence on a new site.
POOLED_BANDIT = "harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCost:
    """The cost of an arm's `n` rewarded sessions: `costed` of them have a known cost, in total `usd`.

    `coverage` is the share of sessions with a known cost, and `each` the mean of the known costs. `at_least` is a lower
    bound of the mean over all `n`, with unknown costs as 0. Both are None if no cost is known.
    """

    n: int
    costed: int
    usd: float

    @property
    def coverage(self) -> float:
        return self.costed / self.n if self.n else 0.0

    @property
    def each(self) -> float | None:
        return self.usd / self.costed if self.costed else None

    @property
    def at_least(self) -> float | None:
        return self.usd / self.n if self.costed else None


@dataclass(frozen=True, kw_only=True)
class PolicyPreview:
    """What a version would change: the outlook under the `current` version and under the new one, and its memory."""

    current: PolicyVersion
    version: PolicyVersion
    before: Outlook
    after: Outlook
    memory: Memory


def numbers_of(version: PolicyVersion) -> dict[str, Any]:
    """The values of a version's own columns, by name."""
    return {name: getattr(version, name) for name in NUMBERS}


def build_version(
    bandit: Bandit, numbers: Mapping[str, Any], *, by: str = "nobody yet", note: str = ""
) -> PolicyVersion:
    """The next version, not saved: with these numbers, and the current ones for the rest.

    Raises ValidationError for an invalid number, under its name, or for unknown names.
    """
    current = version_of(bandit)
    if unknown := sorted(numbers.keys() - set(NUMBERS)):
        raise ValidationError(f"a policy has the numbers {', '.join(NUMBERS)}; got {', '.join(unknown)} as well")
    values = {**numbers_of(current), **numbers}
    # NaN and numbers so large that arithmetic overflows are refused here, before the columns' own validators.
    for name, value in values.items():
        if name in BY_SOURCE or value is None:  # the former are checked below, None by the columns
            continue
        if name in SWITCHES:
            if not isinstance(value, bool):
                raise ValidationError({name: f"Expected true or false; got {value!r}."})
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
            raise ValidationError({name: f"Expected a number up to {MAX_NUMBER:,.0f}; got {value!r}."})
        if name in COUNTS and value != int(value):
            raise ValidationError({name: f"Expected a whole number; got {value!r}."})
    weights = _validate_by_source(values["weights"], "weights", "from 0 to 1", lambda value: 0 <= value <= 1)
    # Only what differs from the site's own weights is stored.
    values["weights"] = {source: each for source, each in weights.items() if each != settings.EVIDENCE_WEIGHTS[source]}
    values["caps"] = _validate_by_source(values["caps"], "caps", "above 0", lambda value: 0 < value <= MAX_NUMBER)
    if values["exploration"] is not None and values["floor"] != current.floor:
        shared = f"{values['exploration']:g} is shared by all arms"
        raise ValidationError(
            {"floor": f"No arm has a floor of its own while {shared}: change that, or leave it empty."}
        )
    version = PolicyVersion(bandit=bandit, version=current.version + 1, by=by, note=note, **values)
    version.full_clean()
    return version


def preview(bandit: str, numbers: Mapping[str, Any], now: datetime) -> PolicyPreview:
    """What these numbers would change; stores nothing. Raises UnknownBandit, or ValidationError as `set_policy`."""
    row = Bandit.objects.named(bandit)
    current, version = version_of(row), build_version(row, numbers)
    remembered = memory_of(version, now)
    require_memory(remembered, version)
    return PolicyPreview(
        current=current,
        version=version,
        before=outlook_of(current, now),
        after=outlook_of(version, now),
        memory=remembered,
    )


def set_policy(bandit: str, numbers: Mapping[str, Any], *, version: int, by: str, note: str = "") -> PolicyVersion:
    """Store these numbers as `version`, the next one, which takes effect at once; the other numbers stay.

    Raises UnknownBandit, StaleVersion if `version` is not the next, or ValidationError for a number out of range or a
    memory shorter than three days of the bandit's traffic.
    """
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        require_next(version, version_of(row).version, f"{bandit}'s policy")
        new_version = build_version(row, numbers, by=by, note=note)
        require_memory(memory_of(new_version, timezone.now()), new_version)
        new_version.save(force_insert=True)
        touch(row)
    return new_version


def new_site_numbers(version: PolicyVersion) -> dict[str, Any]:
    """The numbers of a new site's policy that differ from this version's, by name.

    Holdouts are left out for a bandit that chooses one arm, which has none.
    """
    numbers = dict(NEW_SITE)
    if version.bandit.kind != BanditKind.MANY:
        numbers = {name: value for name, value in numbers.items() if name not in HOLDOUTS}
    if version.bandit.name == POOLED_BANDIT:
        numbers["pooling"] = True
    return {name: value for name, value in numbers.items() if getattr(version, name) != value}


def find_policy_version(bandit: Bandit, version: int) -> PolicyVersion:
    """That version of the bandit's policy. Raises ValueError if there is none."""
    row = bandit.policies.filter(version=version).first()
    if row is None:
        raise ValueError(
            f"{bandit.name} has had no policy {version}; its versions are 1 to {version_of(bandit).version}"
        )
    return row


def outlook_of(version: PolicyVersion, now: datetime) -> Outlook:
    """The bandit's outlook at `now` under this version, stored or not."""
    return effective_policy(version.bandit, version=version).outlook(site_day(now))[1]


def memory_of(version: PolicyVersion, now: datetime) -> Memory:
    """How far back the bandit remembers under this version, at the recent traffic of its busiest arm.

    That traffic is the arm's weighted rewards a day over TRAFFIC_DAYS before today, or since the first reward in them.
    """
    half_life, cap = version.half_life_days, version.evidence_cap
    if cap is None:
        return memory(half_life)
    current, today = effective_policy(version.bandit, version=version), site_day(now)
    policy = current.policy
    reading, _ = current.outlook(today, policy)
    fallbacks = () if policy.calibration is None else policy.calibration.sources
    rows, day = reading.rows, today.toordinal()
    recent = rows.select((rows.day >= day - TRAFFIC_DAYS) & (rows.day < day))
    weighted_rewards: dict[str, float] = {}
    for kind, (n, *_) in recent.totals():
        # The busiest arm has verdicts, beside which fallbacks count nothing.
        weight = 0.0 if kind.source in fallbacks else policy.weights.get(kind.source, 0.0)
        weighted_rewards[kind.arm] = weighted_rewards.get(kind.arm, 0.0) + weight * n
    busiest_per_day = 0.0
    if len(recent):
        days_since_first = day - int(recent.day.min())
        busiest_per_day = max(weighted_rewards.values()) / days_since_first
    return memory(half_life, cap=cap, pseudo_a_day=reading.posterior.evidence_scale * busiest_per_day)


def require_memory(remembered: Memory, version: PolicyVersion) -> None:
    """Raise ValidationError if the bandit would remember less than three days of its traffic."""
    half_life, cap = version.half_life_days, version.evidence_cap
    if remembered.by_decay < MIN_DAYS:
        shortest: float = math.ceil(100 * MIN_HALF_LIFE) / 100  # rounded up to two decimals
        message = (
            f"With a half-life of {half_life:g} days the bandit remembers {remembered.by_decay:.1f} days of its "
            f"traffic, 1 ÷ (1 − 2^(−1/{half_life:g})). At least {MIN_DAYS:g} are expected: "
            f"a half-life from {shortest:g} days on."
        )
        raise ValidationError({"half_life_days": message})
    if cap is not None and remembered.by_cap is not None and remembered.by_cap < MIN_DAYS:
        pseudo_a_day = cap / remembered.by_cap
        message = (
            f"A cap of {cap:g} pseudo-observations holds {remembered.by_cap:.1f} days of the busiest arm's traffic, "
            f"{pseudo_a_day:.1f} a day. At least {MIN_DAYS:g} days are expected: a cap from "
            f"{math.ceil(MIN_DAYS * pseudo_a_day)} on, or none."
        )
        raise ValidationError({"evidence_cap": message})


def costs_of(rows: RewardRows) -> dict[str, ArmCost]:
    """The cost of each arm's rewarded sessions, by the arm's name; abstentions are left out."""
    sums: dict[str, tuple[int, int, int]] = {}
    for kind, (own, _, _, own_cost, own_costed) in rows.totals():
        if kind.source == ABSTAINED:
            continue
        n, costed, cost = sums.get(kind.arm, (0, 0, 0))
        sums[kind.arm] = (n + own, costed + own_costed, cost + own_cost)
    return {arm: ArmCost(n=n, costed=costed, usd=cost / MICRO) for arm, (n, costed, cost) in sums.items()}


def _validate_by_source(values: Any, name: str, expected: str, is_valid: Callable[[float], bool]) -> dict[str, float]:
    """`values`, which maps sources to numbers, with floats and sorted by source.

    Raises ValidationError under `name` for anything but a mapping, an unknown source, or a value that is no number or
    for which `is_valid` is false. `expected` says in the message which numbers are valid.
    """
    sources = sorted(settings.EVIDENCE_WEIGHTS.keys() - {WEIGHTLESS})
    if not isinstance(values, Mapping):
        raise ValidationError({name: f"Expected a number for each source; got {values!r}."})
    for source, value in values.items():
        if source not in sources:
            never = " It never carries evidence." if source == WEIGHTLESS else ""
            raise ValidationError({name: f"The sources are {', '.join(sources)}; got {source!r}.{never}"})
        if isinstance(value, bool) or not isinstance(value, int | float) or not is_valid(value):
            raise ValidationError({name: f"Of {source}: expected a number {expected}; got {value!r}."})
    return {source: float(value) for source, value in sorted(values.items())}
