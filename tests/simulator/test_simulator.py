"""The simulator is what it says: the Messages API over a real socket, as the real SDK sees it."""

import hashlib
import json
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import anthropic
import pytest

from grading.judging.core import verdict
from grading.simulator import Mode, Simulator, tokens
from grading.simulator.replies import MessagesRequest

SCHEMA = verdict.schema(["execution", "goal_fit", "harmlessness"])


@pytest.fixture
def sim():
    with Simulator() as running:
        yield running


def client(sim, **options):
    return anthropic.Anthropic(api_key="k", base_url=sim.url, max_retries=0, **{"timeout": 5, **options})


def ask(sim, user="[4] shell Bash\n  | git push", **options):
    with client(sim, **options) as asking:
        return asking.messages.with_raw_response.create(
            model="claude-sonnet-5-5",
            max_tokens=100,
            system="grade",
            messages=[{"role": "user", "content": user}],
            output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
        )


def http(sim, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(sim.url + path, data=data), timeout=5) as reply:  # noqa: S310
        return json.load(reply)


def test_a_verdict_is_valid_cites_what_exists_and_repeats(sim):
    first, second = ask(sim), ask(sim)
    message = first.parse()
    assert message.content == second.parse().content
    result = verdict.read_reply(message, dimensions=["execution", "goal_fit", "harmlessness"], citable={4})
    assert isinstance(result, verdict.Graded)
    assert result.citations == (4,)
    assert message.usage.input_tokens > 0
    assert sim.calls[0].api_key == "k"


def test_replies_carry_the_real_headers(sim):
    headers = ask(sim).headers
    assert headers["request-id"].startswith("req_")
    for kind in ("requests", "input-tokens", "output-tokens", "tokens"):
        left, limit = (int(headers[f"anthropic-ratelimit-{kind}-{end}"]) for end in ("remaining", "limit"))
        assert left <= limit
        assert headers[f"anthropic-ratelimit-{kind}-reset"].endswith("Z")


def test_replies_take_their_latency_from_the_prompt_and_errors_take_none(sim):
    sim.latency = 10.0
    sim.script("overloaded")
    with pytest.raises(anthropic.OverloadedError):
        ask(sim)
    times = {user: MessagesRequest(model="m", system="", user=user, schema={}, input_tokens=1) for user in "abcdef"}
    waits = [sim.reply_seconds(*sim.record_call("/v1/messages", request, "k")) for request in times.values()]
    assert all(5 <= wait <= 15 for wait in waits)
    assert len(set(waits)) == len(waits)


def test_verdicts_differ_in_length(sim):
    lengths = {ask(sim, f"session {number}").parse().usage.output_tokens for number in range(10)}
    assert max(lengths) > 1.5 * min(lengths)


def test_tokens_are_no_fixed_share_of_the_characters():
    prose = "The guard is fixed and committed, and every test of the module passes again after it. " * 9
    hexes = "".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(12))
    assert 3.5 < len(prose) / tokens.count(prose) < 5
    assert len(hexes) / tokens.count(hexes) < 2.5


STATUSES = {
    Mode.RATE_LIMIT: (anthropic.RateLimitError, 429),
    Mode.SPEND_LIMIT: (anthropic.RateLimitError, 429),
    Mode.USAGE_LIMITS: (anthropic.BadRequestError, 400),
    Mode.NO_CREDIT: (anthropic.BadRequestError, 400),
    Mode.BILLING: (anthropic.PaymentRequiredError, 402),
    Mode.AUTH: (anthropic.AuthenticationError, 401),
    Mode.FORBIDDEN: (anthropic.PermissionDeniedError, 403),
    Mode.UNKNOWN_MODEL: (anthropic.NotFoundError, 404),
    Mode.TOO_LARGE: (anthropic.ContentTooLargeError, 413),
    Mode.SERVER_ERROR: (anthropic.InternalServerError, 500),
    Mode.OVERLOADED: (anthropic.OverloadedError, 529),
}


@pytest.mark.parametrize("mode", STATUSES)
def test_errors_come_as_the_sdk_s_own_types(sim, mode):
    kind, status = STATUSES[mode]
    sim.mode = mode
    with pytest.raises(kind) as caught:
        ask(sim)
    assert caught.value.status_code == status
    assert caught.value.request_id == sim.calls[0].request_id


def test_a_hanging_call_times_out_and_a_dropped_one_is_a_connection_error(sim):
    sim.script("hang", "drop")
    with pytest.raises(anthropic.APITimeoutError):
        ask(sim, timeout=0.3)
    with pytest.raises(anthropic.APIConnectionError):
        ask(sim)


def test_a_call_may_be_released_before_it_has_begun_to_hang(sim):
    """Whoever sees that a call came in lets it go on, however slow its thread is."""
    sim.script({"mode": "hang", "delay": 0.2})
    with ThreadPoolExecutor(1) as threads:
        reply = threads.submit(ask, sim)
        while not sim.calls:
            time.sleep(0.01)
        sim.release()
        assert reply.result().parse().content


def test_it_is_scripted_and_asked_over_http(sim):
    assert http(sim, "/_script", {"mode": "overloaded", "queue": [{"mode": "verdict", "score": 0.8}]})["queue"]
    assert json.loads(ask(sim).parse().content[0].text)["score"] == 0.8
    with pytest.raises(anthropic.OverloadedError):
        ask(sim)
    assert http(sim, "/_state")["counts"] == {"verdict": 1, "overloaded": 1}
    assert http(sim, "/_script", {"reset": True, "mode": "verdict"})["calls"] == 0


def test_a_mode_keeps_its_options_until_the_next_one(sim):
    http(sim, "/_script", {"mode": "usage_limits", "options": {"regain": "2031-05-06 at 07:08"}})
    for _ in range(2):
        with pytest.raises(anthropic.BadRequestError, match="regain access on 2031-05-06 at 07:08 UTC"):
            ask(sim)
    http(sim, "/_script", {"mode": "verdict"})
    assert ask(sim).parse().content


def test_what_came_in_is_told_over_http(sim):
    for _ in range(3):
        ask(sim)
    told = http(sim, "/_calls?after=1")
    assert [call["request_id"] for call in told] == [call.request_id for call in sim.calls[1:]]
    assert told[0]["request"]["user"] == sim.calls[1].request.user


def test_an_unknown_mode_is_refused_with_the_known_ones(sim):
    with pytest.raises(urllib.error.HTTPError) as caught:
        http(sim, "/_script", {"mode": "grumpy"})
    assert "rate_limit" in caught.value.read().decode()
    caught.value.close()


def test_counting_tokens_is_a_probe(sim):
    with client(sim) as asking:
        question = {"model": "m", "messages": [{"role": "user", "content": "a word " * 100}]}
        assert asking.messages.count_tokens(**question).input_tokens > 90
        sim.mode = "no_credit"
        with pytest.raises(anthropic.BadRequestError, match="credit balance"):
            asking.messages.count_tokens(**question)


def test_the_command_serves_until_it_is_ended():
    command = [sys.executable, "manage.py", "judge_simulator", "--port", "0", "--mode", "overloaded"]
    command += ["--requests", "7", "--latency", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[3].rstrip(",")
        with urllib.request.urlopen(f"{address}/_state", timeout=5) as reply:  # noqa: S310
            assert json.load(reply)["mode"] == "overloaded"
        process.terminate()
        assert process.wait(5) == 0
