"""Blind pairs and corrections: kept up with what people and judges say, and always those of a reading from nothing."""

from random import Random

import pytest

from bandit.models import Bandit
from grading import remembered
from grading.intake.erasing import erase
from grading.models import Grade, ReviewAnswer, ReviewItem, Session
from grading.review import calibration, impact
from grading.reward import rewards
from tests.site import NOON

pytestmark = pytest.mark.django_db

ARMS = ("code", "cross-repo", None)


def told() -> tuple[object, ...]:
    pairs = calibration.pairs()
    return list(pairs.all), calibration.calibrations(), calibration.arm_means(pairs), vars(impact.corrections())


def verdict(site, session: Session, dice: Random, **fields) -> None:
    said = {"model": dice.choice("ab"), "rubric": "x" * 64, "parallel": dice.random() < 0.3, **fields}
    site.on(session).judged(dice.random(), version="judge/1", replicate=Grade.objects.count(), **said).settle()


def answer(site, session: Session, dice: Random, reviewer, **fields) -> None:
    settlement = session.settlements.order_by("revision").last()
    flagged = dice.choice(("", "flagged"))
    site.on(session).answered_blind(reviewer, dice.random(), stratum=flagged, settlement=settlement, **fields)


def undo(site, session: Session, reviewer) -> None:
    given = ReviewAnswer.objects.holding().filter(session=session).last()
    if given is not None:
        site.on(session).answered_blind(reviewer, None, answer="undo", blind_value=None, undoes=given)


def move(session: Session, dice: Random) -> None:
    arm = dice.choice(ARMS)
    session.category = None if arm is None else Bandit.objects.get(name="category").arms.get(name=arm)
    session.save(update_fields=["category"])
    rewards.settle(session)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happened_what_is_kept_is_what_a_reading_from_nothing_finds(site, seed, rita):
    dice = Random(seed)
    sessions = [site.session(dice.choice(ARMS)).session for _ in range(5)]
    for session in sessions:
        rewards.settle(session)
    for step in range(50):
        session, act = dice.choice(sessions), dice.random()
        if act < 0.4:
            verdict(site, session, dice)
        elif act < 0.7:
            answer(site, session, dice, rita)
        elif act < 0.8:
            undo(site, session, rita)
        elif act < 0.88:
            drawn_at = dice.choice((None, NOON))
            ReviewItem.objects.filter(session=session).update(drawn_at=drawn_at)
        elif act < 0.97:
            move(session, dice)
        elif len(sessions) > 2:
            sessions.remove(session)
            erase(Session.objects.filter(pk=session.pk), who="olga", why="asked")
        if step % 2 == 0:
            kept = told()
            remembered.forget()
            assert kept == told()


def test_only_what_somebody_said_more_of_is_read_again(site, rita, django_assert_max_num_queries):
    dice = Random(1)
    for _ in range(3):
        session = site.session().session
        verdict(site, session, dice, created_at=NOON)
        answer(site, session, dice, rita, created_at=NOON)
    before = calibration.pairs()
    impact.corrections()
    verdict(site, site.session().session, dice)
    with django_assert_max_num_queries(8):
        assert calibration.pairs() is before
        impact.corrections()
    answer(site, session, dice, rita)
    with django_assert_max_num_queries(14) as captured:
        assert calibration.pairs() is not before
        impact.corrections()
    reading = [query["sql"] for query in captured.captured_queries if "value" in query["sql"]]
    assert len(reading) == 3
    assert all('"session_id" IN (' in sql for sql in reading)
