"""What came with a mark: which marks there are, what is estimated of them, and what the page says."""

import datetime as dt

import numpy as np
import pytest
import time_machine

from bandit.models import Arm
from benchmarks.compared import store
from benchmarks.compared.world import live, steady
from grading.days import midnight
from grading.insight import agents, marks, sentences, since
from grading.insight.core.advisory import allot
from grading.insight.core.effects import group_marks
from grading.insight.core.results import AgentCard, EffectFinding, MarkKind, SinceReading, Span, TimeMark
from grading.models import (
    InstructionKey,
    Quota,
    QuotaTransition,
    Rubric,
    RubricActivation,
    Session,
    SessionFacts,
    StoredReading,
)
from grading.models.quota import QuotaState
from tests.insight.core.tables import day, table
from tests.insight.helpers import AFTER, BEFORE, hand_in
from tests.site import NOON

pytestmark = pytest.mark.django_db
DAYS, CHANGE = 84, 56
NOW = store.end_of(DAYS - 1)


def live_site(seed=1, **fields):
    """A simulated site with a new version of one of two harnesses after 56 days."""
    is_after = np.arange(DAYS) >= CHANGE
    rng = np.random.default_rng(seed)
    plan = steady(DAYS, **{"new_version": is_after, "task_share": 0.5, "first_harness": 0.6, **fields})
    store.write(live(plan, rng), rng, 0)


def falling(by):
    return np.where(np.arange(DAYS) >= CHANGE, by, 0.0)


def mark(number, kind=MarkKind.POLICY):
    at = dt.datetime.combine(day(number), dt.time(12), dt.UTC)
    return TimeMark(kind=kind, at=at, day=day(number), label=f"mark {number}", key=f"{kind}:{number}")


@pytest.mark.postgresql
def test_fall_on_recurring_tasks_since_a_version():
    """A large fall of sessions with the new version is called one of the agents, with "since" and a width."""
    live_site(level=falling(-0.2))
    store.check()
    effect = since.read(NOW).effects[0]
    assert [each.label for each in effect.marks] == ["Claude Code 2.0"]
    assert effect.finding is EffectFinding.WORSE
    assert effect.low < -0.15 < effect.high
    text = sentences.write_effect(effect)
    assert text.startswith(f"Since Claude Code 2.0, {sentences.AGENTS_DID_WORSE} on 12 tasks that recur")
    assert "width" in text
    assert "because" not in text


def test_harder_work_is_not_a_fall_of_the_agents():
    """Everything but the recurring tasks got harder."""
    live_site(difficulty=falling(-0.25), first_harness=1.0)
    text = sentences.write_effect(since.read(NOW).effects[0])
    assert "lower on comparable work" in text
    assert "it did not change beyond chance" in text
    assert sentences.AGENTS_DID_WORSE not in text


def test_without_tasks_the_page_cannot_tell():
    live_site(level=falling(-0.2), task_share=0.0)
    text = sentences.write_effect(since.read(NOW).effects[0])
    assert "It is unclear whether the agents or the work changed, because too few tasks recur." in text


def test_new_rubric_at_the_same_time_is_not_enough_to_say():
    """Nothing compares the two rubrics, and every session after the mark has the new one."""
    is_after = np.arange(DAYS) >= CHANGE
    live_site(reading=falling(-0.2), rubric=is_after.astype(int), first_harness=1.0)
    effect = since.read(NOW).effects[0]
    assert effect.finding is EffectFinding.NOT_ENOUGH
    assert effect.effect is None


def test_worker_stores_what_it_computes():
    live_site()
    since.store(NOW)
    stored, fresh = since.stored_reading(), since.read(NOW)
    assert stored.marks == fresh.marks
    assert [effect.measure.name for effect in stored.effects] == since.ALL_MEASURES
    assert stored.effects[0].effect == pytest.approx(fresh.effects[0].effect)
    StoredReading.objects.filter(name=since.STORED_NAME).update(value={"marks": 1})
    assert since.stored_reading() is None


def test_worker_stores_an_outage_that_began_since(monkeypatch):
    monkeypatch.setattr("grading.models.readings.StoredReading.is_recent", lambda *_: False)
    since.store(NOW)
    quota = Quota.objects.create(key="k", model="judge")
    began = QuotaTransition.objects.create(quota=quota, state=QuotaState.EXHAUSTED, at=NOW - dt.timedelta(days=9))
    since.store(NOW)
    (outage,) = since.stored_reading().marks
    assert outage.key == f"outage:{began.pk}"


@pytest.mark.parametrize(
    ("hours", "is_told"),
    [
        ((-30, -1), False),
        ((-30, 0), False),
        ((-30, 1), True),
        ((-30, None), True),
        ((5, 9), True),
        ((168, None), False),
    ],
)
def test_letter_tells_of_the_outages_that_overlap_its_week(hours, is_told):
    """`hours` are from the week's first midnight to the outage's beginning and end."""
    week = Span(first=dt.date(2026, 3, 23), last=dt.date(2026, 3, 29))
    at, until = (None if each is None else midnight(week.first) + dt.timedelta(hours=each) for each in hours)
    outage = TimeMark(kind=MarkKind.OUTAGE, at=at, day=at.date(), label="judge out", key="outage:1", until=until)
    reading = SinceReading(marks=(outage,), effects=(), read_at=None)
    assert since.outages_during(reading, week) == ((outage,) if is_told else ())


def test_cards_of_agents_on_like_work():
    """The first harness is .2 worse, and both are compared on work that both did."""
    live_site(level=np.full(DAYS, -0.2), new_version=np.ones(DAYS, dtype=bool))
    cards = {card.harness: card for card in agents.compare_agents(Span(first=store.day_of(0), last=store.day_of(83)))}
    assert cards["codex"].is_best
    assert not cards["claude-code"].is_best
    assert cards["codex"].reward.value - cards["claude-code"].reward.value == pytest.approx(0.18, abs=0.03)
    assert "more than all others beyond chance" in sentences.write_agent(cards["codex"])


@pytest.mark.usefixtures("noon")
def test_few_sessions_are_not_enough_for_a_card(site):
    hand_in(site, AFTER, [0.5] * 3)
    card = agents.compare_agents(AFTER)[0]
    assert card.reward is None
    assert "not enough data. 3 graded sessions, but 20 are needed." in sentences.write_agent(card)


def test_too_few_sessions_are_said_once_for_all_agents():
    """Only the sentence of an agent that varies too much stands by itself."""
    few = [
        AgentCard(
            harness=harness,
            model="m-1",
            sessions=50,
            shared=shared,
            reward=None,
            cost=None,
            minutes=None,
            is_best=False,
            why="its sessions vary too much",
        )
        for harness, shared in (("codex", 14), ("gptme", 3), ("aider", 40))
    ]
    assert sentences.write_too_few(few) == [
        (
            "20 graded sessions on work that another harness also does are needed to compare: codex with m-1 has 14, "
            "gptme with m-1 has 3."
        ),
        "aider with m-1: not enough data. Its sessions vary too much.",
    ]


@pytest.mark.usefixtures("noon")
def test_a_version_is_a_mark_with_its_fifth_session(site):
    """One odd session, or one that claims an odd version, is none; nor is the first version of all."""
    hand_in(site, BEFORE, [0.5] * 6, version="1.0")
    hand_in(site, AFTER, [0.5] * 4, version="2.0")
    whole = Span(first=BEFORE.first, last=AFTER.last)
    assert marks.load_marks(whole) == ()
    hand_in(site, AFTER, [0.5], version="2.0")
    (found,) = marks.load_marks(whole)
    assert (found.kind, found.label, found.day) == (MarkKind.VERSION, "Claude Code 2.0", AFTER.first)
    assert [each.label for each in marks.load_marks(AFTER)] == ["Claude Code 2.0"]


@pytest.mark.usefixtures("noon")
def test_a_version_of_merged_harnesses_is_one_mark(site):
    hand_in(site, BEFORE, [0.5] * 6, version="1.0")
    hand_in(site, AFTER, [0.5] * 3, version="2.0")
    others = hand_in(site, AFTER, [0.5] * 3, version="2.0")
    into = Arm.objects.get(bandit__name="harness", name="claude-code")
    arm = Arm.objects.create(bandit=into.bandit, name="claude", merged_into=into)
    Session.objects.filter(pk__in=[each.pk for each in others]).update(harness=arm)
    (found,) = marks.load_marks(Span(first=BEFORE.first, last=AFTER.last))
    assert (found.label, found.day) == ("Claude Code 2.0", AFTER.first)


@pytest.mark.usefixtures("noon")
def test_sessions_that_claim_odd_versions_hide_no_mark(site, monkeypatch):
    monkeypatch.setattr(marks, "MAX_PER_KIND", 2)
    hand_in(site, BEFORE, [0.5] * 6, version="1.0")
    hand_in(site, AFTER, [0.5] * 5, version="2.0")
    for number in range(5):
        hand_in(site, Span(first=AFTER.last, last=AFTER.last), [0.5], version=f"odd {number}")
    whole = Span(first=BEFORE.first, last=AFTER.last)
    assert [each.label for each in marks.load_marks(whole)] == ["Claude Code 2.0"]


@pytest.mark.usefixtures("noon")
def test_an_outage_is_a_mark_after_an_hour():
    quota = Quota.objects.create(key="k", model="m", state=QuotaState.EXHAUSTED)
    QuotaTransition.objects.create(quota=quota, state=QuotaState.EXHAUSTED, at=NOON - dt.timedelta(minutes=59))
    today = Span(first=NOON.date(), last=NOON.date())
    assert marks.load_marks(today) == ()
    with time_machine.travel(NOON + dt.timedelta(minutes=1), tick=False):
        assert [each.kind for each in marks.load_marks(today)] == [MarkKind.OUTAGE]


@pytest.mark.usefixtures("noon")
def test_empty_logs_make_no_marks(site):
    """Sessions whose log shows nothing have no version, model or files."""
    hand_in(site, BEFORE, [None] * 5)
    hand_in(site, AFTER, [None] * 5, version=" ".strip())
    assert marks.load_marks(Span(first=BEFORE.first, last=AFTER.last)) == ()


@pytest.mark.usefixtures("noon")
@pytest.mark.postgresql
def test_changed_instructions_and_rubrics_are_marks(site):
    InstructionKey.objects.get_or_create(pk=1, defaults={"secret": b"k" * 32})
    for span, digest in ((BEFORE, "1" * 64), (AFTER, "2" * 64)):
        for session in hand_in(site, span, [0.5] * 5, version="1.0"):
            files = [{"name": "~/.claude/CLAUDE.md", "bytes": 10, "hmac": digest, "source": "hook"}]
            SessionFacts.objects.filter(session=session).update(instruction_files=files)
    rubric = Rubric.objects.active()
    for span in (BEFORE, AFTER):
        at = dt.datetime.combine(span.first, dt.time(8), dt.UTC)
        RubricActivation.objects.create(rubric=rubric, at=at)
    found = marks.load_marks(Span(first=BEFORE.first, last=AFTER.last))
    assert [(each.kind, each.agent) for each in found] == [(MarkKind.RUBRIC, ""), (MarkKind.INSTRUCTIONS, "bob")]


@pytest.mark.pure
def test_marks_with_few_sessions_between_them_are_one_group():
    """19 sessions lie between the first two marks, 20 between the second and the third."""
    sessions = [{"day": 3, "category": "code", "reward": 0.5}] * 19 + [{"day": 6, "reward": 0.5}] * 20
    groups = group_marks([mark(2), mark(5), mark(8), mark(9, MarkKind.OUTAGE)], table(sessions))
    assert [[each.label for each in group] for group in groups] == [["mark 8"], ["mark 5", "mark 2"]]


@pytest.mark.pure
def test_allowance_grows_by_the_day_and_not_by_the_mark():
    """.1 in 30 days: the first mark has .1, one nine days later .03, and three on one day share what grew since."""
    chances = allot([mark(0), mark(9), *(mark(12 + number / 1e3) for number in ())])
    assert list(chances.values()) == pytest.approx([0.1, 0.03])
    crowd = allot([mark(0), *(TimeMark(**{**_fields(mark(9)), "key": f"{n}"}) for n in range(50))])
    assert sum(crowd.values()) == pytest.approx(0.13)


def _fields(each):
    return {name: getattr(each, name) for name in ("kind", "at", "day", "label")}
