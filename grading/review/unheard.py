"""Arms whose abstentions nobody has graded: where that may hide bad news, a person is asked about five of them.

In the long run the judge's reserved share speaks for an arm's silence. Where there is no judge, or it is out for long,
only people can.
"""

import datetime as dt

from django.db import transaction
from django.utils import timezone

from bandit.chance import chance
from bandit.models import LedgerEntry
from bandit.silence import Unheard, unheard
from grading.models import Flag, JudgeJob, ReviewItem, Session
from grading.models.judging import Purpose
from grading.models.review import ItemState
from grading.models.sessions import observation_of
from grading.monitoring import UNHEARD
from grading.review import priority
from grading.review.queue import sync_item
from grading.reward import rewards
from grading.reward.explain import number
from grading.vocabulary import Source

# So many sessions go to a person at once, and no more of the arm for so long.
ASKED, AGAIN = 5, dt.timedelta(days=28)
# An arm that would move by no more of the next hundred decisions can stay silent.
LEAST_MOVE = 10.0
# A verdict that was asked for more recently may well come.
PATIENCE = dt.timedelta(days=1)
# Who says what an abstention was worth.
VOICES = (Source.JUDGE, Source.HUMAN)
HEARD = "it has a grade now"


def ask(now: dt.datetime | None = None) -> int:
    """Flag up to five sessions of each arm whose silence matters, drawn by keyed chance; how many were flagged.

    Once an arm and four weeks, and not while one of its sessions still waits for this. Sessions that have a grade
    meanwhile are taken off the queue.
    """
    now = now or timezone.now()
    _let_go()
    jobs = JudgeJob.objects.open().filter(purpose=Purpose.VERDICT, created_at__gt=now - PATIENCE)
    awaited = {observation_of(pk) for pk in jobs.order_by().values_list("session", flat=True)}
    flagged = 0
    for silent in unheard(priority.BANDIT, now, sources=VOICES, source=Source.JUDGE, aside=awaited):
        if abs(silent.move.share_after - silent.move.share_before) > LEAST_MOVE:
            flags = Flag.objects.filter(rule=UNHEARD).of_arm(silent.arm)
            if not flags.open().exists() and not flags.filter(raised_at__gt=now - AGAIN).exists():
                flagged += _ask_about(silent, now)
    return flagged


def _ask_about(silent: Unheard, now: dt.datetime) -> int:
    """Flag those with the lowest numbers under the key: of the arm's that nobody was asked about for this, and that
    nobody took off the queue.
    """
    asked = Flag.objects.filter(rule=UNHEARD).values_list("session", flat=True)
    dismissed = ReviewItem.objects.filter(state=ItemState.DISMISSED).values_list("session", flat=True)
    over = {observation_of(pk) for pk in (*asked, *dismissed)}
    sessions = Session.objects.by_observation(set(silent.observations) - over).values()
    key = f"silence of {silent.arm}"
    numbered = [(chance(key, priority.BANDIT, each.agent.name, each.external_id), each.pk, each) for each in sessions]
    drawn = [each for _number, _pk, each in sorted(numbered)[:ASKED]]
    for session in drawn:
        with transaction.atomic():
            locked = Session.objects.select_for_update(of=("self",)).with_people().get(pk=session.pk)
            Flag.objects.create(session=locked, rule=UNHEARD, detail=said(silent, len(drawn)), raised_at=now)
            rewards.settle(locked)
            sync_item(locked)
    return len(drawn)


def said(silent: Unheard, asked: int) -> str:
    """Why a person is asked, with its arithmetic."""
    before, after = silent.move.share_before, silent.move.share_after
    return (
        f"Only what could be seen: {len(silent.observations)} of {silent.n} sessions of {silent.arm} left nothing to "
        f"grade by, and nobody has graded any of them. Were they worth {number(silent.value)}, it would be chosen "
        f"{after:.0f} times in the next 100 instead of {before:.0f}. This is one of {asked} drawn at "
        "random to speak for them."
    )


def _let_go() -> None:
    """Take those off the queue that no longer abstain."""
    flags = list(Flag.objects.open().filter(rule=UNHEARD).select_related("session"))
    names = [flag.session.observation for flag in flags]
    silent = LedgerEntry.objects.abstentions().live().filter(bandit__name=priority.BANDIT, observation__in=names)
    still = set(silent.values_list("observation", flat=True))
    for flag in flags:
        if flag.session.observation not in still:
            with transaction.atomic():
                locked = Session.objects.select_for_update(of=("self",)).with_people().get(pk=flag.session_id)
                cleared = Flag.objects.open().filter(pk=flag.pk)
                if cleared.update(cleared_at=timezone.now(), cleared_why=HEARD):
                    rewards.settle(locked)
                    sync_item(locked)
