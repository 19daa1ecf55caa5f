"""When the rules look: at every session and answer, now and then from the sweep, at night, and at each other."""

import datetime as dt
import logging
from collections.abc import Iterable, Mapping

from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from grading.busy import is_busy
from grading.models import Alarm, RuleRun, Session
from grading.monitoring.alarms import close, keep, put_name_on, state
from grading.monitoring.arms import drained_arm, lone_agent, silent_failure, starved_arm, unheard_arm, unused_decisions
from grading.monitoring.flag_rule import FlagRule, flagged
from grading.monitoring.flags import FLAG_RULES, GRADED_BY_A_PERSON, inspect_flags, restore_flags
from grading.monitoring.judges import (
    canary_changed,
    judge_out,
    monoculture,
    unattended,
    uncalibrated,
    unforeseen,
    unlike_levels,
    unresolving,
    wasted_judging,
)
from grading.monitoring.operation import (
    damaged_evidence,
    incomplete,
    missed_turns,
    no_room_left,
    notices_fail,
    program_stopped,
    review_waits,
    stalled_verdicts,
    sums_differ,
)
from grading.monitoring.rewards import collapse, drift
from grading.monitoring.rule import Finding, Rule, alarm_rule, stamp

logger = logging.getLogger(__name__)


GRACE = dt.timedelta(minutes=10)


@alarm_rule(
    id="A29",
    title="A rule has stopped running",
    means="Opens when a scheduled rule has missed two of its runs plus ten minutes.",
)
def silent_rule(now: dt.datetime) -> Iterable[Finding]:
    """A29. Who watches the watch."""
    for run in RuleRun.objects.order_by("rule"):
        silent = RULES.get(run.rule)
        if silent is not None and silent.every is not None and run.ran_at < now - 2 * silent.every - GRACE:
            yield Finding(
                about=silent.title,
                detail=f"“{silent.title}” last ran {stamp(run.ran_at)}. The sweep is not running, or the rule fails: "
                "check that worker and scheduler are up, and read the log.",
            )


RULES: dict[str, Rule] = {
    rule.id: rule
    for rule in (
        *FLAG_RULES,
        judge_out,
        wasted_judging,
        silent_failure,
        unheard_arm,
        collapse,
        drift,
        incomplete,
        monoculture,
        unforeseen,
        unresolving,
        unlike_levels,
        silent_rule,
        uncalibrated,
        review_waits,
        notices_fail,
        sums_differ,
        unattended,
        unused_decisions,
        lone_agent,
        no_room_left,
        stalled_verdicts,
        program_stopped,
        missed_turns,
        damaged_evidence,
        canary_changed,
        starved_arm,
        drained_arm,
    )
}


def inspect(session: Session, *, alarms: bool = True) -> bool:
    """Apply the rules to a freshly settled session, in the caller's transaction; whether a flag went up or down.

    `alarms`: and let those say what holds now; else whoever calls does so later.
    """
    flagged = inspect_flags(session, timezone.now())
    if alarms:
        refresh()
    return flagged


def reopen_flags(session: Session, *, why: str = GRADED_BY_A_PERSON) -> None:
    """Put back what a person's grade (or dismissal) had cleared, now that it was undone; the rules then look again."""
    restore_flags(session, why=why)
    inspect(session)


def refresh(now: dt.datetime | None = None) -> None:
    """Let alarms say what holds now. A few indexed queries: called at intake and at each answer of a judge."""
    now = now or timezone.now()
    flags = flagged(now)
    rules = [rule for rule in RULES.values() if rule.every is None]
    state([(r, r.find_in(flags.get(r.id, ())) if isinstance(r, FlagRule) else r.find(now)) for r in rules], now)


def acknowledge(alarm: Alarm, user: User) -> bool:
    """Put a name on an alarm, which closes one about a rate. False where somebody else was first."""
    rule = RULES.get(alarm.rule)
    with transaction.atomic():
        is_first = put_name_on(alarm, user)
        if is_first and isinstance(rule, FlagRule) and rule.is_rate:
            close(alarm, rule)
    return is_first


def refresh_afterwards(*, flagged: bool) -> None:
    """`refresh` after a committed transaction that moved a flag; without one the next sweep does it, within seconds.

    The next sweep does it, too, where other writers keep the database busy for too long.
    """
    if not flagged:
        return
    try:
        refresh()
    except DatabaseError as error:
        if connection.in_atomic_block or not is_busy(error):
            raise
        logger.warning("alarms are left to the next sweep: %s", error)


def watch(now: dt.datetime | None = None) -> None:
    """Let the rules look whose turn it is, then the others. Called by the sweep.

    Of several sweeps one takes a rule's turn. One that fails has not looked, and stops none of the others.
    """
    now = now or timezone.now()
    ran = dict(RuleRun.objects.values_list("rule", "ran_at"))
    for rule in RULES.values():
        if rule.nightly or rule.is_attended or not has_turn(rule, ran, now):
            continue
        try:
            with transaction.atomic():
                if take_turn(rule, ran, now):
                    keep([rule], now)
        except Exception:
            logger.exception("rule %s failed; it will try again at the next sweep", rule.id)
    of_removed_rules = Alarm.objects.filter(resolved_at=None).exclude(rule__in=RULES)
    if of_removed_rules.exists():  # an update takes the write lock even if it changes nothing
        of_removed_rules.update(resolved_at=now)
    refresh(now)


def has_turn(rule: Rule, ran: Mapping[str, dt.datetime], now: dt.datetime) -> bool:
    """Whether a rule that looks now and then has not for long enough. One that is said to have looked later than now
    was looking while the clock was wrong.
    """
    return rule.every is not None and not (rule.id in ran and now - rule.every < ran[rule.id] <= now)


def take_turn(rule: Rule, ran: Mapping[str, dt.datetime], now: dt.datetime) -> bool:
    """Whether the turn is ours, and nobody else's who looks beside us."""
    if rule.id in ran:
        return RuleRun.objects.filter(rule=rule.id, ran_at=ran[rule.id]).update(ran_at=now) == 1
    return RuleRun.objects.get_or_create(rule=rule.id, defaults={"ran_at": now})[1]


def watch_at_night(now: dt.datetime | None = None) -> None:
    """Let the nightly rules look, outside a transaction: they may take long.

    One that fails has not looked, and stops none of the others.
    """
    now = now or timezone.now()
    for rule in RULES.values():
        if rule.nightly:
            try:
                keep([rule], now)
            except Exception:
                logger.exception("rule %s failed; it will try again tomorrow night", rule.id)
            else:
                RuleRun.objects.update_or_create(rule=rule.id, defaults={"ran_at": now})
