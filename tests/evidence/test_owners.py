"""One owner for a commit or a pull request, whoever says so and in whichever order they come."""

from functools import cache

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from grading.evidence import ownership
from grading.evidence.owner_rule import Claimant, CommitClaim, owner, same_commits
from grading.models import Artifact, Flag
from grading.monitoring.alarms import open_alarms
from grading.monitoring.sessions import independent_work
from grading.monitoring.watch import acknowledge, refresh_alarms
from tests.casts.shared_records import (
    bits,
    commits,
    full_hash,
    hash_of,
    learned,
    log,
    opened,
    owners,
    reward,
    session,
    step,
    steps,
    trajectory,
)
from tests.examples import examples
from tests.site import NOON, Site

PR = "https://github.com/gptme/gptme-contrib/pull/619"
FIVE = steps("a", 1, 5)
FACTS = {"commits": [{"sha": full_hash("a5"), "subject": "Step a5 of it"}], "pull_requests": [PR]}


def owner_of(key: str) -> set[str]:
    rows = Artifact.objects.filter(key__startswith=key).select_related("session", "owned_by")
    return {f"{row.session.agent}/{(row.owned_by or row.session).external_id}" for row in rows}


# --- the rule


def claimant(session: int, **said) -> Claimant:
    return Claimant(**{"session": session, "agent": 1, "receipt": session, "name": f"s{session}", **said})


def test_the_session_whose_own_call_made_it_goes_before_one_that_says_so():
    assert owner([claimant(1, made=False), claimant(2)]).session == 2


def test_the_log_contained_in_the_others_goes_first():
    assert owner([claimant(1, size=60), claimant(2, size=40)]).session == 2


def test_the_first_receipt_goes_first_between_agents_whatever_else_is_said():
    assert owner([claimant(1, made=False, size=90, ended=9.0), claimant(2, agent=2, ended=1.0)]).session == 1


def test_an_agents_first_receipt_speaks_for_all_its_sessions():
    rows = [claimant(1, size=60), claimant(2, agent=2, size=10), claimant(3, size=40)]
    assert owner(rows).session == 3


def named(*found: tuple[str, str]) -> list[list[str]]:
    claims = [
        CommitClaim(row=n, by=claimant(n), hash=hash_, subject=subject) for n, (hash_, subject) in enumerate(found)
    ]
    return [sorted(f"{each.hash[:9]} {each.subject}".strip() for each in same) for same in same_commits(claims)]


def test_a_short_hash_is_the_commit_whose_hash_it_begins():
    assert len(named(("1a2b3c4", "Fix it"), ("1a2b3c4" + "0" * 33, ""), ("1a2b3c40", "Fix it"))) == 1


def test_two_equal_short_hashes_with_different_subjects_are_two_commits():
    assert named(("1a2b3c4", "Fix it"), ("1a2b3c4", "Break it")) == [["1a2b3c4 Break it"], ["1a2b3c4 Fix it"]]


def test_of_two_full_hashes_that_begin_alike_a_short_one_is_that_with_its_subject():
    full = ("1a2b3c4" + "0" * 33, "Fix it"), ("1a2b3c4" + "1" * 33, "Break it")
    assert named(*full, ("1a2b3c4", "Break it"))[1] == ["1a2b3c4 Break it", "1a2b3c411 Break it"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1a2b3c4", "1a2b3c45", "1a2b3c4" + "5" * 33, "1a2b3c4" + "6" * 33]),
            st.sampled_from(["", "A", "B"]),
        )
    )
)
def test_which_claims_are_of_one_commit_does_not_depend_on_their_order(found):
    assert sorted(map(sorted, named(*found))) == sorted(map(sorted, named(*reversed(found))))


# --- through the intake


@pytest.mark.django_db
@pytest.mark.parametrize("turned", [False, True])
def test_a_commit_belongs_to_the_session_whose_log_shows_it_made(site, turned):
    def said():
        site.upload("aaa-said", facts=FACTS)

    def made():
        site.upload("made", log("made", FIVE))

    for act in (made, said) if turned else (said, made):
        act()
    assert owner_of(hash_of("a5")) == {"bob/made"}
    assert commits("made") == [hash_of("a5")]
    assert independent_work(session("aaa-said")) == "1 pull request"


@pytest.mark.django_db
def test_a_commit_in_two_logs_that_share_no_record_is_paid_once(site):
    site.upload("one", log("one", FIVE))
    before = learned(), trajectory("one")
    again = [{**line, "uuid": f"other-{line['uuid']}"} for line in step("a5")]
    site.upload("two", log("two", steps("b", 1, 6), again))
    assert (commits("one"), commits("two")) == ([hash_of("a5")], [hash_of("b5")])
    assert trajectory("one") == before[1]


@pytest.mark.django_db
def test_a_pull_request_in_two_logs_is_paid_once(site):
    site.upload("one", log("one", opened(PR, "p")))
    before = learned()
    site.upload("two", log("two", opened(f"{PR}", "q"), steps("b", 1, 4)))
    assert owner_of(PR) == {"bob/one"}
    assert ownership.foreign(session("two")).pull_requests == {PR}
    assert set(before) <= set(learned()) or learned() != before
    assert reward("one") is not None


@pytest.mark.django_db
def test_another_agents_claim_takes_nothing_and_is_flagged_for_people_alone(site):
    """I13: of two agents that send the same work, the first keeps it."""
    site.upload("one", facts=FACTS)
    receipt = site.upload("zwei", log("zwei", FIVE), facts=FACTS, agent="alice", started_at="2026-01-01T00:00:00Z")
    assert owner_of(hash_of("a5")) == {"bob/one", "alice/one"}
    assert commits("zwei", "alice") == []
    said = " ".join(str(problem) for problem in receipt.problems)
    assert "another agent's session" in said
    assert "bob" not in said
    assert "one of" not in said
    assert {flag.session.external_id for flag in Flag.objects.filter(rule="A34")} == {"zwei"}
    assert "session one of bob" in Flag.objects.get(rule="A34").detail


@pytest.mark.django_db
def test_the_weeks_alarm_about_claims_closes_once_a_person_names_the_cause(site):
    site.upload("one", facts=FACTS)
    for number in range(3):
        site.upload(f"copy-{number}", facts=FACTS, agent="alice")
    refresh_alarms(NOON)
    alarm = open_alarms().get(rule="A34")
    assert acknowledge(alarm, site.person("rita", "reviewer"))
    refresh_alarms(NOON)
    assert not open_alarms().filter(rule="A34").exists()
    site.upload("copy-3", facts=FACTS, agent="alice")
    refresh_alarms(NOON)
    assert open_alarms().filter(rule="A34").exists()


@pytest.mark.django_db
def test_an_agents_own_session_is_named_in_the_receipt(site):
    site.upload("one", facts=FACTS)
    receipt = site.upload("two", facts=FACTS)
    assert [problem.code for problem in receipt.problems] == ["owned_by_another_session"] * 2
    assert "belongs to session one" in receipt.problems[0].got


@pytest.mark.django_db
def test_erasing_the_owner_gives_the_commit_to_the_next(site):
    from grading.intake import erasing
    from grading.models import Session

    site.upload("one", facts=FACTS)
    site.upload("two", facts=FACTS)
    site.upload("three", facts=FACTS)
    erasing.erase(Session.objects.filter(external_id="one"), who="olga", why="asked to")
    assert owner_of(hash_of("a5")) == {"bob/three"}


PARTS = {
    "log one": ("one", FIVE, None),
    "facts two": ("two", None, FACTS),
    "facts one": ("one", None, FACTS),
    "log three": ("three", [*FIVE, *steps("c", 1, 5)], None),
    "both four": ("four", steps("d", 1, 6), FACTS),
    "facts five": ("five", None, {"commits": [{"sha": full_hash("c5")}]}),
}


@pytest.mark.django_db
@examples(8, HealthCheck.function_scoped_fixture)
@given(st.permutations(sorted(PARTS)))
def test_any_order_of_one_agents_arrivals_gives_the_same_owners_and_bits(order):
    assert after_arrivals(tuple(order)) == after_arrivals(tuple(sorted(PARTS)))


@cache
def after_arrivals(order):
    """The bits and owners once these of PARTS have come, in this order."""
    with Site().rolled_back():
        for name in order:
            own, parts, facts = PARTS[name]
            Site().upload(own, None if parts is None else log(own, parts), facts=facts)
        return bits(), owners()
