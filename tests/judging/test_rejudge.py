"""Judging again: the plan with its price, a run that resumes, what it leaves out, changes, and calling it off."""

import datetime as dt

import pytest
from django.utils import timezone

from grading.judging import judges, worker
from grading.judging.outlook.estimates import CostEstimate, estimate, pace
from grading.judging.rubrics import plans, progress, rejudge, versions
from grading.judging.rubrics.plans import LeftOut
from grading.models import JudgeJob, JudgePolicy, JudgeRun, Quota, Rubric, Session
from grading.models.judging import JobState
from grading.reward import rewards
from grading.vocabulary import Outcome
from tests.casts import judge as judge_cast
from tests.casts.page import flat

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def sim(sim, settings):
    JudgePolicy.objects.create(repeat_share=0, second_share=0)
    return sim


@pytest.fixture
def olga(site):
    return site.person("olga", "operator")


@pytest.fixture
def operator(client, olga):
    client.force_login(olga)
    return client


def new_rubric(olga, text="Grade it strictly.") -> Rubric:
    """Another rubric, in force."""
    held = Rubric.objects.active()
    draft = Rubric(title="Strict", text=text, dimensions=held.dimensions, bands=held.bands, parent=held)
    made, _ = versions.save(draft, author=olga)
    versions.activate(made, by=olga)
    return made


def planned(*sessions) -> plans.Plan:
    return plans.plan(Session.objects.filter(pk__in=[each.pk for each in sessions]), Rubric.objects.in_force())


def start(olga, *sessions) -> JudgeRun:
    plan = planned(*sessions)
    return rejudge.start(plan.session_ids, plan.rubric, by=olga, why="a test", estimated_usd=plan.estimate.usd)


def work() -> int:
    """Let a worker run every queued job, whatever the limiter of a new key says."""
    jobs = list(JudgeJob.objects.filter(state=JobState.QUEUED).order_by("pk"))
    for job in jobs:
        worker.run(job.pk)
    return len(jobs)


# --- the plan --------------------------------------------------------------------------------------------------------


def test_what_is_unchanged_is_never_asked_twice(site, sim, olga):
    session = site.judged_by(sim)
    assert planned(session).left_out == {LeftOut.UNCHANGED: 1}
    run = rejudge.start([session.pk], Rubric.objects.active(), by=olga, why="", estimated_usd=None)
    assert run_counts(run) == (0, {LeftOut.UNCHANGED: 1})
    assert len(sim.calls) == 1


def run_counts(run):
    run.refresh_from_db()
    return run.jobs.count(), run.left_out


@pytest.mark.parametrize("change", ["rubric", "evidence", "digest", "model"])
def test_each_part_of_the_identity_makes_it_a_new_question(site, sim, olga, settings, monkeypatch, change):
    session = site.judged_by(sim)
    if change == "rubric":
        new_rubric(olga)
    elif change == "evidence":
        site.on(session).with_file("patch", b"+++ b/x\n+one more line\n")
    elif change == "digest":
        monkeypatch.setattr("grading.judging.rubrics.plans.VERSION", "digest/99")
        monkeypatch.setattr("grading.judging.rubrics.verdicts.VERSION", "digest/99")
    else:
        settings.JUDGE_MODEL = "claude-opus-5-5"
    assert planned(session).session_ids == (session.pk,)
    assert run_counts(start(olga, session)) == (1, {})


def test_a_plan_says_why_it_leaves_sessions_out(site, sim, olga):
    under_way = site.judge_job()
    worker.claim(under_way.pk)
    nothing = site.session().session
    died = site.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="the login had expired").session
    queued = site.judge_job().session
    plan = planned(under_way.session, nothing, died, queued, site.judged_by(sim))
    assert plan.session_ids == (queued.pk,)
    assert plan.left_out == {
        LeftOut.JUDGING: 1, LeftOut.NO_EVIDENCE: 1, LeftOut.NO_REWARD: 1, LeftOut.UNCHANGED: 1,
    }  # fmt: skip
    assert plan.total == 5


def test_the_estimate_is_what_the_last_verdicts_took(site, sim, olga):
    sim.script({"score": 0.5})
    first, second = site.judge_job(), site.judge_job()
    worker.run(first.pk)
    worker.run(second.pk)
    attempts = judge_cast.attempts(first) + judge_cast.attempts(second)
    found = estimate(10, Rubric.objects.active())
    # The same rubric adds and takes away the same length, so that the mean of what was read is left.
    assert found.measured == 2
    assert found.input_tokens == pytest.approx(sum(each.input_tokens for each in attempts) / 2)
    assert found.output_tokens == pytest.approx(sum(each.output_tokens for each in attempts) / 2)
    # 10 × (read × $2 + written × $10) ÷ a million
    assert found.usd == pytest.approx(10 * (found.input_tokens * 2 + found.output_tokens * 10) / 1e6)


def test_a_longer_rubric_costs_more(site, sim, olga):
    site.judged_by(sim)
    before = estimate(1, Rubric.objects.active()).input_tokens
    held = Rubric.objects.active()
    longer = Rubric(text=held.text + " word" * 800, dimensions=held.dimensions, bands=held.bands)
    assert estimate(1, longer).input_tokens == pytest.approx(before + 1000, rel=0.02)


def test_before_the_first_verdict_the_most_that_fits_is_taken(sim, settings):
    found = estimate(3, Rubric.objects.active())
    assert (found.measured, found.input_tokens) == (0, settings.JUDGE_INPUT_TOKENS)


def test_batches_cost_half(sim):
    full = estimate(4, Rubric.objects.active()).usd
    JudgePolicy.objects.create(use_batches=True)
    assert estimate(4, Rubric.objects.active()).usd == full / 2


def test_the_tightest_limit_sets_the_pace(sim):
    made = CostEstimate(count=10, input_tokens=18_400, output_tokens=900, price_in=2, price_out=10, measured=1)
    assert pace(made) is None
    judge = judges.first()
    limits = {"requests": 50, "input_tokens": 30_000, "output_tokens": 8_000}
    told = {name: {"limit": limit, "remaining": limit} for name, limit in limits.items()}
    Quota.objects.create(key=judge.fingerprint, model=judge.model, limits=told, limits_at=timezone.now())
    # 50 a minute by requests, 30,000 ÷ 18,400 = 1.63 by input, 8,000 ÷ 900 = 8.9 by output.
    assert pace(made).dimension == "input_tokens"
    assert pace(made).per_minute == pytest.approx(0.98 * 1.6304, abs=1e-4)


# --- the run ---------------------------------------------------------------------------------------------------------


def test_a_run_replaces_stale_verdicts_and_says_how_they_moved(site, sim, olga):
    sessions = [site.judged_by(sim, score) for score in (0.2, 0.5, 0.9)]
    rubric = new_rubric(olga)
    run = start(olga, *sessions)
    assert JudgeJob.objects.filter(run=run, backlog=True, rubric=rubric).count() == 3
    sim.script(*({"score": score} for score in (0.8, 0.5, 0.4)))  # the latest session first
    work()
    found, changed = progress.progress(run), progress.changes(run)
    assert (found.done, found.is_over, found.percent) == (3, True, 100)
    assert found.spent > 0
    assert (changed.count, changed.new) == (3, 0)
    assert (changed.mean_before, changed.mean_after) == (pytest.approx(1.6 / 3), pytest.approx(1.7 / 3))
    assert round(changed.largest[0].difference, 6) == 0.2
    assert not planned(*sessions).session_ids


def test_until_the_new_verdict_comes_the_old_one_holds(site, sim, olga):
    session = site.judged_by(sim, 0.5)
    held = rewards.live(session)
    new_rubric(olga)
    start(olga, session)
    assert rewards.live(session) == held
    sim.mode = "overloaded"
    work()
    assert (rewards.live(session).value, rewards.live(session).final) == (0.5, True)


def test_a_queued_job_joins_the_run_and_one_under_way_is_left(site, sim, olga):
    queued, under_way = site.judge_job(), site.judge_job()
    sessions = [queued.session, under_way.session]
    worker.claim(under_way.pk)
    run = rejudge.start([each.pk for each in sessions], Rubric.objects.active(), by=olga, why="", estimated_usd=None)
    queued.refresh_from_db()
    assert queued.run == run
    assert run_counts(run) == (1, {LeftOut.JUDGING: 1})


def test_going_back_to_an_earlier_rubric_takes_its_verdicts_again_unasked(site, sim, olga):
    session = site.judged_by(sim, 0.3)
    first = Rubric.objects.active()
    new_rubric(olga)
    start(olga, session)
    sim.script({"score": 0.8})
    work()
    assert rewards.live(session).value == 0.8
    versions.activate(first, by=olga)
    run = start(olga, session)
    assert len(sim.calls) == 2
    taken = session.grades.chain().verdicts().last()
    assert (taken.value, taken.rubric, taken.replicate, taken.cost_usd) == (0.3, first.sha256, 1, 0)
    assert rewards.live(session).value == 0.3
    assert progress.progress(run).done == 1
    assert progress.changes(run).mean_after == 0.3


def test_a_large_run_is_made_by_the_sweep_and_resumes_where_it_was(site, sim, olga, monkeypatch):
    sessions = [site.session().with_work().session for _ in range(8)]
    monkeypatch.setattr(rejudge, "SYNC_LIMIT", 0)
    monkeypatch.setattr(rejudge, "CHUNK_SIZE", 3)
    monkeypatch.setattr(rejudge, "BATCH_SIZE", 3)
    run = start(olga, *sessions)
    assert run_counts(run) == (0, {})
    assert rejudge.enqueue() == 3
    run.refresh_from_db()
    assert (run.placed, run.jobs.count(), progress.progress(run).to_place) == (3, 3, 5)
    # Whoever was making the others died; the next turn goes on.
    rejudge.enqueue()
    rejudge.enqueue()
    assert run_counts(run) == (8, {})
    assert progress.progress(run).superseded == 0


def test_a_crash_in_the_middle_makes_no_job_twice(site, sim, olga, monkeypatch):
    sessions = [site.session().with_work().session for _ in range(4)]
    monkeypatch.setattr(rejudge, "SYNC_LIMIT", 0)
    run = start(olga, *sessions)
    with monkeypatch.context() as broken:
        broken.setattr(JudgeRun, "save", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(RuntimeError):
            rejudge.enqueue()
    assert run_counts(run) == (0, {})
    rejudge.enqueue()
    assert run_counts(run) == (4, {})


def test_a_session_that_was_erased_does_not_hold_up_the_others(site, sim, olga):
    sessions = [site.session().with_work().session for _ in range(3)]
    run = rejudge.start([0, *[each.pk for each in sessions]], Rubric.objects.active(), by=olga, why="", estimated_usd=0)
    assert run_counts(run) == (3, {LeftOut.GONE: 1})


def test_a_session_that_cannot_be_looked_up_does_not_hold_up_the_others(site, sim, olga, caplog):
    others = [site.session().with_work().session.pk for _ in range(2)]
    run = rejudge.start(["garbled", *others], Rubric.objects.active(), by=olga, why="", estimated_usd=0)
    assert run_counts(run) == (2, {LeftOut.UNREADABLE: 1})
    assert "cannot be judged again" in caplog.text


def test_a_run_goes_on_under_the_rubric_that_is_put_in_force_meanwhile(site, sim, olga, monkeypatch):
    sessions = [site.session().with_work().session for _ in range(2)]
    monkeypatch.setattr(rejudge, "SYNC_LIMIT", 0)
    run = start(olga, *sessions)
    rubric = new_rubric(olga)
    rejudge.enqueue()
    assert set(run.jobs.values_list("rubric", flat=True)) == {rubric.pk}


# --- calling it off --------------------------------------------------------------------------------------------------


def test_calling_off_ends_what_is_queued_and_nothing_else(site, sim, olga):
    sessions = [site.judged_by(sim) for _ in range(3)]
    new_rubric(olga)
    run = start(olga, *sessions)
    under_way = run.jobs.first()
    worker.claim(under_way.pk)
    assert rejudge.cancel(run, by=olga) == 2
    found = progress.progress(run)
    assert (found.cancelled, found.judging, found.is_over) == (2, 1, False)
    assert rejudge.cancel(run, by=olga) == 0
    assert not JudgeJob.objects.filter(state=JobState.QUEUED).exists()


def test_calling_off_leaves_what_would_be_judged_anyway(site, sim, olga):
    never, changed, plain = site.session().with_work().session, site.judged_by(sim), site.judged_by(sim)
    waiting = site.judge_job()
    new_rubric(olga)
    run = start(olga, never, changed, plain, waiting.session)
    site.on(changed).with_file("patch", b"+++ b/x\n+more\n")
    assert rejudge.cancel(run, by=olga) == 1
    still = JudgeJob.objects.filter(state=JobState.QUEUED, run=None)
    assert set(still.values_list("session", flat=True)) == {never.pk, changed.pk, waiting.session_id}


def test_a_run_called_off_makes_no_more_jobs(site, sim, olga, monkeypatch):
    monkeypatch.setattr(rejudge, "SYNC_LIMIT", 0)
    run = start(olga, site.session().with_work().session, site.session().with_work().session)
    rejudge.cancel(run, by=olga)
    assert rejudge.enqueue() == 0
    found = progress.progress(JudgeRun.objects.get(pk=run.pk))
    assert (found.cancelled, found.is_over) == (2, True)


def test_a_cancelled_job_does_not_keep_a_session_from_being_judged_later(site, sim, olga):
    session = site.judged_by(sim)
    new_rubric(olga)
    rejudge.cancel(start(olga, session), by=olga)
    assert start(olga, session).jobs.get().state == JobState.QUEUED


# --- the pages -------------------------------------------------------------------------------------------------------


def test_the_plan_page_shows_the_price_and_its_sum(site, sim, operator, olga):
    sessions = [site.judged_by(sim) for _ in range(2)]
    new_rubric(olga)
    JudgePolicy.objects.create(daily_budget_usd=5)
    page = flat(operator.get("/runs/plan/", {"session": [each.pk for each in sessions]}))
    assert "Judge 2 sessions again, " in page
    assert "at $2 a million" in page
    assert "left of $5.00" in page
    assert "from the last 2 verdicts" in page
    assert not JudgeRun.objects.exists()


def test_posting_the_plan_starts_the_run_it_showed(site, sim, operator, olga):
    session = site.judged_by(sim)
    new_rubric(olga)
    response = operator.post("/runs/plan/?stale=yes", {"seen": "1", "why": "the rubric is stricter"})
    run = JudgeRun.objects.get()
    assert response.url == f"/runs/{run.pk}/"
    assert (run.by, run.why, run.sessions) == (olga, "the rubric is stricter", [session.pk])
    assert run.estimated_usd > 0
    page = flat(operator.get(response.url))
    assert "0 of 1 session finished" in page
    assert "In the queue: waiting for the judge" in page


def test_nobody_is_charged_for_more_than_they_saw(site, sim, operator, olga):
    site.judged_by(sim)
    site.judged_by(sim)
    new_rubric(olga)
    page = flat(operator.post("/runs/plan/?stale=yes", {"seen": "1"}))
    assert "Nothing was queued, because more sessions match now: 2. Check the plan again." in page
    assert not JudgeRun.objects.exists()


def test_ticking_none_means_none_and_not_all(site, sim, operator, olga):
    site.judged_by(sim)
    new_rubric(olga)
    page = flat(operator.get("/runs/plan/?ticked=yes"))
    assert "No session is selected." in page


def test_a_plan_of_nothing_says_why_and_what_would_change_that(site, sim, operator):
    site.judged_by(sim)
    page = flat(operator.get("/runs/plan/"))
    assert "The judge isn’t asked the same question about the same evidence twice." in page
    assert "One session has a verdict on the present evidence" in page
    assert 'href="/rubrics/">changed rubric</a>' in page
    assert "The jobs wait in the queue" not in page


def test_a_plan_of_sessions_that_cannot_be_judged_does_not_speak_of_repetition(site, operator):
    site.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="the login had expired")
    page = flat(operator.get("/runs/plan/"))
    assert "None of these sessions can be judged." in page
    assert "asked the same question" not in page


def test_the_page_of_runs_says_whether_there_is_a_reason_for_one(site, sim, operator, olga):
    assert "there is nothing to judge again" in flat(operator.get("/runs/"))
    site.judged_by(sim)
    page = flat(operator.get("/runs/"))
    assert "The only verdict is by the rubrics in force" in page
    assert "/runs/plan/" not in page
    new_rubric(olga)
    page = flat(operator.get("/runs/"))
    assert "1 of 1 verdict is stale" in page
    assert 'href="/runs/plan/?stale=yes">Judge 1 again…' in page


def test_of_a_large_selection_the_latest_are_planned_and_the_rest_after_them(site, sim, operator, olga, monkeypatch):
    now = timezone.now()
    older, latest = (site.judged_by(sim, ended_at=now - dt.timedelta(days=days)) for days in (2, 1))
    new_rubric(olga)
    monkeypatch.setattr(plans, "MOST", 1)
    first = operator.get("/runs/plan/?stale=yes")
    assert first.context["plan"].session_ids == (latest.pk,)
    second = operator.get(f"/runs/plan/?{first.context['rest']}")
    assert second.context["plan"].session_ids == (older.pk,)
    assert "rest" not in second.context


def test_a_filter_that_does_not_exist_is_not_taken_for_everything(site, sim, operator, olga):
    site.judged_by(sim)
    new_rubric(olga)
    page = flat(operator.get("/runs/plan/?category=nonsense"))
    assert "contains a filter that does not exist" in page
    operator.post("/runs/plan/?category=nonsense", {"seen": "9"})
    assert not JudgeRun.objects.exists()


def test_the_last_days_can_be_chosen(site, sim, operator, olga):
    site.judged_by(sim, ended_at=timezone.now() - dt.timedelta(days=20))
    recent = site.judged_by(sim, ended_at=timezone.now() - dt.timedelta(days=2))
    new_rubric(olga)
    operator.post("/runs/plan/?stale=yes&days=7", {"seen": "1"})
    assert JudgeRun.objects.get().sessions == [recent.pk]


def test_a_run_page_shows_what_failed_by_reason_and_what_moved(site, sim, operator, olga):
    moved, failed = site.judged_by(sim, 0.2), site.judged_by(sim, 0.4)
    new_rubric(olga)
    run = start(olga, failed, moved)
    sim.script("refusal", "refusal", {"score": 0.9})
    for _ in range(3):
        JudgeJob.objects.filter(state=JobState.QUEUED).update(next_attempt_at=timezone.now())
        for job in JudgeJob.objects.filter(state=JobState.QUEUED, session=failed):
            worker.run(job.pk)
    work()
    page = flat(operator.get(f"/runs/{run.pk}/"))
    assert "Given up: the judge declined to grade this session" in page
    assert "+.70" in page
    assert ".20 → .90" in page
    assert "data-over" in flat(operator.get(f"/runs/{run.pk}/progress/"))
    assert f'<a href="/runs/{run.pk}/">' in flat(operator.get("/runs/"))


def test_a_reviewer_may_look_at_runs_and_start_none(site, sim, client, olga):
    run = start(olga, site.session().with_work().session)
    client.force_login(site.person("rita", "reviewer"))
    assert client.get(f"/runs/{run.pk}/").status_code == 200
    assert client.post("/runs/plan/", {"seen": "9"}).status_code == 403
    assert client.post(f"/runs/{run.pk}/cancel/").status_code == 403
    assert "Judge again" not in flat(client.get(f"/sessions/{run.sessions[0]}/"))
    assert "/runs/plan/" not in flat(client.get("/sessions/"))


def test_the_session_page_offers_it_with_the_last_price(site, sim, operator):
    session = site.judged_by(sim)
    page = flat(operator.get(f"/sessions/{session.pk}/"))
    assert f'href="/runs/plan/?session={session.pk}">Judge again · ' in page
