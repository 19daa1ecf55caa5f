"""An agent that wants better grades than its work is worth: a client with a token, and what the site noticed of it."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from benchmarks.attacking.site import AttackedSite

NAMES = ("mallory", "mallory-2")
FILE_KINDS = ("transcript", "journal", "patch", "facts")
AlarmKey = tuple[str, str]  # rule, about


@dataclass(slots=True, kw_only=True)
class Attacker:
    """An agent that attacks over HTTP: it sends `budget` sessions, `per_hour` between two runs of the judge and the
    alarm rules, so that its `favourite` arm is chosen more often. `replies` counts what the site answered.
    """

    site: AttackedSite
    client: httpx2.Client
    secret: str
    now: dt.datetime
    budget: int
    name: str
    favourite: str
    per_hour: int = 5
    twin: "Attacker | None" = None
    replies: Counter[str] = field(default_factory=Counter)
    sent: list[str] = field(default_factory=list)

    def send(self, name: str, /, *, category: str | None = "", **parts: Any) -> httpx2.Response:
        """Submit a session with this id: evidence by its kind as bytes, everything else as metadata.

        The category is the favourite unless another, or None, is passed in.
        """
        category = self.favourite if category == "" else category
        files: dict[str, Any] = {kind: (kind, parts.pop(kind)) for kind in FILE_KINDS if parts.get(kind) is not None}
        metadata = {"session_id": name, "ended_at": self.now - dt.timedelta(minutes=2), "category": category, **parts}
        metadata = {key: value for key, value in metadata.items() if value is not None}
        files["metadata"] = ("metadata.json", json.dumps(metadata, default=dt.datetime.isoformat).encode())
        reply = self.post("/api/v1/sessions", files=files)
        if name not in self.sent:
            self.sent.append(name)
            if len(self.sent) % self.per_hour == 0:
                self.site.judge_all()
                check_alarms()
        return reply

    def request_decision(self, decision_id: str, **parts: Any) -> httpx2.Response:
        return self.post("/api/v1/selections", json={"decision_id": decision_id, **parts})

    def post(self, path: str, **request: Any) -> httpx2.Response:
        reply = self.client.post(path, headers={"Authorization": f"Bearer {self.secret}"}, **request)
        self.replies[f"{path.rsplit('/', 1)[-1]} {reply.status_code}"] += 1
        return reply


def check_alarms() -> None:
    """Run all alarm rules, those too that are not due."""
    from grading.models import RuleRun
    from grading.monitoring.watch import watch

    RuleRun.objects.all().delete()
    watch()


def alarm_keys() -> frozenset[AlarmKey]:
    """The alarms there are, open or not."""
    from grading.models import Alarm

    return frozenset(Alarm.objects.values_list("rule", "about"))


def signs_of_attack(alarms_before: frozenset[AlarmKey]) -> Mapping[str, int]:
    """The rules that noticed something, each with the number of sessions that the attackers had sent by then.

    A flag or a proposal counts by the place of its session among theirs. An alarm counts if it was not there before.
    """
    from grading.models import Alarm, Flag, Proposal, Session

    sessions = list(Session.objects.filter(agent__name__in=NAMES).order_by("received_at", "pk"))
    place = {session.pk: number for number, session in enumerate(sessions, 1)}
    signs = [(flag.rule, place[flag.session_id]) for flag in Flag.objects.filter(session__in=sessions)]
    proposals = Proposal.objects.filter(session__in=sessions)
    signs += [(f"late {proposal.field}", place[proposal.session_id]) for proposal in proposals]
    for alarm in Alarm.objects.all():
        if (alarm.rule, alarm.about) not in alarms_before:
            sent = sum(session.received_at <= alarm.opened_at for session in sessions)
            signs.append((f"alarm {alarm.rule}", sent))
    first: dict[str, int] = {}
    for rule, number in sorted(signs):
        first[rule] = min(number, first.get(rule, number))
    return first


def agents_named(rule: str) -> Mapping[str, int]:
    """The agents that alarms of this rule name, each with the number of sessions it had sent by then."""
    from grading.models import Alarm, Session

    named: dict[str, int] = {}
    for alarm in Alarm.objects.filter(rule=rule).order_by("-opened_at"):
        agent, _, _ = alarm.about.partition(":")
        named[agent] = Session.objects.filter(agent__name=agent, received_at__lte=alarm.opened_at).count()
    return named
