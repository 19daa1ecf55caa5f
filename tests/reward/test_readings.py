"""A verdict that something speaks against is read again, up to three times; what then holds, and who is told."""

import datetime as dt

import pytest
from django.conf import settings
from django.utils import timezone

from bandit import audit, versions
from bandit.core.calibration import FallbackCalibration, KindEstimate
from bandit.models import Bandit, LedgerEntry
from grading.intake import erasing, regrading
from grading.judging import enqueuing, ordering, recomputing, worker
from grading.models import Alarm, Evidence, Flag, Grade, JudgeJob, ReviewItem, Session
from grading.models.judging import JobState, Purpose
from grading.monitoring.judges import wasted_judging
from grading.monitoring.watch import inspect_session, watch
from grading.reward import rewards
from grading.reward.decide import GradeView, decide
from grading.reward.rereading import why_again
from grading.reward.standing import standing_weight
from grading.vocabulary import Source, Status
from grading.witness import Witness
from tests.casts import logs
from tests.incidents.helpers import simulated, work
from tests.reward.test_chain import POLICY
from tests.stories.test_seed_000 import NOTE, TASK, TWEET, ideas

pytestmark = pytest.mark.django_db
# Ideas, a post, a task and a note: .75 by the artifact rules.
LEFT = ideas(3) + TWEET + TASK + NOTE


@pytest.fixture
def sim(settings):
    with simulated(settings) as running:
        yield running


def read(site, sim, *scores: float, patch: str = LEFT, **said) -> Session:
    """A reading session, read so often; the judge's n-th reading comes to the n-th score."""
    sim.script(*({"score": score} for score in scores))
    said = {"patch": patch or None, "journal": "# Read\n\nRead the feeds.\n", **said}
    session = site.upload("s-1", category="news", **said).session
    for _ in scores:
        one()
    return session


def one() -> None:
    """The most urgent job is asked, and no other."""
    worker.run(JudgeJob.objects.filter(state=JobState.QUEUED)[0].pk)


def reward(session: Session):
    return rewards.live(session)


def samples(session: Session) -> list[JudgeJob]:
    return list(session.judge_jobs.filter(purpose=Purpose.SAMPLE).order_by("pk"))


def numbers(session: Session) -> list[int]:
    return list(session.grades.chain().verdicts().order_by("pk").values_list("sample", flat=True))


def keys(session: Session) -> list[tuple[str, str, str]]:
    entries = LedgerEntry.objects.live().filter(bandit__name="category", observation=session.observation)
    return [(entry.grader.source, entry.grader.standing, entry.grader.witness) for entry in entries]


def flags(session: Session) -> set[str]:
    return set(Flag.objects.open().filter(session=session).values_list("rule", flat=True))


# --- contested -------------------------------------------------------------------------------------------------------


def test_artifacts_far_above_a_verdict_count_nothing_until_the_judge_has_read_it_again(site, sim):
    session = read(site, sim, 0.1)
    held = reward(session)
    assert (held.value, held.source, held.final, held.weight) == (0.75, Source.CONSUMPTION, False, 0)
    assert keys(session) == [("consumption", "contested/50", "unknown")]
    assert "The judge will read the session again." in held.sentence
    (job,) = samples(session)
    assert (job.sample, job.backlog, job.worth, job.sample_of.value) == (2, True, 0, 0.1)
    assert flags(session) == set()
    assert not ReviewItem.objects.open().exclude(entered_as="slice").filter(session=session).exists()
    assert not audit.audit()


def test_a_smaller_gap_counts_more(site, sim):
    session = read(site, sim, 0.37)
    assert (reward(session).weight, keys(session)) == (pytest.approx(0.6), [("consumption", "contested/38", "unknown")])


def test_three_readings_near_the_artifacts_end_it(site, sim):
    session = read(site, sim, 0.1, 0.5, 0.55)
    held = reward(session)
    assert (held.value, held.source, held.final, held.weight) == (0.75, Source.CONSUMPTION, True, 1)
    assert keys(session) == [("consumption", "plain", "unknown")]
    assert (numbers(session), [job.state for job in samples(session)]) == ([1, 2, 3], ["done", "done"])
    # They are far apart all the same, which a person should know.
    assert flags(session) == {"A37"}
    third = session.grades.get(sample=3)
    assert (third.evidence["samples"], third.evidence["median"], third.evidence["spread"]) == (
        [0.1, 0.5, 0.55],
        0.5,
        0.45,
    )
    assert not audit.audit()


def test_three_readings_that_agree_hold_and_a_person_is_told(site, sim):
    """I40: a judge that rates low what a session plainly left behind is told."""
    session = read(site, sim, 0.1, 0.15, 0.1)
    held = reward(session)
    assert (held.value, held.source, held.final, held.weight) == (0.4, Source.CONSUMPTION, True, 1)
    assert keys(session) == [("consumption", "plain", "unknown")]
    assert flags(session) == {"A38"}
    item = ReviewItem.objects.open().get(session=session)
    assert "even after three readings; they add at most .30 to the verdict" in item.why
    assert (work(), len(sim.calls)) == (0, 3)


def test_three_readings_that_do_not_agree_leave_it_to_a_person(site, sim):
    """I42: readings of one session that differ are noise in the latest one, so a person decides."""
    session = read(site, sim, 0.05, 0.45, 0.2)
    held = reward(session)
    assert (held.value, held.final, held.weight) == (0.75, False, 0)
    assert flags(session) == {"A37", "A38"}
    assert "A person's grade would settle it." in held.sentence
    rita = site.person("rita", "reviewer")
    site.on(session).graded(Source.HUMAN, 0.3, author=rita)
    held = rewards.settle(session)
    assert (held.value, held.source, held.final, held.weight) == (0.3, Source.HUMAN, True, 1)


def test_where_the_judge_gives_up_a_person_is_asked(site, sim):
    session = read(site, sim, 0.1)
    sim.script("refusal", "refusal")
    one()
    JudgeJob.objects.update(next_attempt_at=timezone.now())
    one()
    assert [job.state for job in samples(session)] == [JobState.ABANDONED]
    assert (reward(session).final, flags(session)) == (False, {"A38"})
    assert session.grades.chain().filter(source=Source.JUDGE).count() == 1
    assert work() == 0


def test_without_a_judge_to_ask_a_person_is_asked_at_once(site, sim, settings):
    session = read(site, sim, 0.5)
    settings.ANTHROPIC_API_KEY = ""
    site.on(session).judged(0.1, rubric="a" * 64).settle()
    inspect_session(session)
    assert flags(session) == {"A38"}


def test_artifacts_that_come_after_the_verdict_contest_it_too(site, sim):
    session = read(site, sim, 0.1, patch="", facts={"commits": [{"sha": "9" * 40}]})
    assert reward(session).value == 0.1
    site.upload("s-1", patch=LEFT, category="news")
    assert (reward(session).value, reward(session).weight, len(samples(session))) == (0.75, 0, 1)


# --- never again for the same ----------------------------------------------------------------------------------------


def test_no_agent_has_the_dice_thrown_again_by_sending_things(site, sim):
    session = read(site, sim, 0.1, 0.15, 0.1)
    for number in range(3):
        site.upload("s-1", journal=f"# Read\n\nIdea {number}, merged and delivered!\n", category="news")
        site.upload("s-1", patch=LEFT + f"\n# {number}\n", category="news")
    sim.script({"score": 0.9})
    assert (work(), numbers(session), len(sim.calls)) == (0, [1, 2, 3], 3)


def test_a_reading_whose_verdict_was_superseded_is_not_asked_for(site, sim):
    session = read(site, sim, 0.1)
    site.on(session).judged(0.7, rubric="b" * 64).settle()
    assert (work(), [job.state for job in samples(session)]) == (0, [JobState.DONE])
    assert reward(session).value == 0.75


def test_nobody_reads_again_what_a_person_has_graded(site, sim):
    session = read(site, sim, 0.1)
    site.on(session).graded(Source.HUMAN, 0.3, author=site.person("rita", "reviewer")).settle()
    assert (work(), len(sim.calls)) == (0, 1)


def test_readings_go_after_everything_else_that_waits(site, sim):
    session = read(site, sim, 0.1)
    for number in range(3):
        site.upload(f"other-{number}", journal="# Something\n\nDid something.\n")
    ordering.prioritise()
    assert JudgeJob.objects.filter(state=JobState.QUEUED)[3].session_id == session.pk


def test_readings_are_no_waste(site, sim):
    read(site, sim, 0.1, 0.15, 0.1)
    assert list(wasted_judging.find(timezone.now())) == []


def test_erasing_a_session_takes_its_readings_along(site, sim):
    session = read(site, sim, 0.1, 0.15, 0.1)
    erasing.erase(Session.objects.filter(pk=session.pk), who="olga", why="asked for")
    assert not Grade.objects.exists()
    assert not audit.audit()


def test_new_rules_of_the_score_compute_every_reading_anew(site, sim, monkeypatch):
    session = read(site, sim, 0.1, 0.15, 0.3)
    monkeypatch.setattr(recomputing, "SCORING", "score/2")
    assert regrading.regrade(session).after.value == reward(session).value == 0.45
    assert numbers(session) == [1, 2, 3, 1, 2, 3]
    assert rewards.current_grades(session)[Source.JUDGE].samples == (0.1, 0.15, 0.3)
    assert work() == 0


def test_an_old_verdict_that_new_rules_contest_is_read_again(site, sim):
    session = read(site, sim, 0.5)
    held = session.grades.filter(source=Source.CONSUMPTION).latest("pk")
    site.on(session).judged(0.1, rubric=session.grades.verdicts().get().rubric)
    assert (held.value, samples(session)) == (0.75, [])
    assert regrading.preview(session).is_enqueued
    assert samples(session) == []
    assert regrading.regrade(session).is_enqueued
    assert [job.sample for job in samples(session)] == [2]
    assert reward(session).weight == 0


def test_a_contest_that_nobody_has_asked_about_is_caught_up_with(site, sim, settings):
    session = read(site, sim, 0.5)
    other = site.upload("s-2", category="news", journal="# Read\n").session
    for each in (session, other):
        rubric = session.grades.verdicts().first().rubric if each == session else "unknown"
        site.on(each).judged(0.1, rubric=rubric).graded(Source.CONSUMPTION, 0.9).settle()
    assert enqueuing.catch_up() == 1
    assert ([job.sample for job in samples(session)], flags(session)) == ([2], set())
    # Nobody knows by which rubric the other was judged, so that a person has to look.
    assert (samples(other), flags(other)) == ([], {"A38"})
    assert enqueuing.catch_up() == 0


def test_readings_that_wait_for_days_are_an_alarm(site, sim):
    session = read(site, sim, 0.1)
    JudgeJob.objects.filter(session=session, purpose=Purpose.SAMPLE).update(
        created_at=timezone.now() - dt.timedelta(days=3)
    )
    watch(timezone.now() + dt.timedelta(minutes=20))
    (alarm,) = Alarm.objects.filter(rule="A38")
    assert alarm.detail.startswith("Contested sessions that have waited more than two days for another reading: 1.")


def test_what_the_rules_say_on_the_judges_scale_has_a_session_read_again(site, sim):
    sim.script({"score": 0.9})
    session = site.upload("s-1", logs.claude("s-1", ("pytest -q", "8 passed"), logs.COMMIT)).session
    one()
    assert samples(session) == []
    value = session.grades.filter(source=Source.TRAJECTORY).latest("pk").value
    kind = KindEstimate(source="trajectory", shift=0.4 - value, pairs={"code": 40})
    fallbacks = FallbackCalibration(kinds=(kind,), sources=("trajectory",))
    version = versions.latest(Bandit.objects.named("category").calibrations.all()).version + 1
    versions.set_calibration("category", fallbacks, version=version, by="olga")
    enqueuing.read_again(session)
    assert [job.sample for job in samples(session)] == [2]


# --- why a session is read again -------------------------------------------------------------------------------------


def decided(judge: float | None, *, left: float | None = None, witness=Witness.UNKNOWN, **more):
    rows = [GradeView(id=1, source=Source.CONSUMPTION, status=Status.SCORED, value=left, witness=witness)] * (
        left is not None
    )
    rows += [GradeView(id=2, source=Source.JUDGE, status=Status.SCORED, value=judge, **more)] * (judge is not None)
    return decide(rows, POLICY, judge_open=False)


@pytest.mark.parametrize(
    ("decision", "rules", "flagged", "why"),
    [
        (decided(0.5), None, False, ""),
        (decided(0.5), 0.89, False, ""),
        (decided(0.5), 0.9, False, "without the judge, the reward would be .90"),
        (decided(0.5), 0.1, False, "without the judge, the reward would be .10"),
        (decided(0.5), None, True, "a rule has flagged that judge and trajectory disagree"),
        (decided(0.5, left=0.8), None, False, ""),
        (decided(0.5, left=0.81), None, False, "the session’s artifacts would earn .31 more"),
        (decided(0.5, left=1.0, witness=Witness.CLAIMED), None, False, ""),
        (decided(0.5, left=1.0, stale="the transcript came"), 0.0, True, ""),
        (decided(None, left=1.0), 0.0, True, ""),
        (decided(0.5, left=1.0, samples=(0.5, 0.5, 0.5)), 0.0, True, ""),
    ],
)
def test_what_makes_a_session_read_again(decision, rules, flagged, why):
    assert why_again(decision, without_judge=rules, flagged=flagged) == why


def test_a_session_that_the_rule_about_disagreements_flags_is_read_again(site, sim):
    sim.script({"score": 0.9}, {"score": 0.2}, {"score": 0.3})
    session = site.upload("s-1", logs.claude("s-1", ("ls", "src"))).session
    one()
    assert samples(session) == []
    for _ in range(2):
        # The rule itself has nothing to compare here, and takes the flag back with each reading that comes.
        Flag.objects.update_or_create(session=session, rule="A3", defaults={"cleared_at": None, "cleared_why": ""})
        enqueuing.read_again(session)
        assert work() == 1
    Flag.objects.filter(session=session, rule="A3").update(cleared_at=None, cleared_why="")
    assert enqueuing.read_again(session) is None
    assert (reward(session).value, reward(session).final, numbers(session)) == (0.3, True, [1, 2, 3])
    assert "The median of .90, .20, .30, .70 apart." in next(
        step["why"] for step in reward(session).steps if step["source"] == "judge"
    )


# --- what an agent alone vouches for ---------------------------------------------------------------------------------


def claimed(site, session: Session, value: float) -> None:
    site.on(session).graded(Source.CONSUMPTION, value, evidence={"witness": "claimed"})


def test_a_claim_lifts_no_verdict_and_moves_nothing_but_people_are_told(site, sim):
    session = read(site, sim, 0.1, patch="")
    before = keys(session)
    claimed(site, session, 1.0)
    enqueuing.read_again(session)
    rewards.settle(session)
    inspect_session(session)
    held = reward(session)
    assert (held.value, held.source, held.final, held.weight) == (0.1, Source.JUDGE, True, 1)
    assert (keys(session), samples(session), flags(session)) == (before, [], {"A39"})
    entry = LedgerEntry.objects.live().get(bandit__name="category", observation=session.observation)
    assert entry.grader.stratum == ""


def test_a_claim_without_a_verdict_counts_little(site, settings):
    session = site.session("news").session
    claimed(site, session, 0.8)
    held = rewards.settle(session)
    assert (held.value, held.weight, held.final) == (0.8, 0.3, False)
    assert keys(session) == [("consumption", "claimed", "claimed")]


def test_many_claims_of_one_agent_are_an_alarm(site, sim):
    """I15: work that only the agent claims does not raise a verdict, and many such claims are told."""
    for number in range(3):
        session = site.upload(f"s-{number}", category="news", journal="# Read\n", ended_at=timezone.now()).session
        site.on(session).judged(0.1)
        claimed(site, session, 1.0)
        inspect_session(session)
    watch()
    (alarm,) = Alarm.objects.filter(rule="A39")
    assert alarm.about == "bob"
    assert alarm.detail.startswith("In seven days, 3 sessions of bob claimed far more")


def test_the_bandits_read_of_a_standing_what_the_settlement_says_it_counts():
    assert {standing: standing_weight(standing) for standing in settings.STANDING_WEIGHTS} == settings.STANDING_WEIGHTS


def test_a_verdict_is_vouched_for_by_whoever_sent_what_it_was_given_on(site, sim):
    session = read(site, sim, 0.5, patch="")
    assert session.grades.verdicts().get().evidence["witness"] == "unknown"
    sent = session.evidence.get(kind="journal")
    Evidence.objects.create(session=session, kind="journal", sha256=sent.sha256, size=sent.size, witness="observed")
    sim.script({"score": 0.6})
    worker.run(enqueuing.add(session, session.judge_jobs.get().rubric, purpose=Purpose.REPEAT).pk)
    latest = session.grades.verdicts().latest("pk")
    assert latest.evidence["witness"] == "observed"
    site.on(session).judged(0.6, evidence=latest.evidence).settle()
    assert keys(session) == [("judge", "plain", "observed")]
