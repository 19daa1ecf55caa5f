"""The outage drill: what its checks find wrong, and a small run of all of it."""

import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from contextlib import closing
from dataclasses import replace

import httpx2
import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from bandit.models import Bandit, BanditKind, Grader, LedgerEntry
from benchmarks.drill import checks, honest, noticing
from benchmarks.drill.checks import Sent
from benchmarks.drill.findings import Outage, Report, Row, broken_promises
from benchmarks.drill.phases import PHASES, Phase
from benchmarks.drill.scene import Listener, Notice, Scene
from benchmarks.drill.site import BROKER, Site
from grading.models import Alarm, JudgeAttempt, JudgeJob, Quota, QuotaTransition
from grading.models.judging import JobState
from grading.reward import rewards
from grading.vocabulary import Reason, Source
from gradingsite import broker
from gradingsite.broker import Broker
from tests.infra.test_supervisor import children_of, read_until, wait_until_dead
from tests.processes import stop
from tests.site import Site as Builder

NAME = "drill-01-0001"
NOW = dt.datetime(2026, 11, 21, 12, 0, tzinfo=dt.UTC)


def seconds(number: float) -> dt.timedelta:
    return dt.timedelta(seconds=number)


# --- calls -----------------------------------------------------------------------------------------------------------


def test_a_call_without_an_attempt_is_unrecorded():
    calls = [Sent(NAME, "r1"), Sent(NAME, "r2")]
    assert checks.unrecorded(calls, [Sent(NAME, "r1"), Sent(NAME)]) == 0
    assert checks.unrecorded(calls, [Sent(NAME, "r1")]) == 1
    assert checks.unrecorded(calls, []) == 2


def test_an_attempt_of_another_session_does_not_stand_for_a_call():
    assert checks.unrecorded([Sent(NAME, "r1")], [Sent("drill-01-0002"), Sent("drill-01-0002")]) == 1


def test_a_row_whose_call_was_never_made_hides_nothing():
    calls = [Sent(NAME, "r1"), Sent("drill-01-0002", "r2")]
    assert checks.unrecorded(calls, [Sent(NAME), Sent(NAME), Sent(NAME)]) == 1


def test_an_answer_belongs_to_one_attempt_and_to_the_session_it_was_about():
    calls = [Sent(NAME, "r1"), Sent(NAME, "r2")]
    assert checks.unrecorded(calls, [Sent(NAME, "r1"), Sent(NAME, "r1")]) == 1
    assert checks.unrecorded(calls, [Sent(NAME, "r1"), Sent(NAME, "r9")]) == 1
    assert checks.unrecorded([Sent(NAME, "r1")], [Sent("drill-01-0002", "r1")]) == 2


def test_the_judge_s_record_says_which_session_a_call_was_about():
    calls = [{"request_id": "r1", "request": {"user": f"title: {NAME}\n…"}}, {"request_id": "r2", "request": {}}]
    assert checks.recorded_by_judge(calls) == [Sent(NAME, "r1"), Sent("?", "r2")]


# --- sessions --------------------------------------------------------------------------------------------------------


def judged(name: str = NAME):
    session = Builder().session(external_id=name).session
    Builder().on(session).graded(Source.JUDGE, 0.7)
    rewards.settle(session)
    return session


@pytest.mark.django_db
def test_a_session_without_a_final_verdict_is_lost():
    judged()
    provisional = Builder().session(external_id="drill-01-0002").session
    Builder().on(provisional).graded(Source.JOURNAL, 0.3)
    rewards.settle(provisional)
    assert checks.lost([NAME]) == set()
    assert checks.lost([NAME, "drill-01-0002", "drill-01-0003"]) == {"drill-01-0002", "drill-01-0003"}


@pytest.mark.django_db
def test_a_verdict_that_never_reached_the_ledger_is_lost():
    session = Builder().session(external_id=NAME, category=None, harness=None).session
    Builder().on(session).graded(Source.JUDGE, 0.7)
    rewards.settle(session)
    assert checks.lost([NAME]) == {NAME}


@pytest.mark.django_db
def test_two_verdicts_in_the_chain_are_double_and_a_parallel_one_is_not():
    session = judged()
    Builder().on(session).graded(Source.JUDGE, 0.6, parallel=True)
    assert checks.double([NAME]) == set()
    Builder().on(session).graded(Source.JUDGE, 0.6)
    assert checks.double([NAME]) == {NAME}


@pytest.mark.django_db
def test_two_live_rewards_in_one_bandit_are_double():
    session = judged()
    assert checks.double([NAME]) == set()
    bandit = Bandit.objects.filter(name="category")
    bandit.update(kind=BanditKind.MANY)  # else the database refuses it
    LedgerEntry.objects.create(
        bandit=bandit.get(),
        arm=Builder().session(category="infra").session.category,
        observation=session.observation,
        revision=1,
        op="apply",
        grader=Grader.objects.first(),
        value_micro=700_000,
        effective_day=NOW.date(),
        settlement="x",
        policy=None,
    )
    bandit.update(kind=BanditKind.CHOICE)
    assert checks.double([NAME]) == {NAME}


# --- attempts and outages --------------------------------------------------------------------------------------------


def attempt(job, started_at, **fields):
    return JudgeAttempt.objects.create(job=job, lease_token=uuid.uuid4(), started_at=started_at, **fields)


def job(number: int) -> JudgeJob:
    return Builder().on(Builder().session(external_id=f"drill-01-{number:04d}").session).with_judge_job().job


@pytest.mark.django_db
def test_only_attempts_with_a_prompt_were_sent_and_each_says_how_it_ended():
    made = job(1)
    attempt(made, NOW, prompt_sha256="a" * 64, request_id="r1")
    attempt(made, NOW, outcome="deferred", reason=Reason.UNREADABLE, finished_at=NOW)
    assert checks.recorded_by_site("drill-01-") == [Sent(NAME, "r1")]
    assert checks.recorded_by_site("drill-02-") == []
    assert checks.unended("drill-01-") == 1


def test_a_job_that_starts_before_earlier_promised_ones_has_overtaken_them():
    assert checks.overtaken([0, 1, 2, 3]) == [0, 0, 0, 0]
    assert checks.overtaken([3, 0, 1, 2]) == [3, 0, 0, 0]
    assert checks.overtaken([1, 0, 3, 2]) == [1, 0, 1, 0]


@pytest.mark.django_db
def test_the_order_is_that_of_the_first_attempts_after_the_judge_came_back():
    first, second = job(1), job(2)
    attempt(second, NOW - seconds(9))
    attempt(second, NOW + seconds(1))
    attempt(first, NOW + seconds(2))
    attempt(second, NOW + seconds(3))
    assert checks.starts([first.pk, second.pk], NOW) == [1, 0]


@pytest.mark.django_db
def test_a_backlog_is_drained_when_its_last_job_is_done():
    first, second = job(1), job(2)
    assert checks.drained_at([first.pk, second.pk]) is None
    for number, made in enumerate((first, second)):
        JudgeJob.objects.filter(pk=made.pk).update(state=JobState.DONE, finished_at=NOW + seconds(number))
    assert checks.drained_at([first.pk, second.pk]) == NOW + seconds(1)


@pytest.fixture
def quota(db):
    return Quota.objects.create(key="k", model="m")


@pytest.mark.django_db
def test_an_alarm_counts_from_the_first_refusal_and_only_once_it_was_resolved(quota):
    refused = {"reason": Reason.QUOTA_EXHAUSTED, "http_status": 400}
    attempt(job(1), NOW - seconds(1), finished_at=NOW, **refused)
    attempt(job(2), NOW - seconds(1), finished_at=NOW + seconds(2), **refused)
    window = (NOW - seconds(5), NOW + seconds(60))
    assert checks.alarm_delay(*window) is None
    Alarm.objects.create(rule="A2", about="first judge", opened_at=NOW, resolved_at=NOW)
    assert checks.alarm_delay(*window) is None
    alarm = Alarm.objects.create(rule="A2", about="m k", detail="out", opened_at=NOW + seconds(4))
    assert checks.alarm_delay(*window) is None
    Alarm.objects.filter(pk=alarm.pk).update(resolved_at=NOW + seconds(9))
    assert checks.alarm_delay(*window) == 4
    assert checks.alarm_delay(NOW - seconds(5), NOW + seconds(3)) is None


@pytest.mark.django_db
def test_calls_begun_while_the_quota_was_out_are_counted(quota):
    QuotaTransition.objects.create(quota=quota, state="exhausted", reason=Reason.QUOTA_EXHAUSTED, at=NOW)
    made = job(1)
    for at in (-1, 0.5, 1.5, 2, 20):
        attempt(made, NOW + seconds(at))
    assert checks.calls_while_out(NOW, NOW + seconds(10)) == 2
    assert checks.calls_while_out(NOW + seconds(1), NOW + seconds(10)) == 0


KEPT = Outage(alarm_s=0.01, calls=0, waiting=40, attempted=40, overtaken=7, drained_s=4.0)
OUT = Phase(name="out", is_out=True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"alarm_s": None}, "no alarm came at once"),
        ({"alarm_s": 1.5}, "no alarm came at once"),
        ({"calls": 2}, "2 calls were made"),
        ({"waiting": 0, "attempted": 0}, "nothing waited"),
        ({"attempted": 38}, "2 that waited were never asked about"),
        ({"overtaken": 8}, "went before 8"),
    ],
)
def test_a_promise_that_is_not_kept_is_named(changed, said):
    assert broken_promises(OUT, KEPT) == []
    (words,) = broken_promises(OUT, replace(KEPT, **changed))
    assert words.startswith("out: ")
    assert said in words


def test_probes_are_allowed_where_no_reset_is_named_and_a_pause_needs_no_alarm():
    assert broken_promises(replace(OUT, probes=True), replace(KEPT, calls=2)) == []
    assert broken_promises(replace(OUT, alarms=False), replace(KEPT, alarm_s=None)) == []


# --- who notices -----------------------------------------------------------------------------------------------------


@pytest.fixture
def listener():
    with closing(Listener(broker.free_port())) as ours:
        yield ours


def post(listener: Listener, about: str, rule: str, opened_at: dt.datetime) -> None:
    said = {"about": about, "rule": rule, "opened_at": opened_at.isoformat(timespec="seconds")}
    httpx2.post(f"http://127.0.0.1:{listener.server_port}/", json=said).raise_for_status()


def test_an_alarm_was_notified_when_its_first_notice_came(listener):
    post(listener, "opened", "A2", NOW - seconds(5))
    post(listener, "resolved", "A2", NOW)
    post(listener, "opened", "A44", NOW)
    assert listener.first("A2", NOW) is None
    post(listener, "opened", "A2", NOW)
    post(listener, "opened", "A2", NOW)
    assert listener.first("A2", NOW + seconds(0.7)) == listener.notices[2].received_at
    assert timezone.now() - listener.notices[2].received_at < seconds(10)


@pytest.mark.parametrize(
    ("shown_after", "notified_after", "broken"),
    [
        (29, 59, []),
        (31, 59, ["A2 was not on every page within 30 s"]),
        (29, 61, ["A2 was not notified within 60 s"]),
        (None, None, ["A2 was not on every page within 30 s", "A2 was not notified within 60 s"]),
    ],
)
def test_what_is_noticed_too_late_or_never_is_broken(listener, shown_after, notified_after, broken):
    scene = Scene(site=None, stream=None, rng=None, quick=True, listener=listener, rule="A2")
    assert noticing.unnoticed(scene, "A2") == ["its fault never began"]
    scene.begin_fault(NOW)
    scene.shown_at = shown_after and NOW + seconds(shown_after)
    if notified_after:
        listener.notices.append(Notice("A2", NOW, NOW + seconds(notified_after)))
    with time_machine.travel(NOW + seconds(100)):
        assert noticing.unnoticed(scene, "A2") == broken


# --- what falls ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed", [True, False])
def test_a_worker_may_fall_with_its_broker_and_only_then(tmp_path, monkeypatch, killed):
    monkeypatch.setenv("PORT", "1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    site = Site({BROKER: ["sleep", "60"], "worker 1": ["true"]}, tmp_path, Broker(port=1, password=""))
    site.start(BROKER)
    site.start("worker 1")
    site.running["worker 1"].wait(10)
    if killed:
        site.kill(BROKER)
        site.start(BROKER)
    site.revive()
    site.stop()
    assert (site.crashed_with_broker, site.crashed) == ((1, []) if killed else (0, ["worker 1"]))


# --- the report ------------------------------------------------------------------------------------------------------


def row(**counts):
    usual = {"sessions": 10, "attempts": 12, "graded": 10, "lost": 0, "double": 0, "unrecorded": 0}
    return Row(fault="none", **{**usual, **counts})


def test_a_report_says_what_is_broken_and_ends_with_its_figures():
    fine = Report(rows=[row(), row()], figures={"drained_s": 1.5})
    assert fine.all_broken() == []
    assert json.loads(fine.text().splitlines()[-1]) == {
        "sessions": 20,
        "lost": 0,
        "double": 0,
        "unrecorded": 0,
        "drained_s": 1.5,
    }
    broken = Report(rows=[row(lost=1), row(double=2, unrecorded=3)], broken=["late"])
    assert broken.all_broken() == ["1 lost", "2 double", "3 unrecorded", "late"]
    assert "BROKEN: 2 double" in broken.text()


# --- sabotages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sabotage", honest.SABOTAGES, ids=lambda each: each.name)
def test_a_sabotage_can_still_be_done_and_is_played_somewhere(sabotage, tmp_path):
    path = tmp_path / sabotage.file
    path.parent.mkdir(parents=True)
    shutil.copyfile(honest.ROOT / sabotage.file, path)
    honest.apply_sabotage(sabotage, tmp_path)
    compile(path.read_text(), sabotage.file, "exec")
    assert all(any(part in phase.name for phase in PHASES) for part in sabotage.phases)
    path.write_text("")
    with pytest.raises(SystemExit, match="has to be rewritten"):
        honest.apply_sabotage(sabotage, tmp_path)


# --- the drill itself ------------------------------------------------------------------------------------------------


@pytest.fixture
def drill():
    """Starts a quick drill; returns its process."""
    started = []

    def start(*options):
        command = [sys.executable, "-m", "benchmarks.drill", "--quick", *options]
        process = subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        stop(process)
        process.stdout.close()


@pytest.mark.slow
@pytest.mark.worker
def test_a_quick_drill_loses_doubles_and_hides_nothing(drill):
    process = drill("--kills", "3")
    lines = process.stdout.read().splitlines()
    assert process.wait(60) == 0, "\n".join(lines)
    figures = json.loads(lines[-1])
    assert (figures["lost"], figures["double"], figures["unrecorded"]) == (0, 0, 0)
    assert figures["sessions"] >= 40
    assert figures["alarm_s"] < 1


@pytest.mark.slow
@pytest.mark.worker
def test_an_interrupted_drill_leaves_nothing_running(drill):
    process = drill()
    read_until(process, "none: ", seconds=300)
    family = children_of(process.pid)
    assert len(family) == (6 if connection.vendor == "postgresql" else 5)  # with a database server
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    assert process.wait(60) == 130
    wait_until_dead(family)
