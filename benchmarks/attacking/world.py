"""Honest work: two agents with a history of graded sessions, and what they send while somebody attacks."""

import datetime as dt
import json
import threading
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx2

from benchmarks.attacking import papers
from benchmarks.attacking.sites import PAGES, Attacked

HONEST = ("alice", "bob")
# What a session of each category is worth on average.
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
# Of four sessions in a row this one comes to nothing.
FAILS = 3
# The arm that attackers want chosen: neither the best nor the worst.
FAVOURITE = "content"
CALLS = {"code": 3, "cross-repo": 2, "infra": 2, "content": 2, "triage": 1, "research": 1, "news": 1, "social": 1}
DECISION, LIVE = "honest-decision-{}", "honest-live-{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """`history`: sessions of each honest agent and arm before; `live`: those of each while somebody attacks. Attacks
    send so many `sessions`.
    """

    history: int
    live: int
    sessions: int


def write_history(size: Size, now: dt.datetime) -> dict[str, str]:
    """The honest agents, their judged sessions of the last twelve days; their hooks' tokens by name."""
    from bandit.models import Arm
    from grading.models import Agent, ApiToken, Grade, Rubric, Session
    from grading.models.agents import TokenScope
    from grading.reward import rewards
    from grading.vocabulary import Source, Status

    rng = Random(7)
    rubric = Rubric.objects.active()
    harness = Arm.objects.get(bandit__name="harness", name="claude-code")
    arms = {name: Arm.objects.get(bandit__name="category", name=name) for name in WORTH}
    tokens = {}
    for name in HONEST:
        agent = Agent.objects.create(name=name)
        _row, tokens[name] = ApiToken.objects.issue(agent, scope=TokenScope.HOOK)
        for category, mean in WORTH.items():
            for number in range(size.history):
                ended_at = now - dt.timedelta(days=1 + (number * DAYS) // size.history, hours=rng.random() * 3)
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
                    value=round(min(max(rng.gauss(mean, SPREAD), 0.02), 0.98), 2),
                    model="claude-opus-4-6",
                    rubric=rubric.sha256[:8],
                    inputs_sha256=papers.hash_of(session.external_id) + "0" * 24,
                    evidence={"witness": "hook"},
                )
                rewards.settle(session)
    return tokens


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What honest agents send and people look at while somebody attacks: the same whoever does. Times in seconds."""

    site: Attacked
    tokens: dict[str, str]
    cookie: str
    now: dt.datetime
    size: Size
    sent: int = 0
    refused: list[str] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin, beside the attack where the site can be used by several."""
        if self.site.beside:
            self._threads = [threading.Thread(target=each) for each in (self._work, self._look)]
            for thread in self._threads:
                thread.start()

    def finish(self) -> None:
        """Send what is left; returns once all of it was sent."""
        if not self.site.beside:
            self._work()
            with self.site.client() as client:
                self._page(client, 0)
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        with self.site.client() as client:
            while self.sent < self.size.live * len(HONEST):
                self._send(client, self.sent)
                self.sent += 1
                self._over.wait(0.1 if self.site.beside else 0)

    def _look(self) -> None:
        with self.site.client() as client:
            number = 0
            while not self._over.wait(0.05):
                self._page(client, number)
                number += 1

    def _page(self, client: httpx2.Client, number: int) -> None:
        began = time.monotonic()
        reply = client.get(PAGES[number % len(PAGES)], headers={"Cookie": self.cookie})
        self.pages.append(time.monotonic() - began)
        if not reply.is_success or reply.has_redirect_location:
            self.refused.append(f"page {PAGES[number % len(PAGES)]}: {reply.status_code}")

    def _send(self, client: httpx2.Client, number: int) -> None:
        name = HONEST[number % len(HONEST)]
        bearer = {"Authorization": f"Bearer {self.tokens[name]}"}
        decision = DECISION.format(number)
        asked = client.post("/api/v1/selections", json={"decision_id": decision}, headers=bearer)
        sent = client.post("/api/v1/sessions", files=honest_session(number, self.now), headers=bearer)
        self.refused += [f"{reply.status_code}: {reply.text[:300]}" for reply in (asked, sent) if not reply.is_success]


def honest_session(number: int, now: dt.datetime) -> dict[str, Any]:
    """The parts of an honest session: one that went well, or one that did not."""
    category = tuple(WORTH)[number % len(WORTH)]
    # After its decision, whenever within these minutes it is sent: a date before that would be put right, and told.
    name, ended_at = LIVE.format(number), now + dt.timedelta(minutes=4)
    calls = papers.failures(name) if number % 4 == FAILS else papers.commits(name, CALLS[category])
    metadata = {
        "session_id": name,
        "category": category,
        "title": f"Honest work {number}",
        "ended_at": ended_at.isoformat(),
        "selection_id": DECISION.format(number),
    }
    return {
        "metadata": ("metadata.json", json.dumps(metadata).encode()),
        "transcript": (f"{name}.jsonl", papers.log(name, calls, ended_at)),
        "journal": ("journal.md", f"# {name}\nWorked on the guard of {category}.\n".encode()),
    }


def honest_state() -> dict[str, Any]:
    """All that the site holds of the honest agents' sessions and decisions, by their own names: what no attack may
    change.
    """
    from bandit.models import LedgerEntry, Selection
    from grading.models import Flag, Session
    from grading.reward.rewards import live

    found: dict[str, Any] = {}
    sessions = Session.objects.filter(agent__name__in=HONEST).select_related("agent", "category")
    known = {each.observation: f"{each.agent.name}/{each.external_id}" for each in sessions}
    for each in sessions:
        key = known[each.observation]
        if (reward := live(each)) is not None:
            said = ("value", "source", "final", "weight", "reason")
            found[f"{key} reward"] = tuple(getattr(reward, name) for name in said)
        found[f"{key} session"] = (
            each.category and each.category.name,
            each.outcome,
            each.title,
            each.ended_at.date(),
            each.selection_id is not None,
        )
        found[f"{key} flags"] = sorted(Flag.objects.open().filter(session=each).values_list("rule", flat=True))
    entries = (
        LedgerEntry.objects.rewards().live().filter(observation__in=known).select_related("arm", "bandit", "grader")
    )
    for row in entries:
        keys = ("source", "stratum", "witness", "standing", "agent", "version", "view", "model", "rubric")
        graded = tuple(getattr(row.grader, name) for name in keys)
        place = f"{known[row.observation]} ledger {row.bandit.name}"
        found[place] = (row.arm.name, row.value_micro, row.cost_micro, row.effective_day, row.provisional, graded)
    for made in Selection.objects.filter(agent__in=HONEST):
        reasons = {arm: why for arm, why in made.eligible.items() if isinstance(why, str)}
        found[f"{made.agent}/{made.decision_id} decision"] = (known.get(made.observation), reasons)
    return found
