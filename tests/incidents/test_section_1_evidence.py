"""Incidents of what a session is graded by, and what the same rules tell of others."""

import datetime as dt
import random

import pytest
import time_machine

from bandit.models import Arm
from grading.models import Alarm, Flag, Grade, JudgeJob, Session
from grading.monitoring.watch import inspect_session, watch
from grading.reward import rewards
from grading.vocabulary import Reason, Source, Status
from tests.casts import logs
from tests.incidents.helpers import alarms, submit
from tests.site import NOON

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def _noon():
    with time_machine.travel(NOON, tick=False):
        yield


def flagged(rule):
    return [flag.session.external_id for flag in Flag.objects.filter(rule=rule).order_by("pk")]


def graded(site, *, judge, trajectory, ago=dt.timedelta(hours=1), category="code", **fields):
    """A session whose log was read whole, and which the judge read too."""
    session = site.session(category, ago=ago, **fields).judged(judge, model="m", rubric="abcdef").session
    if trajectory is not None:
        site.on(session).graded(Source.TRAJECTORY, trajectory, evidence={"view": "full"})
    rewards.settle(session)
    inspect_session(session)
    return session


def test_i08_one_session_whose_patch_calls_were_not_read_is_flagged(site):
    """I08, a harness whose edits are not read: flagged (A3) at the first session; an alarm of that harness and category
    some days later. The judge is compared with what the two usually differ by. A harness that is misread from its
    first session on has no "before": its sessions are flagged beside the others of the category.

    Session 1994: trajectory .25, judge .76, where the two were otherwise some .1 apart.
    """
    for n in range(10):
        graded(site, judge=0.5 + n / 50, trajectory=0.4 + n / 50, harness="claude-code")
    session = graded(site, judge=0.76, trajectory=0.25, harness="codex")
    assert flagged("A3") == [session.external_id]


def test_i08_a_harness_whose_calls_are_no_longer_read_is_an_alarm_of_that_slice(site):
    chance = random.Random(8)
    for n in range(72):
        quality, ago = chance.gauss(0.6, 0.1), dt.timedelta(hours=10 * (72 - n))
        missed = 0.3 if n >= 50 else 0.0
        said = max(0.02, quality - 0.1 + chance.gauss(0, 0.08) - missed)
        (
            site.session("code", ago=ago, harness="codex")
            .judged(quality, model="m", rubric="abcdef")
            .graded(Source.TRAJECTORY, said, evidence={"view": "full"})
        )
    watch()
    (said,) = alarms("A3")
    assert said.startswith("codex × code: since ")


def test_i13_another_sessions_log_raises_at_the_third_session_of_an_agent():
    """I13, another session's log: flagged (A5) at once, an alarm at the agent's third session. Five within 15 seconds
    as well.

    Twelve sessions of a day had the newest log of another folder.
    """
    for n in range(3):
        assert alarms("A5") == []
        submit(f"s{n}", log=logs.claude("eval-9284", ("echo 446", "446"), padding=6_000 + n))
    assert flagged("A5") == ["s0", "s1", "s2"]
    assert "In seven days, 3 sessions of bob" in alarms("A5")[0]


def test_i13_five_logs_of_one_other_session_within_15_seconds_are_told_by_then():
    for n in range(5):
        with time_machine.travel(NOON + dt.timedelta(seconds=3 * n), tick=False):
            submit(f"s{n}", log=logs.claude("operator", logs.COMMIT))
    assert flagged("A5") == ["s0", "s1", "s2", "s3", "s4"]
    assert len(alarms("A5")) == 1


def test_i14_a_log_of_two_sessions_flags_the_second():
    """I14, one log for two sessions: flagged (A5) at the second. A file of its own clears it."""
    shared = logs.gptme(("user", "Do it. " + "x" * 6_000), ("assistant", "Done."))
    submit("one", log=shared)
    assert flagged("A5") == []
    submit("two", log=shared)
    assert flagged("A5") == ["two"]


def test_i17_i29_work_that_nobody_graded_is_flagged_at_the_first_session():
    """I17, I29, work called a failure by an exit status or by a shared file's age: flagged (A1) at the first session.
    The sources say what was done; neither of the two is a grade.

    Two commits were pushed, the teardown exited with 126, and the outcome said that nothing had been done.
    """
    facts = {"commits": [{"sha": "1a2b3c4" + "d" * 33}, {"sha": "5e6f7a8" + "b" * 33}]}
    submit("one", log=logs.gptme(("user", "Do it.")), facts=facts, exit_code=126)
    assert flagged("A1") == ["one"]


def test_i46_a_journal_never_silences_the_rule_and_neither_does_a_trajectory_once_the_judge_was_given_up(site):
    """I46, the floor as evidence: impossible, and flagged (A1). It is shown and never learned; the flag comes whatever
    a fallback says, once the verdict is overdue or the judge was given up.
    """
    session = site.session(ended_at=NOON).with_pull_request().graded(Source.JOURNAL, 0.32).session
    site.on(session).graded(Source.TRAJECTORY, 0.63, evidence={"view": "full"})
    job = site.on(session).with_judge_job().job
    rewards.settle(session)
    inspect_session(session)
    assert flagged("A1") == []
    JudgeJob.objects.filter(pk=job.pk).update(state="abandoned", reason=Reason.OVERLOADED)
    inspect_session(session)
    assert flagged("A1") == [session.external_id]


@pytest.mark.parametrize("field", ["harness", "category", "model"])
def test_i22_i118_a_field_that_never_comes_is_told_at_the_third_record(site, field):
    """I22, I66, a field that one harness never sends: told (A12) at the third record. Category, harness and model; a
    missing start makes no session invisible here.
    """
    for _ in range(3):
        watch(NOON)
        assert alarms("A12") == []
        site.session(**{"model": "opus", field: "" if field == "model" else None})
    watch(NOON + dt.timedelta(hours=1))
    assert alarms("A12")[0].startswith(f"3 of 3 sessions of bob in seven days came without a {field}")


def test_i01_i69_a_graded_reward_that_became_a_bit_is_told(site):
    """I01, a graded reward that became a bit unseen: alarm (A9) at thirty sessions. All within .02 of each other, in
    three categories or more.

    Every productive session was worth .3, whatever it had done.
    """
    for n in range(30):
        graded(
            site, judge=0.3, trajectory=None, ago=dt.timedelta(hours=n + 1), category=("code", "infra", "news")[n % 3]
        )
    watch()
    (said,) = alarms("A9")
    assert "are all between 0.30 and 0.30" in said


def test_i71_rewards_that_lost_what_categories_differed_by_are_told(site):
    """Rewards were centred within each category, and all its means came to lie between .482 and .498."""
    chance = random.Random(71)
    for n in range(34):
        for place, category in enumerate(("code", "infra", "news", "triage", "cross-repo")):
            level = 0.3 + 0.12 * place if n < 22 else 0.49
            (
                site.session(category, ago=(34 - n) / 3 * DAY)
                .judged(chance.gauss(level, 0.06), model="m", rubric="abcdef")
                .settle()
            )
    watch()
    assert "The means of 5 categories had a standard deviation of 0.2" in " ".join(alarms("A9"))


def test_i38_a_new_route_of_the_judge_is_named_where_the_level_moves(site):
    chance = random.Random(38)
    for n in range(90):
        late = n >= 60
        session = site.session("code", model="opus", ago=(45 - n / 2) * DAY).session
        model = "judge-by-another-route" if late else "judge"
        site.on(session).judged(chance.gauss(0.4 if late else 0.7, 0.1), model=model, rubric="abcdef")
    watch()
    assert "The judge changed too (judge, rubric abcd; now judge-by-another-route" in " ".join(alarms("A10"))


def test_a_mean_that_falls_while_no_part_of_it_does_is_a_mix_shift(site):
    chance = random.Random(5)
    category = {name: Arm.objects.get(bandit__name="category", name=name) for name in ("code", "infra")}
    sessions, grades, bob = [], [], site.agent()
    for n in range(600):
        hard = chance.random() < (0.8 if n >= 420 else 0.2)
        about = {"category": category["infra" if hard else "code"], "ended_at": NOON - (60 - n / 10) * DAY}
        sessions.append(Session(agent=bob, external_id=f"mix-{n}", model="opus", **about))
        verdict = {"source": Source.JUDGE, "status": Status.SCORED, "value": chance.gauss(0.4 if hard else 0.7, 0.1)}
        grades.append(Grade(session=sessions[-1], model="judge", rubric="abcdef", inputs_sha256=f"{n:064d}", **verdict))
    Session.objects.bulk_create(sessions)
    Grade.objects.bulk_create(grades)
    watch()
    (said,) = alarms("A10")
    assert "The mix of work shifted" in said


def test_renamed_tool_is_named_and_its_sessions_are_not_graded_low(site):
    """A renamed tool makes every session look idle. A53 names the version and the tool, and no session gets a low
    grade by its log.
    """
    log = logs.claude("s1", ("pytest -q", "8 passed"), logs.COMMIT).replace(b'"name": "Bash"', b'"name": "Terminal"')
    session = submit("s1", log=log)
    grade = session.grades.get(source=Source.TRAJECTORY)
    assert (grade.value, grade.reason) == (None, Reason.FORMAT_BLIND)
    assert grade.detail == "2 of its 2 calls are of tools that the site does not know"
    watch()
    (finding,) = alarms("A53")
    assert finding == "Claude Code 2.1.100: 2 of 2 calls are of unknown tools: Terminal."


@pytest.mark.postgresql
def test_a_log_that_names_an_endless_version_does_not_stop_the_rule(site):
    log = logs.claude("s1", ("pytest -q", "8 passed")).replace(b'"name": "Bash"', b'"name": "Terminal"')
    submit("s1", log=log.replace(b'"2.1.100"', b'"2.1.%s"' % (b"0" * 400)))
    watch()
    (alarm,) = Alarm.objects.filter(rule="A53", resolved_at=None)
    assert alarm.about == f"Claude Code 2.1.{'0' * 56}"


def test_tools_of_mcp_servers_are_no_change_of_a_format(site):
    """A53 stays closed."""
    log = logs.claude("s1", ("pytest -q", "8 passed")).replace(b'"name": "Bash"', b'"name": "mcp__shell__run"')
    submit("s1", log=log)
    watch()
    assert alarms("A53") == []
