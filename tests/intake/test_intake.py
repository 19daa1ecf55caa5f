"""Taking a session in: what is stored, whose it is, what it is graded by, and that nothing stops it."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pydantic import ValidationError

from bandit import ledger, selection
from bandit.models import LedgerEntry
from grading import intake
from grading.models import Artifact, Evidence, Flag, Grade, Session, Settlement
from grading.models.evidence import Origin
from grading.reward import rewards
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Outcome, Reason, Source, Status
from tests.casts import logs
from tests.examples import examples
from tests.site import NOON, Site

SHA = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
PR = "https://github.com/gptme/gptme-contrib/pull/619"

pytestmark = pytest.mark.django_db


def last(session: Session, source: Source) -> Grade:
    return session.grades.filter(source=source).last()


def codes(receipt: intake.Receipt) -> list[str]:
    return [problem.code for problem in receipt.problems]


def everything() -> list[int]:
    models = (Session, Evidence, Grade, Settlement, Artifact, LedgerEntry, Flag)
    return [model.objects.count() for model in models]


def test_a_session_is_stored_graded_and_settled(site):
    receipt = site.upload("71a3", logs.claude("71a3", logs.COMMIT), journal="Submitted PR with the fix.")
    session = receipt.session
    assert (receipt.created, receipt.added, receipt.problems) == (True, ("transcript", "journal"), ())
    assert (session.harness.name, session.category.name) == ("claude-code", "cross-repo")
    assert session.model == "claude-opus-4-6"
    assert last(session, Source.TRAJECTORY).status == Status.SCORED
    assert rewards.live(session).source == Source.TRAJECTORY
    assert session.signals["commits"][0]["hash"] == "1a2b3c4"
    assert LedgerEntry.objects.filter(observation=session.observation).count() == 2


def test_the_same_submission_again_changes_nothing(site):
    files = {
        "log": logs.claude("71a3", logs.COMMIT),
        "journal": "Fixed it.",
        "facts": {"commits": [{"sha": SHA}]},
    }
    first = site.upload("71a3", **files)
    before = everything()
    again = site.upload("71a3", **files)
    assert (again.created, again.added, again.session.pk) == (False, (), first.session.pk)
    assert everything() == before


def test_more_evidence_is_added_and_the_session_settled_again(site):
    session = site.upload("71a3", journal="Submitted PR with the fix.").session
    assert rewards.live(session).source == Source.JOURNAL
    receipt = site.upload("71a3", logs.claude("71a3", logs.COMMIT, logs.COMMIT))
    assert (receipt.created, receipt.added) == (False, ("transcript",))
    assert rewards.live(session).source == Source.TRAJECTORY
    assert last(session, Source.JOURNAL) == session.grades.filter(source=Source.JOURNAL).get()


def test_a_session_without_evidence_is_stored_and_says_what_is_missing(site):
    session = site.upload("71a3").session
    assert last(session, Source.TRAJECTORY).reason == Reason.NO_TRANSCRIPT
    assert last(session, Source.JOURNAL).reason == Reason.NO_JOURNAL
    assert rewards.live(session).source == Source.FLOOR
    assert not LedgerEntry.objects.rewards().exists()
    assert ledger.live_entries("category", [session.observation]).get().grader.view == Reason.NO_TRANSCRIPT


@pytest.mark.django_db(transaction=True)
def test_racing_submissions_of_one_session_end_as_one():
    parts = [
        {"journal": "Merged the fix."},
        {"facts": {"commits": [{"sha": SHA}]}},
        {"log": logs.claude("71a3")},
    ]
    with ThreadPoolExecutor(6) as pool:
        receipts = list(pool.map(in_a_thread, parts * 2))
    assert sum(receipt.created for receipt in receipts) == 1
    session = Session.objects.get()
    assert sorted(row.kind for row in session.evidence.all()) == ["facts", "journal", "transcript"]
    assert [entry.arm.name for entry in ledger.live_entries("category", [session.observation])] == ["cross-repo"]


def in_a_thread(files: dict) -> intake.Receipt:
    try:
        return Site().upload("71a3", **files)
    finally:
        connection.close()


# --- whose log is it


def test_another_sessions_log_is_kept_and_not_used(site):
    receipt = site.upload("71a3", logs.claude("operator", logs.COMMIT))
    row = receipt.session.evidence.get()
    assert row.problem == Reason.LOG_OVERWRITTEN
    assert codes(receipt) == [Reason.LOG_OVERWRITTEN]
    assert "belongs to session operator" in receipt.problems[0].got
    assert receipt.session.signals is None
    grade = last(receipt.session, Source.TRAJECTORY)
    assert (grade.status, grade.reason) == (Status.UNSCORED, Reason.LOG_OVERWRITTEN)


def test_the_right_log_sent_later_is_used(site):
    site.upload("71a3", logs.claude("operator", logs.COMMIT))
    session = site.upload("71a3", logs.claude("71a3", logs.COMMIT)).session
    assert last(session, Source.TRAJECTORY).status == Status.SCORED


def test_a_wrong_log_sent_later_does_not_displace_the_right_one(site):
    session = site.upload("71a3", logs.claude("71a3", logs.COMMIT)).session
    held = last(session, Source.TRAJECTORY)
    site.upload("71a3", logs.claude("operator"))
    assert last(session, Source.TRAJECTORY) == held


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_a_log_of_two_sessions_that_names_neither_is_used_for_none(site, order):
    log = logs.gptme(("user", "hello " * 1500), ("assistant", "hi"))
    receipts = {name: site.upload(name, log) for name in order}
    for name, receipt in receipts.items():
        assert last(receipt.session, Source.TRAJECTORY).reason == Reason.LOG_SHARED, name
    assert codes(receipts[order[1]]) == [Reason.LOG_SHARED]


def test_a_log_that_names_its_session_stays_with_it_when_another_sends_it_too(site):
    log = logs.claude("71a3", logs.COMMIT)
    session = site.upload("71a3", log).session
    other = site.upload("a517", log).session
    assert last(session, Source.TRAJECTORY).status == Status.SCORED
    assert last(other, Source.TRAJECTORY).reason == Reason.LOG_OVERWRITTEN


def test_a_small_log_of_a_long_session_is_not_graded(site):
    start = NOON - dt.timedelta(minutes=30)
    receipt = site.upload("71a3", logs.claude("71a3", padding=10), started_at=start)
    grade = last(receipt.session, Source.TRAJECTORY)
    assert grade.reason == Reason.LOG_TOO_SMALL
    assert "for a session of 30 minutes" in grade.detail
    assert not receipt.problems[0].is_error


def test_a_small_log_of_a_short_session_is_graded(site):
    start = NOON - dt.timedelta(seconds=90)
    session = site.upload("71a3", logs.claude("71a3", logs.COMMIT, padding=10), started_at=start).session
    assert last(session, Source.TRAJECTORY).status == Status.SCORED


def test_a_stub_beside_facts_that_show_work_is_flagged_and_graded_from_the_facts_alone(site):
    receipt = site.upload("71a3", logs.claude("71a3"), facts={"pull_requests": [PR]})
    grade = last(receipt.session, Source.TRAJECTORY)
    assert (grade.status, grade.evidence["view"]) == (Status.SCORED, EvidenceView.FACTS)
    assert (grade.evidence["log"], grade.evidence["units"]) == (Reason.STUB_NO_TOOL_CALLS, 1.2)
    assert receipt.session.flags.get().rule == "A1"


def test_an_answer_without_a_tool_call_is_neither_good_nor_bad(site):
    session = site.upload("71a3", logs.claude("71a3")).session
    assert last(session, Source.TRAJECTORY).reason == Reason.NOTHING_OBSERVABLE
    assert rewards.live(session).weight == 0


def test_facts_that_come_late_are_what_a_session_is_graded_from(site):
    session = site.upload("71a3", logs.claude("71a3")).session
    site.upload("71a3", facts={"commits": [{"sha": SHA}]})
    assert last(session, Source.TRAJECTORY).evidence["view"] == EvidenceView.FACTS


def test_a_stub_says_nothing_about_what_a_reading_session_left_behind(site):
    session = site.upload("71a3", logs.claude("71a3"), category="news").session
    assert last(session, Source.CONSUMPTION).reason == Reason.UNREADABLE


# --- what cannot be read


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\x00" * 6000, Reason.FORMAT_UNKNOWN),
        (b"just some words\n" * 400, Reason.FORMAT_UNKNOWN),
        (b'{"some": "json", "of": "nobody"}\n' * 400, Reason.FORMAT_UNKNOWN),
        (b"", Reason.UNREADABLE),
    ],
)
def test_an_unreadable_transcript_is_kept_and_said_to_be_so(site, data, reason):
    receipt = site.upload("71a3", data, journal="Merged the fix.")
    assert codes(receipt) == [reason]
    assert receipt.problems[0].is_error == (reason != Reason.FORMAT_UNKNOWN)
    assert last(receipt.session, Source.TRAJECTORY).reason == reason
    assert rewards.live(receipt.session).source == Source.JOURNAL


def test_a_torn_transcript_is_graded_by_what_is_there(site):
    log = logs.claude("71a3", logs.COMMIT)
    session = site.upload("71a3", log[:-40]).session
    row = session.evidence.get()
    assert row.report["torn_tail"]
    assert row.coverage < 1
    assert last(session, Source.TRAJECTORY).status == Status.SCORED


def test_a_line_of_fifty_megabytes_is_counted_and_survived(site):
    log = logs.claude("71a3", logs.COMMIT)
    session = site.upload("71a3", log + b'{"type": "user", "x": "' + b"a" * 50_000_000 + b'"}\n' + log[-300:]).session
    assert session.evidence.get().report["oversized"] == 1
    assert last(session, Source.TRAJECTORY).status == Status.SCORED


def test_characters_that_a_database_refuses_are_survived(site):
    log = logs.claude("71a3", ("echo \x00 \ud800", "nul \x00 and \udc00"), logs.COMMIT, said="bye \x00\ud83d")
    session = site.upload("71a3", log, journal="Fixed \x00 it \ud800".encode(errors="surrogatepass")).session
    session.refresh_from_db()
    assert last(session, Source.TRAJECTORY).status == Status.SCORED
    assert last(session, Source.JOURNAL).status == Status.SCORED


def test_a_patch_that_is_none_is_kept_with_the_remedy(site):
    receipt = site.upload("71a3", patch="this is no diff")
    assert receipt.session.evidence.get().problem == Reason.UNREADABLE
    assert "git diff" in receipt.problems[0].got


def test_an_empty_patch_says_that_nothing_was_left_behind(site):
    session = site.upload("71a3", patch="", category="news").session
    assert last(session, Source.CONSUMPTION).reason == Reason.NO_ARTIFACTS


def test_too_much_evidence_is_refused_and_the_rest_is_stored(site, settings):
    settings.EVIDENCE_MAX_BYTES = 1024
    receipt = site.upload("71a3", logs.claude("71a3"), journal="Merged the fix.")
    assert codes(receipt) == ["too_large"]
    assert receipt.added == ("journal",)


def test_a_grader_that_breaks_leaves_a_failed_row_and_stops_nothing(site, monkeypatch):
    from grading.reward import journal

    monkeypatch.setattr(journal, "grade", lambda text: 1 / 0)
    session = site.upload("71a3", logs.claude("71a3", logs.COMMIT), journal="Merged.").session
    grade = last(session, Source.JOURNAL)
    assert (grade.status, grade.reason) == (Status.FAILED, Reason.UNREADABLE)
    assert grade.detail == "ZeroDivisionError: division by zero"
    assert rewards.live(session).source == Source.TRAJECTORY


def test_a_parser_that_breaks_leaves_a_failed_row_and_is_tried_again(site, monkeypatch):
    from grading import signals

    with monkeypatch.context() as broken:
        broken.setattr(signals, "extract", lambda events: 1 / 0)
        session = site.upload("71a3", logs.claude("71a3", logs.COMMIT)).session
    assert last(session, Source.TRAJECTORY).status == Status.FAILED
    site.upload("71a3", journal="Merged.")
    assert last(session, Source.TRAJECTORY).status == Status.SCORED


@examples(12, HealthCheck.function_scoped_fixture)
@given(
    st.dictionaries(
        st.sampled_from(["log", "journal", "patch", "facts"]),
        st.binary(max_size=300) | st.sampled_from([b"{}", b"[]", b"null", b'{"commits": [1, null]}', b"[" * 10_000]),
    )
)
def test_no_bytes_stop_a_session_from_being_stored(files):
    receipt = Site().upload("fuzz", **files)
    assert rewards.live(receipt.session) is not None
    stored = {row.kind for row in receipt.session.evidence.all()}
    assert {"transcript" if name == "log" else name for name in files} <= stored


# --- facts


def test_facts_become_independent_artifacts(site):
    facts = {"commits": [{"sha": SHA.upper(), "by": "trailer"}], "pull_requests": [PR + "/files?w=1"], "exit_code": 126}
    session = site.upload("71a3", facts=facts).session
    rows = session.artifacts.filter(origin=Origin.FACTS).values_list("kind", "key")
    assert sorted(rows) == [("commit", SHA), ("pull_request", PR)]
    assert (session.exit_code, session.outcome) == (126, Outcome.COMPLETED)


def test_a_fact_belongs_to_the_session_that_claimed_it_first(site):
    site.upload("71a3", facts={"pull_requests": [PR]})
    receipt = site.upload("a517", facts={"pull_requests": [PR], "commits": [{"sha": SHA}]})
    assert codes(receipt) == ["owned_by_another_session"]
    assert not receipt.problems[0].is_error
    assert "71a3" in receipt.problems[0].got
    assert receipt.session.artifacts.owned().get().key == SHA


def test_one_bad_fact_loses_none_of_the_others(site):
    receipt = site.upload(
        "71a3", facts={"commits": [{"sha": "1a2b3c4"}, {"sha": SHA}], "pull_requests": ["no address", PR]}
    )
    assert [problem.part for problem in receipt.problems] == ["facts.commit[0].sha", "facts.pull_request[0]"]
    assert receipt.session.artifacts.count() == 2


def check(name: str = "ci", *, passed: bool = False, **said) -> dict:
    return {"name": name, "passed": passed, **said}


def vetoes(site, *files: list) -> list[str]:
    """What vetoes a session that was submitted with these checks, one file after the other."""
    for checks in files:
        session = site.upload("71a3", facts={"checks": checks}).session
    return rewards.vetoes(session)


def test_a_failed_mandatory_check_is_kept_with_what_was_said(site):
    row = site.upload("71a3", facts={"checks": [check(detail="2 failed\n\0" + "x" * 400)]}).session.artifacts.get()
    assert (row.kind, row.key, row.origin, len(row.seen_at)) == ("check_failed", "ci", Origin.FACTS, 300)


def test_a_check_that_passed_or_is_not_mandatory_is_no_veto(site):
    assert vetoes(site, [check("lint", passed=True), check("style", mandatory=False), check("ci")]) == ["ci"]


@pytest.mark.parametrize("later", [check(passed=True), check(mandatory=False)])
def test_the_latest_word_on_a_check_counts(site, later):
    assert vetoes(site, [check(), check("lint")], [later]) == ["lint"]
    assert vetoes(site, [check(detail="again")]) == ["ci", "lint"]


def test_a_check_that_one_file_says_both_of_failed(site):
    assert vetoes(site, [check(), check(passed=True)]) == ["ci"]


def test_an_old_file_delivered_again_is_no_new_word_on_a_check(site):
    assert vetoes(site, [check()], [check(passed=True)], [check()]) == []


def test_a_failed_check_is_no_proof_of_work(site):
    site.upload("71a3", logs.claude("71a3"), facts={"checks": [check()]})
    assert not Flag.objects.exists()
    assert last(Session.objects.get(), Source.TRAJECTORY).status == Status.SCORED


@pytest.mark.parametrize(
    ("bad", "part"),
    [
        ("ci", ""),
        ({"passed": False}, ".name"),
        ({"name": "", "passed": False}, ".name"),
        ({"name": "a\nb", "passed": False}, ".name"),
        ({"name": "lint"}, ".passed"),
        ({"name": "lint", "passed": 0}, ".passed"),  # an exit status of 0 is good, and false
        ({"name": "lint", "passed": "no"}, ".passed"),
        (check("lint", mandatory=None), ".mandatory"),
        (check("lint", mandatroy=False), ".mandatroy"),
    ],
)
def test_a_bad_check_loses_none_of_the_other_facts(site, bad, part):
    receipt = site.upload("71a3", facts={"checks": [bad, check()], "commits": [{"sha": SHA}]})
    assert [problem.part for problem in receipt.problems] == [f"facts.check[0]{part}"]
    assert sorted(receipt.session.artifacts.values_list("key", flat=True)) == [SHA, "ci"]


# --- what is known of the session


def test_an_unknown_category_is_kept_as_claimed_and_the_nearest_named(site):
    receipt = site.upload("71a3", category="crossrepos")
    assert (receipt.session.category, receipt.session.category_claimed) == (None, "crossrepos")
    assert codes(receipt) == ["unknown_category"]
    assert "Did you mean 'cross-repo'?" in receipt.problems[0].todo


def test_a_category_known_later_moves_the_reward_to_its_arm(site):
    session = site.upload("71a3", category=None, journal="Merged the fix.").session
    assert not LedgerEntry.objects.filter(bandit__name="category").exists()
    site.upload("71a3", category="Cross Repo")
    assert LedgerEntry.objects.get(bandit__name="category").arm.name == "cross-repo"
    assert Session.objects.get().category_id is not None
    assert session.grades.filter(source=Source.JOURNAL).count() == 1


def test_the_harness_is_what_the_transcript_shows(site):
    session = site.upload("71a3", logs.claude("71a3"), harness="gptme").session
    assert session.harness.name == "claude-code"


def test_a_selection_gives_the_category_and_is_completed_by_the_session(site):
    chosen = selection.select(bandit="category", decision_id="d1", agent="bob", supply={"triage": 1}, now=NOON)
    session = site.upload("71a3", category=None, selection_id="d1").session
    chosen.refresh_from_db()
    assert session.category.name == "triage"
    assert (chosen.observation, chosen.executed_arm.name) == (session.observation, "triage")


def test_the_arm_that_ran_is_credited_not_the_one_selected(site):
    chosen = selection.select(bandit="category", decision_id="d1", agent="bob", supply={"triage": 1}, now=NOON)
    session = site.upload("71a3", category="code", selection_id="d1", journal="Merged the fix.").session
    chosen.refresh_from_db()
    assert (chosen.arm.name, chosen.executed_arm.name) == ("triage", "code")
    assert LedgerEntry.objects.get(bandit__name="category", observation=session.observation).arm.name == "code"


def test_a_selection_is_completed_by_one_session_only(site):
    selection.select(bandit="category", decision_id="d1", agent="bob", supply=None, now=NOON)
    site.upload("one", selection_id="d1")
    receipt = site.upload("two", selection_id="d1")
    assert codes(receipt) == ["selection_completed"]
    assert receipt.session.selection is None


def test_another_agents_selection_is_not_completed(site):
    selection.select(bandit="category", decision_id="d1", agent="alice", supply=None, now=NOON)
    assert codes(site.upload("71a3", selection_id="d1")) == ["unknown_selection"]


def test_a_session_that_died_before_its_first_turn_teaches_nothing(site):
    log = logs.claude("71a3", api_error="You've hit your usage limit")
    session = site.upload("71a3", log, journal="Merged the fix.").session
    assert session.outcome == Outcome.INFRASTRUCTURE
    assert session.outcome_reason.startswith("No model turn: ")
    assert rewards.live(session).value is None
    assert not LedgerEntry.objects.exists()


def test_an_inferred_outcome_is_taken_back_by_a_fuller_log(site):
    site.upload("71a3", logs.claude("71a3", api_error="You've hit your usage limit"))
    session = site.upload("71a3", logs.claude("71a3", logs.COMMIT, padding=9_000)).session
    assert (session.outcome, session.outcome_reason) == (Outcome.COMPLETED, "")
    assert rewards.live(session).source == Source.TRAJECTORY


def test_a_session_that_went_on_keeps_its_widest_span(site):
    site.upload("71a3", started_at=NOON - dt.timedelta(hours=1))
    later = NOON + dt.timedelta(hours=1)
    session = site.upload("71a3", started_at=NOON, ended_at=later).session
    session.refresh_from_db()
    assert (session.started_at, session.ended_at) == (NOON - dt.timedelta(hours=1), later)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_session_without_a_stated_end_ends_with_its_longest_log(site, order):
    short, long = logs.claude("71a3", logs.COMMIT), logs.claude("71a3", logs.COMMIT, ("ls", "a"))
    long = long.replace(b"11:40:00", b"11:50:00")
    for number in order:
        session = site.upload("71a3", (short, long)[number], ended_at=None).session
    assert session.ended_at == dt.datetime(2026, 3, 31, 11, 50, tzinfo=dt.UTC)


def test_two_agents_may_use_the_same_session_id(site):
    assert site.upload("1").session != site.upload("1", agent="alice").session


@pytest.mark.parametrize(
    "fields",
    [
        {"session_id": ""},
        {"session_id": "a\x00b"},
        {"session_id": "x" * 201},
        {"ended_at": "yesterday"},
        {"ended_at": "2026-03-31T12:00:00"},
        {"ended_at": "1970-01-01T00:00:00Z"},
        {"ended_at": "9999-12-31T23:59:59Z"},
        {"started_at": "2026-03-31T13:00:00Z"},
        {"cost_usd": float("nan")},
        {"cost_usd": -1},
        {"exit_code": 2**40},
        {"outcome": "infrastructure"},
        {"outcome": "splendid"},
        {"titel": "a misspelt field"},
    ],
)
def test_metadata_that_cannot_be_true_are_refused(fields):
    with pytest.raises(ValidationError):
        intake.SubmittedSession.model_validate({"session_id": "71a3", "ended_at": NOON, **fields})
