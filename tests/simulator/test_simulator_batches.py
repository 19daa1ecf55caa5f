"""The simulator's Message Batches, as the real SDK sees them over a real socket."""

import json
import urllib.request

import anthropic
import pytest
from anthropic.types.messages import MessageBatch

from grading.simulator import Limits, Simulator


@pytest.fixture
def sim():
    with Simulator() as running:
        yield running


@pytest.fixture
def batches(sim):
    with anthropic.Anthropic(api_key="k", base_url=sim.url, max_retries=0, timeout=5) as client:
        yield client.messages.batches


def request(name, user="[4] shell Bash\n  | git push"):
    params = {"model": "claude-sonnet-5-5", "max_tokens": 1000, "messages": [{"role": "user", "content": user}]}
    return {"custom_id": name, "params": params}


def submit(batches, *names):
    return batches.create(requests=[request(name) for name in names])


def results(batches, batch):
    batches.retrieve(batch.id)
    return {line.custom_id: line.result for line in batches.results(batch.id)}


def test_a_batch_is_taken_in_polled_and_read(sim, batches):
    sim.batches.polls = 2
    batch = submit(batches, "a", "b", "c")
    assert isinstance(batch, MessageBatch)
    assert (batch.processing_status, batch.request_counts.processing, batch.results_url) == ("in_progress", 3, None)
    assert [batches.retrieve(batch.id).processing_status for _ in range(3)] == ["in_progress", "in_progress", "ended"]
    ended = batches.retrieve(batch.id)
    assert (ended.request_counts.succeeded, ended.request_counts.processing) == (3, 0)
    assert ended.ended_at >= ended.created_at
    lines = list(batches.results(batch.id))
    assert [line.custom_id for line in lines] == ["c", "b", "a"]
    assert lines[0].result.type == "succeeded"
    assert json.loads(lines[0].result.message.content[0].text)["score"] >= 0
    assert lines[0].result.message.usage.output_tokens > 0


def test_results_are_not_there_before_the_end(sim, batches):
    sim.batches.polls = 5
    batch = submit(batches, "a")
    with pytest.raises(anthropic.AnthropicError, match="finished processing"):
        batches.results(batch.id)


def test_each_request_has_an_outcome_of_its_own(sim, batches):
    sim.batches.script({"mode": "verdict", "score": 0.7}, "overloaded", "expired", "canceled", "garbage", "bad_request")
    batch = submit(batches, "fine", "busy", "late", "stopped", "odd", "wrong", "usual")
    found = results(batches, batch)
    assert json.loads(found["fine"].message.content[0].text)["score"] == 0.7
    assert found["busy"].error.error.type == "overloaded_error"
    assert (found["late"].type, found["stopped"].type) == ("expired", "canceled")
    assert (found["odd"].type, found["usual"].type) == ("succeeded", "succeeded")
    assert found["wrong"].error.error.type == "invalid_request_error"
    counts = batches.retrieve(batch.id).request_counts
    assert (counts.succeeded, counts.errored, counts.expired, counts.canceled) == (3, 2, 1, 1)


def test_a_canceled_batch_ends_with_what_was_done(sim, batches):
    sim.batches.polls = 10
    sim.batches.script("verdict")
    batch = submit(batches, "done", "begun")
    canceling = batches.cancel(batch.id)
    assert (canceling.processing_status, canceling.cancel_initiated_at is not None) == ("canceling", True)
    found = results(batches, batch)
    assert (found["done"].type, found["begun"].type) == ("succeeded", "canceled")
    assert batches.cancel(batch.id).processing_status == "ended"


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("usage_limits", anthropic.BadRequestError),
        ("auth", anthropic.AuthenticationError),
        ("rate_limit", anthropic.RateLimitError),
        ("server_error", anthropic.InternalServerError),
        ("drop", anthropic.APIConnectionError),
    ],
)
def test_the_calls_themselves_can_fail(sim, batches, mode, kind):
    batch = submit(batches, "a")
    for call in (lambda: submit(batches, "b"), lambda: batches.retrieve(batch.id), lambda: batches.cancel(batch.id)):
        sim.batches.script_calls(mode)
        with pytest.raises(kind):
            call()
    assert batches.retrieve(batch.id).id == batch.id


def test_no_batch_is_taken_in_while_single_messages_meet_an_error(sim, batches):
    batch = submit(batches, "a")
    sim.mode = "no_credit"
    with pytest.raises(anthropic.BadRequestError, match="credit balance"):
        submit(batches, "b")
    assert results(batches, batch)["a"].type == "succeeded"


def test_custom_ids_are_checked(batches):
    for names, words in ((["a", "a"], "unique"), (["no spaces"], "does not match"), ([], "expected 1 to")):
        with pytest.raises(anthropic.BadRequestError, match=words):
            submit(batches, *names)


def test_batches_are_listed_newest_first_page_by_page(batches):
    made = [submit(batches, "a").id for _ in range(5)]
    assert [batch.id for batch in batches.list(limit=2)] == made[::-1]
    assert [batch.id for batch in batches.list(before_id=made[2], limit=1).data] == [made[3]]


def test_a_batch_belongs_to_its_key(sim, batches):
    batch = submit(batches, "a")
    with anthropic.Anthropic(api_key="other", base_url=sim.url, max_retries=0) as stranger:
        with pytest.raises(anthropic.NotFoundError):
            stranger.messages.batches.retrieve(batch.id)
        assert stranger.messages.batches.list().data == []


def test_batches_do_not_count_towards_the_limits_a_minute(sim, batches):
    sim.limit(Limits(requests=1, input_tokens=1, output_tokens=1))
    found = results(batches, submit(batches, *(f"r{number}" for number in range(20))))
    assert {result.type for result in found.values()} == {"succeeded"}
    assert sim.state()["answered_429"] == {}


def test_batches_are_scripted_over_http(sim, batches):
    order = {"batches": {"polls": 1, "outcomes": ["expired"], "queue": ["verdict", "overloaded"]}}
    data = json.dumps(order).encode()
    with urllib.request.urlopen(sim.url + "/_script", data=data, timeout=5) as reply:  # noqa: S310 - our own server
        assert json.load(reply)["batches"] == {"calls": 0, "batches": []}
    batch = submit(batches, "a")
    with pytest.raises(anthropic.OverloadedError):
        batches.retrieve(batch.id)
    assert batches.retrieve(batch.id).processing_status == "in_progress"
    assert results(batches, batch)["a"].type == "expired"


def test_what_is_no_outcome_is_refused(sim):
    with pytest.raises(ValueError, match="not a possible result"):
        sim.batches.script("hang")
