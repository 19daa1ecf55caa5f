"""Incidents of the judge (I34 to I45)."""

import datetime as dt
import itertools

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.utils import timezone

from bandit.models import Bucket, Grader
from grading.evidence.material import judgeable
from grading.judging import enqueuing, inputs, results, sweeper, worker
from grading.judging.allowance import budget
from grading.judging.core.verdict_score import VERSION
from grading.models import Grade, Rubric
from grading.monitoring import judges
from grading.monitoring.alarms import open_alarms
from grading.monitoring.rule import RULES, Severity
from grading.monitoring.watch import watch
from grading.review import calibration, shares
from grading.reward import rewards
from grading.vocabulary import Outcome, Reason, Source, WorkKind
from tests.casts import logs
from tests.casts.page import flat
from tests.incidents.helpers import alarms, learned, regained, simulated, submit, work
from tests.site import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def sim(settings, db, redis_url):
    with simulated(settings) as running:
        yield running


OPERATOR = logs.claude("operator-5e0c", ("uptime", "up 3 days"), padding=100)


# --- I34: the judge reads a shared "last log" path -------------------------------------------------------------------


def test_i34_the_log_in_a_shared_slot_is_refused_and_never_reaches_the_judge(sim):
    """I34, the judge read a shared "last log": impossible. The slot's foreign log is refused and never sent; both
    orders of arrival give the same grades.
    """
    session = submit("71a3", log=OPERATOR, started_at=NOON - dt.timedelta(minutes=34))
    work()
    (call,) = sim.calls
    assert "uptime" not in call.request.user
    assert "Submitted the fix upstream" in call.request.user
    assert session.grades.get(source=Source.TRAJECTORY).reason == Reason.LOG_OVERWRITTEN


def test_i34_sessions_get_identical_grades_in_whichever_order_they_finish(site, sim):
    def lived(names):
        with site.rolled_back():
            for name in names:
                submit(name)
                submit(name, log=OPERATOR)
            assert work() == 2
            rows = Grade.objects.verdicts().order_by("session__external_id")
            return list(rows.values_list("session__external_id", "value", "inputs_sha256"))

    assert lived(["71a3", "a517"]) == lived(["a517", "71a3"])


# --- I35: quota exhausted, nobody told -------------------------------------------------------------------------------


def test_i35_quota_exhausted_is_loud_and_repaired_exactly(site, sim):
    """I35, quota gone and nobody told: alarm (A2) at the first session, repaired exactly. The buckets are those of a
    history that never failed. Worker, browser and the rest: `tests/stories/test_seed_001.py`.
    """
    with site.rolled_back():
        for number in range(3):
            submit(f"s{number}")
        assert work() == 3
        never_failed = learned()
    with time_machine.travel(timezone.now(), tick=True) as clock:
        sim.script(regained(days=2))
        outage = [loud(number) for number in range(3)]
        clock.shift(dt.timedelta(days=2))
        work()
        work()
        assert not alarms("A2")
        assert all(rewards.live(session).final for session in outage)
        assert learned() == never_failed
        assert len(sim.calls) == 3 + 1 + 3


def loud(number):
    """One more session during the outage: the alarm stands, the row says why it waits, nothing final is learned."""
    session = submit(f"s{number}")
    worker.pump()
    sweeper.sweep()
    (said,) = alarms("A2")
    for words in ("claude-sonnet-5-5 is out until", "Quota exhausted.", "You will regain access on", "then probe now"):
        assert words in said
    settlement = rewards.live(session)
    assert (settlement.final, settlement.reason) == (False, Reason.QUOTA_EXHAUSTED)
    assert session.judge_jobs.open().get().reason == Reason.QUOTA_EXHAUSTED
    return session


# --- I36, I37, I38: who gave the grade, and at what level ------------------------------------------------------------

SONNET = {"model": "claude-sonnet-5-5", "route": "api", "rubric": "a" * 64, "version": "digest/1"}


def verdict(site, value, **fields):
    """A judge's grade of a session of its own."""
    identity = SONNET | {name: fields.pop(name) for name in SONNET.keys() & fields.keys()}
    ran_on = fields.pop("session_model", "")
    return site.session(**{"ended_at": timezone.now(), "model": ran_on, **fields}).judged(value, **identity).grade


def test_i36_a_grade_names_model_route_and_rubric_and_the_bandit_keeps_them_apart(site, sim):
    """I36, the model's name as the grader's identity: impossible. Model, route, rubric and version of the digest stand
    on each grade and are a grader of their own in the bandit; a report averages one grader and names it.
    """
    session = submit("71a3")
    work()
    grade = session.grades.verdicts().get()
    assert (grade.model, grade.route) == ("claude-sonnet-5-5", sim.url.removeprefix("http://"))
    assert (grade.rubric, grade.version) == (Rubric.objects.active().sha256, VERSION)
    for change in ({"route": "gateway"}, {"rubric": "b" * 64}, {"model": "claude-haiku-5-5"}, {}):
        rewards.settle(verdict(site, 0.5, **change).session)
    assert Grader.objects.filter(source="judge", context="").count() == 1 + 4


def test_i36_a_report_averages_one_grader_only_and_names_it(site, client):
    rita = site.person("rita", "reviewer")
    for value in (0.1, 0.2, 0.3):
        site.on(verdict(site, value, route="gateway").session).answered_blind(rita, 0.9)
    for value in (0.8, 0.9):
        site.on(verdict(site, value, rubric="b" * 64).session).answered_blind(rita, 0.9)
    found = calibration.for_grader(judges.grader_in_use().grader)
    assert str(found.grader) == "claude-sonnet-5-5 at api rubric bbbb"
    assert found.whole.n == 2
    assert found.whole.error.mean == pytest.approx(0.05)
    client.force_login(rita)
    html = flat(client.get("/"))
    assert ".05<small>mean error</small>" in html
    assert "over 2 blind pairs" in html
    assert "random check of claude-sonnet-5-5" in html


def test_i37_graders_at_unlike_levels_are_an_advisory_once_there_are_twenty_of_each(site):
    """I37, the raw scores of three judges mixed: told (A27) at twenty of each. Raw values are kept by grader, and one
    judge's shift comes out of its sums exactly.
    """
    for number in range(20):
        verdict(site, 0.53 + 0.01 * (number % 3))
        if number == 19:
            watch()
            assert not alarms("A27")
        verdict(site, 0.68 + 0.01 * (number % 3), model="claude-haiku-5-5")
    watch(timezone.now() + dt.timedelta(hours=1))
    (said,) = alarms("A27")
    assert "claude-haiku-5-5 at api, rubric aaaa, digest/1 gives 0.69 (20)" in said
    rule, alarm = RULES["A27"], open_alarms().get(rule="A27")
    assert rule.severity is Severity.ADVISORY
    # It lists the sessions of the older grader, to be judged again.
    older = Grade.objects.filter(model="claude-sonnet-5-5")
    assert set(rule.sessions(alarm.about, timezone.now())) == set(older.values_list("session", flat=True))


def test_i37_shifting_one_judge_moves_its_own_sums_only_and_the_shift_can_be_taken_out_exactly(site):
    """What a normalisation at read needs: S' = b·S + a·n within the grader."""

    def lived(shift):
        with site.rolled_back():
            for number in range(12):
                arm = ("code", "triage")[number % 2]
                ended = {"category": arm, "ended_at": NOON}
                rewards.settle(verdict(site, 0.4 + 0.01 * number, **ended).session)
                shifted = verdict(site, 0.3 + 0.01 * number + shift, **ended, model="claude-haiku-5-5")
                rewards.settle(shifted.session)
            rows = Bucket.objects.filter(bandit__name="category", n__gt=0)
            return {(row.arm.name, row.grader.model): (row.n, row.s) for row in rows}

    plain, shifted = lived(0.0), lived(0.2)
    assert len(plain) == 4
    for (arm, model), (n, s) in shifted.items():
        taken_out = 200_000 * n if model == "claude-haiku-5-5" else 0
        assert plain[arm, model] == (n, s - taken_out)


def test_i38_a_level_that_moves_with_the_grader_is_named_as_that_not_as_drift(site):
    """I38, the judge's provider switched: alarm (A27, A10), which names the grader as the cause."""
    for number in range(20):
        verdict(site, 0.5 + 0.02 * (number % 5))
    for number in range(20):
        verdict(site, 0.65 + 0.02 * (number % 5), route="openrouter")
    watch()
    assert "The grader changed, and so did the level of its verdicts" in alarms("A27")[0]


def test_i38_graders_of_unlike_work_are_not_compared(site):
    """Reading sessions are graded by a rubric of their own: its level says nothing about the one of production."""
    production, reading = (Rubric.objects.active(kind).sha256 for kind in (WorkKind.PRODUCTION, WorkKind.CONSUMPTION))
    for number in range(20):
        verdict(site, 0.3 + 0.02 * (number % 5), rubric=reading)
        verdict(site, 0.7 + 0.02 * (number % 5), rubric=production)
    watch()
    assert not alarms("A27")
    # One judge, two changes of its grades on production: one line, about the latest.
    for version, level in (("2", 0.5), ("3", 0.3)):
        for number in range(20):
            verdict(site, level + 0.02 * (number % 5), rubric=production, version=version)
    watch(timezone.now() + dt.timedelta(hours=1))
    (told,) = alarms("A27")
    assert "gives 0.34 (20)" in told


def test_i38_two_graders_at_one_level_raise_nothing(site):
    for number in range(25):
        verdict(site, 0.5 + 0.02 * (number % 5))
        verdict(site, 0.52 + 0.02 * (number % 5), route="openrouter")
    watch()
    assert not alarms("A27")


# --- I40: alignment with goals graded as quality ---------------------------------------------------------------------


def test_i40_execution_and_goal_fit_are_scored_and_stored_apart(sim):
    """I40, alignment with goals graded as quality: impossible to blend. Two dimensions in rubric, reply and row.
    Nothing looks at how often reasons use the same phrases.
    """
    sim.script({"score": 0.6, "dimensions": {"execution": 0.9, "goal_fit": 0.2, "harmlessness": 1.0}})
    session = submit("71a3")
    work()
    dimensions = session.grades.verdicts().get().evidence["dimensions"]
    assert (dimensions["execution"], dimensions["goal_fit"]) == (0.9, 0.2)


# --- I41: one judge family grades its own ----------------------------------------------------------------------------


def test_i41_a_fixed_share_gets_a_second_family_drawn_with_the_sites_key_beside_the_chain(sim, settings):
    settings.JUDGE_SECOND_MODEL = "gpt-6"
    budget.set_policy(by=None, second_share=0.25)
    names = [f"s{number}" for number in range(12)]
    sessions = [submit(name) for name in names]
    while work():
        pass
    chosen = {name for name in names if shares.keyed_number("second", "bob", name) < 0.25}
    parallel = Grade.objects.verdicts().filter(parallel=True)
    assert 0 < len(chosen) < 6
    assert set(parallel.values_list("session__external_id", "model")) == {(name, "gpt-6") for name in chosen}
    for session in sessions:
        assert rewards.live(session).grade.model == "claude-sonnet-5-5"


def test_i41_one_family_judging_nearly_everything_is_an_advisory_until_a_second_one_judges_a_fifth(site):
    """I41, one family of judges grades its own: told (A16). A fixed share, drawn with the site's key, gets a second
    family beside the chain.
    """
    for number in range(50):
        verdict(site, 0.01 * number)
    watch()
    assert "50 of 50 verdicts in 14 days come from the claude family" in alarms("A16")[0]
    for number in range(13):
        site.session(ended_at=timezone.now()).judged(0.01 * number, model="openai/gpt-6", parallel=True)
    watch(timezone.now() + dt.timedelta(hours=1))
    assert not alarms("A16")


def test_i41_a_judge_that_favours_its_own_family_is_an_advisory(site):
    for number in range(20):
        verdict(site, 0.567 + 0.001 * number, session_model="claude-opus-4-6")
        verdict(site, 0.508 + 0.001 * number, session_model="gpt-5.2-codex")
    watch()
    assert "its own family 0.58 on average (20), and others 0.52 (20)" in alarms("A16")[0]


# --- I42: the nightly judge judges everything again ------------------------------------------------------------------


def test_i42_asking_every_night_asks_once(sim):
    """I42, everything judged again every night: impossible, and an alarm (A15) at the first repeat. Five nights, one
    call; the database refuses a second row; a call that gets past the guards is an alarm.
    """
    session = submit("71a3")
    work()
    for _night in range(5):
        submit("71a3")
        enqueuing.enqueue(session)
        enqueuing.add(session, Rubric.objects.active())
        work()
    assert len(sim.calls) == 1
    watch()
    assert not alarms("A15")


def test_i42_a_grade_of_the_same_inputs_and_identity_is_stored_once(site):
    held = verdict(site, 0.5)
    with pytest.raises(IntegrityError), transaction.atomic():
        site.on(held.session).judged(0.6, **SONNET, inputs_sha256=held.inputs_sha256)


def test_i42_a_call_that_got_past_every_guard_is_an_alarm_at_the_first_repeat(sim):
    session = submit("71a3")
    work()
    turn = worker.claim(enqueuing.add(session, Rubric.objects.active()).pk)
    read = inputs.inputs_sha256(judgeable(session))
    attempt, answer = worker._call_judge(turn, session, None, read)
    results.apply(attempt, answer, turn.judge, inputs_sha256=read)
    watch(timezone.now() + dt.timedelta(minutes=2))
    assert "1 of the last day’s verdicts repeated existing verdicts" in alarms("A15")[0]
    assert RULES["A15"].sessions("", timezone.now()) == (session.pk,)


def test_i42_a_repeat_that_measures_the_judge_is_no_waste(sim):
    budget.set_policy(by=None, repeat_share=1)
    submit("71a3")
    while work():
        pass
    assert len(sim.calls) == 2
    watch(timezone.now() + dt.timedelta(minutes=2))
    assert not alarms("A15")


# --- I43: a judge that cannot tell sessions apart --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "raises"),
    [
        ([0.2, 0.8], True),  # near-binary: two values
        ([0.500 + 0.002 * step for step in range(25)], True),  # many values, spread .014
        ([0.3 + 0.02 * step for step in range(25)], False),
    ],
)
def test_i43_a_judge_without_resolution_is_an_alarm_after_fifty_verdicts(site, values, raises):
    """I43, a judge that cannot tell sessions apart: alarm (A26) at fifty verdicts. Fewer than ten values, or a spread
    under .05, by grader.
    """
    wanted = itertools.cycle(values)
    for _ in range(49):
        verdict(site, next(wanted))
    watch()
    assert not alarms("A26")
    verdict(site, next(wanted))
    watch(timezone.now() + dt.timedelta(hours=1))
    assert bool(alarms("A26")) is raises


def test_i43_two_graders_together_do_not_hide_each_other(site):
    for number in range(50):
        verdict(site, 0.2 + 0.01 * number)
        verdict(site, 0.5, model="claude-haiku-5-5")
    watch()
    (said,) = alarms("A26")
    assert said.startswith("claude-haiku-5-5 at api")
    alarm = open_alarms().get(rule="A26")
    theirs = Grade.objects.filter(model="claude-haiku-5-5").values_list("session", flat=True)
    assert set(RULES["A26"].sessions(alarm.about, timezone.now())) == set(theirs)


# --- I44: a submission that failed scored as a task that failed -------------------------------------------------------


def test_i44_a_verdict_names_the_stage_that_was_reached(sim):
    """I44, a failed delivery scored as a failed task: impossible. The verdict names the stage; a session that never
    began has no reward.
    """
    stages = ["nothing", "attempted", "delivered", "verified"]
    sim.script(*({"reached": stage} for stage in stages))
    for stage in stages:
        session = submit(f"71a3 {stage}")
        work()
        assert session.grades.verdicts().get().evidence["reached"] == stage


def test_i44_a_verdict_of_an_unknown_stage_is_none(sim):
    sim.script({"reached": "nearly"}, {"reached": "nearly"})
    session = submit("71a3")
    work()
    assert rewards.live(session).reason == Reason.UNPARSABLE_VERDICT
    assert not session.grades.verdicts().exists()


def test_i44_a_session_that_never_began_is_neither_judged_nor_rewarded(sim):
    session = submit("71a3", log=logs.claude("71a3", ("make build", "…"), said=""), exit_code=137)
    assert session.outcome == Outcome.INFRASTRUCTURE
    assert work() == 0
    assert not sim.calls
    assert rewards.live(session).value is None
    assert not learned()


# --- I45: the reviewer finds the fault, the exit status says fine ----------------------------------------------------


FAULT = {"checks": [{"name": "review", "passed": False, "detail": "the change that was asked for is not in the diff"}]}
FIXED = {"checks": [{"name": "review", "passed": True}]}


def ideas(subject: str) -> str:
    """A patch with three ideas that nobody else had."""
    rows = (f"cache {subject}", f"warn of old {subject}", f"draw {subject} on the first page")
    added = "".join(f"+| Idea: {row} |\n" for row in rows)
    head = "diff --git a/idea-backlog.md b/idea-backlog.md\n--- a/idea-backlog.md\n+++ b/idea-backlog.md\n"
    return f"{head}@@ -1 +1,4 @@\n # Ideas\n{added}"


def test_i45_the_reviewers_veto_outweighs_exit_status_judge_and_artifacts(sim):
    """I45, the reviewer finds the fault and the exit status says fine: impossible. A mandatory check that failed is a
    fact of the caller: no machine's value, and no `max`, is above the cap; later facts or a person lift it, exactly;
    an exit status lifts nothing.
    """
    sim.script({"score": 0.9}, {"score": 0.9})
    for name, subject in (("71a3", "transcripts"), ("a517", "rubrics")):
        session = submit(name, patch=ideas(subject), facts={**FAULT, "exit_code": 0})
        before = rewards.live(session)
        work()
        held = rewards.live(session)
        assert before.value <= 0.2
        assert (held.value, held.source, held.final) == (0.2, Source.JUDGE, True)
        assert "capped at .20: the mandatory check review failed" in held.sentence
        assert session.grades.get(source=Source.CONSUMPTION).value > 0.2
    assert all(s <= 200_000 * n for *_, n, s, _q in learned())


def test_i45_the_judge_is_told_of_the_fault(sim):
    """However many commits there are beside it."""
    submit("71a3", facts={**FAULT, "commits": [{"sha": f"{number:040x}"} for number in range(500)]})
    work()
    (call,) = sim.calls
    assert "mandatory check failed: review (the change that was asked for is not in the diff)" in call.request.user


def test_i45_the_check_passed_later_lifts_the_veto_to_the_last_bit(site, sim):
    def lived(*checks):
        with site.rolled_back():
            for facts in checks:
                submit("71a3", facts=facts)
            sim.script({"score": 0.9})
            work()
            return learned()

    assert lived(FAULT, FIXED) == lived(FIXED) != lived(FAULT)


def test_i45_an_exit_status_lifts_nothing(site):
    """Status 0 is no grade, whatever the harness that ignored its reviewer makes of it."""

    def lived(exit_code):
        with site.rolled_back():
            session = submit("71a3", facts={"exit_code": exit_code})
            return rewards.live(session).value, learned()

    assert lived(0) == lived(1) == lived(126)
