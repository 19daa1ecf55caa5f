"""What people do to arms: each act one function, in the bandit's turn, that leaves an event with who and why."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.utils import timezone

from bandit import ledger
from bandit.models import Arm, ArmAlias, ArmEvent, Bandit
from bandit.names import canonical, nearest

Act = ArmEvent.Act
LONGEST, WHY = 100, 500


# --- names -----------------------------------------------------------------------------------------------------------


def near(bandit: str, name: str) -> str | None:
    """The arm or alias that `name` looks like, where it may be another spelling of it; None where it is one, or not."""
    names = {*Arm.objects.of(bandit).values_list("name", flat=True)}
    names |= {*ArmAlias.objects.filter(bandit__name=bandit).values_list("alias", flat=True)}
    return None if canonical(name) in names else nearest(name, names)


def add(bandit: str, name: str, *, by: str, why: str = "", **fields: Any) -> Arm:
    """A new arm. `fields`: title, is_consumption, is_low_stakes, probation.

    Raises UnknownBandit, or ValueError for a name that is blank, too long, unprintable, or some arm's already.
    """
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        arm = Arm.objects.create(bandit=row, name=_free_name(row, name), **fields)
        return done(arm, Act.ADDED, by=by, why=why)


def rename(arm: Arm, title: str, *, by: str, why: str = "") -> Arm:
    """Give the arm another title. Its name stays: records and callers know it by that."""
    with in_turn(arm) as held:
        said = title.strip()
        if len(said) > LONGEST or not said.isprintable():
            raise ValueError(f"a title has up to {LONGEST} printable characters; got {said[:50]!r}, {len(said)} long")
        reason = f"{held} is now {said or held.name}. {why}".strip()
        return done(held, Act.RENAMED, by=by, why=reason, title=said)


def add_alias(arm: Arm, alias: str, *, by: str, why: str = "") -> ArmAlias:
    """Another spelling of the arm. Raises ValueError as `add`."""
    with in_turn(arm) as held:
        made = ArmAlias.objects.create(bandit=held.bandit, alias=_free_name(held.bandit, alias), arm=held)
        done(held, Act.RENAMED, by=by, why=f"Also called {made.alias}. {why}".strip())
        return made


def remove_alias(arm: Arm, alias: str, *, by: str, why: str = "") -> Arm:
    """Take a spelling away; what came under it stays. Raises ValueError where the arm has no such alias."""
    with in_turn(arm) as held:
        if not held.aliases.filter(alias=canonical(alias)).delete()[0]:
            raise ValueError(f"{held.name} is not called {alias!r}; nothing was changed")
        return done(held, Act.RENAMED, by=by, why=f"No longer called {canonical(alias)}. {why}".strip())


# --- states ----------------------------------------------------------------------------------------------------------


def pause(arm: Arm, *, by: str, why: str = "") -> Arm:
    """Not chosen until resumed. Raises ValueError where it is paused already."""
    with in_turn(arm) as held:
        _require(not held.paused, held, "paused already")
        return done(held, Act.PAUSED, by=by, why=why, paused=True)


def resume(arm: Arm, *, by: str, why: str = "") -> Arm:
    with in_turn(arm) as held:
        _require(held.paused, held, "not paused")
        return done(held, Act.RESUMED, by=by, why=why, paused=False)


def retire(arm: Arm, *, by: str, why: str = "") -> Arm:
    """Not chosen any more. Its record stays, and what still comes for it is recorded."""
    with in_turn(arm) as held:
        _require(held.retired_at is None, held, "retired already")
        return done(held, Act.RETIRED, by=by, why=why, retired_at=timezone.now())


def bring_back(arm: Arm, *, by: str, why: str = "") -> Arm:
    with in_turn(arm) as held:
        _require(held.retired_at is not None, held, "not retired")
        return done(held, Act.RETURNED, by=by, why=why, retired_at=None)


def put_on_probation(arm: Arm, *, by: str, why: str = "") -> Arm:
    """Few sessions a day, in low-stakes work, until some have earned a reward."""
    with in_turn(arm) as held:
        _require(not held.probation, held, "on probation already")
        return done(held, Act.TRIED, by=by, why=why, probation=True)


def end_probation(arm: Arm, *, by: str, why: str = "") -> Arm:
    with in_turn(arm) as held:
        _require(held.probation, held, "not on probation")
        return done(held, Act.PASSED, by=by, why=why, probation=False)


# --- inside ---------------------------------------------------------------------------------------------------------


@contextmanager
def in_turn(arm: Arm) -> Iterator[Arm]:
    """The arm as it is now, while nobody else writes to its bandit."""
    with transaction.atomic():
        Bandit.objects.locked(arm.bandit.name)
        yield Arm.objects.select_related("bandit", "merged_into").get(pk=arm.pk)


def done(arm: Arm, act: str, *, by: str, why: str, other: Arm | None = None, **fields: Any) -> Arm:
    """Change the arm's fields, and say who did what to it."""
    for name, value in fields.items():
        setattr(arm, name, value)
    if fields:
        arm.save(update_fields=list(fields))
    ArmEvent.objects.create(arm=arm, act=act, other=other, by=by, why=why[:WHY])
    ledger.touch(arm.bandit)
    return arm


def _require(holds: bool, arm: Arm, otherwise: str) -> None:  # noqa: FBT001 - what is required
    if not holds:
        raise ValueError(f"{arm.name} is {otherwise}; nothing was changed")
    if arm.merged_into is not None:
        raise ValueError(f"{arm.name} was merged into {arm.merged_into.name}; part the two first")


def _free_name(bandit: Bandit, text: str) -> str:
    """The canonical spelling of a name that nothing has yet."""
    name = canonical(text)
    if not name or len(name) > LONGEST or not name.isprintable():
        raise ValueError(f"a name has 1 to {LONGEST} printable characters; got {text[:50]!r}, {len(text)} long")
    if bandit.arms.filter(name=name).exists():
        raise ValueError(f"{name!r} is an arm of {bandit.name} already; nothing was changed")
    alias = ArmAlias.objects.filter(bandit=bandit, alias=name).select_related("arm").first()
    if alias is not None:
        raise ValueError(f"{name!r} is an alias of {alias.arm.name}; take that away first, or use {alias.arm.name}")
    return name
