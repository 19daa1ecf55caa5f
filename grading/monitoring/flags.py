"""Flags: sessions that a rule found implausible, put up for a person.

A machine's reward of a flagged session is in a stratum of its own, so whoever raises, clears or restores a flag has the
session settled again: its reward moves along.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from grading.evidence import material
from grading.models import Flag, Session
from grading.models.sessions import yours
from grading.monitoring.alarms import reopen_if_acknowledged
from grading.monitoring.disagreement import Disagreement
from grading.monitoring.doubts import ClaimedAbove, Contested, LateWord, Repeated, UnsteadyJudge
from grading.monitoring.flag_rule import Flagged, FlagRule, is_too_often, too_often_by_agent, total
from grading.monitoring.rule import Finding, Severity
from grading.monitoring.ungraded import ImpossiblePair
from grading.reward import rewards
from grading.reward.decide import CurrentGrades
from grading.reward.rewards import settle
from grading.vocabulary import NO_REWARD, Reason, Source

GRADED_BY_A_PERSON, DISMISSED = "a person graded it", "a person removed it from the queue"
SHOWN = 5


class Contended(FlagRule):
    """Two agents claim one thing. The first receipt holds; people look at both."""

    id = "A34"
    title = "Another agent’s work is claimed"
    means = (
        "Opens at the third session in seven days that claims a commit, pull request or log already claimed by "
        "another agent’s session. The earlier session keeps it; the later one is flagged."
    )
    settled = "none of it belongs to another agent now"
    is_rate = True

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        count = total(flags)
        if is_too_often(count) and not self.has_known_cause(flags):
            yield Finding(
                detail=f"{count} sessions in seven days claimed what another agent's session had claimed before. Two "
                "agents send each other's logs or facts: look at the flagged sessions, and where each takes them from."
            )

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - every rule is asked alike
        said = material.owned_by_other_agents(session)
        if not said:
            return ""
        more = f"; and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
        words = f"session {session.external_id} of {session.agent} claims what another agent's session claimed first: "
        return words + "; ".join(said[:SHOWN]) + more


class UnreadableLog(FlagRule):
    """A harness changed its log's format, and nobody noticed: its sessions would all look alike."""

    id = "A4"
    title = "A log can’t be read"
    means = (
        "Opens as soon as one log has more than 30 % unreadable calls, no shell call that shows its command, or "
        "no result that says whether its call worked and no visible effect either. Rules then grade from facts "
        "and patch only."
    )
    todo = (
        "Check whether the harness’s version has changed since logs were last readable; update the site, then "
        "grade again."
    )
    settled = "its log is readable now"

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - every rule is asked alike
        trajectory = holds.get(Source.TRAJECTORY)
        return trajectory.detail if trajectory is not None and trajectory.reason is Reason.FORMAT_BLIND else ""

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        counts: Counter[str] = Counter()
        for each in flags:
            counts[each.harness or "an unknown harness"] += each.open
        for harness, count in sorted((+counts).items()):
            yield Finding(
                about=harness,
                detail=f"{count} {'log' if count == 1 else 'logs'} of {harness} in seven days could not be read well "
                "enough to grade: its format may have changed. The judge still reads them; no rule does.",
            )


class UnsupportedOutcome(FlagRule):
    """An agent may not take its own session out of the bandits."""

    id = "A35"
    title = "A session says it doesn’t count, without evidence"
    means = (
        "Opens at the third session in seven days submitted as infrastructure or refused although neither its log "
        "nor its exit status shows that. Such sessions are graded as usual."
    )
    severity = Severity.ADVISORY
    settled = "its log or exit status supports it now"

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - every rule is asked alike
        if session.outcome_claimed not in NO_REWARD or session.outcome in NO_REWARD:
            return ""
        claim = f"{session.outcome_claimed} ({session.claim_reason})"
        return f"submitted as {claim}, which neither its log nor its exit status shows; graded as usual"

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        for agent, count in too_often_by_agent(flags, only_open=True):
            yield Finding(
                about=agent,
                detail=f"{count} sessions of {agent} in seven days claimed an outcome that would leave them "
                "without a reward, and nothing supports it. See what they have in common.",
            )


FLAG_RULES: tuple[FlagRule, ...] = (
    ImpossiblePair(),
    Disagreement(),
    Contended(),
    UnreadableLog(),
    Repeated(),
    UnsupportedOutcome(),
    UnsteadyJudge(),
    Contested(),
    ClaimedAbove(),
    LateWord(),
)


def inspect_flags(session: Session, now: dt.datetime) -> bool:
    """Flag the session where something about it is implausible, or clear the flag where it no longer is; whether any
    went up or down.

    A flag that cleared itself comes back where its reason does, and counts towards the alarm all the same. Settles the
    session where its flags changed.
    """
    held = {flag.rule: flag for flag in session.flags.all()}
    holds = rewards.current_grades(session)
    changes = [_state(session, rule, held.get(rule.id), rule.finding(session, holds, now)) for rule in FLAG_RULES]
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
