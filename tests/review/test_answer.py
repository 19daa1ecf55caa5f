"""Can the reward be trusted today? Every state in one true sentence, with one thing to do."""

import pytest

from grading.monitoring.judges import JudgeInstrument
from grading.review.agreement import JudgeHumanPair, measure_agreement
from grading.review.calibration import Calibration
from grading.review.trust import Share
from grading.screens.desk.answer import TrustFacts, answer

OUT = "The judge has been out since 12:04 UTC"
ALL = {"may_review": True, "may_operate": True}


def compared(n):
    pairs = [JudgeHumanPair(judge=0.57, human=0.5)] * n
    grader = JudgeInstrument(model="m", route="r", rubric="", version="")
    return Calibration(grader=grader, whole=measure_agreement(pairs), early=0, strata={})


def today(part, whole):
    return Share(part=part, whole=whole)


@pytest.mark.parametrize(
    ("facts", "word", "sentence", "button", "leads_to"),
    [
        (
            {"any_sessions": False},
            "No rewards yet.",
            "None of your own sessions has arrived.",
            "Connect an agent",
            "connect",
        ),
        (
            {"trouble": OUT, "today": today(23, 52), "contradicted": 5},
            "Not fully.",
            f"{OUT}: 23 of today’s 52 rewards are provisional. 5 rewards contradict a commit or a pull request.",
            "Review the five",
            "review?rule=A1",
        ),
        (
            {"trouble": OUT, "today": today(1, 52)},
            "Not fully.",
            f"{OUT}: 1 of today’s 52 rewards is provisional.",
            "See the judge’s quota",
            "quota",
        ),
        (
            {"trouble": "No judge is configured"},
            "Not fully.",
            "No judge is configured: no sessions to grade have ended today.",
            "See the judge’s quota",
            "quota",
        ),
        (
            {"trouble": "Calls to the judge fail", "today": today(0, 3)},
            "Not fully.",
            "Calls to the judge fail: none of today’s rewards is provisional.",
            "See the judge’s quota",
            "quota",
        ),
        (
            {"trouble": OUT, "ungraded": 1},
            "Not fully.",
            f"{OUT}: today’s only session is not graded yet.",
            "See the judge’s quota",
            "quota",
        ),
        (
            {"today": today(2, 9), "ungraded": 3},
            "Mostly.",
            (
                "The judge is open; 2 of today’s 9 rewards are provisional until a verdict or a person makes them "
                "final, and 3 of today’s sessions are not graded yet."
            ),
            "See the two provisional",
            "sessions?behind=provisional",
        ),
        (
            {"ungraded": 4},
            "Mostly.",
            "The judge is open; none of today’s 4 sessions is graded yet.",
            "See today’s sessions",
            "sessions?behind=today",
        ),
        (
            {"contradicted": 1, "today": today(2, 9)},
            "Not fully.",
            "1 reward contradicts a commit or a pull request; 2 of today’s 9 rewards are provisional.",
            "Review the one",
            "review?rule=A1",
        ),
        (
            {"contradicted": 30, "today": today(0, 9)},
            "Not fully.",
            "30 rewards contradict a commit or a pull request.",
            "Review the 30",
            "review?rule=A1",
        ),
        (
            {"alarms": ("A26", "A30"), "today": today(0, 9)},
            "Not fully.",
            "An alarm is open: a judge can’t tell sessions apart.",
            "See the alarm",
            "alarms",
        ),
        (
            {"alarms": ("A1",), "today": today(0, 9)},
            "Not fully.",
            "An alarm is open: too many sessions went ungraded this week, but all are graded now.",
            "See the alarm",
            "alarms",
        ),
        (
            {"compared": compared(7), "today": today(3, 52), "blind": 9},
            "Unproven.",
            (
                "The judge isn’t calibrated yet: it has 7 of the 20 blind grades that it needs; 3 of today’s 52 "
                "rewards are provisional."
            ),
            "Grade nine blind",
            "review?entered_as=slice",
        ),
        (
            {"compared": compared(18), "today": today(0, 52), "blind": 9},
            "Unproven.",
            "The judge isn’t calibrated yet: it has 18 of the 20 blind grades that it needs.",
            "Grade two blind",
            "review?entered_as=slice",
        ),
        (
            {"compared": compared(46), "today": today(3, 52)},
            "Mostly.",
            "The judge is open; 3 of today’s 52 rewards are provisional until a verdict or a person makes them final.",
            "See the three provisional",
            "sessions?behind=provisional",
        ),
        (
            {"compared": compared(46), "today": today(0, 52), "queue": 19},
            "Yes.",
            (
                "None of today’s rewards is provisional, no rule has flagged a session, and the judge differs from "
                "people by .07 on average, over 46 blind grades."
            ),
            "Review the 19 waiting",
            "review",
        ),
        (
            {"today": today(0, 3)},
            "Yes.",
            "None of today’s rewards is provisional, no rule has flagged a session.",
            "See today’s sessions",
            "sessions?behind=today",
        ),
        (
            {"alarms": ("A30", "A16")},
            "Yes, so far.",
            "No sessions to grade have ended today, no rule has flagged a session.",
            "See the sessions",
            "sessions",
        ),
    ],
)
def test_every_state_has_its_sentence_and_its_button(facts, word, sentence, button, leads_to):
    found = answer(TrustFacts(**{**ALL, **facts}))
    assert (found.word, found.sentence) == (word, sentence)
    assert found.step.label == button
    assert "?".join(filter(None, (found.step.screen, found.step.query))) == leads_to
    assert found.is_bad == (word == "Not fully.")


def test_who_may_only_read_is_offered_to_see_and_not_to_review():
    assert answer(TrustFacts(contradicted=5)).step.label == "See the five"
    assert answer(TrustFacts(queue=2)).step.label == "See the two waiting"
    assert answer(TrustFacts(compared=compared(7), blind=3)).step.label == "See the sessions"
    assert answer(TrustFacts(any_sessions=False)).step is None
