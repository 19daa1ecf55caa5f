"""Is the reward true? Validity rules flag sessions on the spot and raise alarms; coverage is another number (L10)."""

import datetime as dt

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from grading.core.decide import current, value_of
from grading.core.vocabulary import Reason, Source
from grading.models import Alarm, Artifact, Flag, Quota, Session
from grading.models.evidence import ArtifactKind, Origin
from grading.rewards import policy, views

# A1, the founding rule: no real grade although independent work exists. More than two in seven days is an alarm.
IMPOSSIBLE_PAIR = "A1"
IMPOSSIBLE_PAIR_ALLOWED = 2
WINDOW = dt.timedelta(days=7)
# A2: the judge is out.
JUDGE_OUT = "A2"

RULES = {
    IMPOSSIBLE_PAIR: "Pull request or commit, yet no real grade",
    JUDGE_OUT: "The judge is out",
}


def inspect(session: Session) -> None:
    """Apply the rules to a freshly settled session, in the caller's transaction.

    A flag clears itself once a real grade accounts for the work; it still counts towards the alarm.
    """
    if _has_real_grade(session):
        open_flags = Flag.objects.open().filter(session=session, rule=IMPOSSIBLE_PAIR)
        open_flags.update(cleared_at=timezone.now(), cleared_why="a real grade accounts for it now")
    elif proof := independent_work(session):
        _flag(session, IMPOSSIBLE_PAIR, f"{proof}, yet no judge, person or trajectory above the floor graded it")
    refresh()


def independent_work(session: Session) -> str:
    """The commits and pull requests that the caller observed itself, in words; empty where there are none."""
    kinds = Artifact.objects.filter(session=session, origin=Origin.FACTS).values_list("kind", flat=True)
    counts = {kind: sum(1 for seen in kinds if seen == kind) for kind in set(kinds)}
    parts = [
        _plural(counts.get(ArtifactKind.PULL_REQUEST, 0), "pull request"),
        _plural(counts.get(ArtifactKind.COMMIT, 0), "commit"),
    ]
    return " and ".join(part for part in parts if part)


def _plural(count: int, noun: str) -> str:
    return "" if count == 0 else f"{count} {noun}" + ("" if count == 1 else "s")


def _has_real_grade(session: Session) -> bool:
    """Conditions on the source, not the value: an honest judge may say .1 of a session with commits."""
    holds = current(views(session.grades.chain()))
    trajectory = value_of(holds, Source.TRAJECTORY)
    trusted = (Source.JUDGE, Source.HUMAN)
    return any(source in holds and holds[source].is_verdict for source in trusted) or (
        trajectory is not None and trajectory > policy().threshold
    )


def _flag(session: Session, rule: str, detail: str) -> None:
    _row, created = Flag.objects.get_or_create(session=session, rule=rule, defaults={"detail": detail})
    if created:
        _reopen_if_acknowledged(rule)


GRADED_BY_A_PERSON = "a person graded it"


def clear_flags(session: Session, *, by: User) -> int:
    """Take a session that a person graded off the review list, with their name."""
    open_flags = Flag.objects.open().filter(session=session)
    return open_flags.update(cleared_at=timezone.now(), cleared_by=by, cleared_why=GRADED_BY_A_PERSON)


def reopen_flags(session: Session) -> None:
    """Put back what a person's grade had cleared, now that it was undone; the rules then look again."""
    cleared = Flag.objects.filter(session=session, cleared_why=GRADED_BY_A_PERSON)
    cleared.update(cleared_at=None, cleared_by=None, cleared_why="")
    inspect(session)


def flagged_sessions() -> QuerySet[Flag]:
    """What waits for a person, newest first."""
    return Flag.objects.open().select_related("session__agent", "session__category")


def recent_flags(rule: str, now: dt.datetime) -> QuerySet[Flag]:
    """The rule's flags on sessions that ended in the last seven days (event time), cleared or not."""
    return Flag.objects.filter(rule=rule, session__ended_at__gt=now - WINDOW)


def refresh() -> None:
    """Open and resolve alarms so that they say what holds now. Cheap; called at intake and by the sweep."""
    now = timezone.now()
    count = recent_flags(IMPOSSIBLE_PAIR, now).count()
    _set_alarm(
        IMPOSSIBLE_PAIR,
        active=count > IMPOSSIBLE_PAIR_ALLOWED,
        detail=f"{count} sessions in seven days left a commit or pull request that no real grade accounts for; "
        f"{IMPOSSIBLE_PAIR_ALLOWED} would be usual. Something in the grading pipeline is broken: review them.",
    )
    out = Quota.objects.out().order_by("pk").first()
    _set_alarm(JUDGE_OUT, active=out is not None, detail="" if out is None else _outage(out))


def _outage(quota: Quota) -> str:
    words = Reason(quota.reason).words or "The judge cannot be asked"
    until = "until it is put right" if quota.until is None else f"until {quota.until:%-d %b %H:%M} UTC"
    return f"{words}, since {quota.changed_at:%-d %b %H:%M} UTC, {until}. New rewards stay provisional. {quota.detail}"


def _set_alarm(rule: str, *, active: bool, detail: str) -> None:
    """At most one open alarm a rule, saying what holds now; resolved once the rule no longer holds."""
    alarm = Alarm.objects.filter(rule=rule, resolved_at=None).first()
    if alarm is None:
        if active:
            Alarm.objects.get_or_create(rule=rule, resolved_at=None, defaults={"detail": detail})
    elif not active:
        Alarm.objects.filter(pk=alarm.pk).update(resolved_at=timezone.now())
    elif alarm.detail != detail:
        Alarm.objects.filter(pk=alarm.pk).update(detail=detail)


def _reopen_if_acknowledged(rule: str) -> None:
    """A new case after an acknowledgement is a new alarm: what was acknowledged did not stop it."""
    Alarm.objects.filter(rule=rule, resolved_at=None).exclude(acknowledged_at=None).update(resolved_at=timezone.now())


def open_alarms() -> QuerySet[Alarm]:
    return Alarm.objects.filter(resolved_at=None).select_related("acknowledged_by")


def acknowledge(alarm: Alarm, user: User) -> bool:
    """Put a name on an alarm. False where somebody else was first."""
    with transaction.atomic():
        return bool(
            Alarm.objects.filter(pk=alarm.pk, acknowledged_at=None).update(
                acknowledged_at=timezone.now(), acknowledged_by=user
            )
        )
