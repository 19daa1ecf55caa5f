"""Flags: sessions that a rule found implausible, to be reviewed by a person.

Machine rewards of flagged sessions form a stratum of their own. So each function that raises, clears or restores a flag
settles the session again.
"""

import datetime as dt

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
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

    A flag that cleared itself is raised again if its reason is back. If a flag changed, settles the session and returns
    True.
    """
    flags = {flag.rule: flag for flag in session.flags.all()}
    grades = rewards.current_grades(session)
    rules = [rule for rule in RULES.values() if isinstance(rule, FlagRule)]
    changes = [_update_flag(session, rule, flags.get(rule.id), rule.examine(session, grades, now)) for rule in rules]
    if any(changes):
        settle(session)
    return any(changes)


def _update_flag(session: Session, rule: FlagRule, flag: Flag | None, detail: str) -> bool:
    """Raise or clear the rule's flag. `detail` is what the rule finds implausible now; empty if nothing is.

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
    was_cleared_by_person = flag.cleared_by_id is not None
    if detail and not was_cleared_by_person:
        Flag.objects.filter(pk=flag.pk).update(cleared_at=None, cleared_why="", detail=detail)
        return True
    return False


def clear_flags(session: Session, *, by: User, why: str = GRADED_BY_A_PERSON) -> int:
    """Clear the open flags of a session that a person graded or dismissed. If it had any, settle it again.

    Returns how many were cleared.
    """
    open_flags = Flag.objects.open().filter(session=session)
    count = open_flags.update(cleared_at=timezone.now(), cleared_by=by, cleared_why=why)
    if count:
        settle(session)
    return count


def restore_flags(session: Session, *, why: str = GRADED_BY_A_PERSON, only: Q | None = None) -> None:
    """Reopen the flags that were cleared for the reason `why`, or `only` those of them that meet this condition.

    If there were any, settle the session again.
    """
    cleared = Flag.objects.filter(only or Q(), session=session, cleared_why=why)
    if cleared.update(cleared_at=None, cleared_by=None, cleared_why=""):
        settle(session)


def open_flags_newest_first() -> QuerySet[Flag]:
    """The open flags of the site's own sessions, with session, agent and category."""
    return Flag.objects.open().filter(yours()).select_related("session__agent", "session__category")
