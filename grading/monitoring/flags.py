"""Flags: sessions that a rule found implausible, put up for a person.

A machine's reward of a flagged session is in a stratum of its own, so whoever raises, clears or restores a flag has the
session settled again: its reward moves along.
"""

import datetime as dt
from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from grading.core.decide import current, value_of
from grading.core.vocabulary import Source
from grading.models import Artifact, Flag, Session
from grading.models.evidence import ArtifactKind, Origin
from grading.monitoring.alarms import reopen_if_acknowledged
from grading.monitoring.rule import Finding, Rule
from grading.rewards import policy, settle, views

GRADED_BY_A_PERSON, DISMISSED = "a person graded it", "a person took it off the queue"
ACCOUNTED_FOR = "a real grade accounts for it now"


class ImpossiblePair(Rule):
    """The founding rule: no real grade although independent work exists."""

    id = "A1"
    title = "Pull request or commit, yet no real grade"
    means = (
        "Raises at the third session in seven days that left an independent commit or pull request, yet no judge, "
        "person or trajectory above the floor graded it. It looks at the source of a grade, never at its value."
    )
    window = dt.timedelta(days=7)
    allowed = 2

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        count = recent_flags(self.id, now).count()
        if count > self.allowed:
            yield Finding(
                detail=f"{count} sessions in seven days left a commit or pull request that no real grade accounts for; "
                f"{self.allowed} would be usual. Something in the grading pipeline is broken: review them."
            )


def inspect_flags(session: Session) -> None:
    """Flag the session where its rewards and its work contradict each other, or clear the flag where not any more.

    A flag clears itself once a real grade accounts for the work, and comes back where that grade goes; it counts
    towards the alarm all the same. Settles the session where its flags changed.
    """
    if _has_real_grade(session):
        open_flags = Flag.objects.open().filter(session=session, rule=ImpossiblePair.id)
        changed = open_flags.update(cleared_at=timezone.now(), cleared_why=ACCOUNTED_FOR) > 0
    else:
        proof = independent_work(session)
        why = f"{proof}, yet no judge, person or trajectory above the floor graded it"
        changed = bool(proof) and _flag(session, ImpossiblePair.id, why)
    if changed:
        settle(session)


def independent_work(session: Session) -> str:
    """The commits and pull requests that the caller observed itself, in words; empty where there are none."""
    kinds = Artifact.objects.filter(session=session, origin=Origin.FACTS).values_list("kind", flat=True)
    counts = {kind: sum(1 for seen in kinds if seen == kind) for kind in set(kinds)}
    parts = [
        _plural(counts.get(ArtifactKind.PULL_REQUEST, 0), "pull request"),
        _plural(counts.get(ArtifactKind.COMMIT, 0), "commit"),
    ]
    return " and ".join(part for part in parts if part)


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
    return Flag.objects.open().select_related("session__agent", "session__category")


def recent_flags(rule: str, now: dt.datetime) -> QuerySet[Flag]:
    """The rule's flags on sessions that ended in its window (event time), cleared or not."""
    return Flag.objects.filter(rule=rule, session__ended_at__gt=now - ImpossiblePair.window)


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


def _flag(session: Session, rule: str, detail: str) -> bool:
    """Raise the rule's flag, or again where it had cleared itself; whether it was not up before."""
    row, created = Flag.objects.get_or_create(session=session, rule=rule, defaults={"detail": detail})
    if created:
        reopen_if_acknowledged(rule)
        return True
    mine = Flag.objects.filter(pk=row.pk, cleared_why=ACCOUNTED_FOR)
    return mine.update(cleared_at=None, cleared_why="", detail=detail) > 0
