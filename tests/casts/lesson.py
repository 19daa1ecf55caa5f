"""Lessons, sessions that were given some, and the rewards that these had. Plain functions on a real database."""

import datetime as dt

from django.db import transaction

from bandit import holdout
from bandit.models import Arm, Assignment, Bandit
from grading.models import Session, SessionLesson
from grading.reward import rewards
from tests.site import NOON, Site

site = Site()


def lesson(name: str, **fields) -> Arm:
    return Arm.objects.get_or_create(bandit=Bandit.objects.get(name="lesson"), name=name, defaults=fields)[0]


def draw(decision: str, *names: str, agent: str = "bob", at: dt.datetime = NOON) -> dict[str, Assignment]:
    """The draws of these lessons an hour before `at`."""
    drawn = holdout.assign("lesson", decision, names, agent=agent, now=at - dt.timedelta(hours=1))
    return {row.arm.name: row for row in drawn.rows}


def draw_row(name: str, *, taken: bool, chance: float = 0.5, number: int = 0) -> Assignment:
    """A draw that took the lesson, or held it out."""
    arm = lesson(name)
    row = Assignment(bandit=arm.bandit, decision_id=f"{name}-{taken}-{number}", arm=arm, taken=taken, chance=chance)
    row.agent, row.created = "bob", NOON - dt.timedelta(hours=1)
    row.save()
    return row


def drawn_as(name: str, *, taken: bool) -> str:
    """The id of a decision that took the lesson, or held it out."""
    return draw_row(name, taken=taken).decision_id


def session(
    value: float | None, *, category: str | None = "cross-repo", at: dt.datetime = NOON, agent=None, **lessons
) -> Session:
    """A settled session whose judge said `value` (None: nothing), with lessons as name=salience or name=draw.

    Underscores stand for hyphens. A draw, made an hour before, gives or holds out as it says.
    """
    made = site.session(category, ended_at=at, agent=agent or "bob").session
    for name, said in lessons.items():
        row = SessionLesson(session=made, arm=lesson(name.replace("_", "-")))
        if isinstance(said, Assignment):
            row.assignment, row.taken = said, said.taken
            before = at - dt.timedelta(hours=1)
            Assignment.objects.filter(pk=said.pk).update(observation=made.observation, created=before)
        else:
            row.salience = said
        row.save()
    if value is not None:
        site.on(made).judged(value, rubric="4e1c", model="m")
    with transaction.atomic():
        rewards.settle(made)
    return made
