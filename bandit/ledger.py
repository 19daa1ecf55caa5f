"""Rewards in, exact sums out: the only writer of the ledger and of the buckets.

A change is a reverse of what was live and an apply of what holds now, never an update; the buckets move by the same
integers in the same transaction. So any order of verdicts, corrections and retries ends in the same bits (L4, L5).
"""

import math
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial, reduce
from operator import add, or_
from typing import Any, Self

from django.db import connection, transaction
from django.db.models import BigIntegerField, Case, F, Max, Q, Subquery, When, prefetch_related_objects

from bandit.core.table import ABSTAINED
from bandit.models import (
    MICRO,
    PRODUCTIVE,
    SUMS,
    Arm,
    Assignment,
    Bandit,
    BanditKind,
    Bucket,
    Grader,
    LedgerEntry,
    LedgerEntryQuerySet,
    PolicyText,
    Selection,
    UnknownBandit,
)

APPLY, REVERSE = LedgerEntry.Op.APPLY, LedgerEntry.Op.REVERSE
MOST_USD = 1_000_000
# The most that 64 signed bits hold.
MOST_REVISION = 2**63 - 1
BATCH = 500
# So many graders a process remembers.
REMEMBERED = 4_096
BUCKET_KEY = ("bandit_id", "arm_id", "grader_id", "effective_day")
BucketKey = tuple[int, int, int, date]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderKey:
    """Who gave a value, in the caller's words; opaque here but for `source`, by which evidence is weighted.

    `stratum` divides one grader's rewards further, where the caller knows that it is off by more on some of them;
    `context` is what the bandit's baseline is taken for; `salience` in percent, how much was the arm's doing. The rest
    is as in `bandit.models.Grader`.
    """

    source: str
    model: str = ""
    route: str = ""
    rubric: str = ""
    stratum: str = ""
    context: str = ""
    salience: int = 100
    version: str = ""
    view: str = ""
    witness: str = ""
    standing: str = ""
    agent: str = ""

    @property
    def unsaid(self) -> Self:
        """The key as it was before it said what was seen, and whose session: rewards from then have these empty."""
        return replace(self, version="", view="", witness="", standing="", agent="")


# By the bandit whose ledger recorded them, its history then, and their key.
_recorded: dict[tuple[int, int | None, GraderKey], Grader] = {}
# The rows of policies by their texts: few, and never changed or deleted.
_policies: dict[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """A reward in [0, 1], who gave it, and what the session cost in dollars, None where that is not known.

    An abstention, of the source ABSTAINED, has the value 0, which nothing reads. Raises ValueError for any other value,
    NaN included.
    """

    value: float
    grader: GraderKey
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or not 0 <= self.value <= 1:
            raise ValueError(f"a reward must be a number from 0 to 1; got {self.value!r}")
        if self.grader.source == ABSTAINED and self.value:
            raise ValueError(f"an abstention has no value, which is written 0; got {self.value!r}")
        if self.cost_usd is not None and not 0 <= self.cost_usd <= MOST_USD:
            raise ValueError(f"a cost is a number of dollars from 0 to {MOST_USD:,}; got {self.cost_usd!r}")

    @property
    def micro(self) -> int:
        return round(self.value * MICRO)

    @property
    def cost_micro(self) -> int | None:
        return None if self.cost_usd is None else round(self.cost_usd * MICRO)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerChange:
    """The rows that a call appended. Empty, and false, where everything already was as asked."""

    applied: tuple[LedgerEntry, ...] = ()
    reversed: tuple[LedgerEntry, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.applied or self.reversed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """An arm of a bandit that learns from an observation: what the bandit's baseline is taken for, and, in percent, how
    much of what happened was this arm's doing.
    """

    bandit: str
    arm: Arm
    context: str = ""
    salience: int = 100


def set_rewards(
    learners: Iterable[Learner], credit: Credit | None, *, always: Iterable[str] = (), **said: Any
) -> LedgerChange:
    """`set_reward` of one observation in the bandits of its learners: to each the same credit, as its own share; none,
    without a credit. In the bandits `always` nothing else stays live, also where none of their arms learns.
    """
    credited: dict[str, dict[str, Credit]] = {bandit: {} for bandit in always}
    read: dict[tuple[str, str], Arm] = {}
    for each in learners:
        if each.arm.as_of is not None:
            read[each.bandit, each.arm.name] = each.arm
        own = credited.setdefault(each.bandit, {})
        if credit is not None:
            grader = replace(credit.grader, context=each.context, salience=each.salience)
            own[each.arm.name] = replace(credit, grader=grader)
    return _set(credited, read=read, **said)


def set_reward(
    *,
    bandit: str,
    observation: str,
    credits: Mapping[str, Credit],  # noqa: A002 - the domain's word
    effective_day: date,
    settlement: str,
    policy_version: str,
    provisional: bool = False,
    renew: bool = False,
) -> LedgerChange:
    """Make `credits` (arm name to credit) the live rewards of this observation in this bandit; none if empty.

    Whatever is live and differs in arm, value, cost, grader or day is reversed on the day it was given, then what holds
    is applied as the next revision. A call that would change none of these records nothing: `settlement`,
    `policy_version` and `provisional` describe the row they came with and are no reason for a new one. Nor is a key
    that says more of the same reward than was said when it was given, unless `renew` asks for it: a look at an old
    session moves nothing.

    Must run in the caller's transaction, so that a grade and its reward commit together, and holds the bandit's row
    until that ends: writers of one bandit take turns, which also keeps their bucket updates from deadlocking.
    Raises UnknownBandit, UnknownArm, TransactionManagementError, or ValueError for two names of one arm, and for two
    arms of a bandit that chooses one.
    """
    return _set(
        {bandit: credits},
        observation=observation,
        effective_day=effective_day,
        settlement=settlement,
        policy_version=policy_version,
        provisional=provisional,
        renew=renew,
    )


def _set(
    credited: Mapping[str, Mapping[str, Credit]],
    *,
    observation: str,
    effective_day: date,
    settlement: str,
    policy_version: str,
    provisional: bool = False,
    renew: bool = False,
    is_first: bool = False,
    read: Mapping[tuple[str, str], Arm] | None = None,
) -> LedgerChange:
    """`set_reward` in several bandits at once, by their names: in as many statements as in one.

    `is_first`: the caller knows that nothing was ever recorded of the observation, and has read in this transaction
    what is `read`: arms that say as of which revision they are, by their bandits' names and their own.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "a reward was set outside a transaction; call it inside transaction.atomic(), with the settlement"
        )
    read = read or {}
    if is_first:
        credited = {bandit: given for bandit, given in credited.items() if given}
    if not credited:
        return LedgerChange()
    held = _policies.get(policy_version)
    bandits = _as_read(credited, read) if held and is_first else {}
    if not bandits:
        bandits = {row.pk: row for row in _locked(policy_version, credited)}
        held = next(iter(bandits.values())).policy  # type: ignore[attr-defined]  # annotated
    wanted = _resolved(bandits.values(), credited, observation, read)
    past = LedgerEntry.objects.filter(observation=observation, bandit__in=bandits).select_related("grader")
    entries = [] if is_first else list(past.order_by("bandit_id", "arm_id", "pk"))
    arms = {arm.pk: arm for arm in wanted}
    for entry in entries:
        entry.bandit = bandits[entry.bandit_id]
        if entry.arm_id in arms:
            entry.arm = arms[entry.arm_id]
    prefetch_related_objects([entry for entry in entries if entry.arm_id not in arms], "arm")
    ended = {(entry.arm_id, entry.revision) for entry in entries if entry.op == REVERSE}
    last: dict[int, int] = {}
    undone = []
    for entry in entries:
        last[entry.arm_id] = max(entry.revision, last.get(entry.arm_id, 0))
        if entry.op == REVERSE or (entry.arm_id, entry.revision) in ended:
            continue
        credit = wanted.get(entry.arm)
        if credit and _same(entry, credit, effective_day, renew=renew):
            del wanted[entry.arm]
        else:
            undone.append(entry)
    if not wanted and not undone:
        return LedgerChange()
    policy = held or _policy_saying(policy_version)
    if policy is not None:
        transaction.on_commit(partial(_policies.__setitem__, policy_version, policy))
    context = {"settlement": settlement, "policy_id": policy, "provisional": provisional}
    reverses = [LedgerEntry(**_key(entry, REVERSE), **_value(entry), **context) for entry in undone]
    graders = _graders({(bandits[arm.bandit_id], credit.grader) for arm, credit in wanted.items()})
    applies = [
        LedgerEntry(
            bandit=bandits[arm.bandit_id],
            arm=arm,
            observation=observation,
            revision=last.get(arm.pk, 0) + 1,
            op=APPLY,
            value_micro=credit.micro,
            cost_micro=credit.cost_micro,
            grader=graders[credit.grader],
            effective_day=effective_day,
            **context,
        )
        for arm, credit in wanted.items()
    ]
    return _append(reverses, applies)


def _locked(policy_version: str, names: Iterable[str]) -> list[Bandit]:
    """The bandits of these names, locked; the id of that policy's row, None where there is none, is their `policy`.

    Raises UnknownBandit.
    """
    known = [name for name in names if name.isprintable()]
    policy = PolicyText.objects.filter(text=policy_version).values("pk")
    found = list(Bandit.objects.annotate(policy=Subquery(policy)).locked_each(known)) if known else []
    for name in names:
        if name not in {row.name for row in found}:
            raise UnknownBandit(name)
    return found


def rewrite(
    bandit: Bandit, *, undone: Sequence[LedgerEntry], given: Sequence[LedgerEntry], settlement: str
) -> LedgerChange:
    """Reverse the live entries `undone`, then apply `given`, unsaved and without a revision yet; any number at once.

    For moving rewards from one arm to another. The reverses name `settlement` for a reason; what is given says its own.
    The bandit is locked by the caller, in whose transaction this runs, as in `set_reward`.
    """
    reverses = [LedgerEntry(**_key(entry, REVERSE), **_value(entry), **_said(entry, settlement)) for entry in undone]
    past = LedgerEntry.objects.filter(bandit=bandit, arm__in={entry.arm_id for entry in given}).order_by()
    latest = past.values_list("arm", "observation").annotate(last=Max("revision"))
    last = {(arm, observation): revision for arm, observation, revision in latest}
    for entry in given:
        entry.revision = last[entry.arm_id, entry.observation] = last.get((entry.arm_id, entry.observation), 0) + 1
    return _append(reverses, given)


def copy_to(arm: Arm, entry: LedgerEntry, settlement: str) -> LedgerEntry:
    """The same reward for another arm, to be given by `rewrite`."""
    key = {"bandit": entry.bandit, "arm": arm, "observation": entry.observation, "op": APPLY}
    return LedgerEntry(**key, **_value(entry), **_said(entry, settlement))


def touch(*bandits: Bandit, change: LedgerChange | None = None, rewritten: bool = False) -> None:
    """Say that what was read of these bandits before may no longer hold: for this change of the ledger, or for another
    reason. `rewritten` where ledger rows were taken away, or buckets changed without any.

    The next revision is drawn at random, not counted: one that is rolled back is never given again to something else,
    which another process may have read meanwhile.
    """
    said: dict[str, Any] = {"revision": 1 + secrets.randbelow(MOST_REVISION)}
    if rewritten:
        said["history"] = 1 + secrets.randbelow(MOST_REVISION)
    if change is not None:
        latest: dict[int, int] = {}
        for entry in (*change.reversed, *change.applied):
            latest[entry.bandit_id] = max(entry.pk, latest.get(entry.bandit_id, 0))
        rows = (When(pk=bandit, then=row) for bandit, row in latest.items())
        said["latest"] = Case(*rows, default=F("latest"), output_field=BigIntegerField())
    Bandit.objects.filter(pk__in={bandit.pk for bandit in bandits}).update(**said)


def live_entries(bandit: str, observation: str) -> LedgerEntryQuerySet:
    """The applied and not reversed entries of an observation; at most one for each arm."""
    return live_entries_of(bandit, [observation])


def live_entries_of(bandit: str, observations: Iterable[str]) -> LedgerEntryQuerySet:
    """The applied and not reversed entries of several observations."""
    entries = LedgerEntry.objects.filter(bandit__name=bandit, observation__in=sorted(set(observations))).live()
    return entries.select_related("bandit", "arm", "grader").order_by("observation", "arm__name")


def history(observation: str) -> LedgerEntryQuerySet:
    """Every entry of an observation in every bandit, in the order they were written."""
    return LedgerEntry.objects.filter(observation=observation).select_related("bandit", "arm", "grader").order_by("pk")


def erase(observations: Iterable[str], counts: Counter[str]) -> None:
    """Take these observations out of the buckets and the ledger, as if they had never been.

    For use inside `bandit.erasure.permit`, whose counter it adds to; elsewhere the database refuses. Decisions and
    draws stay, without the name of the session that they led to.
    """
    for observation in sorted(set(observations)):
        entries = LedgerEntry.objects.filter(observation=observation)
        for name in entries.order_by("bandit__name").values_list("bandit__name", flat=True).distinct():
            touch(Bandit.objects.locked(name), rewritten=True)
        for entry in entries.live():
            _move([(entry, -1)])
        counts["ledger entries"] += entries.delete()[0]
        counts["selections unlinked"] += Selection.objects.filter(observation=observation).update(observation="")
        counts["assignments unlinked"] += Assignment.objects.filter(observation=observation).update(observation="")
    counts["empty buckets"] += Bucket.objects.filter(n=0).delete()[0]


def _resolved(
    rows: Collection[Bandit],
    credited: Mapping[str, Mapping[str, Credit]],
    observation: str,
    read: Mapping[tuple[str, str], Arm],
) -> dict[Arm, Credit]:
    """The credits by the arms that are named, of all bandits; these are locked, so that none is merged meanwhile.

    Arms that were read under the same revision of their bandit are as they were.
    """
    revisions = {row.pk: row.revision for row in rows}
    found = {name: arm for name, arm in read.items() if arm.as_of == revisions.get(arm.bandit_id)}
    others = [(bandit, name) for bandit, names in credited.items() for name in names if (bandit, name) not in found]
    again, unknown = Arm.objects.resolve_all(others)
    if unknown:
        raise Arm.objects.unknown(*unknown[0])
    found |= again
    wanted: dict[Arm, Credit] = {}
    for row in rows:
        credits = credited[row.name]  # noqa: A001 - the domain's word
        arms = set()
        for name in sorted(credits):
            arm = found[row.name, name]
            if arm in arms:
                raise ValueError(f"{name!r} is the arm {arm.name!r}, which is credited already; name each arm once")
            arms.add(arm)
            wanted[arm] = credits[name]
        if row.kind == BanditKind.CHOICE and len(arms) > 1:
            names = " and ".join(sorted(arm.name for arm in arms))
            raise ValueError(f"{row.name} chooses one arm, and one is rewarded for {observation}; got {names}")
    return wanted


def _as_read(credited: Mapping[str, Mapping[str, Credit]], read: Mapping[tuple[str, str], Arm]) -> dict[int, Bandit]:
    """The bandits as they were read in this transaction, by their keys, where no other writes meanwhile; else none."""
    asked = {(bandit, name) for bandit, names in credited.items() for name in names}
    if connection.features.has_select_for_update or not asked <= read.keys():
        return {}
    return {read[name].bandit_id: read[name].bandit for name in asked}


def policy_saying(text: str) -> int | None:
    """The id of the row that says this of a policy, made where it is new; None for nothing. To be called inside a
    transaction.
    """
    held = _policies.get(text) or _policy_saying(text)
    if held is not None:
        transaction.on_commit(partial(_policies.__setitem__, text, held))
    return held


def _policy_saying(text: str) -> int | None:
    """The id of the row of that text, made where it is new; None for an empty one."""
    return PolicyText.objects.get_or_create(text=text)[0].pk if text else None


def _graders(asked: Collection[tuple[Bandit, GraderKey]]) -> dict[GraderKey, Grader]:
    """The rows of these keys, made where they are new; for the bandits, which are locked, that are to record them.

    A row is never changed. It is deleted only once nothing records it, and before that rows of each ledger that did are
    taken away: until a bandit's history is another, those that it recorded are there.
    """
    names = {(row.pk, row.history, key): key for row, key in asked}
    if all(name in _recorded for name in names):
        return {key: _recorded[name] for name, key in names.items()}
    found = _grader_rows(set(names.values()))
    transaction.on_commit(partial(_remember, {name: found[key] for name, key in names.items()}))
    return found


def _remember(graders: Mapping[tuple[int, int | None, GraderKey], Grader]) -> None:
    if len(_recorded) >= REMEMBERED:
        forget()
    _recorded.update(graders)


def forget() -> None:
    """Drop what is remembered: in tests, whose rows are rolled back."""
    _recorded.clear()
    _policies.clear()


def _grader_rows(keys: Collection[GraderKey]) -> dict[GraderKey, Grader]:
    said = [_fields(key) for key in keys]
    rows = Grader.objects.filter(reduce(or_, (Q(**each) for each in said)))
    found = {GraderKey(**_fields(row)): row for row in rows}
    if new := [key for key in keys if key not in found]:
        Grader.objects.bulk_create((Grader(**_fields(key)) for key in new), ignore_conflicts=True)
        found |= {key: Grader.objects.get(**_fields(key)) for key in new}
    return found


def _same(entry: LedgerEntry, credit: Credit, day: date, *, renew: bool) -> bool:
    """Whether the entry is what `credit` asks for.

    One whose key says as little as keys once did is from before, and compared by that. Else every old session that is
    flagged, corrected or settled anew would be reversed and applied again, with nothing learnt from it.
    """
    key = GraderKey(**_fields(entry.grader))
    wanted = credit.grader.unsaid if key == key.unsaid and not renew else credit.grader
    held = (entry.value_micro, entry.cost_micro, key, entry.effective_day)
    return held == (credit.micro, credit.cost_micro, wanted, day)


def _fields(grader: Grader | GraderKey) -> dict[str, Any]:
    return {name: getattr(grader, name) for name in GraderKey.__slots__}


def _key(entry: LedgerEntry, op: str) -> dict[str, object]:
    return {
        "bandit": entry.bandit,
        "arm": entry.arm,
        "observation": entry.observation,
        "revision": entry.revision,
        "op": op,
    }


def _value(entry: LedgerEntry) -> dict[str, object]:
    return {name: getattr(entry, name) for name in ("value_micro", "cost_micro", "grader", "effective_day")}


def _append(reverses: Sequence[LedgerEntry], applies: Sequence[LedgerEntry]) -> LedgerChange:
    """Append these rows, what ends first, and move their buckets. The bandits are locked, so that nobody else appends
    one of those keys.
    """
    LedgerEntry.objects.bulk_create([*reverses, *applies], batch_size=BATCH)
    _move([*((entry, -1) for entry in reverses), *((entry, 1) for entry in applies)])
    change = LedgerChange(applied=tuple(applies), reversed=tuple(reverses))
    if change:
        touch(*{entry.bandit for entry in (*reverses, *applies)}, change=change)
    return change


def _move(moves: Iterable[tuple[LedgerEntry, int]]) -> None:
    """Add each entry to its bucket, or take it out of it: one statement for all that only gain, one for each other.

    The buckets' bandits are locked.
    """
    sums: dict[BucketKey, list[int]] = {}
    lose: set[BucketKey] = set()
    for entry, sign in moves:
        key = (entry.bandit_id, entry.arm_id, entry.grader_id, entry.effective_day)
        value = sign * entry.value_micro
        known = (0, 0) if entry.cost_micro is None else (sign * entry.cost_micro, sign)
        held = sums.setdefault(key, [0] * len(SUMS))
        productive = sign * (entry.value_micro > PRODUCTIVE)
        held[:] = map(add, held, (sign, value, value * entry.value_micro, *known, productive))
        lose |= {key} if sign < 0 else set()
    for key in sorted(lose):
        where = dict(zip(BUCKET_KEY, key, strict=True))
        step = {name: F(name) + by for name, by in zip(SUMS, sums[key], strict=True) if by}
        bucket = Bucket.objects.filter(**where)
        if step and not bucket.update(**step):
            Bucket.objects.bulk_create([Bucket(**where)], ignore_conflicts=True)
            bucket.update(**step)
    gains = sorted((key, steps) for key, steps in sums.items() if key not in lose)
    for start in range(0, len(gains), BATCH):
        _gain(gains[start : start + BATCH])


def _gain(rows: Sequence[tuple[BucketKey, Sequence[int]]]) -> None:
    """Add to these buckets, and make those that are not there."""
    columns = (*BUCKET_KEY, *SUMS)
    row = f"({', '.join(['%s'] * len(columns))})"
    added = ", ".join(f"{name} = bandit_bucket.{name} + excluded.{name}" for name in SUMS)
    values: list[Any] = []
    for (bandit, arm, grader, day), steps in rows:
        values += [bandit, arm, grader, connection.ops.adapt_datefield_value(day), *steps]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO bandit_bucket ({', '.join(columns)}) VALUES {', '.join([row] * len(rows))} "  # noqa: S608 - names
            f"ON CONFLICT ({', '.join(BUCKET_KEY)}) DO UPDATE SET {added}",
            values,
        )


def _said(entry: LedgerEntry, settlement: str) -> dict[str, Any]:
    return {
        "settlement": settlement,
        "policy_id": entry.policy_id,
        "provisional": entry.provisional,
    }
