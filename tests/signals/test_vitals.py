"""Vitals: each definition as a table, and what a hostile or an empty log does to them."""

import datetime as dt

import pytest

from grading.formats.events import (
    ApiError,
    Boundary,
    Interruption,
    LoadedInstructions,
    Message,
    Role,
    Setting,
    ToolResult,
)
from grading.signals import TestState
from grading.signals.vitals import VITALS, Vitals, claims_success
from tests.transcript import START, Transcript

pytestmark = pytest.mark.pure


def vitals(log: Transcript) -> Vitals:
    found = log.signals.vitals
    assert found is not None
    return found


def setting(log: Transcript, name: str, value: str, **fields) -> Transcript:
    return log.add(Setting, name=name, value=value, **fields)


def test_an_empty_log_has_no_vitals():
    """Nothing is known of an empty log: no number is made up."""
    assert vitals(Transcript()) == Vitals(claimed_without_green=False)


def test_active_minutes_leave_out_waiting_for_a_person():
    """Pauses that end with a person's message don't count, and any other counts ten minutes at most."""
    log = Transcript()
    for minute, (role, text) in enumerate([(Role.USER, "Fix it"), (Role.ASSISTANT, "Done")]):
        log.events.append(Message(number=minute + 1, at=START + dt.timedelta(minutes=minute), role=role, text=text))
    late = START + dt.timedelta(hours=9)
    log.events.append(Message(number=3, at=late, role=Role.USER, text="More"))
    log.events.append(Message(number=4, at=late + dt.timedelta(hours=2), role=Role.ASSISTANT, text="Done"))
    assert vitals(log).active_seconds == 60 + 600  # a minute of work, a wait of 9 hours, and a machine that slept


def test_time_never_runs_backwards():
    """A log whose times jump about has no negative pauses, and a subagent's log that follows adds nothing."""
    log = Transcript().says("one")
    log.events.append(Message(number=2, at=START - dt.timedelta(days=9), role=Role.ASSISTANT, text="two"))
    log.events.append(Message(number=3, at=START + dt.timedelta(minutes=2), role=Role.ASSISTANT, text="three"))
    assert vitals(log).active_seconds == 60


def test_the_setting_of_most_work_counts():
    """Of settings that change, the one counts under which most messages and calls came."""
    log = setting(Transcript(), "reasoning_effort", "low").says("one")
    setting(log, "reasoning_effort", "high").says("two").run("ls", "x")
    assert vitals(log).reasoning_effort == "high"
    assert vitals(setting(Transcript(), "harness_version", "2.1.0")).harness_version == "2.1.0"


def test_a_subagents_setting_replaces_none():
    """A subagent's log may name another version or mode, which isn't the session's."""
    log = setting(Transcript(), "permission_mode", "plan").says("one")
    setting(log, "permission_mode", "default", sidechain=True).says("two").says("three")
    assert vitals(log).permission_mode == "plan"
    alone = setting(Transcript(), "permission_mode", "default", sidechain=True).says("two", sidechain=True)
    assert vitals(alone).permission_mode == "default"


def test_settings_before_a_change_of_session_are_anothers():
    """What a resumed log copied from another session says nothing of this one."""
    log = setting(Transcript(), "harness_version", "1.0").says("one").add(Boundary, kind="session_change", detail="x")
    assert vitals(log).harness_version == ""


def test_models_are_counted_by_response():
    """Each response counts for its exact model; a model without recorded responses has no count."""
    log = Transcript().used("opus", input_tokens=1).used("haiku", input_tokens=1).used("opus", output_tokens=2)
    assert vitals(log).model_calls == {"opus": 2, "haiku": 1}
    assert vitals(setting(Transcript(), "model", "gpt")).model_calls == {"gpt": None}


def test_names_of_what_was_used():
    """Servers, skills and subagents count when they are used, each once."""
    log = Transcript().tool("mcp__linear__get_issue", "other", "x").tool("mcp__linear__list", "other", "x")
    log.tool("Skill", "other", "x", skill="review").tool("Agent", "agent", "x", subagent_type="Explore")
    log.tool("spawn_agent", "agent", "x").tool("Skill", "other", "x", skill=["not", "text"])
    log.says("<skill>\n<name>deploy</name>\n</skill>", Role.SCAFFOLD)
    found = vitals(log)
    assert (found.mcp_servers, found.skills, found.subagents) == (
        ("linear",),
        ("review", "deploy"),
        ("Explore", "default"),
    )


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda log: log.add(Interruption), 1),
        (lambda log: log.says("[Request interrupted by user for tool use]", Role.SCAFFOLD), 1),
        (lambda log: log.says("[Request interrupted by user]", Role.SCAFFOLD, sidechain=True), 0),
        (lambda log: log.add(ToolResult, call_id="x", text="Interrupted by user"), 1),
        (lambda log: log.says("Why was it interrupted by the user?", Role.USER), 0),
    ],
)
def test_interruptions(build, expected):
    """A person's stop counts in the main thread, as each harness writes it down."""
    log = Transcript()
    build(log)
    assert vitals(log).interruptions == expected


def test_reads_before_the_first_edit():
    """Different things read before the first change count; without a change there is no number."""
    log = Transcript().run("cat a.py", "x").run("cat a.py", "x").run("cat b.py", "y")
    assert vitals(log).reads_before_edit is None
    assert vitals(log.edit("/w/a.py", "x", "z").run("cat c.py", "x")).reads_before_edit == 2


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda log: log, 1),
        (lambda log: log.tool("Read", "read", "x = 1", path="/w/a.py"), 0),
        (lambda log: log.run("cd /w && sed -n 1,9p a.py", "x = 1"), 0),
        (lambda log: log.run("cat *.py", "x = 1"), 0),
        (lambda log: log.run("git diff", "+++ b/src/a.py\n+x"), 0),
        (lambda log: log.run("rg -n x", "a.py:1:x = 1"), 0),
        (lambda log: log.run("ls", "a.py"), 1),
        (lambda log: log.run("git add a.py", ""), 1),
        (lambda log: log.run("cat a.py", "no such file", failed=True), 1),
        (lambda log: log.write("/w/a.py", "x"), 0),
    ],
)
def test_edits_of_unread_files(read, expected):
    """An edit of a file that no call has read or written before counts, and a listing reads nothing."""
    log = Transcript()
    read(log)
    assert vitals(log.edit("/w/a.py", "x", "z").edit("/w/a.py", "z", "y")).unread_edits == expected


def test_what_is_written_or_appended_is_no_unread_edit():
    """A new file and a line appended by the shell need no reading."""
    log = Transcript().write("/w/new.py", "x").run("echo x >> log.txt", "").edit("/tmp/x/a.py", "a", "b")  # noqa: S108
    assert vitals(log).unread_edits == 0


def test_retries_are_errors_after_which_it_went_on():
    """Each failed call of the model counts once work goes on, and not if the session ended there."""
    log = Transcript().add(ApiError, reason="overloaded", text="529").add(ApiError, reason="overloaded", text="529")
    assert vitals(log).retries == 0
    assert vitals(log.says("Here I am").add(ApiError, reason="quota", text="limit")).retries == 2


def test_the_last_run_of_each_suite_counts():
    """Each suite has the state of its last run; runs with other tests are other suites."""
    log = Transcript().run("pytest", "1 failed in 1s", failed=True, exit_code=1).run("pytest", "2 passed in 1s")
    log.run("pytest tests/test_a.py", "1 failed in 1s", failed=True, exit_code=1)
    found = vitals(log)
    assert found.test_runs == 3
    assert found.suites == (("pytest", TestState.GREEN), ("pytest test_a.py", TestState.RED))


GREEN, RED = ("pytest", "2 passed in 1s", False), ("pytest", "1 failed in 1s", True)


@pytest.mark.parametrize(
    ("before", "after", "said", "expected"),
    [
        ([], [], "All tests pass.", True),
        ([GREEN], [], "Fixed.", True),  # it changed code after the green run
        ([], [GREEN], "Fixed.", False),
        ([], [RED], "Done, all green.", True),
        ([], [GREEN, RED], "Done.", False),  # there was a green run after the change
        ([], [], "The tests don't pass yet.", False),
        ([], [], "", False),
    ],
)
def test_claims_without_a_green_run(before, after, said, expected):
    """A claim counts if no run passed after the last change of code."""
    log = Transcript()
    for command, text, failed in before:
        log.run(command, text, failed=failed, exit_code=int(failed))
    log.edit("/w/a.py", "x", "y")
    for command, text, failed in after:
        log.run(command, text, failed=failed, exit_code=int(failed))
    assert vitals(log.says(said)).claimed_without_green is expected


def test_without_a_change_of_code_nothing_needs_a_run():
    """A claim about a text is none about code; and a run without a result leaves it open."""
    assert vitals(Transcript().edit("/w/README.md", "x", "y").says("Done.")).claimed_without_green is False
    log = Transcript().edit("/w/a.py", "x", "y").run("pytest", "collecting ...", failed=None).says("Done.")
    assert vitals(log).claimed_without_green is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("All 12 tests pass.", True),
        ("Tests: 12 passed, 0 skipped", True),
        ("I've fixed the parser. Next, run the tests.", True),
        ("Fertig: der Fehler ist behoben.", True),
        ("问题已修复。", True),
        ("The tests should pass once the API is fixed.", False),
        ("I couldn't get it done.", False),
        ("Should I run the tests?", False),
        ("2 tests failed.", False),
        ("", False),
        ("x" * 100_000, False),
        ("test " * 50_000, False),
    ],
)
def test_what_claims_success(text, expected):
    """A sentence without a doubt, a denial or a plan in it claims success."""
    assert claims_success(text) is expected


def test_instruction_files_are_listed_once_and_bounded():
    """The same text is one file, and thousands of files are cut to two hundred."""
    log = Transcript()
    for number in range(3_000):
        log.add(LoadedInstructions, name=f"rules\\{number}.md", size=7, sha256=f"{number:064x}")
    log.add(LoadedInstructions, name="copy.md", size=7, sha256=f"{0:064x}")
    found = vitals(log).instruction_files
    assert len(found) == 200
    assert found[0].name == "rules/0.md"


def test_thousands_of_names_are_bounded():
    """A log that uses thousands of servers, skills and models keeps a hundred of each, with short names."""
    log = Transcript()
    for number in range(300):
        log.tool(f"mcp__server{number}{'x' * 500}__do", "other", "x").used(f"model-{number}", input_tokens=1)
    found = vitals(log)
    assert len(found.mcp_servers) == len(found.model_calls) == 100
    assert max(map(len, found.mcp_servers)) <= 120


def test_every_vital_is_defined_once():
    """Each vital has a title and a definition in a sentence."""
    assert len({vital.name for vital in VITALS}) == len(VITALS)
    assert all(vital.title and vital.definition.endswith(".") for vital in VITALS)
