"""Whoever is graded and wants another grade: a client with a token, and what the site noticed of it."""

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from benchmarks.attacking.sites import Attacked
from benchmarks.attacking.world import FAVOURITE

NAME, TWIN = "mallory", "mallory-2"
# An attacker sends so many sessions in an hour.
AN_HOUR = 5
KINDS = ("transcript", "journal", "patch", "facts")


@dataclass(slots=True, kw_only=True)
class Attacker:
    """An agent that attacks over HTTP. `budget`: how many sessions it sends, AN_HOUR an hour. `told` counts replies."""

    site: Attacked
    client: httpx2.Client
    secret: str
    now: dt.datetime
    budget: int
    name: str = NAME
    twin: "Attacker | None" = None
    told: dict[str, int] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)

    def send(self, name: str, /, *, category: str | None = FAVOURITE, **parts: Any) -> httpx2.Response:
        """Hand in a session under this id: evidence by its kind as bytes, everything else as metadata."""
        files: dict[str, Any] = {kind: (kind, parts.pop(kind)) for kind in KINDS if parts.get(kind) is not None}
        metadata = {"session_id": name, "ended_at": self.now - dt.timedelta(minutes=2), "category": category, **parts}
        said = {key: value for key, value in metadata.items() if value is not None}
        files["metadata"] = ("metadata.json", json.dumps(said, default=dt.datetime.isoformat).encode())
        reply = self.post("/api/v1/sessions", files=files)
        if name not in self.sent:
            self.sent.append(name)
            if len(self.sent) % AN_HOUR == 0:
                self.hour_passes()
        return reply

    def ask(self, decision: str, **asked: Any) -> httpx2.Response:
        """Ask what to work on next."""
        return self.post("/api/v1/selections", json={"decision_id": decision, **asked})

    def hour_passes(self) -> None:
        """The judge has read what came, and the rules that look every hour or so have looked."""
        from grading import monitoring
        from grading.models import RuleRun

        self.site.judge()
        RuleRun.objects.all().delete()
        monitoring.watch()

    def judged(self) -> None:
        """Wait until the judge has read all there is."""
        self.site.judge()

    def reward(self, reply: httpx2.Response) -> Mapping[str, Any]:
        """What a session that was handed in earned, as the attacker reads it afterwards."""
        key = reply.json()["id"]
        said: dict[str, Any] = self.client.get(f"/api/v1/sessions/{key}", headers=self.bearer).json()
        return said["reward"] or {}

    def post(self, path: str, **request: Any) -> httpx2.Response:
        reply = self.client.post(path, headers=self.bearer, **request)
        kind = f"{path.rsplit('/', 1)[-1]} {reply.status_code}"
        self.told[kind] = self.told.get(kind, 0) + 1
        return reply

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}


def noticed(before: frozenset[tuple[str, str]]) -> tuple[int | None, tuple[str, ...]]:
    """After how many of the attackers' sessions the site first said that something is odd, and by which rules.

    A flag or a proposal counts by the place of its session among theirs; an alarm that was not open `before` by how
    many they had sent by then.
    """
    from grading.models import Alarm, Flag, Proposal, Session

    theirs = list(Session.objects.filter(agent__name__in=[NAME, TWIN]).order_by("received_at", "pk"))
    place = {session.pk: number for number, session in enumerate(theirs, 1)}
    found = [(place[flag.session_id], flag.rule) for flag in Flag.objects.filter(session__in=theirs)]
    found += [(place[row.session_id], f"late {row.field}") for row in Proposal.objects.filter(session__in=theirs)]
    for alarm in Alarm.objects.all():
        if (alarm.rule, alarm.about) not in before:
            sent = sum(session.received_at <= alarm.opened_at for session in theirs)
            found.append((sent, f"alarm {alarm.rule}"))
    return (min(number for number, _rule in found) if found else None), tuple(sorted({rule for _n, rule in found}))


def alarms() -> frozenset[tuple[str, str]]:
    """The alarms there are, open or not."""
    from grading.models import Alarm

    return frozenset(Alarm.objects.values_list("rule", "about"))
