"""What the readers take from real logs besides their events: whose they are, what they used, and how calls ended.

The numbers were compared with the logs by hand, and with each log's own totals where it has some.
"""

from datetime import datetime
from pathlib import Path

import pytest

from grading import signals
from grading.formats import read
from tests.formats.logs import FIXTURES
from tests.transcript import sum_tokens

pytestmark = pytest.mark.pure

HERE = Path(__file__).parent
TERMINAL = "20250218_022437Z_openai_gpt-4o-mini_tool_tool_init-git.stdout.txt"
# By log: (session id, model, version, folder), (calls, known results, failed), (input, output, cache read, written), $.
EXPECTED = {
    f"gptme/logs/{TERMINAL}": (
        ("2025-02-18-gptme-evals-openai--gpt-4o-mini-tool-265182", "openai/gpt-4o-mini", None, None),
        (4, 4, 0),
        (None, None, None, None),
        None,
    ),
    "opencode/logs/ses_333bf5e9fffedlqBAp5tEmkuCF.json": (
        ("ses_333bf5e9fffedlqBAp5tEmkuCF", "gpt-5.3-codex", "1.2.21", "/Users/nickdejesus/Code/nimbus"),
        (23, 23, 1),
        (144_344, 7_353, 169_984, 0),
        0.4713,
    ),
    "copilot_cli/logs/10fb4666-56f0-4352-90fc-715caf95b418.jsonl": (
        (
            "10fb4666-56f0-4352-90fc-715caf95b418",
            "claude-sonnet-4.6",
            "1.0.64",
            "/home/entity/projects/EntityProcess/agentv",
        ),
        (68, 68, 2),
        (None, 19_254, None, None),
        None,
    ),
    # Totals of 1,000 input tokens, of which 800 are cached.
    "copilot_cli/logs/schema_drift.jsonl": (
        ("copilot_stage0_drift", "claude-haiku-4.5", "0.0.420", None),
        (1, 2, 1),
        (200, 50, 800, 0),
        None,
    ),
    "gemini_cli/logs/2026-01-10-fa4593e0-f7e1-4dd1-b656-da95fb4d60fa.json": (
        ("fa4593e0-f7e1-4dd1-b656-da95fb4d60fa", "gemini-2.5-flash", None, None),
        (1, 1, 0),
        (12_341, 153, 11_835, None),
        None,
    ),
    "swe_agent/logs/test-repo-1c2844.traj": (
        (None, "gpt-4o", None, None),
        (5, 3, 0),
        (7_141, 243, None, None),
        0.0195,
    ),
    "inspect_ai/logs/browser.json": (
        ("ATYFNjyWUz4mZ5Dgj6yd4f", "openai/gpt-4o-mini", "0.3.95.dev16+g6527d0861", None),
        (4, 4, 0),
        (15_235 - 9_088, 281, 9_088, None),
        None,
    ),
    "openhands/logs/basic.json": (
        (None, "claude-3-5-sonnet-20241022", None, None),
        (1, 1, 0),
        (10, 1_312, 3_482, 4_640),
        None,
    ),
    "openhands/logs/resolver-output.jsonl": ((None, None, None, None), (24, 3, 0), (None, None, None, None), 1.2236),
}


@pytest.mark.parametrize(("file", "expected"), EXPECTED.items())
def test_facts_of_a_real_log(file: str, expected: tuple):
    with (HERE / file).open("rb") as stream:
        reader = read(stream, file)
        events = list(reader)
    header, found = reader.header, signals.extract(events)
    assert expected == (
        (header.session_id, header.model, header.harness_version, header.cwd),
        (found.calls, found.known_results, found.failed_calls),
        sum_tokens(events),
        None if found.cost_usd is None else round(found.cost_usd, 4),
    )
    assert header.started_at is None or isinstance(header.started_at, datetime)
    assert reader.report.unknown_calls == reader.report.unknown_records == 0


@pytest.mark.parametrize("name", ["cursor-agent.jsonl", "droid-stream.jsonl", "pi.jsonl", "qwen.jsonl"])
def test_sample_of_a_harness_whose_facts_are_shown_has_messages_and_calls(name: str):
    with (FIXTURES / "others" / name).open("rb") as stream:
        reader = read(stream, name)
        found = signals.extract(iter(reader))
    assert found.calls
    assert reader.report.coverage == 1
