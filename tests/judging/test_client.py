"""One call to a judge over a real socket: what its headers say, what it costs, and that it ends in time."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from grading.judging import client
from grading.judging.core.prompt import Prompt
from grading.judging.core.ratelimits import CallCost
from grading.judging.core.verdict import Deferred, Graded
from grading.judging.judges import Judge
from grading.models import Rubric
from grading.models.judging import JudgeRole
from grading.simulator import Simulator
from grading.vocabulary import Reason

PROMPT = Prompt(system="Grade.", user="[1] shell\ngit commit", sha256="0", citable=frozenset({1}))
RUBRIC = Rubric(dimensions=[{"name": "execution", "weight": 1, "description": "how well"}])
EXPECTED = CallCost(input_tokens=100, output_tokens=50)


def judge(url: str, model: str = "claude-sonnet-5-5") -> Judge:
    return Judge(role=JudgeRole.FIRST, model=model, api_key="sk-test", base_url=url)


@pytest.fixture(autouse=True)
def patience(settings) -> None:
    settings.JUDGE_TIMEOUT = 60


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Something that listens and does as it likes with each connection, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def read_request(connection: socket.socket) -> bool:
    """The next request, to its end. False where there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65_536)):
            return False
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])
    while len(body) < length:
        body += connection.recv(65_536)
    return True


def trickle(start: bytes, drop: bytes) -> Callable[[socket.socket], None]:
    """Answers `start`, and then `drop` again and again: each well within any timeout of one read."""

    def answer(connection: socket.socket) -> None:
        read_request(connection)
        try:
            connection.sendall(start)
            while True:
                connection.sendall(drop)
                time.sleep(0.05)
        except OSError:
            return

    return answer


def replying(usage: dict, times: int = 1) -> Callable[[socket.socket], None]:
    """Answers so often on a connection, with an empty message of this usage."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5-20260901", "content": []}
    body = json.dumps({**message, "stop_reason": "end_turn", "usage": usage}).encode()

    def answer(connection: socket.socket) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        for _ in range(times):
            if read_request(connection):
                connection.sendall(head.encode() + body)

    return answer


def test_a_call_brings_the_verdict_and_what_is_left(sim):
    answer = client.send(judge(sim.url), PROMPT, RUBRIC)
    assert isinstance(answer.result, Graded)
    assert answer.limits["requests"]["limit"] == 4000
    assert answer.limits["input_tokens"]["remaining"] <= answer.limits["input_tokens"]["limit"]
    assert answer.used(EXPECTED, characters=24) == CallCost(
        input_tokens=answer.row["input_tokens"], output_tokens=answer.row["output_tokens"], characters=24
    )


def test_an_error_says_what_is_left_too(sim):
    sim.mode = "rate_limit"
    answer = client.send(judge(sim.url), PROMPT, RUBRIC)
    assert answer.result.reason is Reason.RATE_LIMITED
    assert answer.limits["output_tokens"]["limit"] == 800_000


def test_what_was_turned_away_used_nothing(sim):
    sim.mode = "rate_limit"
    assert client.send(judge(sim.url), PROMPT, RUBRIC).used(EXPECTED, characters=24) is None


@pytest.mark.parametrize("mode", ["overloaded", "drop"])
def test_what_nobody_counted_counts_as_expected_and_teaches_nothing(sim, mode):
    sim.mode = mode
    used = client.send(judge(sim.url), PROMPT, RUBRIC).used(EXPECTED, characters=24)
    assert used == EXPECTED


def test_the_judge_asked_is_the_judge_given(sim):
    answer = client.send(judge(sim.url, model="claude-opus-5-5"), PROMPT, RUBRIC)
    assert answer.model == sim.calls[0].request.model == "claude-opus-5-5"


def test_calls_share_a_connection():
    seen, patient = [], replying({"input_tokens": 1, "output_tokens": 1}, times=3)
    with server(lambda connection: (seen.append(1), patient(connection))) as url:
        for model in ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-sonnet-5-5"):
            assert client.send(judge(url, model), PROMPT, RUBRIC).row["http_status"] == 200
        assert len(seen) == 1


def test_another_key_has_a_client_of_its_own(sim):
    ours = judge(sim.url)
    assert client.sdk(ours) is not client.sdk(replace(ours, api_key="sk-another"))
    assert client.sdk(ours) is not client.sdk(replace(ours, base_url="http://127.0.0.1:1"))


def test_a_server_that_hangs_up_after_each_answer_fails_no_call():
    """Without saying so: the connection looks as good as new."""
    reply, hung_up = replying({"input_tokens": 1, "output_tokens": 1}), threading.Event()

    def answer(connection: socket.socket) -> None:
        reply(connection)
        connection.close()
        hung_up.set()

    with server(answer) as url:
        for _ in range(3):
            assert client.send(judge(url), PROMPT, RUBRIC).row["http_status"] == 200
            assert hung_up.wait(60)
            hung_up.clear()


def test_a_server_that_went_and_came_back_fails_no_call():
    """Its closed connections stay in the pool until they are looked at."""
    with Simulator() as before:
        assert isinstance(client.send(judge(before.url), PROMPT, RUBRIC).result, Graded)
        port = before.port
    with Simulator(port=port) as after:
        assert isinstance(client.send(judge(after.url), PROMPT, RUBRIC).result, Graded)


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"x-more: and more\r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"HTTP/1.1 529 Busy\r\ncontent-length: 1000000\r\n\r\n", b" "),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["headers", "body", "error", "patience"],
)
def test_a_server_that_trickles_holds_nobody_past_the_deadline(settings, start, drop):
    """Without it, this never ends: each drop comes within the timeout of a read."""
    settings.JUDGE_TIMEOUT = 0.5
    with server(trickle(start, drop)) as url:
        answer = client.send(judge(url), PROMPT, RUBRIC)
    assert isinstance(answer.result, Deferred)
    assert answer.result.reason is Reason.TIMEOUT


def test_a_server_that_does_not_read_holds_nobody_past_the_deadline(settings):
    settings.JUDGE_TIMEOUT = 0.5
    large = Prompt(system="Grade.", user="x" * 20_000_000, sha256="1")
    done = threading.Event()
    with server(lambda _connection: done.wait()) as url:
        answer = client.send(judge(url), large, RUBRIC)
        done.set()
    assert answer.result.reason is Reason.TIMEOUT


def test_the_next_call_has_a_deadline_of_its_own(settings, sim):
    settings.JUDGE_TIMEOUT = 0.5
    sim.script("hang")
    assert client.send(judge(sim.url), PROMPT, RUBRIC).result.reason is Reason.TIMEOUT
    settings.JUDGE_TIMEOUT = 60
    assert isinstance(client.send(judge(sim.url), PROMPT, RUBRIC).result, Graded)


def test_a_usage_that_is_none_costs_nothing_and_breaks_nothing():
    with server(replying({"input_tokens": "many", "output_tokens": -1})) as url:
        answer = client.send(judge(url), PROMPT, RUBRIC)
    assert answer.row["input_tokens"] is answer.row["output_tokens"] is answer.cost_usd is None
    assert answer.used(EXPECTED, characters=24) == EXPECTED


def test_the_cache_has_its_price_and_reads_from_it_are_not_limited():
    cached = {"cache_creation_input_tokens": 2000, "cache_read_input_tokens": 10_000}
    with server(replying({"input_tokens": 1000, "output_tokens": 100, **cached})) as url:
        answer = client.send(judge(url), PROMPT, RUBRIC)
    # (1000 + 1.25 · 2000 + 0.1 · 10,000) · $2 + 100 · $10, a million
    assert answer.cost_usd == pytest.approx(0.010)
    assert answer.used(EXPECTED, characters=24).input_tokens == 3000
