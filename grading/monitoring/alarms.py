"""Alarms: a rule's findings as rows, open until the rule no longer finds them, acknowledged by a person."""

import datetime as dt
from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from grading.models import Alarm
from grading.monitoring import outbox
from grading.monitoring.rule import Finding, Rule


def open_alarms() -> QuerySet[Alarm]:
    return Alarm.objects.filter(resolved_at=None).select_related("acknowledged_by")


def resolve(alarm: Alarm, rule: Rule, now: dt.datetime) -> None:
    """Resolve an open alarm, and notify whoever was notified of it."""
    with transaction.atomic():
        if Alarm.objects.filter(pk=alarm.pk, resolved_at=None).update(resolved_at=now):
            outbox.queue_resolved(alarm, rule, now)


def reopen_if_acknowledged(rule: str, subjects: Collection[str]) -> None:
    """Close the rule's acknowledged alarms about these subjects, so that a new case opens a new alarm."""
    acknowledged = Alarm.objects.filter(rule=rule, resolved_at=None).exclude(acknowledged_at=None)
    acknowledged.filter(about__in=subjects).update(resolved_at=timezone.now())


def run_rules(rules: Iterable[Rule], now: dt.datetime) -> None:
    """Run these rules and update their alarms."""
    open_alarms = list(Alarm.objects.filter(resolved_at=None))
    for rule in rules:
        update_alarms(rule, open_alarms, rule.find(now), now)


def update_alarms(
    rule: Rule,
    open_alarms: Iterable[Alarm],
    findings: Iterable[Finding],
    now: dt.datetime,
    *,
    unknown: Collection[str] = (),
) -> None:
    """Open, reword and resolve a rule's alarms, so that each subject of its findings has one open alarm.

    Open alarms about `unknown` subjects are not resolved. `open_alarms` must contain the rule's open alarms; those of
    other rules are ignored.
    """
    details = {finding.about: finding.detail for finding in findings}
    open_by_subject = {alarm.about: alarm for alarm in open_alarms if alarm.rule == rule.id}
    for about, detail in details.items():
        alarm = open_by_subject.pop(about, None)
        if alarm is None:
            with transaction.atomic():  # the alarm and its notices, both or neither
                alarm, is_new = Alarm.objects.get_or_create(
                    rule=rule.id, about=about, resolved_at=None, defaults={"detail": detail}
                )
                if is_new:
                    outbox.queue_opened(alarm, rule)
        elif alarm.detail != detail:
            Alarm.objects.filter(pk=alarm.pk).update(detail=detail)
    for about, alarm in open_by_subject.items():
        if about not in unknown:
            resolve(alarm, rule, now)
