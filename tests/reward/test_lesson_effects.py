"""What a lesson's figures rest on: residuals, draws that were heeded, and nothing that is not in the ledger."""

import datetime as dt

import numpy as np
import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from bandit import holdout
from bandit.core.betting import Draws
from bandit.core.effect import EffectVerdict, StudyDesign
from bandit.core.policy import Policy
from bandit.core.residual import baseline
from bandit.core.table import MICRO, RewardRow
from bandit.models import Assignment, Bandit
from grading.intake.lessons import record
from grading.intake.submission import SubmittedSession
from grading.models import SessionLesson
from grading.review import corrections
from grading.reward import lessons
from grading.reward.lessons.figures import Lesson, LessonSample
from tests.bandit.helpers import policy
from tests.casts import lesson as lesson_cast
from tests.examples import examples
from tests.site import NOON

pytestmark = pytest.mark.django_db

TODAY = NOON.date()
START = TODAY.toordinal() - 100


def sample(outcome, day, context):
    agent = np.ones(len(outcome), dtype=np.int64)
    return LessonSample(agent=agent, outcome=outcome, day=day, context=np.asarray(context))


def lesson(of, at, taken, chance=None):
    """A lesson that matched the sessions `at`; each was drawn where there is a chance, and none where not."""
    drawn = Draws.none()
    if chance is not None:
        ones = np.ones(len(at), dtype=bool)
        drawn = Draws(
            taken=taken,
            chance=chance,
            came=ones,
            heeded=ones,
            outcome=of.outcome[at],
            least=np.where(of.outcome[at] < 0, -0.5, np.where(of.outcome[at] > 1, 0.5, 0.0)),
            day=of.day[at],
        )
    return Lesson(
        sample=of,
        at=at,
        taken=taken,
        draws=drawn,
        context=np.asarray(of.context)[at][: len(drawn.taken)],
        bar=100.0,
        next_chance=0.6,
        rewards=len(at),
        credit=float(len(at)),
    )


def offsets(reward, day, context):
    """The category baseline of these rewards."""
    rows = [
        RewardRow(
            arm=c, source="judge", day=dt.date.fromordinal(int(d)), n=1, s=round(r * MICRO), q=round(r * MICRO) ** 2
        )
        for r, d, c in zip(reward, day, context, strict=True)
    ]
    reading = Policy(weights={"judge": 1.0}, long_run_half_life=10_000)
    return baseline(rows, reading, TODAY).offsets


@given(
    means=st.lists(st.integers(20, 80), min_size=2, max_size=5),
    shares=st.lists(st.integers(10, 90), min_size=5, max_size=5),
)
@examples(25)
def test_a_lesson_given_at_random_within_categories_does_nothing(means, shares):
    """I112: however unlike the categories are, and however often each has the lesson."""
    context = np.repeat([f"category-{i}" for i in range(len(means))], 400)
    place = np.tile(np.arange(400), len(means))
    reward = np.repeat(means, 400) / 100 + np.where(place % 2, 0.1, -0.1)
    day = START + place // 4
    given_it = place // 2 % 100 < np.repeat(shares[: len(means)], 400)
    moved = offsets(reward, day, context)
    of = sample(reward + np.array([moved[name] for name in context]), day, context)
    found = lesson(of, np.flatnonzero(given_it), np.ones(given_it.sum(), dtype=bool)).figures().observational
    assert found.difference.mean == pytest.approx(0, abs=0.01)
    assert found.verdict is EffectVerdict.OPEN


def rescue(n=4000, *, helps=0.08, chance=0.8):
    """A lesson that matches where work goes wrong, and helps there; a few of its matches are held out by chance."""
    dice = np.random.default_rng(115)
    trouble = dice.random(n) < 0.3
    matched = dice.random(n) < np.where(trouble, 0.9, 0.05)
    taken = matched & (dice.random(n) < chance)
    outcome = 0.65 - 0.3 * trouble + helps * taken + dice.normal(0, 0.08, n)
    of = sample(outcome, START + np.arange(n) // 40, np.repeat("code", n))
    at = np.flatnonzero(matched)
    return lesson(of, at, taken[at], np.full(len(at), chance)).figures()


def test_a_sign_that_flips_once_the_draw_decides():
    """I115, I110: it is given in trouble, so that it looks harmful; among those that matched, it helps."""
    found = rescue()
    assert found.observational.kind is StudyDesign.OBSERVATIONAL
    assert found.observational.difference.mean < -0.1
    assert found.causal.kind is StudyDesign.CAUSAL
    assert found.causal.difference.low < 0.08 < found.causal.difference.high
    assert found.causal.verdict is EffectVerdict.HELPS
    assert found.effect is found.causal


def test_few_draws_leave_the_observational_figure_and_say_so():
    """I115: 15 held out make a causal figure, 14 do not."""
    found = rescue(n=250, chance=0.9)
    assert found.causal.without < 15
    assert found.effect is found.observational
    assert "Observational (correlation, not cause)" in found.effect.sentence


def test_the_cautions_of_a_broad_lesson_named_for_trouble():
    """I110."""
    found = rescue().cautions("recover-first")
    assert found[0].startswith("This lesson matches 31 % of sessions (over 30 %)")
    assert "The name contains “recover”" in found[1]


def test_a_narrow_lesson_of_another_name_has_no_caution():
    of = sample(np.full(100, 0.5), START + np.arange(100), np.repeat("code", 100))
    assert lesson(of, np.arange(5), np.ones(5, dtype=bool)).figures().cautions("ask-first") == []


def test_a_lesson_that_never_matched_has_no_figure():
    of = sample(np.full(100, 0.5), START + np.arange(100), np.repeat("code", 100))
    found = lesson(of, np.arange(0), np.ones(0, dtype=bool)).figures(closely=True)
    assert found.effect.kind is StudyDesign.CANNOT_TELL
    assert found.categories == ()
    assert found.match_rate is None


def test_one_bad_stretch_is_to_be_looked_at_although_the_whole_is_fair():
    """I111."""
    n = 800
    day = START + np.arange(n) // 8
    present = np.arange(n) % 2 == 0
    bad = (day >= START + 40) & (day < START + 55)
    outcome = 0.5 + 0.05 * np.where(np.arange(n) // 2 % 2, 1, -1) - 0.22 * (present & bad)
    of = sample(outcome, day, np.repeat("code", n))
    found = lesson(of, np.flatnonzero(present), np.ones(present.sum(), dtype=bool)).figures()
    assert found.observational.difference.mean > -0.15
    assert found.striking
    assert min(window.difference for window in found.observational.windows) < -0.15


def test_a_category_with_few_sessions_means_nothing():
    """I120."""
    n = 130
    context = np.where(np.arange(n) < 100, "code", "news")
    present = np.arange(n) % 2 == 0
    of = sample(0.5 + 0.1 * (np.arange(n) // 2 % 2), START + np.arange(n) // 4, context)
    found = lesson(of, np.flatnonzero(present), np.ones(present.sum(), dtype=bool)).figures(closely=True).categories
    assert [(each.category, each.enough, each.effect.n) for each in found] == [("code", True, 50), ("news", False, 15)]


# --- from the database


def reading():
    return lessons.load_lessons(Bandit.objects.get(name="lesson"), NOON)


def days_ago(days):
    return NOON - dt.timedelta(days=days)


def one(name="ask-first"):
    return next(lesson for arm, lesson in reading().lessons.items() if arm.name == name)


def figures(name="ask-first"):
    return one(name).figures()


def test_the_outcome_is_what_is_left_of_the_reward_once_the_category_is_out():
    for number in range(12):
        lesson_cast.session(0.8, category="code", at=days_ago(number + 1), ask_first=None)
        lesson_cast.session(0.3, category="news", at=days_ago(number + 1))
    found = reading()
    (each,) = found.lessons.values()
    moved = found.baseline.offsets
    assert moved["code"] < 0 < moved["news"]
    assert each.sample.outcome[each.at] == pytest.approx(0.8 + moved["code"])
    assert len(found.baseline.version) == 8


def test_what_has_no_reward_is_counted_and_left_out():
    """I78, I118."""
    lesson_cast.session(0.5, at=days_ago(1), ask_first=0.5)
    lesson_cast.session(None, at=days_ago(2), ask_first=None)
    lesson_cast.session(0.5, category=None, at=days_ago(3), ask_first=None)
    found = figures()
    assert (found.matched, found.taken, found.without_reward) == (3, 3, 2)
    assert (found.observational.n, found.observational.without) == (1, 0)


def test_a_correction_moves_the_outcome(site):
    session = lesson_cast.session(0.5, at=days_ago(1), ask_first=None)
    assert one().sample.outcome.tolist() == [0.5]
    corrections.record_correction(session, site.person("rita", "reviewer"), value=0.9, reason="merged")
    assert one().sample.outcome.tolist() == [0.9]


def test_every_draw_counts_as_it_was_drawn():
    taken = lesson_cast.draw_row("ask-first", taken=True)
    held_out = lesson_cast.draw_row("ask-first", taken=False)
    ignored = lesson_cast.draw_row("ask-first", taken=False, number=1)
    sure = lesson_cast.draw_row("ask-first", taken=True, chance=1.0, number=2)
    for each in (taken, held_out, ignored, sure):
        lesson_cast.session(0.5, at=days_ago(1), ask_first=each)
    SessionLesson.objects.filter(assignment=ignored).update(taken=True)
    lesson_cast.session(0.5, at=days_ago(1))
    found = figures()
    assert (found.causal.n, found.causal.without, found.unheeded) == (1, 2, 1)
    assert one().draws.heeded.sum() == 2
    assert (found.observational.n, found.observational.without) == (3, 2)
    assert any(
        "1 × this lesson was given although it was withheld. These sessions count as withheld" in each
        for each in found.cautions("ask-first")
    )


def test_draws_without_a_reward_are_counted_in_their_group():
    for number in range(4):
        row = lesson_cast.draw_row("ask-first", taken=number % 2 == 0, number=number)
        lesson_cast.session(None if number == 0 else 0.5, at=days_ago(1), ask_first=row)
    found = figures().causal.unscored
    assert (found.taken, found.held_out, found.lost) == (0.5, 0, 0)


def test_a_draw_of_two_days_ago_without_a_session_led_to_none():
    """One that was made an hour ago may lead to one yet."""
    made = [lesson_cast.draw_row("ask-first", taken=taken, number=number) for number, taken in enumerate((True, False))]
    Assignment.objects.filter(pk=made[0].pk).update(created=days_ago(2.1))
    found = one()
    assert (found.draws.taken.tolist(), found.draws.came.tolist()) == ([True], [False])
    assert found.figures().causal.unscored.lost == 1


def test_a_draw_from_after_its_session_decides_nothing():
    """It is closed, and no lesson of the session hangs on it."""
    row = lesson_cast.draw_row("ask-first", taken=True)
    session = lesson_cast.session(0.5, at=days_ago(1), ask_first=None)
    Assignment.objects.filter(pk=row.pk).update(observation=session.observation)
    assert not len(one().draws.taken)


def test_draws_come_in_their_order_with_what_is_left_of_the_reward_and_its_least():
    for number in range(12):
        lesson_cast.session(0.8, category="code", at=days_ago(number + 1))
        lesson_cast.session(0.3, category="news", at=days_ago(number + 1))
    rows = [lesson_cast.draw_row("ask-first", taken=bool(number % 2), number=number) for number in range(3)]
    for each, category, ago in zip(rows, ("code", "news", "code"), (3, 1, 2), strict=True):
        lesson_cast.session(0.5, category=category, at=days_ago(ago), ask_first=each)
    found = reading()
    (each,) = found.lessons.values()
    moved = [found.baseline.offsets[name] for name in ("code", "code", "news")]
    assert each.context.tolist() == ["code", "code", "news"]
    assert each.draws.taken.tolist() == [False, False, True]
    assert each.draws.least == pytest.approx(moved)
    assert each.draws.outcome == pytest.approx(np.array(moved) + 0.5)


def test_draws_count_longer_than_sessions_without_one():
    """A lesson that seldom matches collects its evidence over more than 180 days."""
    old = lesson_cast.draw_row("ask-first", taken=True)
    lesson_cast.session(0.5, at=days_ago(300), ask_first=old)
    assert (figures().matched, one().draws.scored.tolist()) == (0, [True])


def test_of_two_lessons_that_are_one_by_now_no_draw_decides():
    first, second = lesson_cast.lesson("ask-first"), lesson_cast.lesson("ask-before")
    rows = {name: lesson_cast.draw_row(name, taken=name == "ask-first") for name in ("ask-first", "ask-before")}
    lesson_cast.session(0.5, at=days_ago(1), ask_first=rows["ask-first"], ask_before=rows["ask-before"])
    second.merged_into = first
    second.save()
    assert not len(one().draws.taken)


def known(helps, *, sessions=80, chance=0.5, spread=0.05):
    """A lesson with as many sessions drawn to have it as held out, over the last days."""
    for number in range(sessions):
        row = lesson_cast.draw_row("ask-first", taken=number % 2 == 0, chance=chance, number=number)
        at = days_ago(number / 8 + 1)
        value = 0.5 + helps * (number % 2 == 0) + spread * (-1) ** (number // 2)
        lesson_cast.session(value, at=at, ask_first=row)


def decided(now=NOON):
    return lessons.decided(Bandit.objects.select_related("baseline").get(name="lesson"), now)


def test_a_lesson_with_a_verdict_is_held_out_seldom_from_then_on():
    lesson_cast.lesson("read-twice")
    assert decided() == frozenset()
    known(0.25)
    assert figures().causal.verdict is EffectVerdict.HELPS
    assert decided() == {"ask-first"}
    drawn = holdout.assign("lesson", "d-1", ["ask-first", "read-twice"], decided=decided(), now=NOON)
    assert {row.arm.name: row.chance for row in drawn.rows} == {"ask-first": 0.95, "read-twice": 0.6}


def test_a_policy_with_one_holdout_for_all_decides_nothing():
    known(0.25)
    policy("lesson", holdout=0.1, holdout_decided=None)
    assert decided() == frozenset()


def test_what_is_learnt_may_undecide_a_lesson(site):
    known(0.25)
    assert decided() == {"ask-first"}
    rita = site.person("rita", "reviewer")
    for row in SessionLesson.objects.filter(taken=True).select_related("session"):
        corrections.record_correction(row.session, rita, value=0.5, reason="no better than the others")
    assert decided() == frozenset()


def test_what_an_agent_says_of_a_lesson_later_counts():
    """A lesson that was held out, and of which its agent says afterwards that it had it all the same."""
    held_out = lesson_cast.draw_row("ask-first", taken=False)
    session = lesson_cast.session(0.8, ask_first=held_out)
    lesson_cast.session(0.4, ask_first=lesson_cast.draw_row("ask-first", taken=True))
    before = figures()
    with transaction.atomic():
        record(session, SubmittedSession(session_id=session.external_id, lessons=[{"name": "ask-first"}]))
    after = figures()
    assert (before.taken, before.unheeded) == (1, 0)
    assert (after.taken, after.unheeded) == (2, 1)


def test_the_scope_is_the_agents_and_categories_that_had_it_since_it_first_matched(site):
    eve = site.agent("eve")
    lesson_cast.session(0.5, category="code", at=days_ago(9))
    lesson_cast.session(0.5, category="code", at=days_ago(5), ask_first=None)
    lesson_cast.session(0.5, category="code", at=days_ago(3))
    lesson_cast.session(0.5, category="news", at=days_ago(3))
    lesson_cast.session(0.5, category="code", at=days_ago(3), agent=eve)
    assert (figures().observational.n, figures().observational.without) == (1, 1)


def test_a_merged_lesson_is_part_of_the_other():
    first, second = lesson_cast.lesson("ask-first"), lesson_cast.lesson("ask-before")
    lesson_cast.session(0.5, at=days_ago(2), ask_first=None)
    lesson_cast.session(0.5, at=days_ago(3), ask_before=None)
    lesson_cast.session(0.5, at=days_ago(4), ask_before=None, ask_first=None)
    second.merged_into = first
    second.save()
    assert [arm.name for arm in reading().lessons] == ["ask-first"]
    assert figures().matched == 3


def test_the_credit_of_a_lesson_is_its_salience_above_the_floor():
    """I109."""
    policy("lesson", salience_floor=0.2)
    lesson_cast.session(0.5, at=days_ago(1), ask_first=0.5)
    lesson_cast.session(0.5, at=days_ago(2), ask_first=None)
    lesson_cast.session(0.5, at=days_ago(3), ask_first=0.0)
    assert (one().rewards, one().credit) == (3, pytest.approx(0.6 + 1 + 0.2))
