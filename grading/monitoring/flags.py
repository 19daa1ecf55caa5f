"""Flags: sessions that a rule found implausible, to be reviewed by a person.

A machine's reward of a flagged session is in a stratum of its own, so whoever raises, clears or restores a flag settles
the session again.
"""

import datetime as dt

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from grading.models import Flag, Session
from grading.models.sessions import yours
from grading.monitoring.alarms import reopen_if_acknowledged
from grading.monitoring.flag_rule import UNKNOWN_HARNESS, FlagRule
from grading.monitoring.rule import RULES
from grading.reward import rewards
from grading.reward.rewards import settle

GRADED_BY_A_PERSON, DISMISSED = "a person graded it", "a person removed it from the queue"


def inspect_flags(session: Session, now: dt.datetime) -> bool:
    """Apply the flag rules: flag the session if a rule finds it implausible, and clear flags whose reason is gone.

    A flag that cleared itself is raised again if its reason is back. Settles the session if its flags changed. Returns
    whether they did.
    """
    flags = {flag.rule: flag for flag in session.flags.all()}
    grades = rewards.current_grades(session)
    rules = [rule for rule in RULES.values() if isinstance(rule, FlagRule)]
    changes = [_update_flag(session, rule, flags.get(rule.id), rule.examine(session, grades, now)) for rule in rules]
    if any(changes):
        settle(session)
    return any(changes)


def _update_flag(session: Session, rule: FlagRule, flag: Flag | None, detail: str) -> bool:
    """Raise or clear the rule's flag so that it agrees with `detail`, what the rule says about the session now.

    Returns whether the flag changed.
    """
    if flag is None:
        if detail:
            Flag.objects.create(session=session, rule=rule.id, detail=detail)
            harness = session.harness.name if session.harness else UNKNOWN_HARNESS
            reopen_if_acknowledged(rule.id, ("", session.agent.name, harness))
        return bool(detail)
    if flag.cleared_at is None:
        if not detail:
            Flag.objects.filter(pk=flag.pk).update(cleared_at=timezone.now(), cleared_why=rule.settled)
        return not detail
    if detail and flag.cleared_by_id is None:  # no person cleared it
        Flag.objects.filter(pk=flag.pk).update(cleared_at=None, cleared_why="", detail=detail)
        return True
    return False


def clear_flags(session: Session, *, by: User, why: str = GRADED_BY_A_PERSON) -> int:
    """Clear the open flags of a session that a person graded or dismissed, and settle it if it had any.

    Returns the number of these flags.
    """
    open_flags = Flag.objects.open().filter(session=session)
    count = open_flags.update(cleared_at=timezone.now(), cleared_by=by, cleared_why=why)
    if count:
        settle(session)
    return count


def restore_flags(session: Session, *, why: str = GRADED_BY_A_PERSON) -> None:
    """Reopen the flags that a person's grade or dismissal had cleared, and settle the session if there were any."""
    cleared = Flag.objects.filter(session=session, cleared_why=why)
    if cleared.update(cleared_at=None, cleared_by=None, cleared_why=""):
        settle(session)


def flagged_sessions() -> QuerySet[Flag]:
    """The open flags, newest first."""
    return Flag.objects.open().filter(yours()).select_related("session__agent", "session__category")
