"""Codex's paginated history: a fork refers to its parent's history, and a subagent may inherit records."""

import pytest

from grading.formats.events import Message, Role, Usage
from tests.formats.logs import THREAD, codex_item, codex_meta, jsonl, only, parse, token_count

pytestmark = pytest.mark.pure

PARENT = "019f5129-0000-7f80-9f35-efb5580e025e"


def numbered(*records: dict, start: int = 0) -> bytes:
    return jsonl(*[record | {"ordinal": start + index} for index, record in enumerate(records)])


def said(text: str, role: str = "user") -> dict:
    return codex_item("message", role=role, content=[{"type": "input_text", "text": text}])


def with_last(count: dict, given: int, cached: int, answered: int) -> dict:
    last = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": answered, "total_tokens": 0}
    count["payload"]["info"]["last_token_usage"] = last
    return count


def test_fork_has_its_own_tokens_only():
    """Its first total continues the parent's: 1,000 tokens, of which its own response has 100."""
    base = {"thread_id": PARENT, "end_ordinal_exclusive": 7, "end_byte_offset": 900}
    meta = codex_meta(forked_from_id=PARENT, history_mode="paginated", history_base=base)
    first = with_last(token_count(1000, 400, 90), 100, 40, 9)
    events, header, report = parse(numbered(meta, said("Go on"), first, token_count(1300, 400, 100), start=7))
    assert header.session_id == THREAD
    assert [(usage.input_tokens, usage.output_tokens) for usage in only(events, Usage)] == [(60, 9), (300, 10)]
    assert [message.text for message in only(events, Message)] == ["Go on"]
    assert report.problems == ()


def test_records_that_a_subagent_inherited_are_left_out():
    meta = codex_meta(source={"subagent": {}}, history_mode="paginated", subagent_history_start_ordinal=3)
    events, header, report = parse(
        numbered(meta, said("The parent's task"), said("Mine", "assistant"), said("My task"))
    )
    assert [(message.role, message.text) for message in only(events, Message)] == [(Role.USER, "My task")]
    assert header.is_subagent
    assert report.problems == ("a line copied from the thread this one was forked from, left out (2 times)",)


def test_user_turn_of_exec_is_read():
    events, _, _ = parse(
        jsonl(
            {"type": "thread.started", "thread_id": "t"},
            {"type": "turn.started"},
            {"type": "item.completed", "item": {"id": "i0", "type": "user_message", "text": "Fix it"}},
            {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "Done"}},
        )
    )
    assert [(message.role, message.text) for message in only(events, Message)] == [
        (Role.USER, "Fix it"),
        (Role.ASSISTANT, "Done"),
    ]
