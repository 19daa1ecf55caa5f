"""Every real log of the data folder: detected rightly, read whole, and its counts those of an independent scan."""

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from grading.formats import EmptyTranscript, TranscriptReader, UnknownFormat, read
from grading.formats.events import Event, ToolCall, ToolResult, Usage

pytestmark = pytest.mark.data
ROOT = Path(os.environ.get("GRADING_DATA_DIR", ""), "transcripts") if os.environ.get("GRADING_DATA_DIR") else None

# Where the scan counts something else, by a part of the path. Of the forked logs the beginnings of two were read; the
# other five have the same mark: a second `session_meta`, of the parent.
SCANNED = ("claude-code", "codex", "gptme")
# Parts of sessions, predictions, and other files that are no session's log.
REFUSED = ("__opencode__storage", "example_model_output", "state.json", "meta.json")
FOREIGN = ("agents__qwen__", "agents__droid__")  # Qwen Code's and Droid's logs, which the scan took for Claude Code's
FORKED = (  # the scan counts the parent's history again; ours is left out
    "019f512a-51ec",
    "019f5141-7f90",
    "019f5500-aacb",
    "019f5500-c2a3",
    "019d7e2f-0041",
    "019d7e30-2f7a",
    "019d7e36-577c",
)
OLD_SIDECHAINS = ("5c0375b4", "agent-")  # subagents' messages as lines of their own, which the scan does count
PLACEHOLDERS = ("stage0__agents__c",)  # a schema sample: text where numbers belong, tokens of no response


def rows() -> Iterator[dict]:
    if ROOT is None:
        pytest.skip(
            "GRADING_DATA_DIR is not set: the folder of real sessions was NOT read. Set it to a folder that has "
            "transcripts/MANIFEST.csv to run this test."
        )
    with (ROOT / "MANIFEST.csv").open(newline="") as manifest:
        yield from csv.DictReader(manifest)


def is_ours(row: dict) -> bool:
    """Whether the scan knew the log's harness, and the counts of its reader are to be those of the scan."""
    return row["format"] in SCANNED and not any(part in row["file"] for part in FOREIGN)


def opened(row: dict) -> tuple[TranscriptReader, list]:
    with (ROOT / row["file"]).open("rb") as stream:
        reader = read(stream, row["file"])
        return reader, list(reader)


def test_every_supported_log_is_detected_and_read():
    found = 0
    for row in rows():
        if not (expected := expected_format(row)):
            continue
        reader, events = opened(row)
        name = row["file"]
        assert reader.format == expected, name
        assert events or row["tool_calls"] == "0", name
        assert reader.report.coverage > (0.6 if "edge_cases" in name or "schema_drift" in name else 0.98), name
        found += 1
    assert found > 200


def expected_format(row: dict) -> str:
    """The format that a log of this row is to be read as; empty if it is to be refused."""
    if any(part in row["file"] for part in REFUSED) or row["kind"] in ("grok", "hermes", "journal", "misc"):
        return ""
    if "agents__qwen__" in row["file"]:
        return "qwen"
    return "droid" if "agents__droid__" in row["file"] else {"cursor-agent": "cursor"}.get(row["kind"], row["kind"])


def test_every_other_log_is_refused():
    refused = 0
    for row in rows():
        if not expected_format(row) and "function_calling_simple" not in row["file"]:
            with pytest.raises((UnknownFormat, EmptyTranscript)):
                opened(row)
            refused += 1
    assert refused > 25


def test_counts_are_those_of_the_independent_scan():
    """The scan counts subagents' calls and tokens inside a log as the session's; we mark them as sidechain."""
    compared = 0
    for row in filter(is_ours, rows()):
        if any(part in row["file"] for part in (*FORKED, *PLACEHOLDERS)):
            continue
        reader, events = opened(row)
        usages = [event for event in events if isinstance(event, Usage)]
        totals = {
            name: sum(getattr(usage, name) or 0 for usage in usages if not by_subagent(usage, row))
            for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        }
        calls = [event for event in events if isinstance(event, ToolCall) if not by_subagent(event, row)]
        own = {call.call_id.partition("#")[0] or call.number for call in calls}  # a script's calls share its id
        assert len(own) == int(row["tool_calls"]), row["file"]
        if reader.format == "gptme":
            continue  # the scan has no tokens for it
        given = totals["input_tokens"] + (totals["cache_read_tokens"] if reader.format == "codex" else 0)
        expected = [int(row[name]) for name in ("tok_in", "tok_out", "tok_cache_read", "tok_cache_write")]
        seen = [given, totals["output_tokens"], totals["cache_read_tokens"], totals["cache_write_tokens"]]
        assert seen == expected, row["file"]
        compared += 1
    assert compared > 90


def by_subagent(event: Event, row: dict) -> bool:
    """Whether a subagent did this inside `progress` records, which the scan does not open."""
    return event.sidechain and not any(part in row["file"] for part in OLD_SIDECHAINS)


def test_every_result_has_its_call():
    for row in filter(is_ours, rows()):
        if "stage0" in row["file"]:
            continue  # schema samples, whose ids are placeholders
        _, events = opened(row)
        calls = {event.call_id for event in events if isinstance(event, ToolCall)}
        orphans = [event.call_id for event in events if isinstance(event, ToolResult) if event.call_id not in calls]
        assert orphans == [], row["file"]
