"""Recalibration learns from people's grades of the random slice and from nothing else, and can be taken back (I146)."""

import datetime as dt

import pytest
import time_machine

from bandit.core.recalibration import advise_cap
from bandit.models import Rectifier
from bandit.selection import posterior_of
from bandit.versions import StaleVersion
from grading import review
from grading.models import Grade, ReviewItem
from grading.models.review import Answer
from grading.review import answers, recalibration
from grading.reward import one_scale
from grading.vocabulary import Source
from tests.casts import review as review_cast
from tests.casts import scale as scale_cast
from tests.site import NOON, Site

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]


def graded(session, person, value, *, probability=0.2):
    """A person's answer to a session that came in by the slice, with this chance; None: by a rule or by hand alone."""
    ReviewItem.objects.update_or_create(
        session=session, defaults={"slice_probability": probability, "entered_as": "slice"}
    )
    return review.submit(session, person, answer=Answer.GRADE, value=value, reason="looked at it")


def proposal(name="category"):
    return recalibration.proposal(name, NOON + dt.timedelta(hours=1))


def offsets(name="category"):
    return {each.key: each for each in proposal(name).offsets}


def test_without_answers_nothing_is_proposed():
    review_cast.flagged()
    found = proposal()
    assert (found.offsets, found.strata, found.pairs, found.version, found.held) == ((), (), 0, 1, None)
    assert found.without.posterior.version == found.rectified.posterior.version


def test_a_pair_is_what_a_person_saw_and_what_they_said(rita):
    graded(review_cast.flagged(0.32), rita, 0.8)
    (pair,) = recalibration.pairs("category", NOON)
    assert (pair.arm, pair.source, pair.stratum) == ("cross-repo", "journal", "flagged")
    assert (pair.machine, pair.human, pair.probability) == (0.32, 0.8, 0.2)
    assert [each.arm for each in recalibration.pairs("harness", NOON)] == ["claude-code"]


def test_answers_from_outside_the_slice_change_nothing(site, rita):
    """I146: flags measure shock. A hundred corrected flags calibrate nothing."""
    graded(review_cast.flagged(), rita, 0.7)
    graded(site.session().judged(0.5).recheck(), rita, 0.6)
    before = proposal()
    for number in range(5):
        graded(review_cast.flagged(0.1 * number), rita, 1.0, probability=None)
        graded(site.session().judged(0.1 * number).recheck(), rita, 1.0, probability=None)
    assert proposal().offsets == before.offsets
    assert proposal().fingerprint == before.fingerprint


def test_a_grade_that_was_undone_counts_no_more(rita):
    answer = graded(review_cast.flagged(), rita, 0.8)
    answers.undo(answer, rita)
    assert recalibration.pairs("category", NOON) == []


@pytest.mark.parametrize("said", [Answer.EXCLUDE, Answer.CANNOT_JUDGE, Answer.SKIP])
def test_an_answer_without_a_value_is_no_pair(rita, said):
    session = review_cast.flagged()
    ReviewItem.objects.update(slice_probability=0.2)
    review.submit(session, rita, answer=said, reason="another session's log")
    assert recalibration.pairs("category", NOON) == []


def test_what_was_said_before_the_judge_was_revealed_counts(site, rita):
    session = site.session().judged(0.9).recheck()
    review.reveal(session, rita, 0.4)
    graded(session, rita, 0.85)
    assert [(pair.machine, pair.human) for pair in recalibration.pairs("category", NOON)] == [(0.9, 0.4)]


def test_who_accepts_a_number_on_the_screen_teaches_nothing(rita):
    """Forty clicks on Accept made a true offset of .20 out to be .08."""
    for number in range(6):
        graded(review_cast.flagged(0.32, external_id=f"blind {number}"), rita, 0.52)
    before = proposal()
    for number in range(8):
        session = review_cast.flagged(0.32, external_id=f"accepted {number}")
        ReviewItem.objects.filter(session=session).update(slice_probability=0.2)
        review.submit(session, rita, answer=Answer.ACCEPT)
    assert proposal().offsets == before.offsets
    assert proposal().fingerprint == before.fingerprint


def test_who_looked_first_teaches_nothing(site, rita):
    session = site.session().judged(0.9).recheck()
    review.reveal(session, rita, None)
    graded(session, rita, 0.85)
    assert recalibration.pairs("category", NOON) == []


def test_two_people_on_one_session_are_one_pair_of_their_mean(site, rita):
    session = review_cast.flagged()
    ReviewItem.objects.update(wanted=2)
    graded(session, rita, 0.6)
    graded(session, site.person("rosa", "reviewer"), 0.8)
    pairs = recalibration.pairs("category", NOON)
    assert [(pair.machine, pair.human) for pair in pairs] == [(0.32, pytest.approx(0.7))]


def test_a_floor_carries_no_evidence_and_is_no_pair(site, rita):
    session = site.session().settle()
    review.recheck(session)
    graded(session, rita, 0.8)
    assert recalibration.pairs("category", NOON) == []


def test_offsets_move_flagged_fallbacks_and_leave_the_judge_where_people_agree(site, rita):
    for value in (0.75, 0.8, 0.85, 0.8):
        graded(review_cast.flagged(0.32), rita, value)
        graded(site.session("code").judged(0.6).recheck(), rita, 0.6)
    found = offsets()
    assert found["cross-repo", "journal", "flagged"].offset == pytest.approx(0.48 * 6 / 7, abs=0.01)
    assert found["code", "judge", ""].offset == pytest.approx(0)
    assert found["infra", "journal", "flagged"].pairs == 0
    assert 0 < found["infra", "journal", "flagged"].offset < found["cross-repo", "journal", "flagged"].offset
    assert not any(source == Source.HUMAN for _, source, _ in found)


def test_the_table_says_what_each_offset_moves(rita):
    for _ in range(3):
        graded(review_cast.flagged(0.3), rita, 0.7)
    waiting = [review_cast.flagged(0.3) for _ in range(2)]
    (row,) = proposal().strata
    assert (row.offset.pairs, row.rewards) == (3, len(waiting))
    assert row.before == pytest.approx(0.3)
    assert row.after == pytest.approx(0.3 + row.offset.offset, abs=1e-6)


def test_putting_it_in_force_moves_the_arm_to_the_bit_it_promised_and_off_gives_it_back(site, rita):
    otto = site.person("otto", "operator")
    for _ in range(3):
        graded(review_cast.flagged(0.3), rita, 0.7)
        review_cast.flagged(0.3)
    now = NOON + dt.timedelta(hours=1)
    before, found = posterior_of("category", now).posterior, proposal()
    recalibration.put_in_force(found, otto, version=1, fingerprint=found.fingerprint, note="ten good reviews")
    held = posterior_of("category", now)
    assert held.posterior.alpha.tobytes() == found.rectified.posterior.alpha.tobytes()
    assert held.arms["cross-repo"].mean > before.arms["cross-repo"].mean
    assert proposal().is_in_force
    recalibration.switch_off("category", otto, version=2)
    after = posterior_of("category", now).posterior
    assert (after.version, after.alpha.tobytes()) == (before.version, before.alpha.tobytes())
    assert not proposal().is_in_force
    assert list(Rectifier.objects.order_by("version").values_list("enabled", "by", "note")) == [
        (True, "otto", "ten good reviews"),
        (False, "otto", ""),
    ]
    assert Grade.objects.filter(source="journal", value=0.3).count() == 6


def test_grades_that_came_meanwhile_are_not_put_in_force_unseen(rita):
    graded(review_cast.flagged(), rita, 0.8)
    graded(review_cast.flagged(), rita, 0.8)
    seen = proposal()
    graded(review_cast.flagged(), rita, 0.2)
    with pytest.raises(StaleVersion, match="Grades came in"):
        recalibration.put_in_force(proposal(), rita, version=seen.version, fingerprint=seen.fingerprint)
    assert not Rectifier.objects.exists()


# ---- under a calibration


def fallbacks(rita, value=0.2, human=0.7, count=3, arm="code"):
    """Fallbacks of the slice, each graded by a person too."""
    for _ in range(count):
        graded(scale_cast.fell_back(value, arm=arm), rita, human)


def test_at_the_start_fallbacks_are_compared_as_shifted_to_the_mean_verdict(site, rita):
    for _ in range(4):
        site.session(ago=2 * scale_cast.DAY).judged(0.8).recheck()
    fallbacks(rita, value=0.3, human=0.7)
    scale_cast.fell_back(0.3)
    pairs = [pair for pair in recalibration.pairs("category", NOON) if pair.source == "trajectory"]
    assert [pair.machine for pair in pairs] == [pytest.approx(0.8)] * 3


def test_a_calibration_that_came_meanwhile_makes_the_page_stale(site, rita):
    otto = site.person("otto", "operator")
    graded(site.session().judged(0.5).recheck(), rita, 0.8)
    graded(site.session().judged(0.5).recheck(), rita, 0.8)
    seen = proposal()
    one_scale.switch_off("category", otto, version=2)
    with pytest.raises(StaleVersion, match="the calibration changed"):
        recalibration.put_in_force(proposal(), otto, version=1, fingerprint=seen.fingerprint)
    assert not Rectifier.objects.exists()


@pytest.fixture(scope="module")
def calibrated(django_db_setup, django_db_blocker):
    """The operator who put a calibration in force. Built once: tests without one come first in the module."""
    site = Site()
    with django_db_blocker.unblock(), site.rolled_back():
        with time_machine.travel(NOON, tick=False):
            otto = site.person("otto", "operator")
            scale_cast.pairs()
            scale_cast.put(otto)
        yield otto


def test_people_are_compared_with_what_the_calibration_makes_of_a_fallback(calibrated, rita):
    fallbacks(rita)
    pairs = [pair for pair in recalibration.pairs("category", NOON) if pair.arm == "code"]
    session = scale_cast.fell_back(0.2, arm="code")
    read = one_scale.ScaleReader().calibrate(session, session.grades.get(source="trajectory"))
    assert [pair.machine for pair in pairs] == [pytest.approx(read.value)] * 3
    assert read.value > 0.4
    assert {pair.machine for pair in recalibration.pairs("harness", NOON)} != {0.2}


def test_a_judges_grade_is_compared_as_it_was_given(calibrated, site, rita):
    graded(site.session().judged(0.5).recheck(), rita, 0.8)
    assert [pair.machine for pair in recalibration.pairs("category", NOON)] == [0.5]


def test_what_counts_nothing_under_the_calibration_is_no_pair(calibrated, rita):
    graded(scale_cast.fell_back(0.3, source=Source.JOURNAL), rita, 0.8)
    assert recalibration.pairs("category", NOON) == []


def test_the_offset_is_what_is_left_after_the_calibration_and_the_table_says_what_it_moves(calibrated, rita):
    fallbacks(rita, human=0.9)
    scale_cast.fell_back(0.2, arm="code")
    found = proposal()
    (row,) = [each for each in found.strata if each.offset.key == ("code", "trajectory", "")]
    session = scale_cast.fell_back(0.2, arm="code")
    read = one_scale.ScaleReader().calibrate(session, session.grades.get(source="trajectory")).value
    assert 0 < row.offset.offset < 0.9 - read
    assert (row.rewards, row.before) == (1, pytest.approx(read))
    assert row.after == pytest.approx(min(read + row.offset.offset, 1))
    found = proposal()
    made = recalibration.put_in_force(found, calibrated, version=1, fingerprint=found.fingerprint)
    assert made.calibration == 2
    assert proposal().is_in_force
    now = posterior_of("category", NOON + dt.timedelta(hours=1)).posterior
    assert now.alpha.tobytes() == found.rectified.posterior.alpha.tobytes()


def test_offsets_rest_under_another_calibration_and_off_and_come_back_with_theirs(calibrated, site, rita):
    fallbacks(rita, human=0.9)
    for _ in range(3):
        graded(site.session("code").judged(0.5).recheck(), rita, 0.7)
    found = proposal()
    recalibration.put_in_force(found, calibrated, version=1, fingerprint=found.fingerprint)
    assert proposal().resting == {}
    one_scale.switch_off("category", calibrated, version=3)
    resting = sum(key[1] == "trajectory" for key in (each.key for each in found.offsets))
    after = proposal()
    assert after.resting == {"trajectory": resting}
    assert not after.is_in_force
    held = posterior_of("category", NOON).posterior.policy.rectifier
    assert {source for _, source, _ in held} == {"judge"}
    assert after.fingerprint != found.fingerprint


def test_the_cap_that_pairs_suggest_is_of_what_the_calibration_makes_of_grades(calibrated, rita):
    """Read as they stand, these are off by .5; read on the judge's scale by next to nothing, and may amount to more."""
    one_scale.switch_off("category", calibrated, version=3)
    for human in (0.45, 0.5, 0.55, 0.52):
        fallbacks(rita, human=human, count=1)
    raw = advise_cap(recalibration.pairs("category", NOON), "trajectory")
    scale_cast.put(calibrated)
    read = advise_cap(recalibration.pairs("category", NOON), "trajectory")
    assert raw.bias == pytest.approx(-0.305, abs=0.01)
    assert abs(read.bias) < 0.05
    assert read.cap > 3 * raw.cap
