"""What a later submission does to each field of a session, by who submits it and what the field had before."""

import datetime as dt
import io

import pytest
from django.utils import timezone

from bandit.selection import select
from grading import intake
from grading.intake.first_word import Speaker
from grading.models import ApiToken, Proposal, Session
from grading.models.agents import TokenScope
from tests.casts import logs
from tests.casts.lesson import lesson
from tests.site import Site

pytestmark = pytest.mark.django_db

NOON = timezone.now().replace(microsecond=0) - dt.timedelta(hours=5)
EARLIER, LATER = NOON - dt.timedelta(minutes=30), NOON + dt.timedelta(minutes=30)
# The graded agent's submission becomes a proposal, and the session stays as it was.
PROPOSED = "proposed"
FAILED = {"outcome": "failed", "outcome_reason": "no disk"}

# What was submitted first and what later; then the column's value after the later submission by the agent within the
# first hour, by the agent when the description is final, and by a runner at any time.
TABLE = [
    ("title", {}, {"title": "New"}, "New", PROPOSED, "New"),
    ("title", {"title": "Old"}, {"title": "New"}, "Old", "Old", "Old"),
    ("model", {}, {"model": "m-new"}, "m-new", PROPOSED, "m-new"),
    ("model", {"model": "m-old"}, {"model": "m-new"}, "m-old", "m-old", "m-old"),
    ("harness", {}, {"harness": "codex"}, "codex", PROPOSED, "codex"),
    ("harness", {"harness": "gptme"}, {"harness": "codex"}, "gptme", "gptme", "gptme"),
    ("exit_code", {}, {"exit_code": 1}, 1, PROPOSED, 1),
    ("exit_code", {"exit_code": 0}, {"exit_code": 1}, 0, 0, 1),
    ("cost_usd", {}, {"cost_usd": 2.0}, 2.0, PROPOSED, 2.0),
    ("cost_usd", {"cost_usd": 1.0}, {"cost_usd": 2.0}, 1.0, 1.0, 1.0),
    ("outcome_claimed", {}, FAILED, "failed", PROPOSED, "failed"),
    ("outcome_claimed", FAILED, {"outcome": "completed"}, "completed", PROPOSED, "completed"),
    ("outcome_claimed", FAILED, {"title": "New"}, "failed", PROPOSED, "failed"),  # the title is proposed
    ("claim_reason", {}, FAILED, "no disk", PROPOSED, "no disk"),
    ("claim_reason", FAILED, {"outcome": "completed"}, "", PROPOSED, ""),
    ("category", {}, {"category": "code"}, "code", PROPOSED, "code"),
    ("category", {"category": "code"}, {"category": "news"}, "code", PROPOSED, "news"),
    ("category", {"category": "code"}, {"category": "code"}, "code", "code", "code"),
    ("category", {"category": "unheard"}, {"category": "news"}, "news", PROPOSED, "news"),
    ("category_claimed", {"category": "unheard"}, {"category": "news"}, "unheard", PROPOSED, "news"),
    ("category_claimed", {"category": "code"}, {"category": "news"}, "code", PROPOSED, "news"),
    ("started_at", {}, {"started_at": EARLIER}, EARLIER, PROPOSED, EARLIER),
    ("started_at", {"started_at": NOON}, {"started_at": EARLIER}, EARLIER, PROPOSED, EARLIER),
    ("started_at", {"started_at": EARLIER}, {"started_at": NOON}, EARLIER, EARLIER, EARLIER),
    ("ended_at", {"ended_at": NOON}, {"ended_at": LATER}, LATER, PROPOSED, LATER),
    ("ended_at", {"ended_at": NOON}, {"ended_at": EARLIER}, NOON, NOON, EARLIER),
    ("project", {}, {"project": "https://u:p@forge.test/a/b.git?x=1"}, "forge.test/a/b", PROPOSED, "forge.test/a/b"),
    ("project", {"project": "old"}, {"project": "new"}, "old", "old", "old"),
    ("task", {}, {"task": "T-1"}, "T-1", PROPOSED, "T-1"),
    ("task", {"task": "T-1"}, {"task": "T-2"}, "T-1", "T-1", "T-1"),
    ("selection", {}, {"selection_id": "d1"}, "d1", PROPOSED, "d1"),
    ("selection", {"selection_id": "d2"}, {"selection_id": "d3"}, "d2", "d2", "d2"),
    ("selection", {}, {"selection_id": ""}, None, None, None),
    ("lessons", {}, {"lessons": ["first"]}, "first", PROPOSED, "first"),
    ("lessons", {"lessons": ["first"]}, {"lessons": ["second"]}, "first second", PROPOSED, "first second"),
    ("lessons", {"lessons": ["first", "second"]}, {"lessons": ["first"]}, *["first second"] * 3),
]


def submit(token: ApiToken, name: str, fields: dict, **files: bytes) -> Session:
    given = {"ended_at": NOON, **fields}
    if "lessons" in given:
        given["lessons"] = [{"name": each} for each in given["lessons"]]
    metadata = intake.SubmittedSession(session_id=name, **given)
    streams = {part: io.BytesIO(data) for part, data in files.items()}
    return intake.submit(agent=token.agent, metadata=metadata, speaker=Speaker(token=token), **streams).session


def value(session: Session, column: str) -> object:
    """The column's value; names for related rows."""
    if column == "lessons":
        return " ".join(sorted(row.arm.name for row in session.lessons.select_related("arm")))
    stored = getattr(session, column)
    if column == "selection":
        return None if stored is None else stored.decision_id
    return stored.name if column in ("category", "harness", "project") and stored is not None else stored


@pytest.fixture
def agent_token() -> ApiToken:
    lesson("first"), lesson("second")
    return ApiToken.objects.issue(Site().agent("bob"), scope=TokenScope.AGENT)[0]


@pytest.fixture
def runner_token(agent_token) -> ApiToken:
    return ApiToken.objects.issue(agent_token.agent, scope=TokenScope.RUNNER)[0]


@pytest.mark.parametrize("submitter", ["agent, within the hour", "agent, later", "runner"])
def test_what_a_later_submission_changes(submitter, agent_token, runner_token, subtests):
    """Takes some seconds: sixty uploads."""
    for decision in ("d1", "d2", "d3"):
        select(bandit="category", decision_id=decision, agent="bob", supply=None, override="code", now=EARLIER)
    for number, (column, first, second, early, late, by_runner) in enumerate(TABLE):
        with subtests.test(column=column, first=first, second=second):
            before = value(submit(agent_token, f"s{number}", first), column)
            if submitter == "agent, later":
                Session.objects.update(received_at=timezone.now() - dt.timedelta(hours=2))
            session = submit(runner_token if submitter == "runner" else agent_token, f"s{number}", second)
            expected = {"runner": by_runner, "agent, later": late}.get(submitter, early)
            proposals = Proposal.objects.filter(session=session)
            assert proposals.exists() == (expected == PROPOSED)
            assert value(session, column) == (before if expected == PROPOSED else expected)


def test_a_log_outranks_what_was_submitted(agent_token):
    """A log's model and harness replace submitted ones; its title only fills a blank one."""
    submitted = {"model": "m-submitted", "harness": "codex", "title": "Submitted"}
    session = submit(agent_token, "s1", submitted, transcript=logs.claude("s1", logs.COMMIT))
    assert (session.model, session.harness.name, session.title) == ("claude-opus-4-6", "claude-code", "Submitted")
    later = submit(agent_token, "s2", submitted)
    assert (later.model, later.harness.name) == ("m-submitted", "codex")
    later = submit(agent_token, "s2", {}, transcript=logs.claude("s2", logs.COMMIT))
    assert (later.model, later.harness.name, later.title) == ("claude-opus-4-6", "claude-code", "Submitted")
