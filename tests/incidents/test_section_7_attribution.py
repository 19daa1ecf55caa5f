"""Incidents of attribution: to what a session's reward is owed (I109 to I122)."""

import datetime as dt

import numpy as np
import pytest

from bandit import arms, policies
from bandit.core.betting import Draws
from bandit.core.effect import EffectVerdict, StudyDesign, Trials, causal, observational
from bandit.models import Arm, Bandit, Bucket, LedgerEntry
from bandit.reading import posterior_of
from grading.reward import lessons, rewards
from tests.bandit.helpers import policy
from tests.casts import lesson as lesson_cast
from tests.site import NOON

pytestmark = pytest.mark.django_db

TODAY = NOON.date().toordinal()


def days_ago(n: float) -> dt.datetime:
    return NOON - dt.timedelta(days=n)


def trials(with_it, without, *, over=40) -> Trials:
    outcome = np.array([*with_it, *without])
    day = TODAY - np.arange(len(outcome)) % over
    return Trials(present=np.arange(len(outcome)) < len(with_it), outcome=outcome, day=day)


def draws(with_it, without, *, chance=0.5, over=40) -> Draws:
    """The same by a draw, with and without in any order."""
    came = trials(with_it, without, over=over)
    order, ones = np.random.default_rng(3).permutation(len(came.day)), np.ones(len(came.day), dtype=bool)
    return Draws(
        taken=came.present[order],
        chance=np.full(len(came.day), chance),
        came=ones,
        heeded=ones,
        outcome=came.outcome[order],
        least=np.zeros(len(came.day)),
        day=came.day[order],
    )


def around(mean: float, n: int, seed: int = 7) -> list[float]:
    return list(np.random.default_rng(seed).normal(mean, 0.1, n))


def read(name: str) -> lessons.LessonFigures:
    arm = Arm.objects.select_related("bandit__baseline").get(bandit__name="lesson", name=name)
    return lessons.load_overview(arm.bandit, NOON, closely=arm).for_lesson(arm)


def test_i109_ten_lessons_do_not_share_a_session_alike():
    """I109, all lessons share the reward alike: repaired at read. Salience is on the ledger row, floor and rule in the
    policy's version; sum and floor stand on the page.
    """
    lesson_cast.session(0.9, at=days_ago(1), used=1.0, **{f"idle_{n}": 0.0 for n in range(9)})
    arms_of = posterior_of("lesson", NOON).arms
    assert arms_of["used"].mean > arms_of["idle-0"].mean > 0.5
    assert {"used": 1.0, "idle-0": pytest.approx(0.3)} == {name: read(name).credit for name in ("used", "idle-0")}
    policies.set_policy("lesson", {"salience_floor": 1.0}, version=2, by="otto")
    again = posterior_of("lesson", NOON).arms
    assert again["used"].mean == pytest.approx(again["idle-0"].mean)


def test_i110_no_lesson_is_retired_for_what_went_together():
    """I110, lessons for recovery look harmful: impossible. Only a causal effect has a verdict, and no page has a button
    that retires; broad matching and names that speak of trouble are told.

    Lessons for recovery stood beside trouble: −.10 to −.21 at p < .05.
    """
    found = observational(trials(around(0.4, 90), around(0.6, 90)))
    assert found.verdict is EffectVerdict.OPEN
    assert found.kind is StudyDesign.OBSERVATIONAL
    assert "(correlation, not cause): no verdict" in found.sentence
    assert causal(draws(around(0.4, 90), around(0.6, 90)), least=100, chance=0.5).verdict is EffectVerdict.HARMFUL


def test_i111_one_bad_window_is_looked_at_whatever_the_whole_says():
    """I111, the one that was truly harmful: told. A window of fifty firings beyond ±.15 needs a look, whatever the
    whole says.

    −.054 overall, −.218 in one window: the one that was truly harmful, and nearly dismissed.
    """
    present = np.tile([True, False], 300)
    day = TODAY - 300 + np.arange(600) // 2
    outcome = np.where(present & (day < TODAY - 200), 0.3, 0.55) + np.where(np.arange(600) % 4 < 2, 0.05, -0.05)
    found = observational(Trials(present=present, outcome=outcome, day=day))
    assert abs(found.difference.mean) < 0.15
    assert found.striking


def test_i112_a_lesson_has_no_credit_of_its_category():
    """I112, the category leaks into the credit: impossible. Residuals: given at random within categories, a lesson does
    nothing.
    """
    for n in range(1, 16):
        lesson_cast.session(0.7, category="code", at=days_ago(n), in_code=None)
        lesson_cast.session(0.3, category="content", at=days_ago(n), in_content=None)
    found = posterior_of("lesson", NOON).arms
    assert found["in-code"].mean == pytest.approx(found["in-content"].mean, abs=0.1)
    raw = {entry.arm.name: entry.value for entry in LedgerEntry.objects.filter(bandit__name="lesson")}
    assert raw == {"in-code": 0.7, "in-content": 0.3}


def test_i113_i114_what_is_retired_keeps_its_record_and_leaves_figures_and_draws(site, client):
    """I113, I114, a figure over what is left out, and lessons that were archived long ago: impossible. One function
    decides for draws and for the headline alike; history stays.

    The KPI averaged what the decisions left out; ghosts of archived lessons were injected still.
    """
    for name in ("kept", "ghost"):
        lesson_cast.session(0.5, at=days_ago(1), **{name: None})
    arms.retire(Arm.objects.resolve("lesson", "ghost"), by="otto")
    client.force_login(site.person("vera", "viewer"))
    page = client.get("/bandits/lesson/").context
    assert [row.arm.name for row in page["rows"]] == ["kept"]
    assert [arm.name for arm, _why, _lesson in page["left_out"]] == ["ghost"]
    assert LedgerEntry.objects.filter(arm__name="ghost").count() == 1
    assert set(lesson_cast.draw("run-1", "kept", "ghost")) == {"kept"}


def test_i115_a_sign_may_flip_once_a_draw_decides_and_the_label_says_which():
    """I115, signs flip under a random dropout: impossible to mix. Fifteen on the smaller side make a causal figure;
    every figure says its kind.

    39 of 125 signs flipped: −.015 as it came, +.197 by lot.
    """
    observed, drawn = trials(around(0.45, 60), around(0.55, 60)), draws(around(0.6, 60), around(0.5, 60))
    lot, came = causal(drawn, least=100, chance=0.5), observational(observed)
    assert (lot.kind, lot.difference.mean > 0) == (StudyDesign.CAUSAL, True)
    assert (came.kind, came.difference.mean > 0) == (StudyDesign.OBSERVATIONAL, False)
    few = draws(around(0.6, 60), around(0.5, 14), chance=0.8)
    assert causal(few, least=100, chance=0.5).kind is StudyDesign.CANNOT_TELL


def test_i116_harmful_is_a_word_that_twenty_firings_do_not_earn():
    """I116, "genuinely harmful" at p = .066: impossible. The word needs draws, odds of 100 to 1 that hold at every look
    and count among all lessons, and recent days that do not speak against it.

    −.144 with n 20 and p .066 was called genuinely harmful; the last weeks said −.030.
    """
    few = causal(draws(around(0.4, 20), around(0.55, 60), chance=0.25), least=100, chance=0.5)
    assert few.verdict is EffectVerdict.OPEN
    many = causal(draws(around(0.4, 120), around(0.55, 120)), least=100, chance=0.5)
    assert many.verdict is EffectVerdict.HARMFUL


def test_i118_sessions_without_a_reward_are_counted_and_not_guessed():
    """I118, pairs without a reward: told at the first. They are counted beside each lesson and guessed by nobody."""
    for n in range(6):
        lesson_cast.session(0.5 if n < 2 else None, at=days_ago(n + 1), read_the_diff=None)
    assert (read("read-the-diff").taken, read("read-the-diff").without_reward) == (6, 4)


def test_i119_a_harness_is_never_blamed_for_its_models(site):
    """I119, a harness blamed for its models: impossible. The arm is harness and model together; a harness alone stands
    for sessions whose model has no name.

    .553 against .615 overall, and .588 against .555 at the same tier.
    """
    names = Bandit.objects.get(name="model")
    cheap, dear = (Arm.objects.create(bandit=names, name=name) for name in ("small-1", "large-1"))
    for n, (model, value) in enumerate([(cheap, 0.4), (dear, 0.7), (None, 0.5)]):
        site.session(model_arm=model, ended_at=days_ago(n + 1)).judged(value).settle()
    learnt = Bucket.objects.filter(bandit__name="harness").values_list("arm__name", "n")
    assert dict(learnt) == {"claude-code/small-1": 1, "claude-code/large-1": 1, "claude-code": 1}


def test_i120_a_category_with_few_sessions_says_insufficient():
    """I120, the aggregate hides a category: impossible. A comparison has its category table with n and interval; under
    twenty a cell says "insufficient".
    """
    for n in range(1, 26):
        lesson_cast.session(0.6, category="code", at=days_ago(n), read_the_diff=None)
        lesson_cast.session(0.5, category="code", at=days_ago(n))
    for n in range(1, 9):
        lesson_cast.session(0.6, category="content", at=days_ago(n), read_the_diff=None)
        lesson_cast.session(0.5, category="content", at=days_ago(n))
    enough = {each.category: each.enough for each in read("read-the-diff").categories}
    assert enough == {"code": True, "content": False}


def test_i121_a_day_of_floors_is_no_bad_day(site):
    """I121, a predictor confidently wrong: in part. The floors behind its "Monday effect" are no rewards. There is no
    predictor here to validate.

    A "Monday effect" of .136 over 121 sessions was the eve of an outage: floors that counted as grades.
    """
    for n in range(30):
        session = (
            site.session(ended_at=days_ago(1) + dt.timedelta(minutes=n)).judged(None, reason="quota_exhausted").session
        )
        settlement = rewards.settle(session)
        assert (settlement.source, settlement.weight) == ("floor", 0)
    assert not Bucket.objects.rewards().exists()
    assert posterior_of("category", NOON).arms["cross-repo"].mean == 0.5


def test_i122_five_rows_of_one_afternoon_are_insufficient():
    """I122, +33 % from one trial: impossible. Five rows on three days, else "insufficient"."""
    afternoon = trials([0.9] * 5, [0.5] * 5, over=1)
    assert observational(afternoon).kind is StudyDesign.CANNOT_TELL
    assert "day" in observational(afternoon).sentence
    policy("lesson", holdout=0.2)
    assert observational(trials(around(0.9, 4), around(0.5, 40))).verdict is EffectVerdict.INSUFFICIENT
