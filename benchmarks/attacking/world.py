"""Honest work: two agents with a history of graded sessions, and what they send after an attack."""

import datetime as dt
import json
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx2

from benchmarks.attacking import evidence
from benchmarks.scratch import commit_hash

HONEST = ("alice", "bob")
# The mean reward of each category's sessions.
WORTH = {
    "code": 0.62,
    "cross-repo": 0.58,
    "infra": 0.55,
    "content": 0.5,
    "triage": 0.5,
    "research": 0.48,
    "news": 0.45,
    "social": 0.42,
}
SPREAD, DAYS = 0.18, 12
# Of four sessions in a row, this one fails.
FAILING = 3
# Arms that attackers want chosen: one in the middle, and the second-best one.
FAR, NEAR = "content", "cross-repo"
COMMITS = {"code": 3, "cross-repo": 2, "infra": 2, "content": 2, "triage": 1, "research": 1, "news": 1, "social": 1}
DECISION, SESSION = "honest-decision-{}", "honest-live-{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSize:
    """`history`: earlier sessions of each honest agent and arm. `live`: sessions of each honest agent beside the
    attack. `attack`: sessions of an attack.
    """

    history: int
    live: int
    attack: int


def write_history(size: TrafficSize, now: dt.datetime, seed: int = 7) -> dict[str, str]:
    """Create the honest agents and their judged sessions of the last twelve days. Returns their tokens by name."""
    from bandit.models import Arm
    from grading.models import Agent, ApiToken, Grade, Rubric, Session
    from grading.models.agents import TokenScope
    from grading.reward import rewards
    from grading.vocabulary import Source, Status

    dice = Random(seed)
    rubric = Rubric.objects.active()
    harness = Arm.objects.get(bandit__name="harness", name="claude-code")
    arms = {name: Arm.objects.get(bandit__name="category", name=name) for name in WORTH}
    tokens = {}
    for name in HONEST:
        agent = Agent.objects.create(name=name)
        _row, tokens[name] = ApiToken.objects.issue(agent, scope=TokenScope.HOOK)
        for category, mean in WORTH.items():
            for number in range(size.history):
                ended_at = now - dt.timedelta(days=1 + (number * DAYS) // size.history, hours=dice.random() * 3)
                session = Session.objects.create(
                    agent=agent,
                    external_id=f"{name}-{category}-{number}",
                    category=arms[category],
                    harness=harness,
                    ended_at=ended_at,
                    received_at=ended_at,
                )
                Grade.objects.create(
                    session=session,
                    source=Source.JUDGE,
                    status=Status.SCORED,
                    value=round(min(max(dice.gauss(mean, SPREAD), 0.02), 0.98), 2),
                    model="claude-opus-4-6",
                    rubric=rubric.sha256[:8],
                    inputs_sha256=commit_hash(session.external_id) + "0" * 24,
                    evidence={"witness": "hook"},
                )
                rewards.settle(session)
    return tokens


def send_honest_work(client: httpx2.Client, tokens: dict[str, str], now: dt.datetime, size: TrafficSize) -> list[str]:
    """Each honest agent asks for decisions and submits sessions. Returns what the site refused."""
    refused = []
    for number in range(size.live * len(HONEST)):
        bearer = {"Authorization": f"Bearer {tokens[HONEST[number % len(HONEST)]]}"}
        decision = {"decision_id": DECISION.format(number)}
        replies = (
            client.post("/api/v1/selections", json=decision, headers=bearer),
            client.post("/api/v1/sessions", files=honest_session(number, now), headers=bearer),
        )
        refused += [f"{reply.status_code}: {reply.text[:300]}" for reply in replies if not reply.is_success]
    return refused


def honest_session(number: int, now: dt.datetime) -> dict[str, Any]:
    """The parts of an honest session, which succeeded or failed."""
    category = tuple(WORTH)[number % len(WORTH)]
    # After its decision, whenever within these minutes it is sent: the site corrects a date before that.
    name, ended_at = SESSION.format(number), now + dt.timedelta(minutes=4)
    calls = evidence.failures(name) if number % 4 == FAILING else evidence.commits(name, COMMITS[category])
    metadata = {
        "session_id": name,
        "category": category,
        "title": f"Honest work {number}",
        "ended_at": ended_at.isoformat(),
        "selection_id": DECISION.format(number),
    }
    return {
        "metadata": ("metadata.json", json.dumps(metadata).encode()),
        "transcript": (f"{name}.jsonl", evidence.log(name, calls, ended_at)),
        "journal": ("journal.md", f"# {name}\nWorked on the guard of {category}.\n".encode()),
    }


def honest_state() -> dict[str, Any]:
    """Everything that the site stores of the honest agents' sessions and decisions. No attack may change it."""
    from bandit.models import LedgerEntry, Selection
    from grading.models import Flag, Session
    from grading.reward.rewards import live

    state: dict[str, Any] = {}
    sessions = Session.objects.filter(agent__name__in=HONEST).select_related("agent", "category")
    names = {session.observation: f"{session.agent.name}/{session.external_id}" for session in sessions}
    for session in sessions:
        name = names[session.observation]
        if (reward := live(session)) is not None:
            state[f"{name} reward"] = (reward.value, reward.source, reward.final, reward.weight, reward.reason)
        state[f"{name} session"] = (
            session.category and session.category.name,
            session.outcome,
            session.title,
            session.ended_at.date(),
            session.selection_id is not None,
        )
        flags = Flag.objects.open().filter(session=session)
        state[f"{name} flags"] = sorted(flags.values_list("rule", flat=True))
    entries = LedgerEntry.objects.rewards().live().filter(observation__in=names)
    for entry in entries.select_related("arm", "bandit", "grader"):
        columns = ("source", "stratum", "witness", "standing", "agent", "version", "view", "model", "rubric")
        grader = tuple(getattr(entry.grader, column) for column in columns)
        state[f"{names[entry.observation]} ledger {entry.bandit.name}"] = (
            entry.arm.name,
            entry.value_micro,
            entry.cost_micro,
            entry.effective_day,
            entry.provisional,
            grader,
        )
    for selection in Selection.objects.filter(agent__in=HONEST):
        reasons = {arm: why for arm, why in selection.eligible.items() if isinstance(why, str)}
        state[f"{selection.agent}/{selection.decision_id} decision"] = (names.get(selection.observation), reasons)
    return state
