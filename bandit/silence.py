"""Arms whose abstentions nobody has judged, and how far each would move if those sessions were failures."""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache

from django.db.models import Exists, OuterRef

from bandit.core.moves import ArmMove, moves
from bandit.core.policy import Policy
from bandit.core.table import ABSTAINED, MICRO, RewardRow
from bandit.models import Arm, Bandit, LedgerEntry
from bandit.reading import CACHED_READINGS, days_read, evidence_of, fresh, outlook, site_day

# What abstentions that are read alike share: day, context and salience.
Alike = tuple[date, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unheard:
    """An arm none of whose abstentions was graded: the `observations` that abstain, of `n` with rewards and without.

    `move`: what it would do to the arm to read them at `value`.
    """

    arm: str
    observations: tuple[str, ...]
    n: int
    value: float
    move: ArmMove


def heard(
    bandit: Bandit,
    policy: Policy,
    today: date,
    sources: Collection[str],
    known_by: datetime | None = None,
    *,
    arms: Collection[str],
) -> frozenset[str]:
    """Those of the `arms` of which one of these sources has graded an observation that abstained, over the days that
    are read.

    Two queries, which look no further in an arm than to the first; remembered until the bandit's revision is another.
    What was reversed meanwhile does not count.
    """
    if not arms:
        return frozenset()
    revision = fresh(bandit).revision
    asked = (bandit.pk, revision, frozenset(sources), days_read(policy, today), known_by, frozenset(arms))
    return _heard(*asked) if revision and known_by is None else _heard.__wrapped__(*asked)


@lru_cache(maxsize=CACHED_READINGS)
def _heard(
    bandit: int,
    _revision: int,
    sources: frozenset[str],
    days: tuple[date, date],
    known_by: datetime | None,
    arms: frozenset[str],
) -> frozenset[str]:
    known = {} if known_by is None else {"recorded_at__lte": known_by}
    abstained = LedgerEntry.objects.abstentions().filter(
        bandit=OuterRef("bandit"), observation=OuterRef("observation"), **known
    )
    reversed_since = LedgerEntry.objects.filter(
        bandit=OuterRef("bandit"),
        arm=OuterRef("arm"),
        observation=OuterRef("observation"),
        revision=OuterRef("revision"),
        op=LedgerEntry.Op.REVERSE,
        **known,
    )
    graded = LedgerEntry.objects.filter(
        arm=OuterRef("pk"),
        grader__source__in=sources,
        op=LedgerEntry.Op.APPLY,
        effective_day__range=days,
        **known,
    )
    found = graded.filter(Exists(abstained)).exclude(Exists(reversed_since))
    return frozenset(Arm.objects.filter(Exists(found), bandit=bandit, name__in=arms).values_list("name", flat=True))


def unheard(
    bandit: str, now: datetime, *, sources: Collection[str], source: str, aside: Collection[str]
) -> list[Unheard]:
    """The arms that can be chosen, have abstentions, and of whose abstentions none of `sources` graded any.

    Their abstentions are read at min(the arm's own mean, the bandit's mean), as if `source` had said so, whatever else
    they are read at: each arm's by themselves, and at the evidence scale that is estimated without them. Observations
    `aside` are left out. Some ten queries, and one for each such arm. Raises UnknownBandit.
    """
    row, today = Bandit.objects.named(bandit), site_day(now)
    policy, rows = evidence_of(row, today)
    believed = outlook(row, policy, rows, today)
    silent = _silent(row, policy, today, aside)
    known = heard(row, policy, today, sources, arms=silent)
    fixed = replace(policy, evidence_scale=believed.posterior.evidence_scale)
    found = []
    for arm, (observations, alike) in sorted(silent.items()):
        if arm in known or arm not in believed.chances:
            continue
        value = min(believed.arms[arm].mean, believed.posterior.mean)
        micro = round(value * MICRO)
        others = rows.select(rows.mask(lambda kind: kind.source != ABSTAINED or kind.arm != arm))  # noqa: B023
        # What the sessions cost is left out: that they are bad is enough.
        instead = [
            RewardRow(
                arm=arm, source=source, day=day, n=n, s=n * micro, q=n * micro**2, context=context, salience=salience
            )
            for (day, context, salience), n in alike.items()
        ]
        after = outlook(row, fixed, others.plus(instead), today)
        found.append(
            Unheard(
                arm=arm,
                observations=tuple(observations),
                n=sum(n for kind, (n, *_) in others.totals() if kind.arm == arm) + len(observations),
                value=value,
                move=next(each for each in moves(bandit, believed, after, touched={arm}) if each.touched),
            )
        )
    return found


def _silent(
    bandit: Bandit, policy: Policy, today: date, aside: Collection[str]
) -> dict[str, tuple[list[str], Counter[Alike]]]:
    """What abstains now, by arm: the observations, and how many of them are alike."""
    days = days_read(policy, today)
    entries = LedgerEntry.objects.abstentions().live().filter(bandit=bandit, effective_day__range=days).order_by("pk")
    found: dict[str, tuple[list[str], Counter[Alike]]] = defaultdict(lambda: ([], Counter()))
    columns = ("arm__name", "observation", "effective_day", "grader__context", "grader__salience")
    for arm, observation, day, context, salience in entries.values_list(*columns):
        if observation not in aside:
            found[arm][0].append(observation)
            found[arm][1][day, context, salience] += 1
    return found
