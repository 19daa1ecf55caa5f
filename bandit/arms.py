"""What people do to arms. Each function locks the bandit and records an event that says who did it and why."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

from django.db import transaction
from django.utils import timezone

from bandit import ledger
from bandit.models import Arm, ArmAlias, ArmEvent, Bandit, BreakDecision
from bandit.names import canonical, nearest
from bandit.reading import posterior_of

Act = ArmEvent.Act
MAX_NAME, MAX_WHY = 100, 500


# --- names -----------------------------------------------------------------------------------------------------------


def near(bandit: str, name: str) -> str | None:
    """The arm or alias that `name` may be a misspelling of; None if it is the name of one, or resembles none."""
    names = {*Arm.objects.in_bandit(bandit).values_list("name", flat=True)}
    names |= {*ArmAlias.objects.filter(bandit__name=bandit).values_list("alias", flat=True)}
    return None if canonical(name) in names else nearest(name, names)


def add(bandit: str, name: str, *, by: str, why: str = "", **fields: Any) -> Arm:
    """Create an arm. `fields`: title, is_consumption, is_looking, is_low_stakes, probation.

    Raises UnknownBandit, or ValueError for a name that is blank, too long, unprintable or taken.
    """
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        arm = Arm.objects.create(bandit=row, name=_free_name(row, name), **fields)
        return record_event(arm, Act.ADDED, by=by, why=why)


def rename(arm: Arm, title: str, *, by: str, why: str = "") -> Arm:
    """Change the arm's title; an empty one falls back to its name. The name itself never changes: callers use it."""
    with locked_arm(arm) as current:
        title = title.strip()
        if len(title) > MAX_NAME or not title.isprintable():
            raise ValueError(
                f"a title has up to {MAX_NAME} printable characters; got {title[:50]!r}, {len(title)} long"
            )
        reason = f"{current} is now {title or current.name}. {why}".strip()
        return record_event(current, Act.RENAMED, by=by, why=reason, title=title)


def add_alias(arm: Arm, alias: str, *, by: str, why: str = "") -> ArmAlias:
    """Add another spelling of the arm's name. Raises ValueError as `add`."""
    with locked_arm(arm) as current:
        row = ArmAlias.objects.create(bandit=current.bandit, alias=_free_name(current.bandit, alias), arm=current)
        record_event(current, Act.RENAMED, by=by, why=f"Also called {row.alias}. {why}".strip())
        return row


def remove_alias(arm: Arm, alias: str, *, by: str, why: str = "") -> Arm:
    """Remove an alias; sessions that came under it keep the arm. Raises ValueError if the arm has no such alias."""
    with locked_arm(arm) as current:
        if not current.aliases.filter(alias=canonical(alias)).delete()[0]:
            raise ValueError(f"{current.name} is not called {alias!r}; nothing was changed")
        return record_event(current, Act.RENAMED, by=by, why=f"No longer called {canonical(alias)}. {why}".strip())


# --- states ----------------------------------------------------------------------------------------------------------


def pause(arm: Arm, *, by: str, why: str = "") -> Arm:
    """Exclude the arm from choices until it is resumed. Raises ValueError if it is paused already."""
    with locked_arm(arm) as current:
        _require(not current.paused, current, "paused already")
        return record_event(current, Act.PAUSED, by=by, why=why, paused=True)


def resume(arm: Arm, *, by: str, why: str = "") -> Arm:
    with locked_arm(arm) as current:
        _require(current.paused, current, "not paused")
        return record_event(current, Act.RESUMED, by=by, why=why, paused=False)


def retire(arm: Arm, *, by: str, why: str = "") -> Arm:
    """Exclude the arm from choices for good. Its rewards stay, and those that still come are recorded."""
    with locked_arm(arm) as current:
        _require(current.retired_at is None, current, "retired already")
        return record_event(current, Act.RETIRED, by=by, why=why, retired_at=timezone.now())


def bring_back(arm: Arm, *, by: str, why: str = "") -> Arm:
    with locked_arm(arm) as current:
        _require(current.retired_at is not None, current, "not retired")
        return record_event(current, Act.RETURNED, by=by, why=why, retired_at=None)


def put_on_probation(arm: Arm, *, by: str, why: str = "") -> Arm:
    """Limit the arm to a few sessions a day in low-stakes contexts, until enough of them have a reward."""
    with locked_arm(arm) as current:
        _require(not current.probation, current, "on probation already")
        return record_event(current, Act.TRIED, by=by, why=why, probation=True)


def end_probation(arm: Arm, *, by: str, why: str = "") -> Arm:
    with locked_arm(arm) as current:
        _require(current.probation, current, "not on probation")
        return record_event(current, Act.PASSED, by=by, why=why, probation=False)


def decide_break(arm: Arm, day: date, *, is_confirmed: bool, by: str, why: str = "") -> BreakDecision:
    """Confirm or reject a break of the arm; takes effect at once. `day` is the first day after the break.

    Raises ValueError if no break is detected on that day, unless somebody decided on it before.
    """
    with locked_arm(arm) as current:
        changes = posterior_of(current.bandit.name, timezone.now()).posterior.changes
        detected = None if changes is None else changes.breaks.get(current.name)
        is_detected = detected is not None and detected.day == day
        if not is_detected and not current.break_decisions.filter(day=day).exists():
            raise ValueError(
                f"Nothing was saved, because {current} no longer has a break on {day}. Its rewards have changed in "
                "the meantime. Reload the page."
            )
        decision = BreakDecision.objects.create(
            bandit=current.bandit, arm=current, day=day, kept=is_confirmed, by=by, note=why[:MAX_WHY]
        )
        ledger.touch(current.bandit)
        return decision


# --- inside ---------------------------------------------------------------------------------------------------------


@contextmanager
def locked_arm(arm: Arm) -> Iterator[Arm]:
    """The arm, freshly loaded, with its bandit locked until the block ends."""
    with transaction.atomic():
        Bandit.objects.locked(arm.bandit.name)
        yield Arm.objects.select_related("bandit", "merged_into").get(pk=arm.pk)


def record_event(arm: Arm, act: str, *, by: str, why: str, other: Arm | None = None, **fields: Any) -> Arm:
    """Set and save the arm's `fields`, and store an event that says who did what to it, and why.

    `why` is cut to MAX_WHY characters. Invalidates cached readings of the arm's bandit. Returns the arm.
    """
    for name, value in fields.items():
        setattr(arm, name, value)
    if fields:
        arm.save(update_fields=list(fields))
    ArmEvent.objects.create(arm=arm, act=act, other=other, by=by, why=why[:MAX_WHY])
    ledger.touch(arm.bandit)
    return arm


def _require(is_allowed: bool, arm: Arm, state: str) -> None:  # noqa: FBT001 - what is required
    """Raise ValueError unless the change is allowed (the message says the arm is `state`), or if the arm was merged."""
    if not is_allowed:
        raise ValueError(f"{arm.name} is {state}; nothing was changed")
    if arm.merged_into is not None:
        raise ValueError(f"{arm.name} was merged into {arm.merged_into.name}; undo the merge first")


def _free_name(bandit: Bandit, text: str) -> str:
    """The canonical spelling of a name that neither an arm nor an alias has. Raises ValueError otherwise."""
    name = canonical(text)
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise ValueError(f"a name has 1 to {MAX_NAME} printable characters; got {text[:50]!r}, {len(text)} long")
    if bandit.arms.filter(name=name).exists():
        raise ValueError(f"{name!r} is an arm of {bandit.name} already; nothing was changed")
    alias = ArmAlias.objects.filter(bandit=bandit, alias=name).select_related("arm").first()
    if alias is not None:
        raise ValueError(f"{name!r} is an alias of {alias.arm.name}; remove that alias first, or use {alias.arm.name}")
    return name
