"""What a process remembers of lessons is kept up with draws and rewards: bit for bit what reading all of them says."""

import datetime as dt
from random import Random

import numpy as np
import pytest

from bandit.models import Assignment, Bandit
from grading import remembered, review
from grading.intake.erasing import erase
from grading.models import Session, SessionLesson
from grading.reward import lessons, rewards
from grading.reward.lessons import reading
from tests import cast
from tests.casts import lesson as lesson_cast

pytestmark = pytest.mark.django_db

LESSONS = ("ask-first", "read-twice")


def said() -> list[object]:
    found = lessons.read(Bandit.objects.get(name="lesson"), cast.NOON)
    columns = ("taken", "chance", "came", "heeded", "outcome", "least", "day")
    return [
        (
            each.arm.name,
            [getattr(each.draws, name).tobytes() for name in columns],
            each.context.tolist(),
            [getattr(each.sample, name).tobytes() for name in ("session", "agent", "day", "outcome")],
            each.sample.context.tolist(),
            np.array(each.at).tobytes(),
            each.bar,
        )
        for each in found.lessons
    ]


def attach(draw: Assignment, session: Session, dice: Random) -> None:
    """The draw is closed; now and then it was not what the session then had, or came too late to count."""
    Assignment.objects.filter(pk=draw.pk).update(observation=session.observation)
    if dice.random() < 0.85:
        taken = draw.taken or dice.random() < 0.2
        SessionLesson.objects.create(session=session, arm=draw.arm, assignment=draw, taken=taken)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_it_says_what_reading_all_says(seed):
    dice, rita, number = Random(seed), cast.person("rita", "reviewer"), 0
    sessions: list[Session] = []
    open_draws: list[Assignment] = []
    for step in range(24):
        at, act = cast.NOON - dt.timedelta(days=dice.randrange(1, 200)), dice.random()
        if act < 0.3:
            number += 1
            row = lesson_cast.draw_row(dice.choice(LESSONS), taken=dice.random() < 0.5, number=number)
            Assignment.objects.filter(pk=row.pk).update(created=at)
            open_draws.append(row)
        elif act < 0.7 or not sessions:
            category = dice.choice(("code", "news", None))
            made = lesson_cast.session(dice.choice((None, dice.random())), category=category, at=at)
            for draw in dice.sample(open_draws, min(len(open_draws), dice.randrange(3))):
                if not SessionLesson.objects.filter(session=made, arm=draw.arm).exists():
                    attach(draw, made, dice)
                    open_draws.remove(draw)
            sessions.append(made)
        elif act < 0.85:
            review.record_correction(dice.choice(sessions), rita, value=round(dice.random(), 2), reason="seen")
        elif act < 0.95:
            moved = dice.choice(sessions)
            moved.category = Bandit.objects.get(name="category").arms.get(name=dice.choice(("code", "infra")))
            moved.save(update_fields=["category"])
            rewards.settle(moved)
        else:
            gone = sessions.pop(dice.randrange(len(sessions)))
            erase(Session.objects.filter(pk=gone.pk), who="olga", why="asked")
        if step % 2:
            kept = said()
            remembered.forget()
            assert kept == said(), step


def test_a_draw_that_was_rolled_back_is_not_remembered_as_another():
    lesson_cast.draw_row("ask-first", taken=True)
    bandit = Bandit.objects.get(name="lesson")
    held = reading._made(bandit)
    Assignment.objects.filter(pk=held.last[0]).update(taken=False, chance=0.3)
    again = reading._made(bandit)
    assert (held.taken.tolist(), again.taken.tolist(), again.chance.tolist()) == ([True], [False], [0.3])
