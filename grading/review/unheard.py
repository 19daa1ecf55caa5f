"""Asks people about arms whose abstentions nobody has graded: five sessions of each.

Normally the judge's reserved share covers abstentions. Without a judge, or in a long outage, only people can.
"""

import datetime as dt
from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from bandit.chance import chance
from bandit.models import LedgerEntry
from bandit.silence import WINDOW_DAYS, unheard_arms
from grading.models import Flag, JudgeJob, ReviewItem, Session
from grading.models.judging import Purpose
from grading.models.review import ItemState
from grading.models.sessions import observation_of
from grading.monitoring.arms import unheard_arm
from grading.review import priority
from grading.review.queue import sync_item
from grading.reward import rewards
from grading.vocabulary import Source

# The number of sessions of an arm that are flagged at once, and the time until the arm may be flagged again.
FLAGGED_AT_ONCE, AGAIN_AFTER = 5, dt.timedelta(days=28)
# A session whose job is younger than this is not flagged, because its verdict may still come.
VERDICT_EXPECTED_WITHIN = dt.timedelta(days=1)
# The sources that grade abstentions.
GRADING_SOURCES = (Source.JUDGE, Source.HUMAN)
GRADED = "it has a grade now"


def flag_unheard(now: dt.datetime | None = None) -> int:
    """Flag up to five sessions of each arm whose abstentions are ungraded, drawn by keyed chance. Returns how many.

    An arm is flagged at most once in four weeks, and not while one of its flags is open. The flags of sessions that
    have been graded are cleared.
    """
    now = now or timezone.now()
    _clear_flags_of_graded_sessions()
    jobs = JudgeJob.objects.open().filter(purpose=Purpose.VERDICT, created_at__gt=now - VERDICT_EXPECTED_WITHIN)
    awaited = {observation_of(pk) for pk in jobs.order_by().values_list("session", flat=True)}
    flagged = 0
    unheard = unheard_arms(priority.BANDIT, now, sources=GRADING_SOURCES, excluded=awaited)
    for arm, observations in unheard.items():
        flags = Flag.objects.filter(rule=unheard_arm.id).of_arm(arm)
        if not flags.open().exists() and not flags.filter(raised_at__gt=now - AGAIN_AFTER).exists():
            drawn = _draw(arm, observations)
            for session in drawn:
                with transaction.atomic():
                    locked = Session.objects.select_for_update(of=("self",)).with_people().get(pk=session.pk)
                    Flag.objects.create(
                        session=locked,
                        rule=unheard_arm.id,
                        detail=reason_to_ask(arm, len(observations), len(drawn)),
                        raised_at=now,
                    )
                    rewards.settle(locked)
                    sync_item(locked)
            flagged += len(drawn)
    return flagged


def _clear_flags_of_graded_sessions() -> None:
    """Clear this rule's flags of sessions that no longer abstain."""
    open_flags = list(Flag.objects.open().filter(rule=unheard_arm.id).select_related("session"))
    names = [flag.session.observation for flag in open_flags]
    silent = LedgerEntry.objects.abstentions().live().filter(bandit__name=priority.BANDIT, observation__in=names)
    still_silent = set(silent.values_list("observation", flat=True))
    for flag in open_flags:
        if flag.session.observation not in still_silent:
            with transaction.atomic():
                locked = Session.objects.select_for_update(of=("self",)).with_people().get(pk=flag.session_id)
                cleared = Flag.objects.open().filter(pk=flag.pk)
                if cleared.update(cleared_at=timezone.now(), cleared_why=GRADED):
                    rewards.settle(locked)
                    sync_item(locked)


def _draw(arm: str, observations: Collection[str]) -> list[Session]:
    """The sessions of these observations of an arm with the lowest keyed numbers.

    Sessions that were dismissed, or flagged by this rule before, are left out.
    """
    already_flagged = Flag.objects.filter(rule=unheard_arm.id).values_list("session", flat=True)
    dismissed = ReviewItem.objects.filter(state=ItemState.DISMISSED).values_list("session", flat=True)
    excluded = {observation_of(pk) for pk in (*already_flagged, *dismissed)}
    sessions = Session.objects.by_observation(set(observations) - excluded).values()
    purpose = f"silence of {arm}"
    numbered = [
        (chance(purpose, priority.BANDIT, session.agent.name, session.external_id), session.pk, session)
        for session in sessions
    ]
    return [session for _number, _pk, session in sorted(numbered)[:FLAGGED_AT_ONCE]]


def reason_to_ask(arm: str, ungraded: int, drawn: int) -> str:
    """Why a person is asked about a session, one of `drawn` out of the arm's `ungraded`."""
    return (
        f"{ungraded} sessions of {arm} in the last {WINDOW_DAYS} days left nothing to grade, and nobody has graded "
        f"any of them. This session is one of {drawn} that were drawn at random to represent them."
    )
