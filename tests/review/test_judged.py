"""The sums of each grader's verdicts by arm: kept up with what came, and always those of a reading from nothing."""

import math
from collections import defaultdict
from random import Random

import pytest

from bandit.models import Bandit
from grading import remembered
from grading.intake.erasing import erase
from grading.models import Grade, Session
from grading.review import judged
from grading.reward import rewards
from grading.vocabulary import Source

pytestmark = pytest.mark.django_db

ARMS = ("code", "cross-repo", "infra", None)


def by_hand() -> dict[tuple[str, str, str], tuple[int, float, float]]:
    """One verdict after the other: a later one in place of an earlier, one of the chain in place of any beside it."""
    best: dict[tuple[int, str, str], Grade] = {}
    for grade in Grade.objects.filter(source=Source.JUDGE, status="scored", sample=1).order_by("pk"):
        held = best.get((grade.session_id, grade.model, grade.rubric))
        if held is None or held.parallel >= grade.parallel:
            best[grade.session_id, grade.model, grade.rubric] = grade
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (session, model, rubric), grade in best.items():
        category = Session.objects.get(pk=session).category
        values[model, rubric, category.name if category else ""].append(grade.value)
    return {key: (len(own), math.fsum(own), math.fsum(each * each for each in own)) for key, own in values.items()}


def kept_up() -> dict[tuple[str, str, str], tuple[int, float, float]]:
    found = judged.judged_sums()
    return {(grader.model, grader.rubric, arm): (sums.n, sums.s, sums.q) for (grader, arm), sums in found.items()}


def verdict(site, session: Session, dice: Random) -> None:
    count = Grade.objects.count()
    said = {"model": dice.choice("ab"), "rubric": dice.choice(("x" * 64, "y" * 64)), "parallel": dice.random() < 0.3}
    site.on(session).judged(dice.random(), version="judge/1", replicate=count, **said).settle()


@pytest.mark.parametrize(("seed", "beside"), [(0, 5000), (1, 5000), (2, 3), (3, 1)])
def test_whatever_happened_the_sums_are_those_of_all_verdicts_bit_for_bit(site, seed, beside, monkeypatch):
    monkeypatch.setattr(judged, "BESIDE", beside)
    dice = Random(seed)
    sessions = [site.session(dice.choice(ARMS)).session for _ in range(6)]
    for step in range(40):
        session = dice.choice(sessions)
        act = dice.random()
        if act < 0.75:
            verdict(site, session, dice)
        elif act < 0.95:
            other = dice.choice(ARMS)
            session.category = None if other is None else Bandit.objects.get(name="category").arms.get(name=other)
            session.save(update_fields=["category"])
            rewards.settle(session)
        elif len(sessions) > 2:
            sessions.remove(session)
            erase(Session.objects.filter(pk=session.pk), who="olga", why="asked")
        if step % 3 == 0:
            assert kept_up() == by_hand()
    assert kept_up() == by_hand()
    remembered.forget()
    assert kept_up() == by_hand()


def test_only_sessions_judged_since_are_read_again(site, django_assert_max_num_queries):
    dice = Random(1)
    for _ in range(3):
        verdict(site, site.session().session, dice)
    judged.judged_sums()
    verdict(site, site.session().session, dice)
    with django_assert_max_num_queries(8) as captured:
        judged.judged_sums()
    (reading,) = [query["sql"] for query in captured.captured_queries if '"grading_grade"."value"' in query["sql"]]
    assert '"grading_grade"."session_id" IN (' in reading
