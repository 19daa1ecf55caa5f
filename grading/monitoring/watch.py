"""When rules run: at each settled session and judge's answer, from the sweep, and at night."""

import datetime as dt
import logging
from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from grading.busy import is_busy
from grading.models import Alarm, RuleRun, Session
from grading.monitoring.alarms import resolve, run_rules, update_alarms
from grading.monitoring.flag_rule import FlagRule, recent_flags
from grading.monitoring.flags import GRADED_BY_A_PERSON, inspect_flags, restore_flags
from grading.monitoring.rule import RULES, Rule

logger = logging.getLogger(__name__)


def inspect_session(session: Session, *, alarms: bool = True) -> bool:
    """Apply the flag rules to a freshly settled session, in the caller's transaction. Returns whether a flag changed.

    `alarms`: whether to update the alarms now; otherwise the caller does so later.
    """
    flags_changed = inspect_flags(session, timezone.now())
    if alarms:
        refresh_alarms()
    return flags_changed


def reopen_flags(session: Session, *, why: str = GRADED_BY_A_PERSON, only: Q | None = None) -> None:
    """Put back the flags that a person's grade (or dismissal) had cleared, after it was undone.

    `only`: a condition on these flags.
    """
    restore_flags(session, why=why, only=only)
    inspect_session(session)


def refresh_alarms(now: dt.datetime | None = None) -> None:
    """Run the rules without an interval. Of flag rules, only the summaries of their flags are computed.

    Called at each intake and at each answer of a judge, so these rules make only a few indexed queries.
    """
    now = now or timezone.now()
    flags = recent_flags(now)
    open_alarms = list(Alarm.objects.filter(resolved_at=None))
    for rule in RULES.values():
        if rule.every is None:
            findings = rule.summarize_flags(flags.get(rule.id, ())) if isinstance(rule, FlagRule) else rule.find(now)
            update_alarms(rule, open_alarms, findings, now)


def acknowledge(alarm: Alarm, user: User) -> bool:
    """Acknowledge an alarm. If its rule is about a rate, this closes the alarm. False if somebody else was first."""
    rule = RULES.get(alarm.rule)
    now = timezone.now()
    with transaction.atomic():
        unacknowledged = Alarm.objects.filter(pk=alarm.pk, acknowledged_at=None)
        is_first = bool(unacknowledged.update(acknowledged_at=now, acknowledged_by=user))
        if is_first and isinstance(rule, FlagRule) and rule.is_rate:
            resolve(alarm, rule, now)
    return is_first


def refresh_afterwards(*, flagged: bool) -> None:
    """Call `refresh_alarms` if the transaction that was just committed changed a flag (`flagged`).

    If it did not, or if other writers keep the database busy for too long, the next sweep does so in a few seconds.
    """
    if not flagged:
        return
    try:
        refresh_alarms()
    except DatabaseError as error:
        if connection.in_atomic_block or not is_busy(error):
            raise
        logger.warning("alarms are left to the next sweep: %s", error)


def watch(now: dt.datetime | None = None) -> None:
    """Run the rules whose interval has passed, then those without one. Called by the sweep.

    If several sweeps run at once, only one runs each rule. A rule that fails doesn't stop the others.
    """
    now = now or timezone.now()
    ran = dict(RuleRun.objects.values_list("rule", "ran_at"))
    for rule in RULES.values():
        if rule.nightly or rule.is_attended or not is_due(rule, ran, now):
            continue
        try:
            with transaction.atomic():
                if claim_run(rule, ran, now):
                    run_rules([rule], now)
        except Exception:
            logger.exception("rule %s failed; it will try again at the next sweep", rule.id)
    of_removed_rules = Alarm.objects.filter(resolved_at=None).exclude(rule__in=RULES)
    if of_removed_rules.exists():  # an update takes the write lock even if it changes nothing
        of_removed_rules.update(resolved_at=now)
    refresh_alarms(now)


def is_due(rule: Rule, ran: Mapping[str, dt.datetime], now: dt.datetime) -> bool:
    """Whether a rule's interval has passed since it last ran. A run in the future is ignored: the clock was wrong."""
    if rule.every is None:
        return False
    ran_lately = rule.id in ran and now - rule.every < ran[rule.id] <= now
    return not ran_lately


def claim_run(rule: Rule, ran: Mapping[str, dt.datetime], now: dt.datetime) -> bool:
    """Record that the rule runs now. False if another process has recorded a run since `ran` was read."""
    if rule.id in ran:
        return RuleRun.objects.filter(rule=rule.id, ran_at=ran[rule.id]).update(ran_at=now) == 1
    _run, is_first = RuleRun.objects.get_or_create(rule=rule.id, defaults={"ran_at": now})
    return is_first


def watch_at_night(now: dt.datetime | None = None) -> None:
    """Run the nightly rules, outside a transaction. If one fails, the others run nevertheless."""
    now = now or timezone.now()
    for rule in RULES.values():
        if rule.nightly:
            try:
                run_rules([rule], now)
            except Exception:
                logger.exception("rule %s failed; it will try again tomorrow night", rule.id)
            else:
                RuleRun.objects.update_or_create(rule=rule.id, defaults={"ran_at": now})
