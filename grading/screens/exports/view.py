"""Streamed downloads of rows, as CSV that is safe to open in a spreadsheet, or as JSONL."""

import csv
import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone

from grading.access.recording import record
from grading.models.audit import AuditKind

# A spreadsheet reads text that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
BLANK = ("\t", "\r", "\n")


def as_csv(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> StreamingHttpResponse:
    """A CSV file in UTF-8 with a header. Values that a row lacks are empty cells."""
    writer = csv.writer(_Echo())
    lines = (writer.writerow([cell(row.get(name)) for name in columns]) for row in rows)
    filename = f"{name}-{timezone.localdate():%F}.csv"
    return _download(filename, "text/csv", chain([writer.writerow(columns)], lines))


def as_jsonl(name: str, rows: Iterable[Mapping[str, Any]]) -> StreamingHttpResponse:
    """A file with one JSON object per line. Missing values are null."""
    serializable = (
        {key: _utc(value) if isinstance(value, dt.datetime) else value for key, value in row.items()} for row in rows
    )
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in serializable)
    return _download(f"{name}-{timezone.localdate():%F}.jsonl", "application/x-ndjson", lines)


def cell(value: Any) -> Any:
    """A value as a spreadsheet may safely open it: text never becomes a formula, times are ISO 8601 in UTC."""
    if isinstance(value, dt.datetime):
        return _utc(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    is_formula = isinstance(value, str) and (value.startswith(BLANK) or value.lstrip().startswith(FORMULA))
    return f"'{value}" if is_formula else value


def _utc(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat()


def _download(filename: str, content_type: str, lines: Iterator[str]) -> StreamingHttpResponse:
    record(AuditKind.DOWNLOAD, f"downloaded {filename}")
    response = StreamingHttpResponse(lines, content_type=f"{content_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


class _Echo:
    """A file whose `write` returns the text, so that rows can be streamed."""

    def write(self, text: str) -> str:
        return text
