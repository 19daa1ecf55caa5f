"""The facts on a session's page: what it ran with, and its vitals with their definitions."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from grading.models import Session, SessionFacts
from grading.models.facts import FactSource
from grading.models.spending import CostBasis, sum_tokens
from grading.redaction import redact
from grading.signals.vitals import VITALS, Vital
from grading.templatetags.gradingsite_tags import MINUTE, duration, short_number, usd
from grading.vocabulary import CostUnknown

LISTED_FILES = 12
UNKNOWN = "unknown"
TOKEN_NAMES = {
    "input_tokens": "input",
    "cached_tokens": "cached",
    "cache_write_tokens": "cache writes",
    "output_tokens": "output",
}
LISTS = (("mcp_servers", "MCP servers"), ("skills", "Skills"), ("subagents", "Subagents"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RanWithRow:
    """One thing that the session ran with. `source` says who stated it; `url` leads to the sessions that share it."""

    title: str
    value: str
    source: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VitalRow:
    """A vital with its value as text."""

    vital: Vital
    value: str


def context(session: Session) -> dict[str, Any]:
    """The context of `_facts.html`."""
    facts: SessionFacts | None = getattr(session, "facts", None)
    vitals = vital_rows(facts) if facts is not None and facts.version else []
    return {
        "spent": spent_rows(session),
        "ran_with": ran_with_rows(session, facts),
        "vitals": vitals,
        "summary": [] if facts is None else summary(facts),
        "instructions": [] if facts is None else (facts.instruction_files or [])[:LISTED_FILES],
        "more_instructions": 0 if facts is None else max(0, len(facts.instruction_files or ()) - LISTED_FILES),
    }


def summary(facts: SessionFacts) -> list[str]:
    """The most telling vitals as short texts; unknown ones are left out."""
    parts = [] if facts.active_minutes is None else [f"{duration(facts.active_minutes * MINUTE)} active"]
    if facts.known_calls:
        parts.append(f"{facts.failed_calls:,} of {facts.known_calls:,} calls failed")
    if facts.suites and facts.suites[-1]["state"] != UNKNOWN:
        parts.append(f"tests {facts.suites[-1]['state']}")
    return parts


def spent_rows(session: Session) -> list[RanWithRow]:
    """The session's cost, or why it is unknown; its reported cost and its tokens, if known."""
    title = "Would have cost" if session.agent.has_subscription else "Cost"
    usage = list(session.usage.all())
    if session.cost is not None:
        is_reported = any(row.basis == CostBasis.REPORTED for row in usage)
        source = "what was reported" if is_reported else "its tokens, at the prices of the day"
        rows = [RanWithRow(title=title, value=usd(session.cost), source=source)]
    elif session.cost_unknown == CostUnknown.ELSEWHERE:
        rows = [RanWithRow(title=title, value=CostUnknown.ELSEWHERE.words)]
    else:
        rows = [RanWithRow(title=title, value=f"{UNKNOWN}: {session.get_cost_unknown_display()}")]
    if session.cost_usd is not None:
        rows.append(RanWithRow(title="Reported cost", value=usd(session.cost_usd)))
    counts = sum_tokens(usage)
    if counts is not None:
        parts = [f"{short_number(counts[name])} {label}" for name, label in TOKEN_NAMES.items()]
        rows.append(RanWithRow(title="Tokens", value=f"{short_number(session.tokens)}: {', '.join(parts)}"))
    return rows


def ran_with_rows(session: Session, facts: SessionFacts | None) -> list[RanWithRow]:
    """The project, task, harness version, models and settings of the session; unknown ones are left out."""
    rows = []
    if session.project is not None:
        name = session.project.name
        rows.append(RanWithRow(title="Project", value=name, url=_sessions(project=name)))
    if session.task:
        rows.append(RanWithRow(title="Task", value=session.task, url=_sessions(task=session.task)))
    if facts is None:
        return rows
    sources = {name: FactSource(source).words for name, source in facts.sources.items()}
    if version := facts.harness_version:
        harness = f"{session.harness} " if session.harness else ""
        rows.append(
            RanWithRow(
                title="Version",
                value=f"{harness}{version}",
                source=sources.get("harness_version", ""),
                url=_sessions(version=version),
            )
        )
    if facts.model_calls:
        source = sources.get("model_calls", "")
        rows.append(RanWithRow(title="Models", value=model_shares(facts.model_calls), source=source))
    for name, title in (("reasoning_effort", "Reasoning effort"), ("permission_mode", "Permissions")):
        if value := getattr(facts, name):
            rows.append(RanWithRow(title=title, value=value, source=sources.get(name, "")))
    for name, title in LISTS:
        names = getattr(facts, name)
        if names:
            # Names were redacted one by one, and may be one secret in several pieces.
            value = redact(", ".join(names))
            rows.append(RanWithRow(title=title, value=value, source=sources.get(name, "")))
    return rows


def model_shares(calls: dict[str, int | None]) -> str:
    """Each model with its share of the calls, the most used first.

    >>> model_shares({"haiku": 25, "opus": 75}), model_shares({"opus": 3}), model_shares({"opus": None})
    ('opus 75 %, haiku 25 %', 'opus', 'opus')
    """
    total = sum(count or 0 for count in calls.values())
    if total == 0 or len(calls) == 1:
        return ", ".join(calls)
    ordered = sorted(calls.items(), key=lambda item: -(item[1] or 0))
    return ", ".join(f"{model} {100 * (count or 0) / total:.0f} %" for model, count in ordered)


def vital_rows(facts: SessionFacts) -> list[VitalRow]:
    """Every vital, in order."""
    return [VitalRow(vital=vital, value=_describe(vital.name, facts)) for vital in VITALS]


def _describe(name: str, facts: SessionFacts) -> str:
    """A vital's value as text."""
    value = getattr(facts, name)
    if name == "reads_before_edit" and value is None and facts.unread_edits is not None:
        return "no edit"
    if value is None:
        return UNKNOWN
    if name in ("minutes", "active_minutes"):
        return duration(value * MINUTE)
    if name == "failed_share":
        return f"{100 * value:.0f} %, {facts.failed_calls:,} of {facts.known_calls:,}"
    if name == "suites":
        return ", ".join(f"{each['suite']} {each['state']}" for each in value) or "none ran"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}"


def _sessions(**query: str) -> str:
    return f"{reverse('admin:sessions')}?{urlencode(query)}"
