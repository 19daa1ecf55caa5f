"""A session's facts: who states them, what is kept of them, and that no reward depends on them."""

import datetime as dt
import hashlib
import hmac
import io
import json
import time

import pytest
from django.core.management import call_command
from django.utils import timezone

from bandit.models import LedgerEntry
from grading.evidence import store
from grading.intake.erasing import erase
from grading.intake.first_word import Speaker
from grading.models import (
    ApiToken,
    Evidence,
    Grade,
    InstructionKey,
    Project,
    Session,
    SessionFacts,
    SessionSignals,
    Settlement,
    Submission,
)
from grading.models.agents import TokenScope
from tests.casts import logs

pytestmark = pytest.mark.django_db

SHA = hashlib.sha256(b"Write tests first.\n").hexdigest()
FILE = {"name": "CLAUDE.md", "bytes": 19, "sha256": SHA}
HOOK = {"source": "hook", "harness_version": "2.0.0", "reasoning_effort": "high", "instruction_files": [FILE]}
PADDING = "Fix it. " + "x" * 6_000
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


def worked(name: str) -> bytes:
    """A log of a session that tests, commits and reports."""
    calls = [("uv run pytest -q", "8 passed"), ("git commit -am 'Send once'", "[main 4c1e9b2] Send once")]
    return logs.claude(name, *calls, said="The guard is fixed and committed.")


def facts(session: Session) -> SessionFacts:
    return SessionFacts.objects.get(session=session)


def as_holder(site, scope: TokenScope) -> Speaker:
    return Speaker(token=ApiToken.objects.issue(site.agent(), scope=scope)[0])


def test_a_log_says_what_its_session_ran_with(site):
    """Version, models and vitals of a log are columns, and each setting names the log as its source."""
    row = facts(site.upload("s-1", worked("s-1")).session)
    assert (row.harness_version, row.model_calls) == ("2.1.100", {"claude-opus-4-6": 3})
    assert row.sources == {
        **dict.fromkeys(("harness_version", "model_calls", "mcp_servers", "skills", "subagents"), "log")
    }
    assert (row.user_turns, row.tool_calls, row.known_calls, row.failed_calls, row.failed_share) == (1, 2, 2, 0, 0)
    assert (row.test_runs, row.suites) == (1, [{"suite": "pytest", "state": "green"}])
    assert (row.minutes, row.retries, row.compactions, row.interruptions) == (0, 0, 0, 0)
    assert row.session.project.key == "project"


def test_the_log_then_the_hook_then_the_caller(site):
    """Each fact is the log's, else the hook's, else the caller's, whatever came first."""
    caller = {"harness_version": "1.0", "reasoning_effort": "low", "permission_mode": "plan", "skills": ["review"]}
    session = site.upload("s-1", ran_with=caller).session
    row = facts(session)
    assert (row.harness_version, row.permission_mode, row.skills) == ("1.0", "plan", ["review"])
    site.upload("s-1", ran_with=HOOK)
    row = facts(session)
    assert (row.harness_version, row.reasoning_effort, row.permission_mode) == ("2.0.0", "high", "plan")
    site.upload("s-1", worked("s-1"))
    row = facts(session)
    assert (row.harness_version, row.reasoning_effort, row.permission_mode) == ("2.1.100", "high", "plan")
    assert row.skills == []  # the log shows that none was used
    named = ("harness_version", "reasoning_effort", "permission_mode", "skills")
    assert [row.sources[name] for name in named] == ["log", "hook", "caller", "log"]


def test_the_graded_agent_is_no_hook(site):
    """What the agent itself submits is a caller's word, also if it says that a hook sent it."""
    session = site.upload("s-1", ran_with=HOOK, speaker=as_holder(site, TokenScope.AGENT)).session
    assert set(facts(session).sources.values()) == {"caller"}


def test_only_a_keyed_hash_of_instructions_is_stored(site):
    """Neither the SHA-256 nor the text of an instruction file is in any row, and the key is the site's own."""
    session = site.upload("s-1", ran_with=HOOK).session
    key = bytes(InstructionKey.objects.get().secret)
    keyed = hmac.new(key, bytes.fromhex(SHA), hashlib.sha256).hexdigest()
    assert facts(session).instruction_files == [{"name": "CLAUDE.md", "bytes": 19, "hmac": keyed, "source": "hook"}]
    for model in (SessionFacts, Submission, Session):
        assert SHA not in json.dumps(list(model.objects.values()), default=str)


def test_hashes_outlive_a_new_secret_key(site, settings):
    """The same file has the same hash in later sessions, also after SECRET_KEY was replaced."""
    first = site.upload("s-1", ran_with=HOOK).session
    settings.SECRET_KEY = "x" * 60
    second = site.upload("s-2", ran_with=HOOK).session
    assert facts(first).instruction_files == facts(second).instruction_files


def test_text_is_stored_where_it_was_sent(site):
    """A text that the hook was set to send is stored without secrets."""
    text = f"Use {SECRET} and be kind.\0"
    session = site.upload("s-1", ran_with={**HOOK, "instruction_files": [{**FILE, "text": text}]}).session
    stored = facts(session).instruction_files[0]["text"]
    assert stored.startswith("Use ")
    assert "be kind" in stored
    assert SECRET not in stored
    assert "\0" not in stored


def test_files_of_log_and_hook_are_joined(site):
    """A log shows the rules that were loaded late, and the hook all files: each name is of the first that has it."""
    content = {"content": "Rule", "rawContent": "Rule"}
    attachment = {"type": "nested_memory", "path": "/home/bob/project/.claude/rules/go.md", "content": content}
    line = {
        **json.loads(worked("s-1").splitlines()[0]),
        "type": "attachment",
        "attachment": attachment,
        "uuid": "r",
    }
    line.pop("message")
    log = worked("s-1") + json.dumps(line).encode() + b"\n"
    rule = {"name": ".claude/rules/go.md", "bytes": 4, "sha256": "0" * 64}
    session = site.upload("s-1", log, ran_with={**HOOK, "instruction_files": [FILE, rule]}).session
    files = facts(session).instruction_files
    assert [(file["name"], file["source"]) for file in files] == [(".claude/rules/go.md", "log"), ("CLAUDE.md", "hook")]
    site.upload("s-1", ran_with={**HOOK, "instruction_files": []})  # says nothing new of the log's file
    assert [file["source"] for file in facts(session).instruction_files] == ["log"]


def test_a_late_word_of_the_agent_changes_nothing(site):
    """Once the description is final, what the agent's machine says proposes nothing, and counts with a longer log."""
    hook = as_holder(site, TokenScope.HOOK)
    session = site.upload("s-1", worked("s-1"), ran_with=HOOK, speaker=hook).session
    Session.objects.update(received_at=timezone.now() - dt.timedelta(hours=2))
    later = {**HOOK, "reasoning_effort": "low"}
    site.upload("s-1", ran_with=later, speaker=hook)
    assert facts(session).reasoning_effort == "high"
    assert not any("ran_with" in proposal.value for proposal in session.proposals.all())
    longer = logs.claude("s-1", ("uv run pytest -q", "8 passed"), ("git commit -am x", "[main 4c1e9b3] x"), ("ls", "a"))
    site.upload("s-1", longer, ran_with=later, speaker=hook)
    assert facts(session).reasoning_effort == "low"


def test_unknown_is_never_zero(site):
    """A log in which nothing says how calls ended has no share of failed calls; no log has no numbers at all."""
    gptme = logs.gptme(("user", PADDING), ("assistant", "```frobnicate\nx\n```"), ("system", "something"))
    row = facts(site.upload("s-1", gptme).session)
    assert (row.failed_share, row.interruptions, row.harness_version) == (None, 0, "")
    site.upload("s-2", ran_with={"permission_mode": "plan"})
    row = SessionFacts.objects.get(session__external_id="s-2")
    assert {getattr(row, name) for name in ("minutes", "user_turns", "tool_calls", "failed_share", "retries")} == {None}
    assert not SessionFacts.objects.filter(session=site.upload("s-3", journal="Merged it.").session).exists()


def test_hostile_names_are_bounded_and_redacted(site):
    """Names from a log are cut, without secrets, NUL and half characters."""
    lines = worked("s-1").decode().splitlines()
    hostile = {"version": f"2.1 {SECRET} \x00{'x' * 900}", "permissionMode": "\ud800" + "y" * 900}
    lines[0] = json.dumps({**json.loads(lines[0]), **hostile})
    row = facts(site.upload("s-1", "\n".join(lines).encode() + b"\n").session)
    assert len(row.permission_mode) <= 40
    assert SECRET not in json.dumps(list(SessionFacts.objects.values()), default=str)


def test_a_log_that_is_used_no_more_states_nothing(site):
    """When two sessions turn out to share a nameless log, neither has facts of it."""
    log = logs.gptme(
        ("system", "You are gptme v0.31.0, an assistant."), ("user", PADDING), ("assistant", "```shell\nls\n```")
    )
    session = site.upload("s-1", log).session
    assert facts(session).harness_version == "0.31.0"
    site.upload("s-2", log)
    row = facts(session)
    assert (row.harness_version, row.user_turns, row.version, row.sources) == ("", None, "", {})


def test_a_copied_log_has_no_vitals_of_its_own(site):
    """What was carried over from another session is not what this one did."""
    site.upload("s-1", worked("s-1"))
    copy = worked("s-1").replace(b'"sessionId": "s-1"', b'"sessionId": "s-2"')
    row = SessionFacts.objects.filter(session=site.upload("s-2", copy).session).first()
    assert row is None or row.tool_calls is None


# --- history


def forget(session: Session) -> None:
    """Make a session one that an earlier version took in."""
    SessionFacts.objects.filter(session=session).delete()
    Session.objects.filter(pk=session.pk).update(project=None)


def everything_graded() -> list:
    return [list(model.objects.order_by("pk").values()) for model in (Grade, Settlement, LedgerEntry, SessionSignals)]


def regrade() -> str:
    out = io.StringIO()
    call_command("regrade", "--yes", stdout=out)
    return out.getvalue()


def test_sessions_from_before_get_facts_and_keep_their_rewards(site):
    """Reading old logs again fills the columns, and leaves every grade, settlement and ledger entry as it was."""
    session = site.upload("s-1", worked("s-1"), journal="Fixed and committed the guard in 4c1e9b2.").session
    expected = SessionFacts.objects.values().get()
    forget(session)
    before = everything_graded()
    said = regrade()
    assert "1  of them will have their logs read for facts" in said
    assert SessionFacts.objects.values().get() == expected
    assert Session.objects.get().project.key == "project"
    assert everything_graded() == before
    assert "Nothing would change." in regrade()


def test_a_log_that_is_gone_leaves_what_was_stored_of_it(site):
    """Version, model and counts survive in stored rows; the rest stays unknown."""
    session = site.upload("s-1", worked("s-1")).session
    forget(session)
    before = everything_graded()
    assert store.expire(Evidence.objects.get(kind="transcript").sha256, before=time.time() + 60)
    regrade()
    row = facts(session)
    assert (row.harness_version, row.model_calls, row.tool_calls) == ("2.1.100", {"claude-opus-4-6": None}, 2)
    assert (row.active_minutes, row.unread_edits, row.suites) == (None, None, None)
    assert everything_graded() == before


def test_facts_enter_no_grade(site):
    """The same work has the same grades, digests and ledger whatever it is said to have run with."""
    with site.rolled_back():
        site.upload("s-1", worked("s-1"))
        plain = [(grade.value, grade.inputs_sha256, grade.evidence) for grade in Grade.objects.order_by("pk")]
    site.upload("s-1", worked("s-1"), ran_with=HOOK, project="https://forge.example/ada/engine", task="T-1")
    assert [(grade.value, grade.inputs_sha256, grade.evidence) for grade in Grade.objects.order_by("pk")] == plain


def test_an_erased_session_leaves_no_project(site):
    """A repository's address goes with the last session that worked in it."""
    site.upload("s-1", project="git@forge.example:bob/diary.git")
    site.upload("s-2", project="git@forge.example:ada/engine.git")
    erase(Session.objects.filter(external_id="s-1"), who="olga", why="asked for")
    assert list(Project.objects.values_list("key", flat=True)) == ["forge.example/ada/engine"]
