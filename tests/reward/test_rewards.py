"""Settling, correcting and undoing leave the bandits exactly as if only the final grades had ever been (L4, L5)."""

import datetime as dt

import pytest
import time_machine
from django.db import DatabaseError, IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from bandit.models import Bucket, LedgerEntry
from bandit.reading import posterior_of
from grading.models import Flag, Grade, Settlement
from grading.models.evidence import ArtifactKind
from grading.monitoring.sessions import independent_work
from grading.monitoring.watch import inspect_session
from grading.review import corrections, notes, promises
from grading.review.corrections import CorrectionError, StaleReview
from grading.reward import explain, rewards
from grading.vocabulary import Outcome, Reason, Source
from tests import golden
from tests.examples import examples
from tests.reward import test_decide_golden
from tests.site import NOON, Site


def test_the_chains_golden_numbers_are_those_of_its_version(settings):
    golden.hold_version(settings.CHAIN_VERSION, test_decide_golden.VERSION, at=test_decide_golden.AT)


def buckets(name="category"):
    """The state of a bandit: its non-empty buckets, bit for bit."""
    rows = Bucket.objects.filter(bandit__name=name).exclude(n=0, s=0, q=0)
    return sorted(
        rows.values_list(
            "arm__name",
            "grader__source",
            "grader__model",
            "grader__rubric",
            "effective_day",
            "n",
            "s",
            "q",
            "grader__stratum",
            "grader__version",
            "grader__view",
            "grader__witness",
            "grader__standing",
            "grader__agent",
        )
    )


@pytest.mark.django_db
def test_settling_twice_records_once(site):
    session = site.session().graded(Source.TRAJECTORY, 0.41).session
    first = rewards.settle(session)
    assert rewards.settle(session) == first
    assert Settlement.objects.filter(session=session).count() == 1
    assert LedgerEntry.objects.filter(observation=session.observation, bandit__name="category").count() == 1


@pytest.mark.django_db
def test_settling_twice_records_once_where_a_sentence_holds_a_secret(site):
    session = site.session().judged(0.8).with_failed_check(f"ghp_{'a1B2' * 9} of ci").settle()
    before = session.settlements.count()
    for _ in range(3):
        rewards.settle(session)
    assert session.settlements.count() == before
    assert "ghp_" not in session.settlements.latest("revision").sentence


@pytest.mark.django_db
def test_another_failed_check_is_named_in_a_new_settlement(site):
    checks = [{"name": name, "passed": False} for name in ("ci", "lint")]
    receipt = site.upload("one", facts={"checks": checks[:1]})
    site.on(receipt.session).judged(0.8).settle()
    site.upload("one", facts={"checks": checks})
    assert "ci and lint failed" in receipt.session.settlements.latest("revision").sentence


@pytest.mark.django_db
def test_rewording_explanations_settles_nothing(site, monkeypatch):
    """Settlements are compared by content, so an upgrade that says the same in other words adds no rows."""
    sessions = [
        site.session().judged(0.8).settle(),
        site.session().graded(Source.JOURNAL, 0.4).settle(),
        site.session().judged(0.8).with_failed_check("ci").settle(),
    ]
    before = Settlement.objects.count()
    for source in explain.DECIDERS:
        monkeypatch.setitem(explain.DECIDERS, source, "Something else")
    for session in sessions:
        rewards.settle(session)
    assert Settlement.objects.count() == before


@pytest.mark.django_db
def test_a_session_that_was_never_settled_would_teach_nothing(site):
    assert rewards.preview_credit(site.session().session) == ((), None)


@pytest.mark.django_db
def test_a_source_without_weight_teaches_nothing(site, settings):
    settings.EVIDENCE_WEIGHTS = {**settings.EVIDENCE_WEIGHTS, "journal": 0.0}
    session = site.session().graded(Source.JOURNAL, 0.4).settle()
    assert rewards.live(session).value == 0.4
    assert not LedgerEntry.objects.filter(observation=session.observation).live().exists()


@pytest.mark.django_db
def test_a_session_that_nothing_graded_teaches_nothing_but_that(site):
    session = site.session().graded(Source.TRAJECTORY, None, Reason.STUB_NO_TOOL_CALLS).session
    settlement = rewards.settle(session)
    assert (settlement.value, settlement.source, settlement.weight) == (0.1, "floor", 0)
    assert not LedgerEntry.objects.rewards().exists()
    assert [row[1] for row in buckets()] == ["unscored"]


@pytest.mark.django_db
def test_a_late_verdict_replaces_the_fallback_exactly(site):
    late = site.session().graded(Source.JOURNAL, 0.32).settle()
    site.on(late).judged(0.84, model="m", rubric="r").settle()
    after = buckets()
    site.session("code").judged(0.84, model="m", rubric="r").settle()
    assert [row[1:] for row in buckets() if row[0] == "code"] == [row[1:] for row in after]


@pytest.mark.django_db
def test_a_floor_forced_into_the_ledger_and_corrected_leaves_no_trace(site, settings):
    reviewer = site.person("rita", "reviewer")
    settings.EVIDENCE_WEIGHTS = {**settings.EVIDENCE_WEIGHTS, "floor": 1.0}
    session = site.session().settle()
    assert [row[5:7] for row in buckets()] == [(1, 100_000)]
    corrections.record_correction(session, reviewer, value=0.8, reason="the pull request was merged")
    assert [row[1] for row in buckets()] == ["human"]
    other = site.session("code").session
    corrections.record_correction(other, reviewer, value=0.8, reason="right from the start")
    by_arm = {row[0]: row[1:] for row in buckets()}
    assert by_arm["code"] == by_arm["cross-repo"]


@pytest.mark.django_db
def test_an_infrastructure_death_neither_rewards_nor_punishes(site):
    session = site.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="login expired").session
    site.on(session).graded(Source.TRAJECTORY, 0.05)
    assert rewards.settle(session).value is None
    assert not LedgerEntry.objects.exists()


@pytest.mark.django_db
def test_a_session_moved_to_another_arm_takes_its_reward_along(site):
    session = site.session("code").judged(0.6).settle()
    session.category = site.session("infra").session.category
    session.save()
    rewards.settle(session)
    assert [row[0] for row in buckets()] == ["infra"]


@pytest.mark.django_db
def test_a_person_overrides_a_veto_and_undo_brings_it_back(site):
    reviewer = site.person("rita", "reviewer")
    session = site.session().with_failed_check().judged(0.9).session
    assert rewards.settle(session).value == 0.2
    before = buckets()
    assert corrections.record_correction(session, reviewer, value=0.8, reason="the check itself is broken").value == 0.8
    assert corrections.undo(Grade.objects.get(source="human"), reviewer).value == 0.2
    assert buckets() == before


@pytest.mark.django_db
def test_the_cap_is_the_policys_and_in_its_version(site, settings):
    session = site.session().with_failed_check().judged(0.9).session
    settings.VETO_CAP = 0.05
    settlement = rewards.settle(session)
    assert settlement.value == 0.05
    assert "veto=0.05" in settlement.policy.text


@pytest.mark.django_db
def test_a_stale_review_is_refused_with_what_changed(site):
    reviewer = site.person("rita", "reviewer")
    session = site.session().graded(Source.JOURNAL, 0.32).session
    seen = rewards.settle(session).revision
    site.on(session).judged(0.84).settle()
    with pytest.raises(StaleReview, match=r"\.84"):
        corrections.record_correction(session, reviewer, value=0.3, seen_revision=seen)
    assert not Grade.objects.filter(source="human").exists()


@pytest.mark.django_db
@pytest.mark.parametrize("value", [-0.1, 1.01, float("nan"), float("inf"), None])
def test_a_correction_must_be_a_number_from_0_to_1(site, value):
    reviewer = site.person("rita", "reviewer")
    with pytest.raises(CorrectionError):
        corrections.record_correction(site.session().session, reviewer, value=value, reason="x")


@pytest.mark.django_db
def test_a_correction_that_moves_the_grade_much_needs_a_reason(site):
    reviewer = site.person("rita", "reviewer")
    session = site.session().judged(0.5).settle()
    with pytest.raises(CorrectionError, match="reason"):
        corrections.record_correction(session, reviewer, value=0.8)
    assert corrections.record_correction(session, reviewer, value=0.6).value == 0.6


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "field"), [(Grade, "detail"), (Settlement, "sentence"), (LedgerEntry, "settlement")])
@pytest.mark.parametrize("verb", ["update", "delete"])
def test_the_database_refuses_to_change_history(site, model, field, verb):
    site.session().judged(0.6).settle()
    rows = model.objects.all()
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(**{field: "rewritten"}) if verb == "update" else rows._raw_delete(rows.db)
    assert rows.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fields",
    [
        {"status": "scored", "value": None},
        {"status": "unscored", "value": 0.5, "reason": "timeout"},
        {"status": "scored", "value": 1.5},
        {"status": "scored", "value": -0.1},
        {"status": "scored", "value": float("nan")},
        {"status": "unscored", "value": None, "reason": ""},
        {"status": "whatever", "value": 0.5},
    ],
)
def test_the_database_refuses_a_grade_that_breaks_a_law(site, fields):
    session = site.session().session
    with pytest.raises(IntegrityError), transaction.atomic():
        Grade.objects.create(session=session, source="trajectory", **fields)


value = st.integers(0, 100).map(lambda n: n / 100)
abstention = st.sampled_from([Reason.NOTHING_OBSERVABLE, Reason.FORMAT_BLIND, Reason.NO_TRANSCRIPT])
step = st.one_of(
    st.tuples(st.just("trajectory"), abstention | value),
    st.tuples(st.just("journal"), st.none() | value),
    st.tuples(st.just("consumption"), st.none() | value),
    st.tuples(st.just("judge"), st.none() | value),
    st.tuples(st.just("human"), st.none() | value),
    st.tuples(st.just("undo"), st.none()),
    st.tuples(st.just("redeliver"), st.none()),
    st.tuples(st.just("check failed"), st.none()),
    st.tuples(st.just("check passed"), st.none()),
    st.tuples(st.just("pull request"), st.none()),
    st.tuples(st.just("flag"), st.none()),
    st.tuples(st.just("unflag"), st.none()),
)


def by_hand(session):
    """The flag that a person put up, where it stands."""
    return Flag.objects.open().filter(session=session, rule=Flag.BY_A_PERSON).first()


class AnyOrderLeavesTheFinalGrades(TestCase):
    """L5: the buckets after any history equal those of a replay in which only the final grades ever existed.

    Strata included: a rule's flag is a consequence of the grades, a person's is a fact like them.
    """

    @examples(12)
    @given(st.lists(st.tuples(st.integers(0, 2), step), max_size=14))
    def test_any_interleaving_equals_the_replay_of_the_final_grades(self, history):
        reviewer = Site().person("rita", "reviewer")
        sessions = [Site().session(external_id=f"s{n}").session for n in range(3)]
        for session in sessions:
            rewards.settle(session)
        for number, (verb, given_value) in history:
            self._apply(sessions[number], verb, given_value, reviewer)
        lived = buckets()
        for session in sessions:
            self._replay(session, reviewer)
        assert [row[1:] for row in buckets() if row[0] == "code"] == [row[1:] for row in lived]

    def _apply(self, session, verb, given_value, reviewer):
        if verb == "human":
            corrections.record_correction(session, reviewer, value=given_value, exclude=given_value is None, reason="r")
        elif verb == "undo":
            last = Grade.objects.filter(session=session, source="human", withdraws=None, withdrawn_by=None).last()
            if last is not None:
                corrections.undo(last, reviewer)
        elif verb == "check failed" and not rewards.vetoes(session):
            Site().on(session).with_failed_check()
        elif verb == "check passed":
            session.artifacts.filter(kind=ArtifactKind.CHECK_FAILED).delete()
        elif verb == "pull request":
            Site().on(session).with_pull_request()
        elif verb == "flag" and not by_hand(session):
            notes.flag(session, reviewer, "odd")
        elif verb == "unflag" and by_hand(session):
            notes.unflag(by_hand(session), reviewer)
        elif verb in set(Source):
            self._grade(session, Source(verb), given_value)
        rewards.settle(session)
        inspect_session(session)

    def _grade(self, session, source, given_value):
        """A value, or the reason for which there is none."""
        if given_value is None or isinstance(given_value, Reason):
            Site().on(session).graded(source, None, given_value or Reason.TIMEOUT)
        else:
            Site().on(session).graded(source, given_value)

    def _replay(self, session, reviewer):
        """A session of another arm in which only what finally holds ever happened."""
        from grading.reward.decide import current

        twin = Site().session("code", harness=None).session
        for name in rewards.vetoes(session):
            Site().on(twin).with_failed_check(name)
        if independent_work(session):
            Site().on(twin).with_pull_request()
        for source, held in current(rewards.views(session.grades.all())).items():
            if source is Source.HUMAN:
                excluded = held.value is None
                corrections.record_correction(twin, reviewer, value=held.value, exclude=excluded, reason="r")
            else:
                Site().on(twin).graded(source, held.value, held.reason)
        if by_hand(session):
            notes.flag(twin, reviewer, "odd")
        rewards.settle(twin)
        inspect_session(twin)


@pytest.mark.django_db
@pytest.mark.parametrize("value", [0.0, 0.35, 0.8, 1.0, None])
def test_the_preview_of_a_correction_is_what_saving_it_does(site, value):
    reviewer = site.person("rita", "reviewer")
    for judged in (0.3, 0.5, 0.9):
        site.session("code").judged(judged).settle()
    session = site.session().graded(Source.JOURNAL, 0.32).settle()
    with time_machine.travel(NOON, tick=False):
        promised = {move.bandit: move for move in promises.arm_moves([(session, value)]) if move.touched}["category"]
        corrections.record_correction(session, reviewer, value=value, exclude=value is None, reason="r")
        now = posterior_of("category", NOON)
    assert (promised.arm, promised.mean_after) == ("cross-repo", now.arms["cross-repo"].mean)
    assert promised.share_after == now.next_100("cross-repo")
    assert promised.mean_before != promised.mean_after


@pytest.mark.django_db
def test_the_preview_counts_a_corrected_session_as_its_agents(site):
    """Bob's sessions of one day are capped only while another agent has ten rewards of earlier days."""
    reviewer = site.person("rita", "reviewer")
    ago = dt.timedelta(days=1)
    for _ in range(5):
        site.session("code", agent="bob", ago=ago).judged(0.9).settle()
    corrected, *_ = [site.session("news", agent="alice", ago=ago).judged(0.4).settle() for _ in range(10)]
    with time_machine.travel(NOON, tick=False):
        outlooks = {bandit: after for bandit, _before, after, _ran in promises.outlooks([(corrected, 0.5)])}
        corrections.record_correction(corrected, reviewer, value=0.5, reason="r")
        now = posterior_of("harness", NOON)
    assert outlooks["harness"].arms["claude-code"].mean == now.arms["claude-code"].mean
