"""What a process remembers of lessons is kept up with draws and rewards: bit for bit what reading all of them says."""

import datetime as dt
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import psycopg
import pytest
from django.db import connection, transaction

from bandit.models import Assignment, Bandit
from grading import remembered, review
from grading.intake.erasing import erase
from grading.intake.lessons import record
from grading.intake.submission import SubmittedSession
from grading.models import Session, SessionLesson
from grading.reward import lessons, rewards
from grading.reward.lessons import reading
from grading.reward.lessons.matched import matched
from tests.casts import lesson as lesson_cast
from tests.site import NOON

pytestmark = pytest.mark.django_db

LESSONS = ("ask-first", "read-twice")


def said() -> list[object]:
    found = lessons.read(Bandit.objects.get(name="lesson"), NOON)
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
def test_whatever_happens_it_says_what_reading_all_says(site, seed):
    dice, rita, number = Random(seed), site.person("rita", "reviewer"), 0
    sessions: list[Session] = []
    open_draws: list[Assignment] = []
    for step in range(24):
        at, act = NOON - dt.timedelta(days=dice.randrange(1, 200)), dice.random()
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


def test_what_is_told_of_a_lesson_later_is_seen():
    """A lesson that was held out, and of which its agent says afterwards that it had it all the same."""
    held_out = lesson_cast.draw_row("ask-first", taken=False)
    made = lesson_cast.session(0.8, ask_first=held_out)
    lesson_cast.session(0.4, ask_first=lesson_cast.draw_row("ask-first", taken=True))
    (before,) = lessons.read(Bandit.objects.get(name="lesson"), NOON).lessons
    with transaction.atomic():
        record(made, SubmittedSession(session_id=made.external_id, lessons=[{"name": "ask-first"}]))
    (after,) = lessons.read(Bandit.objects.get(name="lesson"), NOON).lessons
    assert (before.given, before.unheeded) == (1, 0)
    assert (after.given, after.unheeded) == (2, 1)


@pytest.mark.django_db(transaction=True)
def test_a_row_that_others_are_still_writing_is_seen_once_it_is_there():
    """On PostgreSQL it has its key before others that are seen first; SQLite's writers take turns."""
    if connection.vendor != "postgresql":
        pytest.skip("one writer at a time")
    first, second = lesson_cast.session(0.8), lesson_cast.session(0.4)
    arm, written, may_end = lesson_cast.lesson("ask-first"), threading.Event(), threading.Event()

    def write():
        try:
            with transaction.atomic():
                SessionLesson.objects.create(session=first, arm=arm)
                written.set()
                may_end.wait(60)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(write)
        assert written.wait(60)
        SessionLesson.objects.create(session=second, arm=arm)
        assert matched().session.tolist() == [second.pk]
        may_end.set()
        ends.result(60)
    assert matched().session.tolist() == [first.pk, second.pk]
    SessionLesson.objects.create(session=first, arm=lesson_cast.lesson("read-twice"))
    assert matched().session.tolist() == [first.pk, second.pk, first.pk]


def test_nothing_is_read_twice_where_nothing_is_new():
    lesson_cast.session(0.8, ask_first=None, read_twice=None)
    held = matched()
    assert matched() is held


@pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="SQLite's writers take turns")
def test_a_writer_in_another_database_of_the_server_is_not_waited_for():
    """Databases that are copies of one template have the same numbers for their tables."""
    lesson_cast.session(0.8, ask_first=None, read_twice=None)
    name = f"{connection.settings_dict['NAME']}_beside"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{connection.settings_dict["TEST"]["TEMPLATE"]}"')
        try:
            with psycopg.connect(**{**connection.get_connection_params(), "dbname": name}) as beside:
                beside.execute("LOCK TABLE grading_sessionlesson IN ROW EXCLUSIVE MODE")
                held = matched()
                assert matched() is held
        finally:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
