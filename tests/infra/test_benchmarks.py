"""The arithmetic behind the figures that are published."""

import json
import subprocess
import sys

import pytest

from benchmarks.backlog.window import steady

LIMITS = {"requests": 600, "input-tokens": 6000}


def second(calls, refused=0, tokens=10):
    served = calls - refused
    return {
        "calls": calls,
        "requests": served,
        "served": served,
        "answered_429": refused,
        "input-tokens": tokens * served,
    }


def run(*counts, first=3):
    return dict(enumerate(counts, first))


def test_the_steady_state_is_between_the_first_burst_and_the_last_calls():
    """The 600 of a full bucket go in 6 s; then 9 of 10 a second for 20 s, with 3 of 12 refused; then the tail."""
    seconds = run(*[second(100)] * 6, *[second(12, 3)] * 20, second(4), second(1))
    window = steady(seconds, LIMITS, sessions=785, threads=5, filled=1.0)
    assert (window.start, window.end, window.tightest) == (6, 26, "requests")
    assert (window.answered_429, window.used) == (pytest.approx(3 / 12), pytest.approx(0.9))


def test_what_the_bucket_held_was_there_to_be_served():
    """A burst that lasts through the first half: all of the second half's refill and what was left is all there was."""
    seconds = run(*[second(40)] * 20, *[second(15)] * 10, second(1))
    window = steady(seconds, {"requests": 900}, sessions=951, threads=1, filled=1.0)
    assert window.start == 15
    assert window.used == pytest.approx(1.0)


def test_serving_less_than_the_rate_is_using_less():
    seconds = run(*[second(100)] * 6, *[second(8)] * 20, second(1))
    assert steady(seconds, LIMITS, sessions=761, threads=1, filled=1.0).used == pytest.approx(0.8)


def test_too_little_work_has_no_steady_state():
    with pytest.raises(ValueError, match="use more sessions"):
        steady(run(second(5), second(1)), LIMITS, sessions=6, threads=1, filled=0.01)


def test_the_transcript_benchmark_runs():
    """Its times are not tested: they are this machine's."""
    command = [sys.executable, "benchmarks/transcript.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert (figures["events"], figures["hits"], figures["waits"]) == (5_000, 2, True)
    assert figures["ratio"] > 0
