"""What changed between two weeks of a site, from its rows to the sentences."""

import dataclasses
import datetime as dt

import pytest

from grading.insight import changes, sentences
from grading.insight.core.results import PartName, Span
from grading.insight.loading import CellFilter
from grading.models.judging import JobState, Purpose
from grading.review.corrections import record_correction
from grading.vocabulary import Outcome, Source
from tests.insight.helpers import AFTER, BEFORE, NEW, hand_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]


def values(change):
    return {part.names[0].value: part.value for part in change.parts if part.is_identified}


def text(change):
    return " ".join([sentences.write_headline(change), *sentences.write_change(change)])


@pytest.mark.postgresql
def test_parts_of_two_weeks(site):
    """Code .6 and news .4, ten each; then code .5 eleven times and news .4 nine times.

    Means .5 and (5.5 + 3.6)/20 = .455. Within: −.1 · (.5 + .55)/2 = −.0525.
    Mix: .05 · ((.6 − .4) + (.5 − .4))/2 = +.0075.
    """
    hand_in(site, BEFORE, [0.6] * 10)
    hand_in(site, BEFORE, [0.4] * 10, category="news")
    hand_in(site, AFTER, [0.5] * 11)
    hand_in(site, AFTER, [0.4] * 9, category="news")
    change = changes.compare(BEFORE, AFTER)
    assert change.difference == pytest.approx(-0.045)
    assert values(change) == pytest.approx({"mix": 0.0075, "within": -0.0525, "graders": 0, "missing": 0})
    assert change.missing_low is None
    assert "20 sessions earned .455 on average, down .045" in text(change)


def test_only_the_week_before_is_called_so(site):
    day = dt.timedelta(days=1)
    earlier = Span(first=BEFORE.first - 14 * day, last=BEFORE.last - 14 * day)
    for span in (earlier, BEFORE, AFTER):
        hand_in(site, span, [0.5, 0.6])
    assert "as the week before" in text(changes.compare(BEFORE, AFTER))
    assert "as 2 Mar – 8 Mar" in text(changes.compare(earlier, AFTER))
    two_weeks = Span(first=AFTER.first, last=AFTER.last + 7 * day)
    assert "as 16 Mar – 22 Mar" in text(changes.compare(BEFORE, two_weeks))


def test_provisional_rewards_are_named_beside_rewards_only(site):
    hand_in(site, AFTER, [0.5, 0.6], minutes=4)
    for measure, says_so in (("reward", True), ("minutes", False)):
        change = changes.compare(BEFORE, AFTER, measure=measure)
        change = dataclasses.replace(change, after=dataclasses.replace(change.after, provisional=2))
        assert ("2 of these rewards are provisional" in sentences.write_headline(change)) is says_so


@pytest.mark.postgresql
def test_ten_corrections_change_the_figures_exactly(site):
    """A person grades ten of forty .2 higher than the judge: the mean rises by .05, and that is the graders."""
    rita = site.person("rita", "reviewer")
    hand_in(site, BEFORE, [0.6] * 40)
    sessions = hand_in(site, AFTER, [0.5] * 40)
    assert values(changes.compare(BEFORE, AFTER))["within"] == pytest.approx(-0.1)
    for session in sessions[:10]:
        record_correction(session, rita, value=0.7, reason="It was merged.")
    change = changes.compare(BEFORE, AFTER)
    assert change.after.value == pytest.approx(0.55)
    assert values(change) == pytest.approx({"mix": 0, "within": -0.1, "graders": 0.05, "missing": 0})


def test_new_rubric_without_a_bridge_is_no_number_and_an_offer(site):
    """The page says that results and graders can't be told apart, and offers to have sessions read again."""
    sessions = hand_in(site, BEFORE, [0.6] * 40)
    hand_in(site, AFTER, [0.5] * 40, rubric=NEW)
    change = changes.compare(BEFORE, AFTER)
    assert change.part(PartName.GRADERS).names == (PartName.WITHIN, PartName.GRADERS)
    assert "cannot be separated" in text(change)
    assert sentences.AGENTS_DID_WORSE not in text(change)
    assert change.bridge.rubric == NEW
    assert change.bridge.needed == 30
    assert len(change.bridge.sessions) == 36
    assert {*change.bridge.sessions} <= {session.pk for session in sessions}
    assert change.bridge.cost_micro is None
    assert changes.compare(BEFORE, AFTER).bridge.sessions == change.bridge.sessions


def test_sessions_read_by_both_tell_graders_apart(site):
    """The new rubric reads thirty sessions .1 lower than the old one did: that is the whole change."""
    sessions = hand_in(site, BEFORE, [0.6] * 40)
    hand_in(site, AFTER, [0.5] * 40, rubric=NEW)
    for session in sessions[:30]:
        site.on(session).judged(0.5, model="j", rubric=NEW, version="d", parallel=True)
        site.on(session).with_judge_job(purpose=Purpose.TRIAL, state=JobState.DONE, reason="")
    change = changes.compare(BEFORE, AFTER)
    assert values(change) == pytest.approx({"mix": 0, "within": 0, "graders": -0.1, "missing": 0})
    assert change.bridge is None
    assert {session.reward_value for session in sessions} == {0.6}


def test_copies_of_one_session_are_no_bridge(site):
    """Thirty readings of the same inputs count once."""
    sessions = hand_in(site, BEFORE, [0.6] * 40)
    hand_in(site, AFTER, [0.5] * 40, rubric=NEW)
    for session in sessions[:30]:
        site.on(session).judged(0.5, model="j", rubric=NEW, version="d", parallel=True, inputs_sha256="e" * 64)
        site.on(session).with_judge_job(purpose=Purpose.TRIAL, state=JobState.DONE, reason="")
    assert changes.compare(BEFORE, AFTER).bridge.read_by_both == 1


def test_missing_grades_have_a_bound(site):
    """Ten of twenty lose their grade. Before .6; if all missing were .3: (10·.6 + 10·.3)/20 − .6 = −.15; .8: +.1."""
    hand_in(site, BEFORE, [0.6] * 20)
    hand_in(site, AFTER, [0.6] * 10 + [None] * 10)
    change = changes.compare(BEFORE, AFTER)
    assert (change.missing_low, change.missing_high) == (pytest.approx(-0.15), pytest.approx(0.1))
    assert "If all missing grades were .3, the change would be −.150; if all were .8, +.100." in (
        sentences.write_missing_bound(change)
    )


def test_floor_is_a_missing_grade_and_never_a_low_one(site):
    """Sessions that nothing could grade have the floor as their reward: the mean doesn't fall by it."""
    hand_in(site, BEFORE, [0.6] * 10)
    sessions = hand_in(site, AFTER, [0.6] * 10 + [None])
    assert sessions[-1].reward_source == Source.FLOOR
    change = changes.compare(BEFORE, AFTER)
    assert change.after.value == pytest.approx(0.6)
    assert change.after.missing == 1


def test_sessions_that_say_nothing_are_left_out(site):
    """Samples, dead machines and sessions that a person excluded."""
    rita = site.person("rita", "reviewer")
    hand_in(site, BEFORE, [0.6] * 5)
    sessions = hand_in(site, AFTER, [0.6] * 5)
    hand_in(site, AFTER, [0.1] * 5, is_sample=True)
    hand_in(site, AFTER, [None] * 5, outcome=Outcome.INFRASTRUCTURE, outcome_reason="out of memory")
    record_correction(sessions[0], rita, exclude=True, reason="A test of the hook.")
    assert changes.compare(BEFORE, AFTER).after.sessions == 4


def test_filters_narrow_both_periods(site):
    hand_in(site, BEFORE, [0.6] * 5)
    hand_in(site, AFTER, [0.7] * 5)
    hand_in(site, AFTER, [0.1] * 5, category="news")
    change = changes.compare(BEFORE, AFTER, filters=CellFilter(category="code"))
    assert change.difference == pytest.approx(0.1)


def test_other_measures_have_no_graders(site):
    """Minutes need nobody's judgement, so a new rubric is no reason not to tell parts apart."""
    hand_in(site, BEFORE, [0.6] * 10, minutes=10)
    hand_in(site, AFTER, [0.6] * 10, minutes=15, rubric=NEW)
    change = changes.compare(BEFORE, AFTER, measure="minutes")
    assert values(change) == pytest.approx({"mix": 0, "within": 5, "graders": 0, "missing": 0})


def test_an_empty_period_is_compared_with_nothing(site):
    hand_in(site, AFTER, [0.6] * 3)
    change = changes.compare(BEFORE, AFTER)
    assert change.difference is None
    assert change.parts == ()
    assert "Nothing can be compared" in text(change)


def test_overlapping_periods_are_refused():
    with pytest.raises(ValueError, match="ends before 2026-03-16; got one until 2026-03-22"):
        changes.compare(BEFORE, BEFORE)


def test_fall_on_recurring_tasks_is_the_agents(site):
    """Four tasks each day of both weeks, .2 lower in the second: the agents did worse."""
    tasks = [f"nightly-{number % 4}" for number in range(56)]
    for span, reward in ((BEFORE, 0.7), (AFTER, 0.5)):
        for number, task in enumerate(tasks):
            shifted = Span(first=span.first + dt.timedelta(days=number // 8), last=span.last)
            hand_in(site, shifted, [reward + 0.02 * (number % 3)], task=task)
    change = changes.compare(BEFORE, AFTER)
    assert change.tasks.tasks == 4
    assert f"On 4 tasks that recur, {sentences.AGENTS_DID_WORSE}" in text(change)


def test_fall_without_tasks_cannot_be_told_from_harder_work(site):
    for span, reward in ((BEFORE, 0.7), (AFTER, 0.5)):
        hand_in(site, span, [reward + 0.02 * (number % 3) for number in range(56)])
    assert "because too few tasks recur" in text(changes.compare(BEFORE, AFTER))
    assert sentences.AGENTS_DID_WORSE not in text(changes.compare(BEFORE, AFTER))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
@pytest.mark.postgresql
def test_days_are_those_of_the_zone(site, settings, zone):
    """Every hour of a week in which clocks change is on its local day, as the list of sessions has it."""
    from django.utils import timezone

    from grading.insight.loading import load_cells

    settings.TIME_ZONE = zone
    timezone.get_default_timezone.cache_clear()
    start = dt.datetime(2026, 3, 26, 0, 30, tzinfo=dt.UTC)
    moments = [start + dt.timedelta(hours=number) for number in range(5 * 24)]
    for moment in moments:
        site.session("code", ended_at=moment)
    days = [timezone.localdate(moment) for moment in moments]
    table = load_cells(Span(first=min(days), last=max(days)), columns=(), measures=())
    counts = {dt.date.fromordinal(day): count for day, count in zip(table.days, table.sessions, strict=True)}
    assert counts == {day: days.count(day) for day in sorted(set(days))}
    timezone.get_default_timezone.cache_clear()
