"""Subagents' logs are part of the session that started them, which has their work and the reward."""

import itertools

import pytest

from grading.evidence import ownership
from grading.reward import rewards
from grading.vocabulary import Outcome, Reason
from tests.casts.shared_records import bits, commits, hash_of, learned, log, reward, session, step, steps, trajectory

pytestmark = pytest.mark.django_db

MAIN = steps("a", 1, 5)
SIDE = steps("s", 1, 5)


def main(site) -> None:
    site.upload("parent", log("parent", MAIN))


def under_the_parent(site) -> None:
    site.upload("parent", log("parent", SIDE, sidechain=True))


def under_its_own_id(site) -> None:
    site.upload("agent-a1", log("parent", SIDE, sidechain=True))


@pytest.mark.parametrize("acts", list(itertools.permutations([main, under_the_parent])))
def test_a_subagents_log_under_its_parents_id_is_part_of_it(site, acts):
    for act in acts:
        act(site)
    assert sorted(commits("parent")) == sorted([hash_of("a5"), hash_of("s5")])
    assert session("parent").signals["user_turns"] == 1
    assert session("parent").signals["tool_calls"] == {"shell": 10}


@pytest.mark.parametrize("acts", list(itertools.permutations([main, under_its_own_id])))
def test_a_subagents_session_gives_its_work_to_its_parent(site, acts):
    for act in acts:
        act(site)
    assert sorted(commits("parent")) == sorted([hash_of("a5"), hash_of("s5")])
    child = session("agent-a1")
    assert ownership.part_of(child) == session("parent")
    live = rewards.live(child)
    assert (live.value, live.weight, live.reason) == (None, 0, Reason.CARRIED)
    assert "subagent of session parent" in live.sentence
    assert child.outcome == Outcome.COMPLETED
    assert trajectory("agent-a1").reason == Reason.CARRIED
    assert reward("agent-a1") is None


def test_any_order_and_both_ways_give_the_same_bits(site):
    lived = []
    for acts in itertools.permutations([main, under_the_parent, under_its_own_id]):
        with site.rolled_back():
            for act in acts:
                act(site)
            lived.append((bits(), sorted(commits("parent"))))
    assert lived == [lived[0]] * 6
    assert lived[0][1] == sorted([hash_of("a5"), hash_of("s5")])


def test_what_the_parents_log_has_of_its_subagent_counts_once(site):
    lines = [{**line, "isSidechain": True} for line in itertools.chain.from_iterable(map(step, SIDE))]
    site.upload("parent", log("parent", MAIN, lines))
    before = learned(), commits("parent")
    under_its_own_id(site)
    assert (learned(), commits("parent")) == before


def test_a_subagent_whose_parent_never_comes_is_graded_by_itself(site):
    under_its_own_id(site)
    assert commits("agent-a1") == [hash_of("s5")]
    assert reward("agent-a1") is not None


def test_a_copy_of_the_parents_log_takes_nothing_from_it_and_its_subagents(site):
    main(site)
    under_its_own_id(site)
    before = learned(), commits("parent")
    site.upload("zz-copy", log("zz-copy", MAIN))
    assert (learned(), commits("parent")) == before
    assert trajectory("zz-copy").reason == Reason.CARRIED


def test_sessions_that_claim_to_have_started_each_other_are_each_on_their_own(site):
    site.upload("x", log("y", SIDE, sidechain=True))
    site.upload("y", log("x", MAIN, sidechain=True))
    assert ownership.part_of(session("x")) is None
    assert ownership.part_of(session("y")) is None
