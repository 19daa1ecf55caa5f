"""Reads outcomes of many sessions from CSV or JSON lines, such as the labels of a benchmark."""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from grading.models import Session
from grading.outcomes.recording import ReportedOutcome
from grading.plain import primary_key

COLUMNS = ("session", "kind", "value", "observed_at", "url", "detail")
MAX_LINES = 1000
EXPECTED = {
    "kind": "landed, merged, closed, reverted, ci, tests, deployed, resolved, or a lower-case name of your own",
    "value": "pass, fail, unknown, or a number from 0 to 1",
    "observed_at": "a time with its zone, such as 2026-04-01T10:00:00Z, or nothing for now",
    "url": "a text of up to 500 characters",
    "detail": "a line of up to 300 characters",
}
WORDS = ("pass", "fail", "unknown")


class Unreadable(ValueError):
    """The text is neither CSV with the COLUMNS nor JSON lines. The message says what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """An outcome of a session, from a line."""

    session: Session
    outcome: ReportedOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedLine:
    """A line that cannot be stored, by its number from 1, and why."""

    number: int
    why: str


def read_labels(text: str) -> tuple[list[Label], list[RefusedLine]]:
    """The outcomes in a text, and the lines that cannot be stored. Two queries. Raises Unreadable."""
    lines = list(_read_json(text) if text.lstrip().startswith("{") else _read_csv(text))
    if not lines:
        raise Unreadable("Expected at least one line with an outcome.")
    if len(lines) > MAX_LINES:
        raise Unreadable(f"Expected at most {MAX_LINES:,} lines; got {len(lines):,}. Split the file.")
    # A line names a session by its agent's id for it, or else by its primary key.
    names = {str(fields.get("session") or "") for _number, fields in lines if isinstance(fields, dict)}
    sessions: dict[str, list[Session]] = defaultdict(list)
    for session in Session.objects.yours().filter(external_id__in=names):
        sessions[session.external_id].append(session)
    names_by_key = {primary_key(name): name for name in names - sessions.keys()}  # 0 for a text that is no key
    for pk, session in Session.objects.yours().in_bulk(names_by_key).items():
        sessions[names_by_key[pk]].append(session)
    labels: list[Label] = []
    refused: list[RefusedLine] = []
    number_by_key: dict[tuple[Any, ...], int] = {}
    for number, fields in lines:
        label = _parse_line(fields, sessions)
        if isinstance(label, str):
            refused.append(RefusedLine(number=number, why=label))
            continue
        key = (label.session.pk, label.outcome.kind, label.outcome.observed_at)
        if key in number_by_key:
            why = f"line {number_by_key[key]} has the same session, kind and time"
            refused.append(RefusedLine(number=number, why=why))
        else:
            number_by_key[key] = number
            labels.append(label)
    return labels, refused


def _read_csv(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the fields of each line after the first; empty fields are left out. Raises Unreadable."""
    rows = csv.DictReader(io.StringIO(text), restkey="", skipinitialspace=True)
    try:
        header = [name.strip() for name in rows.fieldnames or ()]
    except csv.Error as error:
        raise Unreadable(f"The first line is no CSV: {error}.") from None
    if not {"session", "kind", "value"} <= set(header) or set(header) - set(COLUMNS):
        columns = ", ".join(header)[:200]
        raise Unreadable(f"Expected a first line with the columns {', '.join(COLUMNS)}; got {columns!r}.")
    rows.fieldnames = header
    try:
        for row in rows:
            yield rows.line_num, {name: value for name, value in row.items() if value not in ("", None)}
    except csv.Error as error:
        raise Unreadable(f"Line {rows.line_num + 1} is no CSV: {error}.") from None


def _read_json(text: str) -> Iterator[tuple[int, Any]]:
    """The number and the value of each line that isn't blank; None for a line that is no JSON."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                yield number, None


def _parse_line(fields: Any, sessions: Mapping[str, list[Session]]) -> Label | str:
    """The outcome of a line, or why it cannot be stored. `sessions` are by the name that a line may use."""
    if not isinstance(fields, dict):
        return "expected a JSON object"
    if "" in fields:
        return "expected as many fields as the first line has; quote a field that contains a comma"
    fields = dict(fields)
    name = str(fields.pop("session", ""))
    matches = sessions.get(name, [])
    if len(matches) != 1:
        reason = f"{len(matches)} agents have a session" if matches else "there is no session"
        return f"session: expected the id of a session, or the number in its page’s address; {reason} {name[:80]!r}"
    value = fields.get("value")
    if isinstance(value, int | str) and not isinstance(value, bool) and value not in WORDS:
        try:
            fields["value"] = float(value)
        except ValueError:
            return f"value: expected {EXPECTED['value']}; got {str(value)[:80]!r}"
    try:
        return Label(session=matches[0], outcome=ReportedOutcome.model_validate(fields))
    except ValidationError as error:
        problem = error.errors()[0]
        column = str(problem["loc"][0])
        if column not in EXPECTED:
            return f"{column[:80]}: expected only the columns {', '.join(COLUMNS)}"
        return f"{column}: expected {EXPECTED[column]}; got {str(fields.get(column, ''))[:80]!r}"
