"""An alarm rule about logs: a harness has changed how it writes them."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from grading import formats
from grading.formats.events import MAX_UNKNOWN, is_drifted
from grading.models import Evidence
from grading.models.evidence import EvidenceKind
from grading.monitoring.rule import Finding, Severity, alarm_rule

WINDOW = dt.timedelta(days=7)
MAX_NAMED, MAX_SESSIONS, MAX_VERSION = 5, 50, 60
EVERY = dt.timedelta(hours=1)


@dataclass(slots=True)
class FormatUse:
    """How many records and calls the logs of one version of a harness have, and how many of them the site can't read.

    `kinds` and `tools` count the unknown names; `sessions` are the keys of the sessions with an unknown name.
    """

    records: int = 0
    unknown_records: int = 0
    calls: int = 0
    unknown_calls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    sessions: list[int] = field(default_factory=list)

    def add(self, session: int, report: dict[str, Any]) -> None:
        """Count a log's report."""
        self.records += _count(report, "lines")
        self.unknown_records += _count(report, "unknown_records")
        self.calls += _count(report, "calls")
        self.unknown_calls += _count(report, "unknown_calls")
        self.kinds.update(report.get("unknown_kinds") or ())
        self.tools.update(report.get("unknown_tools") or ())
        if report.get("unknown_kinds") or report.get("unknown_tools"):
            self.sessions.append(session)

    def describe(self) -> Iterable[str]:
        """Sentences about what is unknown in more than 2 % of the records or of the calls."""
        if is_drifted(self.unknown_records, self.records):
            names = ", ".join(name for name, _ in self.kinds.most_common(MAX_NAMED))
            yield f"{self.unknown_records:,} of {self.records:,} records are of unknown kinds: {names}."
        if is_drifted(self.unknown_calls, self.calls):
            names = ", ".join(name for name, _ in self.tools.most_common(MAX_NAMED))
            yield f"{self.unknown_calls:,} of {self.calls:,} calls are of unknown tools: {names}."


def describe_unknown(report: dict[str, Any]) -> str:
    """Sentences about the unknown records and calls of one log; empty if their shares are at most MAX_UNKNOWN."""
    use = FormatUse()
    use.add(0, report)
    return " ".join(use.describe())


def _count(report: dict[str, Any], name: str) -> int:
    value = report.get(name)
    return value if isinstance(value, int) else 0


@alarm_rule(
    id="A53",
    title="A harness writes its logs differently",
    means=(
        f"Opens when more than {MAX_UNKNOWN:.0%} of the records or of the tool calls in the logs that one version of a "
        "harness sent within seven days are unknown to the site."
    ),
    todo=(
        "Update the site, or report the version and the names. Unknown records and calls count for nothing. If the "
        "site doesn’t know most of a session’s tools, it doesn’t grade the session by its log."
    ),
    severity=Severity.ADVISORY,
    every=EVERY,
)
def changed_format(now: dt.datetime) -> Iterable[Finding]:
    """A53. A harness that renames a tool must not make its sessions look idle."""
    logs = Evidence.objects.filter(
        kind=EvidenceKind.TRANSCRIPT, received_at__gte=now - WINDOW, session__is_sample=False
    )
    uses: defaultdict[tuple[str, str], FormatUse] = defaultdict(FormatUse)
    for session, format_name, report in logs.order_by("pk").values_list("session", "format", "report"):
        if format_name:
            version = str(report.get("harness_version") or "")[:MAX_VERSION]  # a log may name anything
            uses[format_name, version].add(session, report)
    for (format_name, version), use in sorted(uses.items()):
        if sentences := list(use.describe()):
            harness = formats.BY_FORMAT.get(format_name)
            title = format_name if harness is None else harness.title
            name = f"{title} {version}".strip()
            yield Finding(
                about=name, detail=f"{name}: {' '.join(sentences)}", sessions=tuple(use.sessions[-MAX_SESSIONS:])
            )
