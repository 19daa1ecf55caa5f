"""Sessions that came in while there was no judge: nobody pays for them until a person chooses which are judged."""

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from grading.intake import regrading
from grading.judging import earlier, enqueuing, judges, sweeper, worker
from grading.judging.allowance import quota
from grading.judging.rubrics import rejudge
from grading.models import Grade, JudgeJob, JudgePolicy, JudgeRun, Session
from grading.models.judging import JobState
from grading.models.quota import QuotaState
from grading.reward import rewards
from grading.tasks import PERIODIC
from grading.vocabulary import JudgeChoice, Outcome, Reason
from tests.casts import judge as judge_cast
from tests.casts import logs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]

DAY = dt.timedelta(days=1)


@pytest.fixture
def sim(sim, settings):
    """A judge at a socket; its key is not set yet."""
    JudgePolicy.objects.create(repeat_share=0, second_share=0)
    settings.ANTHROPIC_API_KEY = ""
    return sim


@pytest.fixture
def olga(site):
    return site.person("olga", "operator")


def upload(site, name: str, ago: dt.timedelta = DAY, **fields) -> Session:
    return site.upload(name, journal=f"Merged the fix of {name}.", ended_at=timezone.now() - ago, **fields).session


def three(site) -> list[Session]:
    """Two sessions of the last 14 days and one that is older."""
    return [upload(site, "s-1"), upload(site, "s-2", 13 * DAY), upload(site, "s-3", 15 * DAY)]


def set_key(settings, key: str = judge_cast.KEY) -> None:
    """A key in the environment, and one turn of everything that the beat starts."""
    settings.ANTHROPIC_API_KEY = key
    beat()


def beat() -> None:
    for name in ("sweep", "judge again", "prioritise", "catch up"):
        PERIODIC[name]()


def choose(olga, which: str = "all") -> JudgeRun:
    return earlier.start_run(which, by=olga, at_most=9, why="a test", now=timezone.now())


def counts() -> tuple[int, int]:
    """How many sessions of the last 14 days wait for a choice, and how many older ones."""
    found = earlier.load_earlier(timezone.now())
    return (0, 0) if found is None else (found.recent.count, found.older.count)


def test_a_key_has_no_earlier_session_judged(site, sim, settings):
    """Whatever the beat does after a key is set, sessions from before it wait for a person's choice."""
    three(site)
    set_key(settings)
    assert not JudgeJob.objects.exists()
    assert counts() == (2, 1)


def test_a_session_that_comes_after_the_key_is_judged(site, sim, settings):
    upload(site, "s-1")
    set_key(settings)
    new = upload(site, "s-2", dt.timedelta())
    assert [job.session for job in JudgeJob.objects.all()] == [new]
    assert counts() == (1, 0)


def test_the_price_is_that_of_the_existing_estimate(site, sim, settings):
    three(site)
    found = earlier.load_earlier(timezone.now())
    assert found.recent.usd == pytest.approx(2 * found.older.usd)
    assert found.all.usd == pytest.approx(3 * found.older.usd)
    set_key(settings)
    assert earlier.load_earlier(timezone.now()) == found


def test_what_a_person_chooses_is_judged_and_the_rest_goes_on_waiting(site, sim, settings, olga):
    *_, old = three(site)
    set_key(settings)
    choose(olga, "older")
    assert [job.session for job in JudgeJob.objects.all()] == [old]
    assert counts() == (2, 0)
    worker.run(JudgeJob.objects.get().pk)
    beat()
    assert rewards.live(old).source == "judge"
    assert counts() == (2, 0)


def test_a_choice_that_the_beat_carries_out_is_not_asked_for_again(site, sim, settings, olga, monkeypatch):
    """A large choice gets its jobs in the background: meanwhile nobody is offered the same sessions."""
    three(site)
    set_key(settings)
    monkeypatch.setattr(rejudge, "SYNC_LIMIT", 0)
    choose(olga, "recent")
    assert counts() == (0, 1)
    beat()
    assert JudgeJob.objects.count() == 2
    assert counts() == (0, 1)


def test_a_choice_that_is_called_off_costs_nothing_and_can_be_made_again(site, sim, settings, olga):
    """Also after an outage, during which the waiting sessions were given its reason."""
    old, *_ = three(site)
    expected = rewards.live(old).sentence
    assert (
        "There was no judge when the session arrived, so the reward stays provisional until someone requests a verdict"
        in expected
    )
    set_key(settings)
    run = choose(olga)
    quota.pause(by=olga)
    beat()
    assert rejudge.cancel(run, by=olga) == 3
    quota.resume(by=olga)
    beat()
    assert not JudgeJob.objects.filter(state=JobState.QUEUED).exists()
    assert counts() == (2, 1)
    assert rewards.live(old).sentence == expected
    choose(olga, "older")
    assert JudgeJob.objects.filter(state=JobState.QUEUED).count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
def test_of_two_who_choose_at_once_one_is_refused(site, sim, settings, olga):
    three(site)
    set_key(settings)
    start = threading.Barrier(2)

    def work(person) -> JudgeRun | str:
        start.wait()
        try:
            return choose(person)
        except earlier.ChoiceRefused as error:
            return str(error)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, [olga, site.person("otto", "operator")]))
    assert sorted(type(result).__name__ for result in results) == ["JudgeRun", "str"]
    assert JudgeRun.objects.count() == 1
    assert JudgeJob.objects.count() == 3


def test_a_copy_does_not_have_the_earlier_session_judged(site, sim, settings):
    """A new session with the same log makes the site assess the earlier one again."""
    old = site.upload("s-1", logs.worked("s-1"), journal="Merged it.").session
    set_key(settings)
    site.upload("s-2", logs.worked("s-1"), journal="Merged it.", agent="eve")
    site.upload("s-1", logs.worked("s-1"), title="A better title")
    assert not JudgeJob.objects.filter(session=old).exists()
    assert counts() == (0, 1)


def test_new_rules_have_no_earlier_session_judged(site, sim, settings):
    """Not even one that they give a reward that it did not have."""
    old = upload(site, "s-1")
    Session.objects.filter(pk=old.pk).update(outcome=Outcome.INFRASTRUCTURE, outcome_reason="out of quota")
    set_key(settings)
    regrading.regrade(Session.objects.get(pk=old.pk))
    assert Session.objects.get(pk=old.pk).outcome != Outcome.INFRASTRUCTURE
    assert not JudgeJob.objects.exists()


def test_an_earlier_session_that_goes_on_is_judged(site, sim, settings):
    """New evidence makes it a session like any other."""
    old = upload(site, "s-1")
    set_key(settings)
    site.upload("s-1", patch="+++ b/x\n+more\n", ended_at=old.ended_at)
    assert JudgeJob.objects.get().session == old
    assert counts() == (0, 0)


def test_an_earlier_session_says_what_it_waits_for(site, sim, settings):
    old = upload(site, "s-1")
    said = Grade.objects.get(session=old, source="judge")
    assert (said.reason, said.detail) == (
        Reason.NOT_CONFIGURED,
        (
            "There was no judge when this session arrived. Once a key is set, you can choose under Settings → Judge "
            "which of these sessions to judge"
        ),
    )


def test_what_waits_for_quota_goes_on_without_a_choice(site, sim, settings):
    """A session that came in while the judge was out is judged when it is back, whoever's key it then is."""
    set_key(settings)
    quota.exhaust_budget(judges.first(), timezone.now(), "spent")
    waiting = upload(site, "s-1")
    assert quota.current().state == QuotaState.EXHAUSTED
    set_key(settings, "")
    assert counts() == (0, 0)
    set_key(settings, "sk-another")
    assert counts() == (0, 0)
    (job,) = JudgeJob.objects.filter(state=JobState.QUEUED)
    assert (job.session, sweeper.next_jobs(timezone.now())) == (waiting, [job.pk])


def test_what_nobody_wanted_judged_is_not_offered(site, sim, settings):
    """History that was handed in without a verdict, samples, and what has nothing to read."""
    upload(site, "s-1")
    Session.objects.filter(external_id="s-1").update(history=JudgeChoice.NONE)
    upload(site, "s-2", is_sample=True)
    site.upload("s-3", ended_at=timezone.now())
    assert counts() == (0, 0)


def test_history_without_a_verdict_says_so_without_a_judge_too(site, sim):
    session = site.session(history=JudgeChoice.NONE).with_work().session
    enqueuing.enqueue(session)
    assert Grade.objects.get(session=session).reason == Reason.DECLINED


def test_the_command_names_the_price_and_queues_what_it_is_told_to(site, sim, settings, capsys):
    three(site)
    with pytest.raises(CommandError, match="There is no judge"):
        call_command("judge_pending")
    set_key(settings)
    call_command("judge_pending")
    said = capsys.readouterr().out
    assert "2 sessions of the last 14 days, at most $0.11; 1 older one, at most $0.06." in said
    assert "Nothing was queued. Run this again with --recent, --older or --all." in said
    assert not JudgeJob.objects.exists()
    call_command("judge_pending", "--recent")
    assert "2 sessions queued" in capsys.readouterr().out
    assert JudgeJob.objects.count() == 2
    with pytest.raises(CommandError, match="all of these sessions have already been chosen or judged"):
        call_command("judge_pending", "--recent")
    call_command("judge_pending", "--all")
    assert "1 session queued" in capsys.readouterr().out
    call_command("judge_pending", "--all")
    assert "No session that came in while there was no judge waits" in capsys.readouterr().out
