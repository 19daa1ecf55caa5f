"""How much a grade counts whose log is of a harness of which few logs, or none, were read."""

import json
from pathlib import Path

import pytest

from bandit.models import LedgerEntry
from grading.reward import standing
from grading.reward.rewards import policy
from grading.vocabulary import Reason, Source
from tests.casts import logs
from tests.casts.intake import reward, trajectory

pytestmark = pytest.mark.django_db

COPILOT = Path(__file__).parents[1] / "formats" / "copilot_cli" / "logs" / "10fb4666-56f0-4352-90fc-715caf95b418.jsonl"


def pi_log(session_id: str) -> bytes:
    """A session of pi that commits."""
    command, output = logs.COMMIT
    call = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": command}}
    result = {"role": "toolResult", "toolCallId": "t1", "toolName": "bash", "isError": False}
    usage = {"input": 10, "output": 5, "cost": {"total": 0.5}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Fix it. " + "x" * 6_000}]},
        {
            "role": "assistant",
            "model": "m",
            "content": [call],
            "usage": usage,
        },
        result | {"content": [{"type": "text", "text": output}]},
        {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "Done."}]},
    ]
    at = "2026-03-31T11:00:00Z"
    records = [{"type": "session", "id": session_id, "timestamp": at, "cwd": "/w", "version": 3}]
    records += [
        {"type": "message", "id": f"m{number}", "parentId": session_id, "timestamp": at, "message": message}
        for number, message in enumerate(messages)
    ]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_reward_by_a_log_of_few_samples_counts_half(site):
    """One commit, read in a log of Copilot CLI."""
    session = site.upload("10fb4666-56f0-4352-90fc-715caf95b418", COPILOT.read_bytes(), category="code").session
    settlement = reward(session)
    assert settlement.source == Source.TRAJECTORY
    assert settlement.weight == pytest.approx(policy().weights[Source.TRAJECTORY] / 2)
    assert "The site has read few logs of this harness so far, so the reward counts half" in settlement.sentence


def test_bandits_learn_it_at_half_weight(site, settings):
    """The ledger's key has the standing, by which the posterior weights it."""
    session = site.upload("10fb4666-56f0-4352-90fc-715caf95b418", COPILOT.read_bytes(), category="code").session
    entries = LedgerEntry.objects.live().filter(observation=session.observation)
    assert {entry.grader.standing for entry in entries} == {standing.FEW_SAMPLES}
    assert settings.STANDING_WEIGHTS[standing.FEW_SAMPLES] == standing.standing_weight(standing.FEW_SAMPLES)


def test_reward_by_a_log_of_many_samples_counts_whole(site):
    session = site.upload("s", logs.claude("s", logs.COMMIT), category="code").session
    assert reward(session).weight == pytest.approx(policy().weights[Source.TRAJECTORY])


def test_log_of_the_facts_tier_is_shown_and_not_graded(site):
    """Its commit is in the log, but no rule grades by it; the cost and the transcript are there."""
    session = site.upload("s1", pi_log("s1"), category="code").session
    grade = trajectory(session)
    assert (grade.value, grade.reason) == (None, Reason.NOTHING_OBSERVABLE)
    assert grade.detail == "Logs of pi or OpenClaw can be displayed but not graded by rules yet"
    assert reward(session).weight == 0
    assert session.cost_usd == pytest.approx(0.5)
    assert session.harness.name == "pi"


def test_facts_of_the_runner_count_beside_a_log_of_the_facts_tier(site):
    """What its runner observed is graded as without a log."""
    facts = {"commits": [{"sha": "ab" * 20}]}
    session = site.upload("s1", pi_log("s1"), facts=json.dumps(facts).encode(), category="code").session
    assert trajectory(session).value is not None
    assert trajectory(session).evidence["view"] == "facts"


def test_weight_of_few_samples():
    assert standing.standing_weight(standing.FEW_SAMPLES) == 0.5
