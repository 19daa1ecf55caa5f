"""Flags: sessions that a rule found implausible, put up for a person.

A machine's reward of a flagged session is in a stratum of its own, so whoever raises, clears or restores a flag has the
session settled again: its reward moves along.
"""

import datetime as dt

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from grading.models import Flag, Session
from grading.models.sessions import yours
from grading.monitoring.alarms import reopen_if_acknowledged
from grading.monitoring.flag_rule import FlagRule
from grading.monitoring.rewards import disagreement
from grading.monitoring.sessions import (
    claimed_above,
    contended,
    contested,
    impossible_pair,
    late_word,
    repeated,
    unreadable_log,
    unsteady_judge,
    unsupported_outcome,
)
from grading.reward import rewards
from grading.reward.rewards import settle

GRADED_BY_A_PERSON, DISMISSED = "a person graded it", "a person removed it from the queue"


FLAG_RULES: tuple[FlagRule, ...] = (
    impossible_pair,
    disagreement,
    contended,
    unreadable_log,
    repeated,
    unsupported_outcome,
    unsteady_judge,
    contested,
    claimed_above,
    late_word,
)


def inspect_flags(session: Session, now: dt.datetime) -> bool:
    """Flag the session where something about it is implausible, or clear the flag where it no longer is; whether any
    went up or down.

    A flag that cleared itself comes back where its reason does, and counts towards the alarm all the same. Settles the
    session where its flags changed.
    """
    flags = {flag.rule: flag for flag in session.flags.all()}
    grades = rewards.current_grades(session)
    changes = [_state(session, rule, flags.get(rule.id), rule.examine(session, grades, now)) for rule in FLAG_RULES]
    if any(changes):
        settle(session)
    return any(changes)


def _state(session: Session, rule: FlagRule, row: Flag | None, detail: str) -> bool:
    """Make the rule's flag say what holds; whether it went up or down."""
    if row is None:
        if detail:
            Flag.objects.create(session=session, rule=rule.id, detail=detail)
            reopen_if_acknowledged(rule.id)
        return bool(detail)
    if row.cleared_at is None:
        if not detail:
            Flag.objects.filter(pk=row.pk).update(cleared_at=timezone.now(), cleared_why=rule.settled)
        return not detail
    if detail and row.cleared_why == rule.settled:
        Flag.objects.filter(pk=row.pk).update(cleared_at=None, cleared_why="", detail=detail)
        return True
    return False


def clear_flags(session: Session, *, by: User, why: str = GRADED_BY_A_PERSON) -> int:
    """Take a session that a person graded, or dismissed, off the review list, with their name; settle it if it was."""
    open_flags = Flag.objects.open().filter(session=session)
    count = open_flags.update(cleared_at=timezone.now(), cleared_by=by, cleared_why=why)
    if count:
        settle(session)
    return count


def restore_flags(session: Session, *, why: str = GRADED_BY_A_PERSON) -> None:
    """Put back what a person's grade, or their dismissal, had cleared, and settle the session where there was any."""
    cleared = Flag.objects.filter(session=session, cleared_why=why)
    if cleared.update(cleared_at=None, cleared_by=None, cleared_why=""):
        settle(session)


def flagged_sessions() -> QuerySet[Flag]:
    """What waits for a person, newest first."""
    return Flag.objects.open().filter(yours()).select_related("session__agent", "session__category")
