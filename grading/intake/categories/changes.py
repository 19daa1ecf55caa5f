"""Changes of categories by people: of one session, of many, or by applying the rules; and undoing them exactly.

A change is a row with a list of work. Some of it is done at once and the rest by a worker, a few sessions in each
transaction; a change is undone the same way. None of this asks a judge.
"""

import uuid
from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from bandit.models import Arm
from grading import wakeup
from grading.evidence import ownership
from grading.intake.assessment import assess
from grading.intake.categories import provenance, reach, rules
from grading.models import CategoryChange, CategoryRule, CategoryWord, Session
from grading.models.sessions import CategoryOrigin
from grading.monitoring.watch import refresh_afterwards

# Sessions that a person may change at once.
MAX_BY_HAND = 200
# Sessions that are changed within a request, in one transaction, and in one run of the worker.
SYNC_LIMIT, CHUNK, BATCH_SIZE = 100, 20, 400
# Older logs that are read in one run of the worker.
LOG_BATCH_SIZE = 60


class ChangeRefused(ValueError):
    """Nothing was changed; the message says why, and what to do."""


def set_by_hand(ids: Iterable[int], category: Arm, by: User, *, reason: str = "", name: str = "") -> CategoryChange:
    """Give these sessions a category as a person. Repeating it with the same `name` changes nothing.

    Raises ChangeRefused for no or too many sessions, and for an arm that isn't a category.
    """
    wanted = sorted(set(ids))
    if category.bandit.name != "category":
        raise ChangeRefused(f"{category} is not a category.")
    if not 0 < len(wanted) <= MAX_BY_HAND:
        raise ChangeRefused(f"Choose from 1 to {MAX_BY_HAND} sessions; {len(wanted)} were chosen.")
    keys = Session.objects.filter(pk__in=wanted).order_by("pk").values_list("pk", flat=True)
    why = reason.strip()[:400]
    # Each row: session, arm, rule (none here), why.
    todo: list[list[object]] = [[pk, category.current.pk, None, why] for pk in keys]
    return _begin(CategoryOrigin.PERSON, todo, by, reason=reason, name=name)


def apply_rules(by: User, *, others: bool = False, expected: int | None = None, name: str = "") -> CategoryChange:
    """Apply the enabled rules to the sessions without a category; with `others` also to those whose category is from a
    rule or the agent. Raises ChangeRefused if no session matches, or not as many as `expected`.
    """
    repeated = CategoryChange.objects.filter(name=name).first() if name else None
    if repeated is not None:
        return repeated
    rows = CategoryRule.objects.select_related("category__merged_into")
    reaches = [reach.uncategorised(rows), *([reach.others(rows)] if others else [])]
    todo = reach.todo(reaches)
    if expected is not None and expected != len(todo):
        raise ChangeRefused(
            f"Nothing was set, because the rules now match {len(todo)} sessions instead of {expected}. Check them "
            "again."
        )
    if not todo:
        raise ChangeRefused("The rules match no sessions, so nothing was set.")
    return _begin(CategoryOrigin.RULE, todo, by, name=name)


def undo(change: CategoryChange, by: User, reason: str = "") -> None:
    """Undo a change: the categories from before it are effective again.

    Raises ChangeRefused if it was undone already.
    """
    with transaction.atomic():
        ownership.lock()
        locked = CategoryChange.objects.select_for_update().get(pk=change.pk)
        if locked.undone_at is not None:
            raise ChangeRefused("Nothing was changed, because this has already been undone.")
        locked.undone_at, locked.undone_by, locked.undone_why = timezone.now(), by, reason.strip()
        locked.todo = []
        locked.save(update_fields=["undone_at", "undone_by", "undone_why", "todo"])
    _continue(locked)
    change.refresh_from_db()


def unfinished() -> list[CategoryChange]:
    """The changes with sessions that must still be changed or undone, oldest first."""
    current_words = CategoryWord.objects.not_undone().filter(change=OuterRef("pk"))
    open_ = ~Q(todo=[]) | (Q(undone_at__isnull=False) & Exists(current_words))
    return list(CategoryChange.objects.filter(open_).order_by("pk"))


def catch_up() -> int:
    """Continue unfinished changes, then read older logs for the rules. Returns the number of sessions processed."""
    done = 0
    for change in unfinished():
        done += _work(change, BATCH_SIZE - done)
        if done >= BATCH_SIZE:
            return done
    return done + rules.read_older_logs(LOG_BATCH_SIZE)


def _begin(
    origin: CategoryOrigin, todo: list[list[object]], by: User, *, reason: str = "", name: str = ""
) -> CategoryChange:
    columns = {"by": by, "origin": origin, "reason": reason.strip(), "todo": todo, "total": len(todo)}
    change, created = CategoryChange.objects.get_or_create(name=name or uuid.uuid4(), defaults=columns)
    if created:
        _continue(change)
    return change


def _continue(change: CategoryChange) -> None:
    """Process up to SYNC_LIMIT sessions, and have a worker do the rest."""
    if _work(change, SYNC_LIMIT) >= SYNC_LIMIT:
        wakeup.publish("grading.tasks.categorise")


def _work(change: CategoryChange, limit: int) -> int:
    """Change, or undo, up to `limit` sessions of a change, CHUNK in each transaction. Returns their number."""
    done, flagged = 0, False
    while done < limit:
        size = min(CHUNK, limit - done)
        with transaction.atomic():
            ownership.lock()
            locked = CategoryChange.objects.select_for_update().get(pk=change.pk)
            if locked.undone_at is None:
                todo, locked.todo = locked.todo[:size], locked.todo[size:]
                processed = len(todo)
                for row in todo:  # [session, arm, rule, why]
                    flagged |= _set_category(locked, *row)
                locked.save(update_fields=["todo"])
            else:
                category_words = list(locked.words.not_undone().order_by("pk")[:size])
                processed = len(category_words)
                for word in category_words:
                    flagged |= _undo_word(word)
        done += processed
        change.todo = locked.todo
        if not processed:
            break
    if done:
        refresh_afterwards(flagged=flagged)
    return done


def _set_category(change: CategoryChange, pk: int, arm: int, rule: int | None, why: str) -> bool:
    """Give one session the change's category, which has no effect if a stronger word came meanwhile.

    Returns whether a flag of the session went up or down.
    """
    session = Session.objects.for_grading().filter(pk=pk).first()
    category = Arm.objects.select_related("merged_into").filter(pk=arm).first()
    if session is None or category is None:
        return False
    origin = CategoryOrigin(change.origin)
    by = change.by if origin is CategoryOrigin.PERSON else None
    rule_row = None if rule is None else CategoryRule.objects.filter(pk=rule).first()
    has_changed = provenance.add_word(session, origin, category.current, why=why, by=by, rule=rule_row, change=change)
    return has_changed and _save_and_settle(session)


def _undo_word(word: CategoryWord) -> bool:
    """Undo one statement of a change. Returns whether a flag of the session went up or down."""
    session = Session.objects.for_grading().get(pk=word.session_id)
    CategoryWord.objects.filter(pk=word.pk).update(undone_at=timezone.now())
    has_changed = provenance.update_category(session, provenance.load_words(session))
    return has_changed and _save_and_settle(session)


def _save_and_settle(session: Session) -> bool:
    """Save a session's category, assess the session and its copies. Returns whether a flag went up or down."""
    session.save(update_fields=["category", "category_from"])
    assessed = assess(session, enqueue=False, alarms=False)
    return any([assessed.flagged, *(assess(copy, enqueue=False, alarms=False).flagged for copy in assessed.copies)])
