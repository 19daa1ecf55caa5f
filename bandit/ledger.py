"""The only writer of the ledger and of its sums, the buckets.

A changed reward is a reverse of the live entry and an apply of the new one, never an update; the buckets change by the
same integers in the same transaction. So any order of verdicts, corrections and retries ends in the same bits.
"""

import math
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from operator import itemgetter
from typing import Any, Self

from django.db import connection, transaction
from django.db.models import F, Max

from bandit.core.table import ABSTAINED
from bandit.models import (
    MICRO,
    PRODUCTIVE,
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
MAX_COST_USD = 1_000_000
# The largest number in 64 signed bits.
MAX_REVISION = 2**63 - 1
BATCH = 500
BUCKET_KEY = ("bandit_id", "arm_id", "grader_id", "effective_day")
BucketKey = tuple[int, int, int, date]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderKey:
    """The columns of a `bandit.models.Grader`, which explains them. All are opaque here, except that evidence is
    weighted by `source`.
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
    def without_later_fields(self) -> Self:
        """The key without the fields that were added later; they are empty in old ledger entries."""
        return replace(self, version="", view="", witness="", standing="", agent="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """A reward in [0, 1], who gave it, and what the session cost in dollars, None if unknown.

    An abstention (its source is ABSTAINED) has the value 0, which is never read. Raises ValueError for a value out of
    range or NaN, another value of an abstention, or a cost outside 0 to MAX_COST_USD.
    """

    value: float
    grader: GraderKey
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or not 0 <= self.value <= 1:
            raise ValueError(f"a reward must be a number from 0 to 1; got {self.value!r}")
        if self.grader.source == ABSTAINED and self.value:
            raise ValueError(f"an abstention has no value, which is written 0; got {self.value!r}")
        if self.cost_usd is not None and not 0 <= self.cost_usd <= MAX_COST_USD:
            raise ValueError(f"a cost is a number of dollars from 0 to {MAX_COST_USD:,}; got {self.cost_usd!r}")

    @property
    def micro(self) -> int:
        return round(self.value * MICRO)

    @property
    def cost_micro(self) -> int | None:
        return None if self.cost_usd is None else round(self.cost_usd * MICRO)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerChange:
    """The rows that a call appended. Empty, and false, if nothing differed."""

    applied: tuple[LedgerEntry, ...] = ()
    reversed: tuple[LedgerEntry, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.applied or self.reversed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """An arm that learns from an observation. `context` is what the bandit's baseline corrects for, such as the
    category; `salience` in percent is the arm's share in what happened.
    """

    bandit: str
    arm: Arm
    context: str = ""
    salience: int = 100

    def credit(self, credit: Credit) -> Credit:
        """The credit with this learner's context and salience in its grader key."""
        return replace(credit, grader=replace(credit.grader, context=self.context, salience=self.salience))


def set_rewards(
    learners: Iterable[Learner], credit: Credit | None, *, always: Iterable[str] = (), **details: Any
) -> LedgerChange:
    """`set_credits` with the same credit for each learner, but with the learner's context and salience.

    In the learners' bandits, and in those named in `always`, all other live rewards of the observation are reversed. If
    `credit` is None, nothing is applied in their place. `details` are the other arguments of `set_credits`.
    """
    credits_by_bandit: dict[str, dict[str, Credit]] = {bandit: {} for bandit in always}
    for learner in learners:
        own = credits_by_bandit.setdefault(learner.bandit, {})
        if credit is not None:
            own[learner.arm.name] = learner.credit(credit)
    return set_credits(credits_by_bandit, **details)


def set_credits(
    credits_by_bandit: Mapping[str, Mapping[str, Credit]],
    *,
    observation: str,
    effective_day: date,
    settlement: str,
    policy_version: str,
    provisional: bool = False,
    renew: bool = False,
) -> LedgerChange:
    """Make these credits, by bandit and arm, the only live rewards of the observation in the bandits named.

    A live entry that differs in arm, value, cost, grader or day is reversed on its own day, and the new one applied as
    the next revision. If nothing differs, nothing is recorded. `settlement`, `policy_version` and `provisional` only
    describe new rows: a difference in them alone records nothing. Nor does one in fields of the grader key that were
    added after the live entry was written, unless `renew` is set.

    Must run in the caller's transaction, so that a grade and its reward commit together. The bandits stay locked until
    it ends: writers of one bandit take turns and don't deadlock on its buckets. Raises UnknownBandit, UnknownArm,
    TransactionManagementError, or ValueError for two names of one arm, or two arms of a bandit that chooses one.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "a reward was set outside a transaction; call it inside transaction.atomic(), with the settlement"
        )
    if not credits_by_bandit:
        return LedgerChange()
    bandits = _lock_bandits(credits_by_bandit)
    credit_by_arm = _credits_by_arm(bandits, credits_by_bandit, observation)
    past = LedgerEntry.objects.filter(observation=observation, bandit__in=bandits)
    entries = list(past.select_related("bandit", "arm", "grader").order_by("bandit_id", "arm_id", "pk"))
    reversed_revisions = {(entry.arm, entry.revision) for entry in entries if entry.op == REVERSE}
    stale: list[LedgerEntry] = []
    unchanged_arms: set[Arm] = set()
    last_revision: Counter[Arm] = Counter()
    for entry in entries:
        last_revision[entry.arm] = max(entry.revision, last_revision[entry.arm])
        if entry.op == REVERSE or (entry.arm, entry.revision) in reversed_revisions:
            continue
        credit = credit_by_arm.get(entry.arm)
        if credit is not None and _agrees(entry, credit, effective_day, renew=renew):
            unchanged_arms.add(entry.arm)
        else:
            stale.append(entry)
    new = {arm: credit for arm, credit in credit_by_arm.items() if arm not in unchanged_arms}
    if not stale and not new:
        return LedgerChange()
    origin = {"settlement": settlement, "policy_id": policy_text_id(policy_version), "provisional": provisional}
    grader_keys = {credit.grader for credit in new.values()}
    graders = _stored_graders(grader_keys)
    missing = sorted((key for key in grader_keys if key not in graders), key=lambda key: tuple(_fields(key).values()))
    if missing:
        # In one order everywhere, so that two writers of the same new keys don't deadlock.
        Grader.objects.bulk_create([Grader(**_fields(key)) for key in missing], ignore_conflicts=True)
        graders |= _stored_graders(missing)
    applies = [
        LedgerEntry(
            bandit=arm.bandit,
            arm=arm,
            observation=observation,
            revision=last_revision[arm] + 1,
            op=APPLY,
            value_micro=credit.micro,
            cost_micro=credit.cost_micro,
            grader=graders[credit.grader],
            effective_day=effective_day,
            **origin,
        )
        for arm, credit in new.items()
    ]
    return _append([_reversal(entry, **origin) for entry in stale], applies)


def _lock_bandits(names: Iterable[str]) -> list[Bandit]:
    """The bandits of these names, locked until the transaction ends, in the order of their keys, so that two writers
    don't deadlock. Raises UnknownBandit.
    """
    names = list(names)
    queryable_names = [name for name in names if name.isprintable()]  # PostgreSQL refuses a query for a NUL
    bandits = list(Bandit.objects.locked_each(queryable_names))
    existing_names = {bandit.name for bandit in bandits}
    for name in names:
        if name not in existing_names:
            raise UnknownBandit(name)
    return bandits


def _credits_by_arm(
    bandits: Iterable[Bandit], credits_by_bandit: Mapping[str, Mapping[str, Credit]], observation: str
) -> dict[Arm, Credit]:
    """The credits by the arms that they name, in all bandits.

    The caller has locked the bandits, so that no arm is merged meanwhile. Raises UnknownArm, or ValueError for two
    names of one arm, or two arms of a bandit that chooses one.
    """
    arms, unknown = Arm.objects.resolve_all((bandit, name) for bandit, own in credits_by_bandit.items() for name in own)
    if unknown:
        raise Arm.objects.unknown(*unknown[0])
    credit_by_arm: dict[Arm, Credit] = {}
    for bandit in bandits:
        own: dict[Arm, Credit] = {}
        for name, credit in sorted(credits_by_bandit[bandit.name].items(), key=itemgetter(0)):
            arm = arms[bandit.name, name]
            if arm in own:
                raise ValueError(f"{name!r} is the arm {arm.name!r}, which is credited already; name each arm once")
            arm.bandit = bandit
            own[arm] = credit
        if bandit.kind == BanditKind.CHOICE and len(own) > 1:
            names = " and ".join(sorted(arm.name for arm in own))
            raise ValueError(f"{bandit.name} chooses one arm, and one is rewarded for {observation}; got {names}")
        credit_by_arm |= own
    return credit_by_arm


def _agrees(entry: LedgerEntry, credit: Credit, day: date, *, renew: bool) -> bool:
    """Whether the live entry already records this credit on this day, so that it can stay.

    An old entry, whose key lacks the fields added later, is compared without them unless `renew` is set. Otherwise
    every old session that is flagged, corrected or settled anew would be reversed and applied again for nothing.
    """
    key = GraderKey(**_fields(entry.grader))
    is_old = key == key.without_later_fields
    wanted = credit.grader.without_later_fields if is_old and not renew else credit.grader
    current = (entry.value_micro, entry.cost_micro, key, entry.effective_day)
    return current == (credit.micro, credit.cost_micro, wanted, day)


def rewrite(
    bandit: Bandit, *, reversing: Sequence[LedgerEntry], applying: Sequence[LedgerEntry], settlement: str
) -> LedgerChange:
    """Reverse the live entries `reversing`, then apply the unsaved entries `applying` as their arms' next revisions.

    For moving rewards from one arm to another. The reverses get this `settlement`; the applies have their own already.
    The caller has locked the bandit in its transaction.
    """
    past = LedgerEntry.objects.filter(bandit=bandit, arm__in={entry.arm_id for entry in applying}).order_by()
    latest = past.values_list("arm", "observation").annotate(last=Max("revision"))
    revisions = {(arm, observation): revision for arm, observation, revision in latest}
    for entry in applying:
        key = entry.arm_id, entry.observation
        entry.revision = revisions[key] = revisions.get(key, 0) + 1
    return _append([_reversal(entry, **_origin(entry, settlement)) for entry in reversing], applying)


def copy_to(arm: Arm, entry: LedgerEntry, settlement: str) -> LedgerEntry:
    """The same reward for another arm, unsaved and without a revision, for `rewrite`."""
    return _copy(entry, arm=arm, op=APPLY, **_origin(entry, settlement))


def _reversal(entry: LedgerEntry, **origin: Any) -> LedgerEntry:
    return _copy(entry, arm=entry.arm, revision=entry.revision, op=REVERSE, **origin)


def _copy(entry: LedgerEntry, **fields: Any) -> LedgerEntry:
    """An unsaved entry with the observation, value, cost, grader and day of this one; `fields` are the others."""
    return LedgerEntry(
        bandit=entry.bandit,
        observation=entry.observation,
        value_micro=entry.value_micro,
        cost_micro=entry.cost_micro,
        grader=entry.grader,
        effective_day=entry.effective_day,
        **fields,
    )


def _origin(entry: LedgerEntry, settlement: str) -> dict[str, Any]:
    return {"settlement": settlement, "policy_id": entry.policy_id, "provisional": entry.provisional}


def touch(*bandits: Bandit) -> None:
    """Give these bandits a new revision, which invalidates cached readings.

    It is random rather than counted, so that a revision that is rolled back is never used again: another process may
    have cached a reading under it.
    """
    revision = 1 + secrets.randbelow(MAX_REVISION)
    Bandit.objects.filter(pk__in={bandit.pk for bandit in bandits}).update(revision=revision)


def live_entries(bandit: str, observations: Iterable[str]) -> LedgerEntryQuerySet:
    """The applied and not reversed entries of these observations; at most one for each observation and arm."""
    entries = LedgerEntry.objects.filter(bandit__name=bandit, observation__in=sorted(set(observations))).live()
    return entries.select_related("bandit", "arm", "grader").order_by("observation", "arm__name")


def history(observation: str) -> LedgerEntryQuerySet:
    """Every entry of an observation in every bandit, oldest first."""
    return LedgerEntry.objects.filter(observation=observation).select_related("bandit", "arm", "grader").order_by("pk")


def erase(observations: Iterable[str], counts: Counter[str]) -> None:
    """Delete these observations from the ledger and take their rewards out of the buckets.

    For use inside `bandit.erasure.permit`, which yields `counts`; elsewhere the database refuses. `counts` gets the
    number of rows of each kind. Decisions and draws stay, but don't name the observation any more.
    """
    observations = sorted(set(observations))
    affected = LedgerEntry.objects.filter(observation__in=observations).order_by()
    bandits = _lock_bandits(affected.values_list("bandit__name", flat=True).distinct())
    touch(*bandits)
    for observation in observations:
        entries = LedgerEntry.objects.filter(observation=observation)
        for entry in entries.live():
            _move_buckets([(entry, -1)])
        counts["ledger entries"] += entries.delete()[0]
        counts["selections unlinked"] += Selection.objects.filter(observation=observation).update(observation="")
        counts["assignments unlinked"] += Assignment.objects.filter(observation=observation).update(observation="")
    counts["empty buckets"] += Bucket.objects.filter(bandit__in=bandits, n=0).delete()[0]


def policy_text_id(text: str) -> int | None:
    """The key of the `PolicyText` with this text, created if new; None for an empty text."""
    return PolicyText.objects.get_or_create(text=text)[0].pk if text else None


def _stored_graders(keys: Iterable[GraderKey]) -> dict[GraderKey, Grader]:
    """The stored graders with these keys, by key.

    Other graders may be among them: each column is filtered by itself, so a row may mix the columns of several keys.
    """
    columns = {f"{name}__in": {getattr(key, name) for key in keys} for name in GraderKey.__slots__}
    return {GraderKey(**_fields(row)): row for row in Grader.objects.filter(**columns)}


def _fields(grader: Grader | GraderKey) -> dict[str, Any]:
    return {name: getattr(grader, name) for name in GraderKey.__slots__}


def _append(reverses: Sequence[LedgerEntry], applies: Sequence[LedgerEntry]) -> LedgerChange:
    """Append these rows, reverses first, and update their buckets. The caller has locked the bandits."""
    entries = [*reverses, *applies]
    if entries:
        LedgerEntry.objects.bulk_create(entries, batch_size=BATCH)
        _move_buckets([*((entry, -1) for entry in reverses), *((entry, 1) for entry in applies)])
        touch(*{entry.bandit for entry in entries})
    return LedgerChange(applied=tuple(applies), reversed=tuple(reverses))


def _move_buckets(moves: Iterable[tuple[LedgerEntry, int]]) -> None:
    """Add each entry to its bucket (1), or take it out (−1). The caller has locked the buckets' bandits."""
    changes: dict[BucketKey, Counter[str]] = defaultdict(Counter)  # what to add to the sums of each bucket
    for entry, sign in moves:
        key = (entry.bandit_id, entry.arm_id, entry.grader_id, entry.effective_day)
        changes[key].update(
            n=sign,
            s=sign * entry.value_micro,
            q=sign * entry.value_micro**2,
            cost=sign * (entry.cost_micro or 0),
            costed=sign * (entry.cost_micro is not None),
            productive=sign * (entry.value_micro > PRODUCTIVE),
        )
    for key in sorted(changes):
        sums = {name: change for name, change in changes[key].items() if change}
        if not sums:  # a reverse and an apply that cancel out
            continue
        bucket = dict(zip(BUCKET_KEY, key, strict=True))
        is_updated = Bucket.objects.filter(**bucket).update(**{name: F(name) + change for name, change in sums.items()})
        if not is_updated:
            Bucket.objects.create(**bucket, **sums)
