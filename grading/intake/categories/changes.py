"""What people do to categories: of one session, of many, by the rules; and undoing it, exactly.

A change is a row that says what is to be done. Some is done at once and the rest by a worker, a few sessions in each
transaction; what a change did is undone the same way. Nothing of it asks a judge.
"""

import uuid
from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from bandit.models import Arm
from grading import monitoring, wakeup
from grading.evidence import ownership
from grading.intake.assessment import assess
from grading.intake.categories import edits, given, reach, reading
from grading.models import CategoryChange, CategoryRule, CategoryWord, Session, SessionTraits
from grading.models.sessions import CategoryOrigin
from grading.signals.traits import Traits

# So many by hand at once; so many while somebody waits; so many in one transaction, and in one go of a worker.
MOST, SYNC_LIMIT, CHUNK, BATCH = 200, 100, 20, 400
# So many logs from before are read in one go.
LOGS = 60


class ChangeRefused(ValueError):
    """Nothing was changed; the message says why, and what to do."""


def set_by_hand(ids: Iterable[int], category: Arm, by: User, *, reason: str = "", name: str = "") -> CategoryChange:
    """Say, as a person, that these sessions are of that category. Sent again under the same name it changes nothing.

    Raises ChangeRefused for none, for too many, and for an arm that is none of the category bandit's.
    """
    wanted = sorted(set(ids))
    if category.bandit.name != "category":
        raise ChangeRefused(f"{category} is no category.")
    if not 0 < len(wanted) <= MOST:
        raise ChangeRefused(f"Choose from 1 to {MOST} sessions; {len(wanted)} were chosen.")
    known = Session.objects.filter(pk__in=wanted).order_by("pk").values_list("pk", flat=True)
    why = reason.strip()[:400]
    rows: list[list[object]] = [[pk, category.current.pk, None, why] for pk in known]
    return _begin(CategoryOrigin.PERSON, rows, by, reason=reason, name=name)


def apply_rules(by: User, *, others: bool = False, expected: int | None = None, name: str = "") -> CategoryChange:
    """Let the rules that are on say of what category the sessions without one are; with `others` also of those that
    have one by a rule or by the agent's word. ChangeRefused where they catch none, or not as many as `expected`.
    """
    rows = CategoryRule.objects.select_related("category__merged_into")
    reaches = [reach.uncategorised(rows), *([reach.others(rows)] if others else [])]
    todo = reach.todo(reaches)
    if expected is not None and expected != len(todo):
        raise ChangeRefused(
            f"The rules catch {len(todo)} sessions now, and {expected} when you looked. Nothing was set: look again."
        )
    if not todo and not CategoryChange.objects.filter(name=name or uuid.uuid4()).exists():
        raise ChangeRefused("The rules catch no session, so nothing was set.")
    return _begin(CategoryOrigin.RULE, todo, by, name=name)


def undo(change: CategoryChange, by: User, reason: str = "") -> None:
    """Take back what a change said: what held before it holds again. ChangeRefused where that was done before.

    Without an edit of the rules, the list is what the other edits make of it, and the sessions that came since have the
    category that these rules would have given them.
    """
    with transaction.atomic():
        ownership.lock()
        held = CategoryChange.objects.select_for_update().get(pk=change.pk)
        if held.undone_at is not None:
            raise ChangeRefused("This was undone already; nothing was changed.")
        held.undone_at, held.undone_by, held.undone_why, held.todo = timezone.now(), by, reason.strip(), []
        if held.is_edit:
            held.todo = edits.asked_since(held.created_at)
        held.save(update_fields=["undone_at", "undone_by", "undone_why", "todo"])
        if held.is_edit:
            edits.restore()
    _go_on(held)
    change.refresh_from_db()


def unfinished() -> list[CategoryChange]:
    """The changes of which something is still to be done or undone, the oldest first."""
    standing = CategoryWord.objects.standing().filter(change=OuterRef("pk"))
    open_ = ~Q(todo=[]) | (Q(undone_at__isnull=False) & Exists(standing))
    return list(CategoryChange.objects.filter(open_).order_by("pk"))


def catch_up(limit: int = BATCH) -> int:
    """Do what is left of changes, and read logs from before for the rules; how many sessions that were."""
    done = 0
    for change in unfinished():
        done += _work(change, limit - done)
        if done >= limit:
            return done
    return done + reading.catch_up(LOGS)


def _begin(
    origin: CategoryOrigin, todo: list[list[object]], by: User, *, reason: str = "", name: str = ""
) -> CategoryChange:
    said = {"by": by, "origin": origin, "reason": reason.strip(), "todo": todo, "total": len(todo)}
    change, created = CategoryChange.objects.get_or_create(name=name or uuid.uuid4(), defaults=said)
    if created:
        _go_on(change)
    return change


def _go_on(change: CategoryChange) -> None:
    """Do some of it while somebody waits, and have the rest done."""
    if _work(change, SYNC_LIMIT) >= SYNC_LIMIT:
        wakeup.publish("grading.tasks.categorise")


def _work(change: CategoryChange, limit: int) -> int:
    """Do, or undo, up to `limit` sessions of a change; how many. In transactions of a few each."""
    done, flagged = 0, False
    while done < limit:
        with transaction.atomic():
            ownership.lock()
            held = CategoryChange.objects.select_for_update().get(pk=change.pk)
            if held.undone_at is not None:
                words = list(held.words.standing().order_by("pk")[: min(CHUNK, limit - done)])
                again, held.todo = held.todo[: min(CHUNK, limit - done)], held.todo[min(CHUNK, limit - done) :]
                flagged |= sum([*map(_take_back, words), *map(_ask_again, again)]) > 0
                held.save(update_fields=["todo"])
                some = len(words) + len(again)
            else:
                rows = held.todo[: min(CHUNK, limit - done)]
                flagged |= sum(_say(held, *row) for row in rows) > 0
                held.todo = held.todo[len(rows) :]
                held.save(update_fields=["todo"])
                some = len(rows)
        done += some
        change.todo = held.todo
        if not some:
            break
    if done:
        monitoring.refresh_afterwards(flagged=flagged)
    return done


def _say(change: CategoryChange, pk: int, arm: int, rule: int | None, why: str) -> bool:
    """Say it of one session; whether a flag of it went up or down. A rule doesn't speak against a stronger word that
    came meanwhile.
    """
    session = Session.objects.for_grading().filter(pk=pk).first()
    category = Arm.objects.select_related("merged_into").filter(pk=arm).first()
    if session is None or category is None:
        return False
    origin = CategoryOrigin(change.origin)
    by = change.by if origin is CategoryOrigin.PERSON else None
    held = None if rule is None else CategoryRule.objects.filter(pk=rule).first()
    said = given.say(session, origin, category.current, why=why, by=by, rule=held, change=change)
    return said and _settled(session)


def _take_back(word: CategoryWord) -> bool:
    session = Session.objects.for_grading().get(pk=word.session_id)
    CategoryWord.objects.filter(pk=word.pk).update(undone_at=timezone.now())
    return given.hold(session, given.words_of(session)) and _settled(session)


def _ask_again(pk: int) -> bool:
    session, traits = Session.objects.for_grading().filter(pk=pk).first(), SessionTraits.objects.filter(pk=pk).first()
    if session is None or traits is None:
        return False
    return given.ask_again(session, Traits.from_dict(traits.data)) and _settled(session)


def _settled(session: Session) -> bool:
    """Save a session's category and settle it as what it is now; whether a flag of it went up or down."""
    session.save(update_fields=["category", "category_from"])
    assessed = assess(session, ask=False, alarms=False)
    return any([assessed.flagged, *(assess(copy, ask=False, alarms=False).flagged for copy in assessed.copies)])
