"""The judge against people: blind, on the random check, one grader at a time."""

import datetime as dt
from collections import defaultdict
from random import Random

import pytest
from django.utils import timezone

from bandit.models import Arm, Bandit
from grading.models import Alarm, Grade, ReviewItem, Session
from grading.monitoring import alarms, judges
from grading.monitoring.judges import CalibrationStatus, JudgeInstrument
from grading.monitoring.rule import RULES
from grading.monitoring.watch import watch
from grading.review import calibration, corrections
from grading.reward.rewards import settle
from tests.casts.page import flat
from tests.site import NOON

pytestmark = pytest.mark.django_db

ARMS = ("code", "cross-repo", "infra", None)
GRADER = {"model": "claude-sonnet-5-5", "route": "api", "rubric": "a" * 64, "version": "judge/1"}


def judged(site, value=0.5, session=None, **grader):
    session = session or site.session(ended_at=timezone.now()).session
    site.on(session).judged(value, **{**GRADER, **grader})
    return session


def compared(site, rita, *gaps, **fields):
    """Sessions of the slice that the judge graded so much above the person."""
    for gap in gaps:
        site.on(judged(site, 0.5 + gap)).answered_blind(rita, 0.5, **fields)


def whole():
    (found,) = calibration.calibrations()
    return found.whole


def test_bias_and_error_are_the_judges_against_the_persons_blind_grade(site, rita):
    compared(site, rita, 0.1, -0.3)
    assert whole().n == 2
    assert whole().bias.mean == pytest.approx(-0.1)
    assert whole().error.mean == pytest.approx(0.2)


def test_what_was_typed_before_the_reveal_counts_and_what_was_submitted_after_it_does_not(site, rita):
    site.on(judged(site, 0.9)).answered_blind(rita, 0.88, blind_value=0.5, revealed=True)
    assert whole().error.mean == pytest.approx(0.4)


@pytest.mark.parametrize(
    "fields",
    [
        {"blind_value": None, "revealed": True},
        {"slice_probability": None},
        {"slice_probability": None, "stratum": "flagged"},
        {"answer": "accept"},
    ],
)
def test_an_answer_that_was_not_blind_or_not_of_the_slice_is_no_pair(site, rita, fields):
    site.on(judged(site)).answered_blind(rita, 0.5, **fields)
    assert calibration.load_blind_pairs().all == []
    assert judges.grader_in_use().blind == 0


def test_an_answer_that_was_undone_is_no_pair(site, rita):
    answer = site.on(judged(site)).answered_blind(rita, 0.5).answer
    site.on(answer.session).answered_blind(rita, None, answer="undo", blind_value=None, undoes=answer)
    assert calibration.load_blind_pairs().all == []


def test_two_people_on_one_session_are_one_pair(site, rita):
    session = judged(site, 0.6)
    site.on(session).answered_blind(rita, 0.4).answered_blind(site.person("otto", "operator"), 0.6)
    (pair,) = calibration.load_blind_pairs().all
    assert pair.human == pytest.approx(0.5)
    assert judges.grader_in_use().blind == 1


def test_each_grader_has_figures_of_its_own_and_the_latest_is_the_one_in_use(site, rita):
    session = judged(site, 0.9)
    site.on(session).answered_blind(rita, 0.5)
    compared(site, rita, 0.1)
    judged(site, 0.5, session=session, rubric="b" * 64)
    found = {each.grader.rubric[0]: each.whole for each in calibration.calibrations()}
    assert (found["a"].n, found["b"].n) == (2, 1)
    assert found["a"].error.mean == pytest.approx(0.25)
    assert found["b"].error.mean == 0
    assert judges.grader_in_use() == CalibrationStatus(
        grader=JudgeInstrument(**{**GRADER, "rubric": "b" * 64}), blind=1
    )
    assert calibration.for_grader(judges.grader_in_use().grader).whole == found["b"]


def test_of_two_verdicts_of_one_grader_the_last_of_the_chain_counts(site, rita):
    session = judged(site, 0.2)
    judged(site, 0.6, session=session)
    judged(site, 0.9, session=session, parallel=True, replicate=1)
    site.on(session).answered_blind(rita, 0.5)
    assert [pair.judge for pair in calibration.load_blind_pairs().all] == [0.6]


def test_strata_are_told_apart_by_arm_and_flag(site, rita):
    compared(site, rita, 0.1)
    compared(site, rita, 0.3, stratum="flagged")
    (found,) = calibration.calibrations()
    assert {stratum: each.n for stratum, each in found.strata.items()} == {
        ("cross-repo", ""): 1,
        ("cross-repo", "flagged"): 1,
    }


def test_a_site_without_a_verdict_has_no_grader_to_calibrate(site):
    site.session()
    assert judges.grader_in_use() is None
    watch()
    assert not Alarm.objects.filter(rule="A30").exists()


def test_the_last_blind_grade_that_was_missing_makes_the_judge_calibrated(site, rita, client):
    compared(site, rita, *[0.1] * 19)
    watch()
    assert "19 of 20 blind grades" in Alarm.objects.get(rule="A30", resolved_at=None).detail
    compared(site, rita, 0.1)
    assert judges.grader_in_use().is_calibrated
    alarms.run_rules([RULES["A30"]], timezone.now())
    assert not Alarm.objects.filter(rule="A30", resolved_at=None).exists()
    client.force_login(rita)
    assert "uncalibrated" not in flat(client.get("/quota/"))


def test_corrections_that_nobody_made_blind_leave_it_uncalibrated(site, rita):
    for _ in range(21):
        corrections.record_correction(judged(site, 0.5), rita, value=0.6)
    assert judges.grader_in_use().blind == 0


def test_the_page_shows_each_judge_by_arm_and_flag_and_who_is_in_use(site, rita, client):
    client.force_login(rita)
    assert "No judge has given a verdict yet" in flat(client.get("/calibration/"))
    compared(site, rita, 0.1, 0.3)
    compared(site, rita, -0.1, stratum="flagged")
    site.on(judged(site, 0.5, rubric="b" * 64)).settle()
    html = flat(client.get("/calibration/"))
    used, unused = html.index("claude-sonnet-5-5 at api rubric bbbb</th>"), html.index("at api rubric aaaa</th>")
    assert used < unused
    assert html.index("none in the random order yet") < unused
    assert "+.10" in html
    assert '<td class="dim">flagged</td>' in html


# ---- what counts over all


def out_of_turn(*sessions):
    ReviewItem.objects.filter(session__in=sessions).update(drawn_at=None)


def test_what_was_answered_out_of_turn_counts_in_its_stratum_and_not_over_all(site, rita):
    compared(site, rita, 0.1, 0.1)
    shocking = [judged(site, 0.9) for _ in range(3)]
    for session in shocking:
        site.on(session).answered_blind(rita, 0.1, stratum="flagged")
    out_of_turn(*shocking)
    (found,) = calibration.calibrations()
    assert (found.whole.n, found.early) == (2, 3)
    assert found.whole.bias.mean == pytest.approx(0.1)
    assert found.strata["cross-repo", "flagged"].n == 3
    assert judges.grader_in_use().blind == 2


def test_a_judge_that_was_calibrated_by_what_looked_worst_is_not_and_says_why(site, rita, client):
    sessions = [judged(site, 0.6) for _ in range(25)]
    for session in sessions:
        site.on(session).answered_blind(rita, 0.5)
    out_of_turn(*sessions)
    assert not judges.grader_in_use().is_calibrated
    watch()
    assert "0 of 20 blind grades" in Alarm.objects.get(rule="A30", resolved_at=None).detail
    client.force_login(rita)
    html = flat(client.get("/calibration/"))
    assert "none in the random order yet" in html
    assert "25 blind grades were given out of order" in html
    assert "25 blind grades, none in the random order yet" in flat(client.get("/"))


def test_the_page_has_each_arms_mean_by_judge_and_people_or_how_many_pairs_it_lacks(site, rita, client):
    compared(site, rita, *[0.1, 0.12, 0.08, 0.1] * 2)
    for value in (0.5, 0.7, 0.6, 0.6):
        judged(site, value)
    site.on(judged(site, 0.5, session=site.session("code").session)).answered_blind(rita, 0.4)
    pairs = calibration.load_blind_pairs()
    (means,) = calibration.arm_means(pairs).values()
    assert (means["cross-repo"].pairs, means["cross-repo"].alone) == (8, 4)
    assert means["cross-repo"].mean.mean == pytest.approx(0.5, abs=0.01)
    assert means["code"].missing == 7
    client.force_login(rita)
    html = flat(client.get("/calibration/"))
    assert "too few pairs: 7 more needed (8 in all)" in html


def test_verdict_sums_count_one_verdict_of_each_grader_on_a_session(site):
    """The latest that entered the chain, or else the latest, under the arm that the session has now."""
    dice = Random(0)
    sessions = [site.session(dice.choice(ARMS)).session for _ in range(6)]
    for replicate in range(40):
        grader = {"model": dice.choice("ab"), "rubric": dice.choice(("x" * 64, "y" * 64))}
        verdict = {**grader, "parallel": dice.random() < 0.3, "replicate": replicate}
        judged(site, dice.random(), session=dice.choice(sessions), **verdict)
    moved = sessions[0]
    moved.category = Bandit.objects.get(name="category").arms.get(name="infra")
    moved.save(update_fields=["category"])
    counted: dict[tuple[str, str, int], Grade] = {}
    for grade in Grade.objects.verdicts().order_by("-parallel", "pk"):
        counted[grade.model, grade.rubric, grade.session_id] = grade
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (model, rubric, session), grade in counted.items():
        category = Session.objects.get(pk=session).category
        values[model, rubric, category.name if category else ""].append(grade.value)
    sums = {
        (grader.model, grader.rubric, arm): (each.n, each.s, each.q)
        for (grader, arm), each in calibration.verdict_sums().items()
    }
    assert sums.keys() == values.keys()
    for key, own in values.items():
        assert sums[key] == pytest.approx((len(own), sum(own), sum(value * value for value in own)))


def test_of_two_verdicts_of_one_grader_on_a_session_one_counts_in_an_arms_mean(site, rita):
    compared(site, rita, *[0.1] * 8)
    session = judged(site, 0.2)
    judged(site, 0.6, session=session)
    judged(site, 0.9, session=session, parallel=True, replicate=1)
    (means,) = calibration.arm_means(calibration.load_blind_pairs()).values()
    assert means["cross-repo"].alone == 1


def test_stored_means_are_those_of_the_day_they_were_stored(site, rita, client):
    """The page shows what the worker computed, to the digit, and says when."""
    compared(site, rita, *[0.1, 0.12, 0.08, 0.1] * 2)
    for value in (0.5, 0.7, 0.6, 0.6):
        judged(site, value)
    computed = calibration.arm_means(calibration.load_blind_pairs())
    assert calibration.latest_arm_means(calibration.load_blind_pairs()) == (computed, None)
    calibration.store_arm_means(NOON)
    judged(site, 0.9)
    assert calibration.latest_arm_means(calibration.load_blind_pairs()) == (computed, NOON)
    client.force_login(rita)
    assert "As of" in flat(client.get("/calibration/"))
    calibration.store_arm_means(NOON + dt.timedelta(hours=1))
    (means,) = calibration.latest_arm_means(calibration.load_blind_pairs())[0].values()
    assert means["cross-repo"].alone == 5


def test_stored_means_follow_a_session_to_another_arm(site, rita):
    """Without a new grade or answer."""
    compared(site, rita, *[0.1, 0.12, 0.08, 0.1] * 2)
    session = judged(site, 0.5)
    calibration.store_arm_means(NOON)
    session.category = Arm.objects.get(bandit__name="category", name="code")
    session.save()
    settle(session)
    calibration.store_arm_means(NOON + dt.timedelta(hours=1))
    (means,) = calibration.latest_arm_means(calibration.load_blind_pairs())[0].values()
    assert means["cross-repo"].alone == 0
