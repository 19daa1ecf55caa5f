"""Sessions that don't say what they were (A12)."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from grading.models import Session
from grading.models.sessions import SessionQuerySet
from grading.monitoring.missing import USUAL, is_missing_too_often
from grading.monitoring.rule import Finding, Rule, Severity
from grading.vocabulary import NO_REWARD

WINDOW = dt.timedelta(days=7)
# Each field: when it is missing, what follows, and what to do about it.
FIELDS = {
    "category": (
        Q(category=None),
        "the category bandit learns nothing from them",
        "Add a rule under Settings, Categories; or have the runner send `category`, under a name the site knows",
    ),
    "harness": (
        Q(harness=None),
        "the harness bandit learns nothing from them, and a change in the harness can’t be seen",
        "Have the agent send `harness`, or a transcript that shows it",
    ),
    "model": (
        Q(model="", model_arm=None),
        "they can’t be used to compare models",
        "Have the agent send `model` wherever no transcript shows it",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """How many of `n` sessions of an agent and a harness (empty: unknown) lack each field, by its name."""

    agent: str
    harness: str
    n: int
    missing: Mapping[str, int]


class Incomplete(Rule):
    """A field that one harness stops sending would go unnoticed: nothing fails, there is only less to learn from."""

    id = "A12"
    title = "Sessions arrive without required fields"
    means = (
        f"Opens when more than {100 * USUAL:.0f} % of an agent’s sessions in seven days (overall, or with one "
        "harness) lack a category, harness or model, beyond chance (p < .001): for example the first three of "
        "all, 6 of 20, or 14 of 100. Sessions ended by infrastructure don’t count."
    )
    todo = "Have the agent send the field."
    severity = Severity.ADVISORY
    every = dt.timedelta(hours=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        return found(_lacking(now))

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:
        whose, _, name = about.rpartition(": ")
        rows = [row for row in _lacking(now) if whose in (row.agent, _whose(row))]
        if name not in FIELDS or not rows:
            return ()
        missing = _counted(now).filter(FIELDS[name][0], agent__name=rows[0].agent)
        if whose != rows[0].agent:
            missing = missing.filter(harness__name=rows[0].harness)
        return list(missing.order_by("ended_at", "pk").values_list("pk", flat=True))


def found(rows: Iterable[Lacking]) -> Iterable[Finding]:
    """What is missing too often: of an agent in all, or else of its sessions with one harness."""
    agents: dict[str, list[Lacking]] = defaultdict(list)
    for row in rows:
        agents[row.agent].append(row)
    for agent, some in sorted(agents.items()):
        missing = {name: sum(row.missing[name] for row in some) for name in FIELDS}
        whole = Lacking(agent=agent, harness="", n=sum(row.n for row in some), missing=missing)
        for name in FIELDS:
            if is_missing_too_often(whole.missing[name], whole.n):
                yield _finding(whole, name)
            else:
                named = (row for row in some if row.harness)
                yield from (_finding(row, name) for row in named if is_missing_too_often(row.missing[name], row.n))


def _finding(row: Lacking, name: str) -> Finding:
    _missing, effect, todo = FIELDS[name]
    whose = _whose(row)
    return Finding(
        about=f"{whose}: {name}"[:300],
        detail=f"{row.missing[name]} of {row.n} sessions of {whose} in seven days came without a {name}: {effect}. "
        f"{todo}.",
    )


def _whose(row: Lacking) -> str:
    return f"{row.agent} with {row.harness}" if row.harness else row.agent


def _counted(now: dt.datetime) -> SessionQuerySet:
    """The window's sessions that count."""
    sessions = Session.objects.yours().filter(ended_at__gt=now - WINDOW, ended_at__lte=now)
    return sessions.exclude(outcome__in=NO_REWARD).exclude(log__part_of__isnull=False).order_by()


def _lacking(now: dt.datetime) -> Iterable[Lacking]:
    """Of the window's sessions: one query."""
    counts = {f"no_{name}": Count("pk", filter=missing) for name, (missing, _effect, _todo) in FIELDS.items()}
    rows: Iterable[Any] = _counted(now).values("agent__name", "harness__name").annotate(n=Count("pk"), **counts)
    for row in sorted(rows, key=lambda each: (each["agent__name"], each["harness__name"] or "")):
        missing = {name: row[f"no_{name}"] for name in FIELDS}
        harness = row["harness__name"] or ""
        yield Lacking(agent=row["agent__name"], harness=harness, n=row["n"], missing=missing)
