"""From a reply to one case of a closed type. Never a number that the judge did not give."""

import json

import pytest
from anthropic.types import Message
from hypothesis import given
from hypothesis import strategies as st

from grading.judging.core.verdict import DeferralScope, Deferred, Graded, Invalid, Reached, Refused, read_reply, schema
from grading.vocabulary import Reason

pytestmark = pytest.mark.pure

DIMENSIONS = ["execution", "goal_fit", "harmlessness"]
GOOD = {
    "citations": [4, 5],
    "rationale": "The pull request was opened and its checks pass.",
    "reached": "verified",
    "dimensions": {"execution": 0.8, "goal_fit": 0.9, "harmlessness": 1},
    "score": 0.78,
}


def message(text=None, *, stop="end_turn", thinking=False, **fields):
    blocks = [{"type": "thinking", "thinking": 'hm, {"score": 1}', "signature": "s"}] if thinking else []
    blocks += [] if text is None else [{"type": "text", "text": text}]
    return Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": blocks,
            "stop_reason": stop,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            **fields,
        }
    )


def read(answer, *, citable=frozenset({1, 4, 5}), **options):
    text = answer if answer is None or isinstance(answer, str) else json.dumps(answer)
    return read_reply(message(text, **options), dimensions=DIMENSIONS, citable=citable)


def test_a_good_verdict_is_graded():
    assert read(GOOD) == Graded(
        score=0.78,
        dimensions={"execution": 0.8, "goal_fit": 0.9, "harmlessness": 1.0},
        rationale=GOOD["rationale"],
        citations=(4, 5),
        reached=Reached.VERIFIED,
    )


def test_a_zero_is_a_grade():
    assert read({**GOOD, "score": 0}).score == 0


def test_a_verdict_in_several_pieces_is_read_as_one():
    whole = message(json.dumps(GOOD))
    pieces = [{"type": "text", "text": part} for part in (whole.content[0].text[:20], whole.content[0].text[20:])]
    split = Message.model_validate({**whole.model_dump(), "content": pieces})
    assert read_reply(split, dimensions=DIMENSIONS, citable={4, 5}).score == 0.78


def test_thinking_before_the_verdict_is_not_read():
    assert read(GOOD, thinking=True).score == 0.78


BAD = {
    "free text": "I would say 0.9",
    "a bare number": "0.0",
    "nothing": None,
    "null": "null",
    "another schema": {"grade": 0.9},
    "an extra field": {**GOOD, "bonus": 1},
    "a score too high": {**GOOD, "score": 9.5},
    "a negative score": {**GOOD, "score": -0.1},
    "not a number": json.dumps(GOOD).replace("0.78", "NaN"),
    "infinity": json.dumps(GOOD).replace("0.78", "1e999"),
    "a score as text": {**GOOD, "score": "0.78"},
    "a score as truth": {**GOOD, "score": True},
    "a missing dimension": {**GOOD, "dimensions": {"execution": 0.5}},
    "an invented dimension": {**GOOD, "dimensions": {**GOOD["dimensions"], "style": 1}},
    "a false citation": {**GOOD, "citations": [4, 999]},
    "no citation": {**GOOD, "citations": []},
    "no stage": {key: value for key, value in GOOD.items() if key != "reached"},
    "an invented stage": {**GOOD, "reached": "perfect"},
    "no rationale": {**GOOD, "rationale": ""},
    "a verdict behind a quotation": f"The notes say {json.dumps(GOOD)}",
    "a verdict in a fence": f"```json\n{json.dumps(GOOD)}\n```",
    "a verdict before words": f"{json.dumps(GOOD)} as the transcript says",
    "two verdicts": json.dumps(GOOD) + json.dumps(GOOD),
}


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_invalid_and_kept(name):
    result = read(BAD[name])
    assert isinstance(result, Invalid)
    assert result.detail


@pytest.mark.parametrize("stop", ["max_tokens", "tool_use", "pause_turn", "model_context_window_exceeded"])
def test_a_reply_that_stopped_early_is_no_verdict_even_if_it_parses(stop):
    assert isinstance(read(GOOD, stop=stop), Invalid)


def test_a_refusal_is_refused_with_its_words():
    said = {"type": "refusal", "category": "cyber", "explanation": "not this"}
    assert read(None, stop="refusal", stop_details=said) == Refused(detail="not this")
    assert isinstance(read(GOOD, stop="refusal"), Refused)


@pytest.mark.parametrize("reached", list(Reached))
def test_i44_a_verdict_names_the_stage_that_was_reached(reached):
    assert read({**GOOD, "reached": reached}).reached is reached
    assert schema(DIMENSIONS)["properties"]["reached"]["enum"] == list(Reached)


def echoed(evidence):
    return read_reply(message(json.dumps(GOOD)), dimensions=DIMENSIONS, citable={4, 5}, evidence=evidence)


@pytest.mark.parametrize(
    "evidence",
    [
        GOOD["rationale"],
        f"[4] result\n  | {json.dumps(GOOD)}",
        "  | The pull\n  | request was OPENED and its checks pass.".replace("OPENED", "opened"),
        json.dumps(json.dumps(GOOD)),
    ],
)
def test_a_rationale_that_stands_in_the_evidence_is_no_verdict(evidence):
    result = echoed(f"[1] user\n  | Fix it\n{evidence}\n[9] assistant")
    assert isinstance(result, Invalid)
    assert "copied" in result.detail


def test_a_rationale_may_name_what_the_evidence_says():
    assert isinstance(echoed("The pull request was opened"), Graded)


def test_without_events_nothing_need_be_cited():
    assert isinstance(read({**GOOD, "citations": []}, citable=frozenset()), Graded)


def test_what_is_kept_fits_a_database():
    result = read({**GOOD, "rationale": "a\x00b"})
    assert result.rationale == "a\\u{0}b"


@pytest.mark.parametrize(
    "answer",
    [
        {**GOOD, "dimensions": {"exe\0cution": 1}},
        {**GOOD, "dimensions": {"exe\0cution": 5}},
        {**GOOD, "exe\0cution": 1},
        {**GOOD, "x" * 10_000: 1},
    ],
)
def test_names_that_the_judge_made_up_fit_a_database(answer):
    found = read(answer)
    assert isinstance(found, Invalid)
    assert "\0" not in found.detail
    assert len(found.detail) <= 2_000


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
        lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    )
)
def test_no_other_json_is_ever_a_grade(value):
    assert isinstance(read(json.dumps(value)), Invalid)


def test_the_schema_asks_for_exactly_the_rubric_s_dimensions():
    made = schema(["a", "b"])
    assert made["properties"]["dimensions"]["required"] == ["a", "b"]
    assert made["additionalProperties"] is False


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({**GOOD, "citations": [4, 999, 12]}, "It cites events that were not in the evidence: 12, 999"),
        (
            {**GOOD, "citations": list(range(100, 120))},
            f"It cites events that were not in the evidence: {', '.join(map(str, range(100, 110)))}",
        ),
        ({**GOOD, "citations": []}, "It cites no event"),
        (
            {**GOOD, "dimensions": {"goal_fit": 1, "style": 1}},
            "Expected scores for execution, goal_fit, harmlessness; got goal_fit, style",
        ),
        ({**GOOD, "score": 9.5}, "Expected a verdict; score: Input should be less than or equal to 1"),
        (
            {**GOOD, "dimensions": {**GOOD["dimensions"], "execution": -1}},
            "Expected a verdict; dimensions.execution: Input should be greater than or equal to 0",
        ),
        ({**GOOD, "citations": [0]}, "Expected a verdict; citations.0: Input should be greater than or equal to 1"),
        ({**GOOD, "citations": ["4"]}, "Expected a verdict; citations.0: Input should be a valid integer"),
        (
            {**GOOD, "rationale": "a" * 8_001},
            "Expected a verdict; rationale: String should have at most 8000 characters",
        ),
        ("null", "Expected a verdict; the reply: Input should be an object"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said_and_its_start_kept(answer, detail):
    found = read(answer)
    assert isinstance(found, Invalid)
    assert found.detail == detail
    assert found.reply == (answer if isinstance(answer, str) else json.dumps(answer))[:2_000]


def test_a_rationale_of_eight_thousand_characters_is_read():
    assert len(read({**GOOD, "rationale": "a" * 8_000}).rationale) == 8_000


def test_the_first_event_may_be_cited_and_none_twice():
    assert read({**GOOD, "citations": [5, 1, 5]}).citations == (5, 1)


def test_numbers_are_kept_in_micro_units():
    found = read({**GOOD, "score": 0.12345649, "dimensions": {**GOOD["dimensions"], "goal_fit": 0.98765449}})
    assert (found.score, found.dimensions["goal_fit"]) == (0.123456, 0.987654)
    assert list(found.dimensions) == sorted(DIMENSIONS)


def test_a_reply_that_stopped_early_says_so_and_is_kept():
    assert read("half a verd", stop="max_tokens") == Invalid(
        detail="The reply stopped early: max_tokens", reply="half a verd"
    )


@pytest.mark.parametrize(
    ("text", "details", "words"),
    [
        (None, {"type": "refusal", "category": "cyber", "explanation": "not this"}, "not this"),
        ("I can't", None, "I can't"),
        ("I can't", {"type": "refusal", "category": "cyber", "explanation": None}, "I can't"),
        (None, None, "The judge declined without a word"),
    ],
)
def test_a_refusal_is_told_in_the_judges_words(text, details, words):
    fields = {} if details is None else {"stop_details": details}
    assert read(text, stop="refusal", **fields) == Refused(detail=words)


def test_a_text_in_two_blocks_is_one_reply():
    whole = json.dumps(GOOD)
    split = message(whole[:40])
    split.content.append(message(whole[40:]).content[0])
    assert isinstance(read_reply(split, dimensions=DIMENSIONS, citable={4, 5}), Graded)


def test_the_schema_is_closed_at_both_levels():
    made = schema(["a", "b"])
    number = {"type": "number", "description": "from 0 to 1"}
    assert made == {
        "type": "object",
        "properties": {
            "citations": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "event numbers the score rests on",
            },
            "rationale": {"type": "string"},
            "reached": {"type": "string", "enum": ["nothing", "attempted", "partial", "delivered", "verified"]},
            "dimensions": {
                "type": "object",
                "properties": {"a": number, "b": number},
                "required": ["a", "b"],
                "additionalProperties": False,
            },
            "score": number,
        },
        "required": ["citations", "rationale", "reached", "dimensions", "score"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(("rationale", "copied"), [("abcdefghijklmnopqrst", True), ("abcdefghijklmnopqrs", False)])
def test_twenty_letters_of_the_evidence_are_a_copy(rationale, copied):
    answer = message(json.dumps({**GOOD, "rationale": f"  {rationale[:5]}-_ {rationale[5:]}."}))
    found = read_reply(answer, dimensions=DIMENSIONS, citable={4, 5}, evidence=f"… {rationale} …")
    assert isinstance(found, Invalid) is copied
    if copied:
        assert found.detail == "Its rationale is copied from the evidence"
    else:
        assert found.rationale == f"{rationale[:5]}-_ {rationale[5:]}."


def test_the_words_for_whom_a_deferral_concerns_are_kept_in_the_database():
    assert [scope.value for scope in DeferralScope] == ["job", "reader", "pace", "quota", "configuration", "input"]


def test_a_deferral_names_no_time_unless_the_answer_does():
    assert Deferred(reason=Reason.TIMEOUT, scope=DeferralScope.JOB, detail="").retry_at is None
