"""The labelled sessions of tests/data/final_states are sound: every proof can be looked up.

What each field means is in SOURCES.md beside them.
"""

import hashlib
import json
from collections import Counter
from io import BytesIO

import pytest

from benchmarks.labelled.final_states import FOLDER, figures, load_sessions
from grading import formats
from grading.formats.events import Message, ToolCall

pytestmark = pytest.mark.pure

SESSIONS = [json.loads(line) for line in (FOLDER / "labels.jsonl").read_text().splitlines()]
CHOICES = {
    "harness": {"claude-code", "codex", "gptme"},
    "label": {"low", "fine", "unknown"},
    "tests_at_end": {"green", "red", "unknown", "none"},
    "origin": {"real", "built"},
    "split": {"train", "held_out"},
}


def count_by(*fields, **having):
    chosen = [row for row in SESSIONS if all(row[key] == value for key, value in having.items())]
    return Counter(tuple(row[field] for field in fields) for row in chosen)


def read_problems(row):
    """What is wrong with a row's log and its proving lines, as text."""
    content = (FOLDER / row["log"]).read_bytes()
    reader = formats.read(BytesIO(content))
    events = list(reader)
    lines = row["lines"]
    if reader.format != row["harness"] or reader.report.coverage < 1:
        yield f"read as {reader.format}, coverage {reader.report.coverage}"
    if not any(isinstance(event, ToolCall | Message) for event in events):
        yield "no call and no message"
    if not lines or lines != sorted(set(lines)) or lines[0] < 1 or lines[-1] > content.count(b"\n"):
        yield f"proving lines {lines} are not in the log"


def test_low_grades_have_evidence():
    """No good or undecided session has a low grade, and most of the failures that a log shows do have one."""
    sessions = load_sessions()
    assert [each.label["name"] for each in sessions if each.is_low and not each.is_failure] == []
    for split, least in (("train", 0.7), ("held_out", 0.6)):
        found = figures([each for each in sessions if each.label["split"] == split])
        assert found["true_lows"] >= least
        assert found["tests_at_end"] >= 0.8


def test_logs_are_read():
    """Every log parses completely, in the named format, and its proving lines exist. Two megabytes: some seconds."""
    assert [(row["name"], problem) for row in SESSIONS for problem in read_problems(row)] == []


def test_fields_are_complete():
    """Every field has one of its values; real logs name their source, built ones their wording."""
    for field, choices in CHOICES.items():
        assert {row[field] for row in SESSIONS} == choices
    for row in SESSIONS:
        assert row["reason"].endswith(".")
        assert (row["source"] is not None and row["licence"] is not None) == (row["origin"] == "real")
        assert (row["wording"] in {"table", "other"}) == (row["origin"] == "built")


def test_set_is_balanced():
    """There are enough sessions of each kind, and every shape is in both parts of the split."""
    assert len(SESSIONS) >= 80
    assert count_by("label")["low",] >= 30
    assert count_by("origin")["real",] >= 40
    assert 0.55 <= count_by("split")["train",] / len(SESSIONS) <= 0.65
    built = count_by("wording", origin="built")
    assert built["other",] >= built["table",]
    for shape in {row["shape"] for row in SESSIONS}:
        assert set(count_by("split", shape=shape)) == {("train",), ("held_out",)}


def test_no_duplicates():
    """No two entries share a name or a log, no two logs are equal, no log is without an entry, and all are small."""
    logs = sorted((FOLDER / "logs").iterdir())
    assert sorted(row["log"] for row in SESSIONS) == [f"logs/{path.name}" for path in logs]
    assert len({row["name"] for row in SESSIONS}) == len(SESSIONS)
    assert len({hashlib.sha256(path.read_bytes()).digest() for path in logs}) == len(logs)
    assert sum(path.stat().st_size for path in logs) < 3_000_000
