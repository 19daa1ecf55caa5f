"""Arms whose abstentions nobody has judged: how those sessions really went is unknown."""

from collections import defaultdict
from collections.abc import Collection
from datetime import date, datetime, timedelta

from django.db.models import Exists, OuterRef

from bandit.models import Arm, Bandit, LedgerEntry
from bandit.reading import site_day

# An arm is unheard with this many abstentions in this window if none of the abstained observations was judged.
MIN_ABSTENTIONS, WINDOW_DAYS = 5, 28


def unheard_arms(
    bandit: str, now: datetime, *, sources: Collection[str], excluded: Collection[str]
) -> dict[str, list[str]]:
    """The choosable arms with at least MIN_ABSTENTIONS live abstentions in WINDOW_DAYS days that aren't `heard_arms`.

    Maps each arm's name to the observations that abstained, oldest first. `excluded` observations don't count as
    abstentions. Four queries at most. Raises UnknownBandit.
    """
    row, today = Bandit.objects.named(bandit), site_day(now)
    days = (today - timedelta(days=WINDOW_DAYS - 1), today)
    abstained = LedgerEntry.objects.abstentions().live().filter(bandit=row, effective_day__range=days)
    observations: dict[str, list[str]] = defaultdict(list)
    choosable = {arm.name for arm in row.arms.all() if arm.is_choosable}
    for arm, observation in abstained.order_by("pk").values_list("arm__name", "observation"):
        if arm in choosable and observation not in excluded:
            observations[arm].append(observation)
    candidates = {arm for arm, own in observations.items() if len(own) >= MIN_ABSTENTIONS}
    heard = heard_arms(row, days, sources, arms=candidates)
    return {arm: observations[arm] for arm in sorted(candidates - heard)}


def heard_arms(
    bandit: Bandit,
    days: tuple[date, date],
    sources: Collection[str],
    known_by: datetime | None = None,
    *,
    arms: Collection[str],
) -> set[str]:
    """The names among `arms` that have a live grade by one of `sources` for an observation that had abstained.

    Only grades with an effective day from the first to the last of `days` count, and only entries recorded until
    `known_by`. One query, or none without arms.
    """
    if not arms:
        return set()
    recorded_in_time = {} if known_by is None else {"recorded_at__lte": known_by}
    abstained = LedgerEntry.objects.abstentions().filter(
        bandit=OuterRef("bandit"), observation=OuterRef("observation"), **recorded_in_time
    )
    reversal = LedgerEntry.objects.filter(
        bandit=OuterRef("bandit"),
        arm=OuterRef("arm"),
        observation=OuterRef("observation"),
        revision=OuterRef("revision"),
        op=LedgerEntry.Op.REVERSE,
        **recorded_in_time,
    )
    graded = LedgerEntry.objects.filter(
        arm=OuterRef("pk"),
        grader__source__in=sources,
        op=LedgerEntry.Op.APPLY,
        effective_day__range=days,
        **recorded_in_time,
    )
    graded_abstentions = graded.filter(Exists(abstained)).exclude(Exists(reversal))
    heard = Arm.objects.filter(Exists(graded_abstentions), bandit=bandit, name__in=arms)
    return set(heard.values_list("name", flat=True))
