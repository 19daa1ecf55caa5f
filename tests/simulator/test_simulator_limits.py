"""The simulator's limits are the service's: buckets that refill all the time, refusals that say when to come back."""

import datetime as dt
import json
import urllib.error
import urllib.request

import anthropic
import pytest

from grading.simulator import Limits, Simulator
from grading.simulator.limits import Meter

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
PLENTY = {"requests": 1000, "input_tokens": 10_000_000, "output_tokens": 10_000_000}


def ask(sim, user="a short session", *, key="k", model="claude-sonnet-5-5"):
    with anthropic.Anthropic(api_key=key, base_url=sim.url, max_retries=0, timeout=5) as client:
        return client.messages.with_raw_response.create(
            model=model, max_tokens=1000, system="grade", messages=[{"role": "user", "content": user}]
        )


def script(sim, **order):
    data = json.dumps(order).encode()
    with urllib.request.urlopen(sim.url + "/_script", data=data, timeout=5) as reply:  # noqa: S310 - our own server
        return json.load(reply)


def refused(sim, **options):
    with pytest.raises(anthropic.RateLimitError) as caught:
        ask(sim, **options)
    return caught.value


def meter(**limits):
    return Meter(Limits(**{**PLENTY, **limits}), 0.0, enforced=True)


def left(meter, kind, now):
    return int(meter.headers(now, NOON)[f"anthropic-ratelimit-{kind}-remaining"])


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"requests": 1}, "1 requests per minute"),
        ({"input_tokens": 20}, "20 input tokens per minute"),
        ({"output_tokens": 1}, "1 output tokens per minute"),
    ],
)
def test_a_call_over_a_limit_gets_a_429_that_names_it(limits, words):
    """Each limit lets one call in and not the second, which is told which limit it was and when to come back."""
    with Simulator(limits=Limits(**{**PLENTY, **limits})) as sim:
        ask(sim)
        error = refused(sim)
        assert (error.type, words in str(error)) == ("rate_limit_error", True)
        assert int(error.response.headers["retry-after"]) >= 1
        name = next(iter(limits)).replace("_", "-")
        assert error.response.headers[f"anthropic-ratelimit-{name}-remaining"] == "0"
        assert sim.state()["answered_429"] == {name: 1}
        assert sim.calls[-1].refused_for == name


def test_each_key_and_model_has_limits_of_its_own():
    with Simulator(limits=Limits(requests=1)) as sim:
        ask(sim)
        ask(sim, key="another")
        ask(sim, model="claude-haiku-5-5")
        refused(sim)


def test_without_limits_everybody_is_let_in_and_the_headers_tell_of_generous_ones():
    with Simulator() as sim:
        said = [ask(sim).headers["anthropic-ratelimit-requests-limit"] for _ in range(52)]
    assert set(said) == {"4000"}


def test_a_refused_call_takes_nothing_and_leaves_the_script_alone():
    with Simulator(limits=Limits(requests=1)) as sim:
        ask(sim)
        sim.script({"mode": "verdict", "score": 0.5})
        refused(sim)
        sim.limit(None)
        assert json.loads(ask(sim).parse().content[0].text)["score"] == 0.5


def test_a_scripted_error_takes_nothing():
    with Simulator(limits=Limits(requests=1)) as sim:
        sim.script("overloaded")
        with pytest.raises(anthropic.OverloadedError):
            ask(sim)
        ask(sim)


def test_what_is_read_from_a_cache_does_not_count():
    with Simulator(limits=Limits(**{**PLENTY, "input_tokens": 60})) as sim:
        sim.script({"mode": "verdict", "cache_read_tokens": 5})
        usage = ask(sim).parse().usage
        assert usage.cache_read_input_tokens == 5
        assert sim.state()["tokens"]["input"] == usage.input_tokens


def test_what_was_served_is_counted_by_second():
    with Simulator(limits=Limits(requests=2)) as sim:
        usage = [ask(sim).parse().usage for _ in range(2)]
        refused(sim)
        state = sim.state()
    assert (state["calls"], state["served"]) == (3, 2)
    assert state["tokens"] == {
        "input": sum(one.input_tokens for one in usage),
        "output": sum(one.output_tokens for one in usage),
    }
    total = {name: sum(second.get(name, 0) for second in state["seconds"].values()) for name in ("calls", "served")}
    assert total == {"calls": 3, "served": 2}


def test_limits_are_set_over_http():
    with Simulator() as sim:
        script(sim, limits={"requests": 1}, latency=0.01)
        ask(sim)
        refused(sim)
        script(sim, limits=None)
        ask(sim)
        with pytest.raises(urllib.error.HTTPError, match="422") as caught:
            script(sim, limits={"tokens": 5})
        caught.value.close()


def test_a_limit_must_be_positive():
    with pytest.raises(ValueError, match="positive limit of requests, got 0"):
        Limits(requests=0)


def test_retry_after_is_honest_to_the_second():
    """60 requests a minute: empty after 60, the next is let in a second later; 90 input tokens lack for 90 seconds."""
    counted = meter(requests=60)
    assert all(counted.admit(1, 0.0) is None for _ in range(60))
    refusal = counted.admit(1, 0.0)
    assert (refusal.dimension, refusal.retry_after) == ("requests", 1)
    assert counted.admit(1, 0.9) is not None
    assert counted.admit(1, 1.0) is None
    tokens = meter(input_tokens=60)
    assert tokens.admit(60, 0.0) is None
    assert tokens.admit(45, 0.0).retry_after == 45
    assert tokens.admit(45, 44.9) is not None
    assert tokens.admit(45, 45.0) is None


def test_the_longest_wait_names_the_limit():
    both = meter(requests=60, input_tokens=60)
    assert all(both.admit(1, 0.0) is None for _ in range(60))
    refusal = both.admit(30, 0.0)
    assert (refusal.dimension, refusal.retry_after) == ("input-tokens", 30)


def test_output_may_be_owed_and_is_worked_off():
    """100 written against 60: 40 are owed, and the next call is let in once one is left, 41 seconds later."""
    owed = meter(output_tokens=60)
    assert owed.admit(1, 0.0) is None
    owed.write(100, 0.0)
    assert owed.admit(1, 0.0).retry_after == 41
    assert owed.admit(1, 41.0) is None


def test_headers_round_tokens_as_the_service_does():
    """1,400 of 10,000 are gone: 8,600 left are told as 9,000, back to full in 8.4 seconds, told as 9."""
    told = meter(input_tokens=10_000, output_tokens=4_000)
    told.admit(1400, 0.0)
    headers = told.headers(0.0, NOON)
    assert headers["anthropic-ratelimit-input-tokens-remaining"] == "9000"
    assert headers["anthropic-ratelimit-input-tokens-reset"] == "2026-11-21T12:00:09Z"
    assert headers["anthropic-ratelimit-tokens-limit"] == "14000"
    assert headers["anthropic-ratelimit-tokens-remaining"] == "13000"
    assert left(told, "requests", 0.0) == 999
    assert left(told, "requests", 60.0) == 1000


def test_buckets_that_somebody_else_has_used_are_not_full_at_first():
    with Simulator(limits=Limits(requests=10), filled=0.1) as sim:
        assert ask(sim).headers["anthropic-ratelimit-requests-remaining"] == "0"
        refused(sim)
