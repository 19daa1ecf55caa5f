"""A low number needs evidence of failure: what was not seen, read or understood has no number, and says why."""

import json

import pytest

from bandit.models import LedgerEntry
from grading.models import Flag, Session
from grading.monitoring.rule import RULES
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Outcome, Reason, Source
from tests.casts import logs
from tests.casts.intake import answered, calls, claude, codex, reward, says, trajectory

pytestmark = pytest.mark.django_db

METRICS = [("mcp__metrics__query", {"q": f"q{n}"}, '{"value": 12}') for n in range(12)]
READS = [("Bash", {"command": f"gh issue view {n}"}, f"issue {n}\nopen") for n in range(5)]
RED = ("Bash", {"command": "pytest -q"}, "1 failed, 8 passed in 2.0s")
GREEN = ("Bash", {"command": "pytest -q"}, "9 passed in 2.0s")
EDIT = ("Edit", {"file_path": "/repo/a.py", "old_string": "a", "new_string": "b"}, "The file has been updated")


def abstained(session) -> Reason:
    """Why nothing has graded the session, once it is sure that no bandit learned a number."""
    assert trajectory(session).value is None
    assert reward(session).weight == 0
    live = LedgerEntry.objects.live().filter(observation=session.observation)
    assert {(entry.grader.source, entry.value_micro) for entry in live} <= {("unscored", 0)}
    return Reason(trajectory(session).reason)


def test_the_stub_of_the_founding_incident_has_no_number(site):
    """A log whose only line is the task: the real work was logged elsewhere."""
    assert abstained(site.upload("71a3", claude("71a3", ("user", "Add a retry guard. " + "x" * 6_000))).session) == (
        Reason.STUB_NO_TOOL_CALLS
    )


def test_twelve_successful_calls_of_unknown_tools_are_neither_good_nor_bad(site):
    session = site.upload("a1", claude("a1", *calls(*METRICS), says("The slowdown follows the index rebuild."))).session
    assert abstained(session) == Reason.NOTHING_OBSERVABLE
    assert trajectory(session).detail.startswith("12 tool calls, 12 of them of tools")


def test_an_answered_question_without_a_tool_call_is_neither_good_nor_bad(site):
    log = claude("a2", ("user", "Why? " + "x" * 6_000), says("Because of the index."))
    assert abstained(site.upload("a2", log).session) == Reason.NOTHING_OBSERVABLE


def test_an_honest_could_not_be_done_is_neither_good_nor_bad(site):
    log = claude(
        "a3", *calls(("Bash", {"command": "ls vendor"}, "")), says("It could not be done: the source is gone.")
    )
    assert abstained(site.upload("a3", log).session) == Reason.NOTHING_OBSERVABLE


def test_calls_in_a_syntax_that_nobody_knows_make_a_log_blind_and_that_is_flagged_at_once(site):
    """I12, a wrapper of tools taken for behaviour: flagged (A4) at once. Where more than 30 % of the calls cannot be
    read, there is no number.
    """
    turns = [("user", "Do it. " + "x" * 6_000)]
    for number in range(47):
        turns.append(("assistant", f'<call tool="terminal">\n<arg>make part-{number}</arg>\n</call>'))
        turns.append(("system", f"Ran part {number}"))
    session = site.upload("a4", logs.gptme(*turns), harness="gptme").session
    assert abstained(session) == Reason.FORMAT_BLIND
    assert Flag.objects.open().get(session=session, rule="A4").detail
    Session.objects.update(harness=None)
    assert list(RULES["A4"].sessions("an unknown harness", session.ended_at)) == [session.pk]


@pytest.mark.parametrize("error", ["API Error: 529 Overloaded", "You've hit your session limit · resets 5pm"])
def test_a_session_cut_after_one_word_is_infrastructure(site, error):
    log = logs.claude("b1", said="", api_error=error)
    lines = log.decode().splitlines()
    first_word = json.loads(lines[-1]) | {"uuid": "b1-word", "isApiErrorMessage": False}
    first_word["message"] = first_word["message"] | {
        "model": "claude-opus-4-6",
        "content": [{"type": "text", "text": "I'll look at the queue first."}],
    }
    session = site.upload("b1", "\n".join([*lines[:-1], json.dumps(first_word), lines[-1], ""]).encode()).session
    assert session.outcome == Outcome.INFRASTRUCTURE
    assert "API error" in session.outcome_reason
    assert (reward(session).value, LedgerEntry.objects.count()) == (None, 0)
    assert not session.judge_jobs.exists()


def test_a_cut_session_is_out_whether_it_had_an_effect_or_not(site):
    """Else it would count where it had got far, and vanish where it had not."""
    log = logs.claude("b2", logs.COMMIT, said="", api_error="API Error: 529 Overloaded")
    session = site.upload("b2", log).session
    assert (session.outcome, reward(session).value) == (Outcome.INFRASTRUCTURE, None)
    assert trajectory(session).evidence["terms"][0]["kind"] == "commit"


def test_an_error_after_the_work_was_done_takes_nothing_away(site):
    turns = calls(("Bash", {"command": logs.COMMIT[0]}, logs.COMMIT[1]))
    limit = ("assistant", [{"type": "text", "text": "You've hit your session limit"}])
    log = claude("b3", *turns, says("Fixed and committed."), ("user", "Thanks! One more thing."), limit,
                 isApiErrorMessage=True)  # fmt: skip
    session = site.upload("b3", log).session
    assert (session.outcome, reward(session).source) == (Outcome.COMPLETED, Source.TRAJECTORY)


def test_a_session_that_its_runner_killed_is_infrastructure_unless_it_had_finished(site):
    assert site.upload("b4", claude("b4", *calls(EDIT)), exit_code=137).session.outcome == Outcome.INFRASTRUCTURE
    assert site.upload("b5", claude("b5", *calls(EDIT, GREEN)), exit_code=137).session.outcome == Outcome.COMPLETED
    assert site.upload("b6", claude("b6", *calls(EDIT)), exit_code=1).session.outcome == Outcome.COMPLETED


@pytest.mark.parametrize("claim", ["infrastructure", "refused"])
def test_nobody_takes_their_own_session_out_of_the_bandits(site, claim):
    log = claude("c1", *calls(EDIT, RED), says("It failed."))
    session = site.upload("c1", log, outcome=claim, outcome_reason="the network was down").session
    assert (session.outcome, session.outcome_claimed) == (Outcome.COMPLETED, claim)
    assert 0.1 < reward(session).value <= 0.3  # no floor
    assert claim in Flag.objects.open().get(session=session, rule="A35").detail


def test_a_verdict_is_not_withdrawn_by_calling_the_session_refused_later(site):
    log = claude("c2", *calls(EDIT, RED), says("It failed."))
    before = reward(site.upload("c2", log).session).value
    session = site.upload("c2", outcome="refused", outcome_reason="changed my mind").session
    assert reward(session).value == before


def test_red_run_of_a_session_that_changed_nothing_is_its_finding(site):
    session = site.upload("d0", claude("d0", *calls(RED), says("It fails."))).session
    assert abstained(session) == Reason.NOTHING_OBSERVABLE


def test_failure_without_any_effect_is_a_low_number_with_its_evidence(site):
    edits = calls(EDIT, ("Edit", EDIT[1] | {"new_string": "c"}, "String not found"), failed=[0, 1])
    grade = trajectory(site.upload("d1", claude("d1", *edits, says("It fails."))).session)
    assert grade.value <= 0.2
    assert (grade.evidence["view"], grade.evidence["failures"]) == (
        EvidenceView.FAILED,
        ["none of its 2 edits succeeded"],
    )


def test_a_runner_that_never_ran_is_no_failure(site):
    call = ("Bash", {"command": "pytest -q"}, "bash: pytest: command not found")
    session = site.upload("d2", claude("d2", *calls(call, failed=[0]), says("No pytest here."))).session
    assert abstained(session) == Reason.NOTHING_OBSERVABLE


def test_a_failed_mandatory_check_is_evidence_of_failure(site):
    facts = {"checks": [{"name": "ci", "passed": False}]}
    grade = trajectory(site.upload("d3", claude("d3", *calls(*METRICS), says("Done.")), facts=facts).session)
    assert (grade.evidence["view"], grade.value <= 0.2) == (EvidenceView.FAILED, True)


def test_a_clean_look_in_a_category_of_looking_is_worth_what_looking_is_worth(site):
    session = site.upload("e1", claude("e1", *calls(*READS), says("Nothing to do.")), category="triage").session
    grade = trajectory(session)
    assert (grade.value, grade.evidence["view"]) == (0.35, EvidenceView.LOOKED)
    assert LedgerEntry.objects.filter(bandit__name="category").get().grader.view == EvidenceView.LOOKED


@pytest.mark.parametrize(
    ("category", "turns"),
    [
        ("code", [*calls(*READS), says("Nothing to do.")]),
        ("triage", [*calls(*READS[:2]), says("Nothing to do.")]),
        ("triage", calls(*READS)),
        ("triage", [*calls(*READS, failed=[0, 1, 2]), says("Nothing to do.")]),
        ("triage", [*calls(*[READS[0]] * 5), says("Nothing to do.")]),
    ],
)
def test_looking_needs_the_category_three_things_no_trouble_and_a_report(site, category, turns):
    assert abstained(site.upload("e2", claude("e2", *turns), category=category).session) == Reason.NOTHING_OBSERVABLE


def test_a_script_that_completed_says_nothing_of_the_commands_in_it(site):
    """Codex in code mode: three merges, each refused by the forge, inside scripts that completed."""
    items = []
    for number in (7, 8, 9):
        script = f'const r = await tools.exec_command({{cmd: "gh pr merge {number} --squash"}});\ntext(r.output);'
        items.append({"type": "custom_tool_call", "call_id": f"call_{number}aaaaaaaaaaaaaaaa", "name": "exec",
                      "input": script})  # fmt: skip
        said = f"Script completed\nWall time 1.2 seconds\nOutput:\nX Pull request #{number} is not mergeable\n"
        items.append({"type": "custom_tool_call_output", "call_id": f"call_{number}aaaaaaaaaaaaaaaa", "output": said})
    session = site.upload("f1", codex("f1", *items), harness="codex").session
    assert not [term for term in trajectory(session).evidence["terms"] if term["kind"] == "pr_merged"]
    assert trajectory(session).value is None


def test_the_commands_of_a_script_are_read(site):
    script = (
        'const r = await tools.exec_command({cmd: "git commit -am \'Fix it\'", workdir: "/repo"});\ntext(r.output);'
    )
    call = {"type": "custom_tool_call", "call_id": "call_1aaaaaaaaaaaaaaaaaa", "name": "exec", "input": script}
    said = "Script completed\nWall time 1.2 seconds\nOutput:\n[main 1a2b3c4] Fix it\n 1 file changed, 2 insertions(+)\n"
    output = {"type": "custom_tool_call_output", "call_id": "call_1aaaaaaaaaaaaaaaaaa", "output": said}
    session = site.upload("f2", codex("f2", call, output), harness="codex").session
    assert [term["kind"] for term in trajectory(session).evidence["terms"]] == ["commit"]


def test_several_replies_in_one_message_each_belong_to_their_call(site):
    turns = [
        ("user", "Do it. " + "x" * 6_000),
        ("assistant", [
            {"type": "tool_use", "id": "t0", "name": "Bash", "input": {"command": "git commit -am a"}},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "git commit -am b"}},
        ]),
        ("user", [answered(0, "[main aaaaaa1] a\n 1 file changed"), answered(1, "error: nothing", failed=True)]),
    ]  # fmt: skip
    terms = trajectory(site.upload("g1", claude("g1", *turns)).session).evidence["terms"]
    assert [(term["kind"], term["count"]) for term in terms] == [("commit", 1)]
