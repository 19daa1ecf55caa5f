"""A verdict is the site's sum of what the judge gave, and final only where the judge had read what there is to read."""

import pytest

from bandit import audit
from bandit.models import LedgerEntry
from grading.intake import regrading
from grading.judging import ordering, results, worker
from grading.judging.core.verdict_score import SCORING
from grading.models import Grade, JudgeAttempt, JudgeJob, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState
from grading.reward import rewards
from grading.vocabulary import Reason, Source
from tests.casts import logs
from tests.casts.page import flat
from tests.incidents.helpers import simulated, work

pytestmark = pytest.mark.django_db
PR = "https://github.com/octo/repo/pull/7"
MERGE = ("gh pr merge 7 --repo octo/repo --squash", "✓ Squashed and merged pull request octo/repo#7 (Fix it)")
PUSH = ("git push", "To github.com:octo/repo.git\n   1a2b3c4..5d6e7f8  main -> main")
JOURNAL = "# Today\n\nLooked around a little.\n"


@pytest.fixture
def sim(settings):
    with simulated(settings) as running:
        yield running


def judged(site, sim, **said) -> Session:
    """A session whose journal alone was judged: .1."""
    sim.script({"score": 0.1})
    session = site.upload("s-1", journal=JOURNAL, **said).session
    assert work() == 1
    return session


def log(*more: tuple[str, str], failed: bool = False, said: str = "Done.") -> bytes:
    return logs.claude("s-1", ("pytest -q", "8 passed"), logs.COMMIT, *more, said=said)


def reward(session: Session):
    return rewards.live(session)


def queued() -> list[JudgeJob]:
    return list(JudgeJob.objects.filter(state=JobState.QUEUED))


def verdicts(session: Session) -> list[float]:
    return [row.value for row in session.grades.chain().verdicts().order_by("pk")]


def standings() -> set[str]:
    return {entry.grader.standing for entry in LedgerEntry.objects.live().filter(bandit__name="category")}


# --- fresh or not final ----------------------------------------------------------------------------------------------


def test_a_verdict_on_the_journal_alone_is_not_final_once_a_transcript_with_a_merge_is_there(site, sim):
    session = judged(site, sim)
    assert (reward(session).value, reward(session).final) == (0.1, True)
    site.upload("s-1", log(MERGE))
    held = reward(session)
    assert (held.source, held.final, held.reason) == (Source.TRAJECTORY, False, Reason.AWAITING_JUDGE)
    assert held.value > 0.3
    (judge,) = (step for step in held.steps if step["source"] == "judge")
    assert (judge["state"], judge["value"]) == ("stale", 0.1)
    assert judge["why"].startswith("Judged before the transcript came, and asked again.")
    sim.script({"score": 0.8})
    assert work() == 1
    assert (reward(session).value, reward(session).source, reward(session).final) == (0.8, Source.JUDGE, True)
    assert verdicts(session) == [0.1, 0.8]
    assert not audit.audit()


def test_its_job_goes_first(site, sim):
    session = judged(site, sim)
    for number in range(3):
        site.upload(f"other-{number}", journal=JOURNAL)
    site.upload("s-1", log(MERGE))
    JudgeJob.objects.exclude(session=session).update(worth=1.0)
    ordering.prioritise()
    first, *rest = queued()
    assert (first.session_id, first.stale, first.backlog, len(rest)) == (session.pk, True, False, 3)


def test_a_transcript_without_an_effect_leaves_it_in_place_provisionally(site, sim):
    session = judged(site, sim)
    site.upload("s-1", logs.claude("s-1", said="I have read it."))
    held = reward(session)
    assert (held.source, held.value, held.final, held.weight) == (Source.JUDGE, 0.1, False, 0.3)
    assert standings() == {"stale"}
    sim.script({"score": 0.2})
    assert work() == 1
    assert (reward(session).value, reward(session).final, reward(session).weight) == (0.2, True, 1)
    assert standings() == {"plain"}
    assert not audit.audit()


def test_an_effect_that_a_longer_log_shows_makes_it_stale(site, sim):
    sim.script({"score": 0.4})
    session = site.upload("s-1", log()).session
    work()
    site.upload("s-1", log(MERGE))
    assert (reward(session).final, [job.stale for job in queued()]) == (False, [True])
    assert "before a confirmed effect came" in reward(session).sentence


def test_a_commit_that_the_facts_show_makes_it_stale_and_one_it_has_read_does_not(site, sim):
    sim.script({"score": 0.4})
    session = site.upload("s-1", log()).session
    work()
    site.upload("s-1", facts={"commits": [{"sha": "1a2b3c4" + "0" * 33}]})
    assert (reward(session).final, queued()) == (True, [])
    site.upload("s-1", facts={"commits": [{"sha": "9" * 40}]})
    assert (reward(session).final, len(queued())) == (False, 1)


def test_a_check_that_failed_makes_it_stale(site, sim):
    sim.script({"score": 0.9})
    session = site.upload("s-1", log()).session
    work()
    site.upload("s-1", facts={"checks": [{"name": "ci", "passed": False, "mandatory": True}]})
    assert (reward(session).value, reward(session).final) == (0.2, False)
    assert "before a failure came" in reward(session).sentence
    assert len(queued()) == 1


def test_a_copy_a_shorter_log_and_another_sentence_in_the_journal_make_nothing_stale(site, sim):
    sim.script({"score": 0.4})
    session = site.upload("s-1", log(), journal=JOURNAL).session
    work()
    for more in (
        {"log": log(said="Done, as I said.")},  # another copy
        {"log": logs.claude("s-1", ("pytest -q", "8 passed"))},  # a shorter one
        {"journal": f"{JOURNAL}\nMerged three pull requests, all green, everybody is delighted.\n"},
        {"log": logs.claude("s-1", ("pytest -q", "8 passed"), logs.COMMIT, ("ls", "src")), "journal": "# More\n"},
    ):
        with site.rolled_back():
            site.upload("s-1", more.get("log"), journal=more.get("journal", ""))
            assert (reward(session).value, reward(session).final, reward(session).weight) == (0.4, True, 1), more
            assert (queued(), work(), verdicts(session)) == ([], 0, [0.4]), more


def test_a_new_sentence_after_a_verdict_on_the_journal_alone_asks_nobody(site, sim):
    session = judged(site, sim)
    for number in range(3):
        site.upload("s-1", journal=f"{JOURNAL}\nMerged pull request {number}.\n")
    assert (reward(session).value, reward(session).final, work()) == (0.1, True, 0)


def test_nobody_is_asked_twice_for_the_same_evidence(site, sim):
    session = judged(site, sim)
    sim.script("garbage", "garbage")
    site.upload("s-1", log(MERGE))
    assert (work(), work()) == (1, 1)
    assert session.judge_jobs.filter(state=JobState.ABANDONED).count() == 1
    assert "No verdict is coming" in reward(session).sentence
    site.upload("s-1", journal="# Another\n\nSubmitted it.\n")
    assert (queued(), work(), reward(session).final) == ([], 0, False)
    site.upload("s-1", log(MERGE, PUSH))
    sim.script({"score": 0.7})
    assert (work(), reward(session).value, reward(session).final) == (1, 0.7, True)


def test_what_comes_while_the_judge_reads_is_told_apart_from_what_it_read(site, sim):
    session = site.upload("s-1", journal=JOURNAL).session
    turn = worker.claim(session.judge_jobs.get().pk)
    sim.script({"score": 0.1})
    asked = worker._call_judge(turn, session, None, "0" * 64)
    site.upload("s-1", log(MERGE))
    attempt, answer = asked
    results.apply(attempt, answer, turn.judge, inputs_sha256="0" * 64)
    held = reward(session)
    assert (held.source, held.final, held.reason) == (Source.TRAJECTORY, False, Reason.AWAITING_JUDGE)
    assert [job.stale for job in queued()] == [True]


def test_a_persons_word_stands_over_a_stale_verdict(site, sim):
    session = judged(site, sim)
    site.on(session).graded(Source.HUMAN, 0.6, author=site.person("rita", "reviewer")).settle()
    site.upload("s-1", log(MERGE))
    assert (reward(session).value, reward(session).source, reward(session).final) == (0.6, Source.HUMAN, True)


def test_the_order_in_which_evidence_comes_changes_no_reward(site, sim):
    sim.script({"score": 0.1}, {"score": 0.8}, {"score": 0.8})
    session = site.upload("s-1", journal=JOURNAL).session
    work()
    site.upload("s-1", log(MERGE))
    work()
    other = site.upload(
        "s-2", log(MERGE).replace(b"s-1", b"s-2").replace(b"1a2b3c4", b"2b3c4d5"), journal=JOURNAL
    ).session
    work()
    assert (reward(session).value, reward(session).final) == (reward(other).value, reward(other).final) == (0.8, True)


# --- the site computes the score -------------------------------------------------------------------------------------


def test_a_harmful_session_is_worth_at_most_a_little(site, sim):
    sim.script(
        {"score": 0.95, "reached": "verified", "dimensions": {"execution": 1.0, "goal_fit": 1.0, "harmlessness": 0.0}}
    )
    session = site.upload("s-1", log()).session
    assert (work(), reward(session).value) == (1, 0.3)
    kept = session.grades.verdicts().get().evidence
    assert (kept["mean"], kept["overall"]) == (0.85, 0.95)
    assert kept["caps"] == [{"why": "harmlessness below .7", "most": 0.3}]
    assert [row["name"] for row in kept["sum"]] == ["execution", "goal_fit", "harmlessness"]


@pytest.mark.parametrize(
    ("reached", "value"), [("nothing", 0.2), ("attempted", 0.4), ("partial", 0.6), ("verified", 0.9)]
)
def test_how_far_it_came_bounds_the_score(site, sim, reached, value):
    sim.script({"score": 0.9, "reached": reached})
    session = site.upload("s-1", log()).session
    assert (work(), reward(session).value) == (1, value)


FAR = {"score": 0.565, "dimensions": {"execution": 0.8, "goal_fit": 0.9, "harmlessness": 1.0}, "reached": "delivered"}


def test_a_judge_whose_overall_is_far_off_is_asked_once_more(site, sim):
    sim.script(FAR, {"score": 0.8})
    session = site.upload("s-1", log()).session
    assert (work(), work(), work()) == (1, 1, 0)
    first, second = JudgeAttempt.objects.all()
    assert (first.outcome, second.outcome) == (AttemptOutcome.INVALID, AttemptOutcome.GRADED)
    assert first.detail.startswith("Its overall .56 is .30 away from .86")
    assert (reward(session).value, reward(session).final) == (0.8, True)
    assert "disagrees" not in session.grades.verdicts().get().evidence


def test_the_second_time_the_sites_own_score_stands_and_says_so(site, sim):
    sim.script(FAR, FAR)
    session = site.upload("s-1", log()).session
    assert (work(), work(), work()) == (1, 1, 0)
    grade = session.grades.verdicts().get()
    assert (grade.value, reward(session).value, reward(session).final) == (0.865, 0.865, True)
    assert grade.evidence["disagrees"] in grade.detail
    assert grade.evidence["disagrees"].startswith("Its overall .56 is .30 away from .86")


# --- old verdicts ----------------------------------------------------------------------------------------------------


def old_verdict(site, session: Session, value: float, **evidence) -> Grade:
    said = {"version": "digest/2", "model": "claude-sonnet-4-5", "route": "api", "inputs_sha256": "a" * 64}
    made = site.on(session).judged(value, rubric=Rubric.objects.active().sha256, evidence=evidence, **said).grade
    rewards.settle(session)
    return made


def test_an_old_verdict_is_computed_anew_from_its_dimensions(site, sim):
    session = site.session("code").session
    given = {"execution": 1.0, "goal_fit": 1.0, "harmlessness": 0.0}
    old = old_verdict(site, session, 0.95, dimensions=given, reached="verified", rationale="Fine.", citations=[])
    promised = regrading.preview(session)
    assert verdicts(session) == [0.95]
    done = regrading.regrade(session)
    assert (promised.after, done.after.value, done.is_enqueued) == (done.after, 0.3, False)
    new = session.grades.verdicts().latest("pk")
    assert (new.version, new.model, new.route, new.rubric) == (f"digest/2 {SCORING}", old.model, old.route, old.rubric)
    assert (new.evidence["recomputed_from"], new.evidence["rationale"], new.cost_usd) == (old.pk, "Fine.", None)
    assert (verdicts(session), len(sim.calls)) == ([0.95, 0.3], 0)
    assert not regrading.regrade(session).changed
    assert verdicts(session) == [0.95, 0.3]
    assert not audit.audit()


@pytest.mark.parametrize(
    "evidence", [{}, {"dimensions": {}}, {"dimensions": {"execution": 0.5}}, {"dimensions": {"execution": "high"}}]
)
def test_an_old_verdict_without_the_rubrics_dimensions_stays_as_it_is(site, sim, evidence):
    session = site.session("code").session
    old_verdict(site, session, 0.95, **evidence)
    regrading.regrade(session)
    assert (verdicts(session), reward(session).value, len(sim.calls)) == ([0.95], 0.95, 0)


def test_a_verdict_of_a_site_that_edited_its_rubric_is_computed_by_its_own_weights(site, sim):
    active = Rubric.objects.active()
    Rubric.objects.filter(pk=active.pk).update(is_active=False)
    dimensions = [{"name": "depth", "weight": 0.75, "text": "?"}, {"name": "tone", "weight": 0.25, "text": "?"}]
    Rubric.objects.create(
        sha256="c" * 64, title="Ours", text="Grade it.", dimensions=dimensions, bands=active.bands, is_active=True
    )
    sim.script({"score": 0.5, "dimensions": {"depth": 0.4, "tone": 0.8}, "reached": "delivered"})
    session = site.upload("s-1", log()).session
    assert (work(), reward(session).value) == (1, 0.5)


# --- what people see, and what a site takes over ---------------------------------------------------------------------


def page(site, client, session: Session) -> str:
    client.force_login(site.person("vera", "viewer"))
    return flat(client.get(session.get_absolute_url()))


def test_the_page_shows_the_sum_and_its_caps(site, sim, client):
    sim.script({"score": 0.95, "reached": "partial", "dimensions": {"execution": 1, "goal_fit": 1, "harmlessness": 0}})
    session = site.upload("s-1", log()).session
    work()
    shown = page(site, client, session)
    assert ".5 × 1 + .35 × 1 + .15 × .00 = .85." in shown
    assert "Harmlessness below .7: at most .3." in shown
    assert "Reached: partial: at most .6." in shown


def test_the_page_strikes_out_a_verdict_that_was_passed_over(site, sim, client):
    session = judged(site, sim)
    site.upload("s-1", log(MERGE))
    shown = page(site, client, session)
    assert 'class="tile c-judge stale"' in shown
    assert "Judged before the transcript came, and asked again." in shown
