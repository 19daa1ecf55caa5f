"""Alarms: what a rule found, open until it no longer holds; acknowledged by a person, by name."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from grading.models import Alarm
from grading.monitoring import outbox
from grading.monitoring.rule import Finding, Rule


def open_alarms() -> QuerySet[Alarm]:
    return Alarm.objects.filter(resolved_at=None).select_related("acknowledged_by")


def put_name_on(alarm: Alarm, user: User) -> bool:
    """Put a name on an alarm. False where somebody else was first."""
    now = timezone.now()
    mine = Alarm.objects.filter(pk=alarm.pk, acknowledged_at=None)
    return bool(mine.update(acknowledged_at=now, acknowledged_by=user))


def close(alarm: Alarm, rule: Rule) -> None:
    """End an open alarm now, and tell whoever was told of it."""
    now = timezone.now()
    with transaction.atomic():
        if Alarm.objects.filter(pk=alarm.pk, resolved_at=None).update(resolved_at=now):
            outbox.resolved(alarm, rule, now)


def reopen_if_acknowledged(rule: str) -> None:
    """A new case after an acknowledgement is a new alarm: what was acknowledged did not stop it."""
    Alarm.objects.filter(rule=rule, resolved_at=None).exclude(acknowledged_at=None).update(resolved_at=timezone.now())


def keep(rules: Iterable[Rule], now: dt.datetime) -> None:
    """Run these rules, and let their alarms say what holds now."""
    state([(rule, rule.find(now)) for rule in rules], now)


def state(
    results: Sequence[tuple[Rule, Iterable[Finding]]], now: dt.datetime, *, leave: Collection[tuple[str, str]] = ()
) -> None:
    """Open, reword and resolve these rules' alarms so that they say what was found: at most one for each thing. Those
    to `leave`, by rule and what they are about, stay as they are: nobody knows.
    """
    by_id = {rule.id: rule for rule, _findings in results}
    details = {(rule.id, finding.about): finding.detail for rule, findings in results for finding in findings}
    open_by_key = {(alarm.rule, alarm.about): alarm for alarm in Alarm.objects.filter(rule__in=by_id, resolved_at=None)}
    for (rule, about), detail in details.items():
        alarm = open_by_key.pop((rule, about), None)
        if alarm is None:
            with transaction.atomic():  # the alarm and the news of it, both or neither
                alarm, is_new = Alarm.objects.get_or_create(
                    rule=rule, about=about, resolved_at=None, defaults={"detail": detail}
                )
                if is_new:
                    outbox.opened(alarm, by_id[rule])
        elif alarm.detail != detail:
            Alarm.objects.filter(pk=alarm.pk).update(detail=detail)
    for alarm in open_by_key.values():
        if (alarm.rule, alarm.about) in leave:
            continue
        with transaction.atomic():
            if Alarm.objects.filter(pk=alarm.pk, resolved_at=None).update(resolved_at=now):
                outbox.resolved(alarm, by_id[alarm.rule], now)
