"""Cost of every real log of Claude Code and Codex, compared with an independent count from its raw records."""

import csv
import datetime as dt
import os
from collections import Counter
from pathlib import Path

import pytest

from grading.evidence.receiving import parse
from grading.formats import EmptyTranscript
from grading.models import Session
from grading.spending.recording import usage_rows
from tests.spending.raw_count import count_tokens_and_dollars

pytestmark = [pytest.mark.data, pytest.mark.django_db]
ROOT = Path(os.environ.get("GRADING_DATA_DIR", ""), "transcripts") if os.environ.get("GRADING_DATA_DIR") else None


def test_cost_agrees_with_an_independent_count():
    """At least 95 % of the logs with tokens and a priced model are within 1 %; the rest have no cost."""
    if ROOT is None:
        pytest.skip("GRADING_DATA_DIR is not set: the folder of real sessions was NOT read")
    counts, wrong = Counter(), []
    with (ROOT / "MANIFEST.csv").open(newline="") as manifest:
        rows = [row for row in csv.DictReader(manifest) if row["real"].startswith("yes")]
    for row in rows:
        if row["kind"] not in ("claude-code", "codex"):
            continue
        counts[row["kind"]] += 1
        tokens, dollars = count_tokens_and_dollars(ROOT / row["file"], row["kind"])
        ours, cost = our_tokens_and_cost(ROOT / row["file"])
        if tokens == 0 or dollars is None:
            counts["unpriced"] += 1
            assert cost is None, row["file"]
        elif cost is not None and abs(cost / 1e6 - dollars) <= 0.01 * dollars:
            counts["agree"] += 1
            assert ours == tokens, row["file"]
        else:
            wrong.append((row["file"], tokens, ours, dollars, cost))
    assert counts["claude-code"] > 60
    assert counts["codex"] > 50
    assert counts["agree"] >= 0.95 * (counts["agree"] + len(wrong)), wrong


def our_tokens_and_cost(path: Path) -> tuple[int, int | None]:
    """(all tokens, microdollars or None) of a log as a session of its own."""
    with path.open("rb") as stream:
        try:
            log = parse(stream, path.name)
        except EmptyTranscript:
            return 0, None
    assert log.usage.is_whole
    ended_at = log.header.ended_at or dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    session = Session(model=log.header.model or "", started_at=log.header.started_at, ended_at=ended_at)
    rows = usage_rows(session, log.usage.responses)
    tokens = sum(
        (row.input_tokens or 0) + (row.cached_tokens or 0) + (row.cache_write_tokens or 0) + (row.output_tokens or 0)
        for row in rows
    )
    costs = [row.cost_micro for row in rows]
    return tokens, sum(costs) if costs and None not in costs else None
