"""Sessions whose verdict and outcome contradict each other wait for a person."""

import datetime as dt
import random

import pytest
from django.db.models import Count

from bandit.models import LedgerEntry
from benchmarks import outcomes as benchmark
from benchmarks.outcomes import Fate
from grading.models import ReviewItem, Session, SessionLanding, Settlement
from grading.models.outcomes import LandingState
from grading.models.review import Answer, ItemState, QueueEntry
from grading.outcomes import contradictions, following
from grading.outcomes.recording import ReportedOutcome, append
from grading.review import answers
from grading.roles import REVIEWER
from grading.witness import Witness
from tests.site import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged(site):
    def build(verdict=0.9, **fields):
        return site.session(**fields).with_work().judged(verdict).settle()

    return build


def report(session, kind, value, *, detail="", after=dt.timedelta(days=1)):
    now = NOON + after
    outcome = ReportedOutcome(kind=kind, value=value, observed_at=now, detail=detail)
    append(session, outcome, source="token 1", witness=Witness.OBSERVED)
    return contradictions.check(session, now)


# A verdict, an outcome, and whether they are at least .4 apart and on different sides of .5.
@pytest.mark.parametrize(
    ("verdict", "kind", "value", "contradicts"),
    [
        (0.9, "ci", "fail", True),  # .9 − 0
        (0.9, "ci", "pass", False),  # .9 − 1
        (0.9, "ci", "unknown", False),
        (0.3, "ci", "fail", False),  # .3 − 0
        (0.4, "ci", "fail", False),  # .4 − 0, but both are low
        (0.4, "ci", "pass", True),  # 1 − .4
        (0.5, "ci", "fail", False),  # a verdict in the middle contradicts nothing
        (0.5, "ci", "pass", False),
        (0.6, "ci", "fail", True),  # .6 − 0
        (0.6, "deployed", "pass", False),
        (0.2, "quality", 0.7, True),
        (0.5, "quality", 0.7, False),
        (0.9, "closed", "pass", False),  # it may have been finished elsewhere
        (0.9, "reverted", 0.0, False),  # nothing was reverted
    ],
)
def test_how_far_apart(judged, verdict, kind, value, contradicts):
    session = judged(verdict)
    assert report(session, kind, value) is contradicts
    assert ReviewItem.objects.filter(session=session, entered_as=QueueEntry.OUTCOME).exists() is contradicts


def test_the_item_says_what_contradicts(judged):
    session = judged(0.9)
    report(session, "landed", 0.0, detail="0 of 2 commits on main, 2 reverted")
    assert session.review_item.why == "The verdict is 0.90, but 0 of 2 commits on main, 2 reverted."


def test_work_that_has_not_landed_yet_contradicts_nothing(judged):
    session = judged(0.9)
    SessionLanding.objects.create(session=session, open=2)
    assert not report(session, "landed", 0.0)
    assert report(session, "landed", 0.0, after=dt.timedelta(days=15))


def test_no_verdict_no_contradiction(site):
    session = site.session().with_work().settle()
    assert not report(session, "ci", "fail")


def test_a_person_who_decided_is_not_asked_again(site, judged):
    session = judged(0.9)
    olga = site.person("olga", REVIEWER)
    contradictions_before = report(session, "ci", "fail")
    item = session.review_item
    answers.submit(session, olga, answer=Answer.CANNOT_JUDGE, reason="known flaky")
    assert contradictions_before
    assert not report(session, "tests", "fail")
    item.refresh_from_db()
    assert item.state == ItemState.DISMISSED


def test_five_of_one_arm_on_a_day_are_one_item(judged):
    sessions = [judged(0.9) for _ in range(6)]
    elsewhere = judged(0.9, category="code")
    for session in (*sessions, elsewhere):
        report(session, "ci", "fail")
    items = ReviewItem.objects.open().filter(entered_as=QueueEntry.OUTCOME).order_by("pk")
    assert [item.session for item in items] == [sessions[0], elsewhere]
    assert items[0].why.startswith("Verdicts and outcomes of 6 sessions of cross-repo contradict each other today.")


def test_an_answered_item_stands_for_no_later_session(site, judged):
    olga = site.person("olga", REVIEWER)
    sessions = [judged(0.9) for _ in range(7)]
    for session in sessions[:4]:
        report(session, "ci", "fail")
        answers.submit(session, olga, answer=Answer.CANNOT_JUDGE, reason="known flaky")
    for session in sessions[4:]:
        report(session, "ci", "fail")
    items = ReviewItem.objects.open().filter(entered_as=QueueEntry.OUTCOME)
    assert [item.session for item in items] == [sessions[4]]
    assert items[0].why.startswith("Verdicts and outcomes of 7 sessions of cross-repo contradict each other today.")
    assert ReviewItem.objects.get(session=sessions[0]).why.startswith("The verdict is 0.90")


def test_an_item_goes_with_its_contradiction_and_comes_back(judged):
    session = judged(0.9)
    assert report(session, "landed", 0.0)
    assert not report(session, "landed", 1.0, after=dt.timedelta(days=2))
    assert session.review_item.state == ItemState.DONE
    assert report(session, "landed", 0.0, after=dt.timedelta(days=3))
    session.review_item.refresh_from_db()
    assert session.review_item.state == ItemState.OPEN
    assert session.review_item.why.startswith("The verdict is 0.90")


def test_an_item_of_another_reason_stays(judged, site):
    session = judged(0.9)
    site.on(session).in_queue(QueueEntry.PERSON, why="look")
    assert not report(session, "landed", 0.0)
    assert not report(session, "landed", 1.0, after=dt.timedelta(days=2))
    item = ReviewItem.objects.get(session=session)
    assert (item.state, item.why) == (ItemState.OPEN, "look")


def test_ordinary_work_is_not_flagged(site, settings, tmp_path, monkeypatch):
    """200 sessions in a real repository: good work was squashed, bad work was abandoned, and the claims of those that
    amended their commit cannot be found, whatever they were judged. At most 2 come to review.
    """
    settings.STATE_DIR = tmp_path / "state"
    fates = (Fate.SQUASHED, Fate.AMENDED, Fate.ABANDONED, Fate.SQUASHED)
    monkeypatch.setattr(benchmark, "CYCLE", fates)
    repository, history = benchmark.follow(tmp_path / "engine")
    following.fetch(repository, NOON)
    planned = [benchmark.plan_session(history, number) for number in range(200)]
    hashes = history.finish()
    draw = random.Random(7)
    verdicts = {Fate.SQUASHED: (0.65, 1.0), Fate.ABANDONED: (0.0, 0.35), Fate.AMENDED: (0.0, 1.0)}
    for each in planned:
        each.commits = [hashes.get(mark, mark) for mark in each.commits]
        session = Session.objects.get(pk=benchmark.submit(repository, each, agent="bob"))
        grade = site.on(session).judged(draw.uniform(*verdicts[each.fate])).grade
        Session.objects.filter(pk=session.pk).update(verdict=grade)
    last = dt.datetime.fromtimestamp(max(each.end for each in planned), dt.UTC)
    for after in (dt.timedelta(minutes=10), dt.timedelta(days=14)):
        assert following.run_due(last + after) == 200
    states = dict(SessionLanding.objects.values_list("state").annotate(Count("pk")))
    assert states == {LandingState.LANDED: 100, LandingState.UNKNOWN: 50, LandingState.OPEN: 50}
    assert ReviewItem.objects.count() <= 2


def test_rewards_and_ledger_stay(judged):
    session = judged(0.9)
    before = [list(model.objects.order_by("pk").values()) for model in (Settlement, LedgerEntry)]
    report(session, "ci", "fail")
    session.refresh_from_db()
    assert before == [list(model.objects.order_by("pk").values()) for model in (Settlement, LedgerEntry)]
    assert session.reward_value == 0.9
