"""From a reply, or an error, to one case of a closed type. Never a number that the judge did not give."""

import datetime as dt
import json
from random import Random

import anthropic
import httpx2
import pytest
from anthropic.types import Message
from hypothesis import given
from hypothesis import strategies as st

from grading.backoff import backoff
from grading.judging.core import retry
from grading.judging.core.api_errors import classify, first_of_next_month
from grading.judging.core.retry import RetryDecision, RetryState, RetryStep, after
from grading.judging.core.verdict import DeferralScope, Deferred, Graded, Invalid, Reached, Refused, read_reply, schema
from grading.vocabulary import Reason

pytestmark = pytest.mark.pure

NOW = dt.datetime(2026, 3, 31, 12, 4, tzinfo=dt.UTC)
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


# --- errors, as the SDK raises them ------------------------------------------------------------------------------


def error(status, words="", *, kind="api_error", code="", **headers):
    body = {"type": "error", "error": {"type": kind, "message": words}}
    if code:
        body["error"]["details"] = {"error_code": code}
    request = httpx2.Request("POST", "https://example.test/v1/messages")
    response = httpx2.Response(
        status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()}, request=request
    )
    return anthropic.Anthropic(api_key="k")._make_status_error_from_response(response)


USAGE = "You have reached your specified {}API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."
TABLE = [
    # what comes back, reason, scope, when to ask again
    (error(429, retry_after="7"), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(seconds=7)),
    (error(429), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(seconds=30)),
    (
        error(429, code="ramp_limit_exceeded", retry_after="2"),
        Reason.RATE_LIMITED,
        DeferralScope.PACE,
        NOW + dt.timedelta(seconds=2),
    ),
    (error(429, retry_after="nonsense"), Reason.RATE_LIMITED, DeferralScope.PACE, NOW + dt.timedelta(seconds=30)),
    (error(429, retry_after="86400"), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, NOW + dt.timedelta(days=1)),
    (
        error(429, code="enforced_spend_limit_reached"),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        dt.datetime(2026, 4, 1, tzinfo=dt.UTC),
    ),
    (error(429, code="contract_spend_limit_reached"), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, None),
    (
        error(429, "Extra usage is required for long context requests"),
        Reason.INPUT_TOO_LARGE,
        DeferralScope.INPUT,
        None,
    ),
    (error(400, USAGE.format("")), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, dt.datetime(2026, 4, 1, tzinfo=dt.UTC)),
    (
        error(400, USAGE.format("workspace ")),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        dt.datetime(2026, 4, 1, tzinfo=dt.UTC),
    ),
    (
        error(400, "Your credit balance is too low to access the API."),
        Reason.QUOTA_EXHAUSTED,
        DeferralScope.QUOTA,
        None,
    ),
    (error(402, kind="billing_error"), Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA, None),
    (
        error(400, "prompt is too long: 250000 tokens > 200000 maximum"),
        Reason.INPUT_TOO_LARGE,
        DeferralScope.INPUT,
        None,
    ),
    (error(400, "something new"), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
    (error(401), Reason.AUTH, DeferralScope.CONFIGURATION, None),
    (error(403), Reason.AUTH, DeferralScope.CONFIGURATION, None),
    (error(404, "model: x", kind="not_found_error"), Reason.NEEDS_ATTENTION, DeferralScope.CONFIGURATION, None),
    (error(408), Reason.TIMEOUT, DeferralScope.JOB, None),
    (error(413), Reason.INPUT_TOO_LARGE, DeferralScope.INPUT, None),
    (error(418), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
    (error(422), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
    (error(500), Reason.OVERLOADED, DeferralScope.JOB, None),
    (error(503, retry_after="9"), Reason.OVERLOADED, DeferralScope.JOB, NOW + dt.timedelta(seconds=9)),
    (error(504), Reason.TIMEOUT, DeferralScope.JOB, None),
    (error(529, kind="overloaded_error"), Reason.OVERLOADED, DeferralScope.JOB, None),
    (ValueError("a bug"), Reason.NEEDS_ATTENTION, DeferralScope.JOB, None),
]


@pytest.mark.parametrize(("came", "reason", "scope", "retry_at"), TABLE, ids=lambda value: str(value)[:50])
def test_every_error_has_one_meaning(came, reason, scope, retry_at):
    found = classify(came, NOW)
    assert (found.reason, found.scope, found.retry_at) == (reason, scope, retry_at)
    assert found.detail


def test_an_unreadable_reset_is_none():
    said = "You have reached your specified API usage limits. You will regain access on 2026-13-45 at 00:00 UTC."
    found = classify(error(400, said), NOW)
    assert (found.scope, found.retry_at) == (DeferralScope.QUOTA, None)


@pytest.mark.parametrize(
    ("now", "first"),
    [(NOW, (2026, 4, 1)), (dt.datetime(2026, 12, 31, 23, tzinfo=dt.UTC), (2027, 1, 1))],
)
def test_spend_limits_reset_on_the_first(now, first):
    assert first_of_next_month(now) == dt.datetime(*first, tzinfo=dt.UTC)


# --- what becomes of a job ---------------------------------------------------------------------------------------

SECOND = dt.timedelta(seconds=1)


class Half(Random):
    """Always the middle, so that the arithmetic can be read."""

    def random(self):
        return 0.5


def next_after(result, *, limit=3, base=SECOND, **tried):
    return after(result, RetryState(**tried), limit=limit, base=base, now=NOW, rng=Half())


def deferred(reason, scope, retry_at=None):
    return Deferred(reason=reason, scope=scope, detail="d", retry_at=retry_at)


NEXT = [
    (Graded(score=0, dimensions={}, rationale="", citations=()), {}, RetryDecision(step=RetryStep.DONE)),
    (Refused(detail="d"), {}, RetryDecision(step=RetryStep.AGAIN, reason=Reason.REFUSED, detail="d")),
    (Refused(detail="d"), {"bad_replies": 1}, RetryDecision(step=RetryStep.GIVE_UP, reason=Reason.REFUSED, detail="d")),
    (Invalid(detail="d"), {}, RetryDecision(step=RetryStep.AGAIN, reason=Reason.UNPARSABLE_VERDICT, detail="d")),
    (
        Invalid(detail="d"),
        {"bad_replies": 1},
        RetryDecision(step=RetryStep.GIVE_UP, reason=Reason.UNPARSABLE_VERDICT, detail="d"),
    ),
    (
        deferred(Reason.INPUT_TOO_LARGE, DeferralScope.INPUT),
        {},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.INPUT_TOO_LARGE, detail="d"),
    ),
    (
        deferred(Reason.INPUT_TOO_LARGE, DeferralScope.INPUT),
        {"too_large": 1},
        RetryDecision(step=RetryStep.GIVE_UP, reason=Reason.INPUT_TOO_LARGE, detail="d"),
    ),
    (
        deferred(Reason.RATE_LIMITED, DeferralScope.PACE),
        {"attempts": 99},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.RATE_LIMITED, detail="d"),
    ),
    (
        deferred(Reason.QUOTA_EXHAUSTED, DeferralScope.QUOTA),
        {"attempts": 99},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.QUOTA_EXHAUSTED, detail="d"),
    ),
    # second failure: ceiling 1 s · 2, half of it
    (
        deferred(Reason.TIMEOUT, DeferralScope.JOB),
        {"attempts": 1},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.TIMEOUT, detail="d", wait=SECOND, counts=True),
    ),
    # third failure of three: ceiling 4 s
    (
        deferred(Reason.TIMEOUT, DeferralScope.JOB),
        {"attempts": 2},
        RetryDecision(step=RetryStep.GIVE_UP, reason=Reason.TIMEOUT, detail="d", wait=2 * SECOND, counts=True),
    ),
    # an overloaded service is waited for, as long as it asks
    (
        deferred(Reason.OVERLOADED, DeferralScope.JOB, NOW + 90 * SECOND),
        {"attempts": 2},
        RetryDecision(step=RetryStep.AGAIN, reason=Reason.OVERLOADED, detail="d", wait=90 * SECOND, counts=True),
    ),
]


@pytest.mark.parametrize(("result", "tried", "expected"), NEXT)
def test_what_becomes_of_a_job(result, tried, expected):
    assert next_after(result, **tried) == expected


@given(st.integers(1, 10_000), st.integers(0, 2**32))
def test_backoff_is_jittered_and_never_over_an_hour(failures, seed):
    wait = backoff(failures, 15 * SECOND, Random(seed))
    assert dt.timedelta(0) <= wait <= min(retry.LONGEST_WAIT, 15 * SECOND * 2.0 ** min(failures - 1, 30))
