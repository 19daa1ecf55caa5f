"""The limiter on a real Valkey: all dimensions or none, the same for everybody, honest about what it does not know.

No time passes for the limiter but where a test says so: then everything it remembers is moved into the past. So a busy
machine changes no figure.
"""

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from subprocess import DEVNULL

import pytest
import redis
from django.utils import timezone

from grading.judging.allowance import limiter
from grading.judging.allowance.bucket import BURST, FIRST_LIMIT, LONGEST_WAIT
from grading.judging.allowance.limiter import DEFAULT_LIMIT, PACE, Limiter, Slot
from grading.judging.core.ratelimits import CallCost, RateLimits
from gradingsite import broker
from tests.processes import started

NAME = "key:model"
LIMITS = {"requests": 100, "input_tokens": 60_000, "output_tokens": 12_000}
CALL = CallCost(input_tokens=600, output_tokens=12)
MEASURED = CallCost(input_tokens=600, output_tokens=12, characters=2000)
KEY = f"judge:{NAME}"
# A moment from which no time has passed.
FAR = 9e9


@pytest.fixture
def limits(redis_url: str) -> Iterator[Limiter]:
    """A limiter whose judge has not answered yet."""
    made = Limiter(redis_url)
    yield made
    made.close()


@pytest.fixture
def opened(limits: Limiter) -> Limiter:
    """A limiter that knows LIMITS; its buckets are as full as they get."""
    answer(limits)
    later(limits, 60)
    return limits


def said(**remaining: int) -> RateLimits:
    """The limits of an answer, with what it says is left of them."""
    left = {name: {"remaining": remaining[name]} for name in remaining}
    return {name: {"limit": limit, **left.get(name, {})} for name, limit in LIMITS.items()}


def stop_the_clock(limits: Limiter) -> None:
    with suppress(redis.RedisError):
        if limits._redis.exists(KEY):
            limits._redis.hset(KEY, "at", FAR)


def ask(limits: Limiter, cost: CallCost = CALL, **options) -> Slot:
    """A reservation at the moment of the one before it."""
    stop_the_clock(limits)
    return replace(limits.reserve(NAME, cost, **options), at=FAR)


def answer(limits: Limiter, slot: Slot | None = None, used: CallCost | None = CALL, **remaining: int) -> None:
    """An answer comes in for the slot, else for a new one."""
    slot = slot or ask(limits)
    stop_the_clock(limits)
    limits.settle(slot, used, said(**remaining))


def later(limits: Limiter, seconds: float) -> None:
    for field in ("hold", "ramp", "head_until"):
        if limits._redis.hexists(KEY, field):
            limits._redis.hincrbyfloat(KEY, field, -seconds)
    now, microseconds = limits._redis.time()
    limits._redis.hset(KEY, "at", now + microseconds / 1e6 - seconds)
    limits._run("settle", NAME, {"limits": {}})


def granted(limits: Limiter, cost: CallCost = CALL, **options) -> list[Slot]:
    """As many as are to be had now."""
    slots = []
    while (slot := ask(limits, cost, **options)).granted:
        slots.append(slot)
    return slots


def level(limits: Limiter, name: str) -> float:
    return float(limits._redis.hget(KEY, f"{name}:level"))


# --- before anything is known ----------------------------------------------------------------------------------------


def test_before_the_first_answer_only_a_few_go(limits):
    assert len(granted(limits)) == int(BURST * FIRST_LIMIT)
    assert 2 < ask(limits).wait <= 5


def test_the_first_answer_opens_the_bucket(limits):
    answer(limits)
    # 0.85 of 100 requests, and two seconds of 98 a minute ahead.
    assert len(granted(limits)) == 88


def test_the_first_answer_says_how_full_it_is(limits):
    answer(limits, requests=40)
    # What was left, less what a full minute has beyond the burst.
    assert len(granted(limits)) == 28


def test_an_outage_before_the_first_answer_opens_nothing(limits):
    limits.settle(ask(limits), CALL, None)
    assert len(granted(limits)) == 1


def test_a_provider_that_says_no_limits_gets_a_modest_rate(limits):
    limits.settle(ask(limits), MEASURED, {})
    assert limits._redis.hget(KEY, "requests:limit") == str(DEFAULT_LIMIT)
    answer(limits)
    assert limits.state(NAME).dimensions["requests"].limit == 100


# --- reserving and settling ------------------------------------------------------------------------------------------


def test_a_minutes_burst_goes_at_once_and_then_the_pace(opened):
    assert len(granted(opened)) == 88
    later(opened, 60)
    assert len(granted(opened)) == 88
    later(opened, 30)
    assert len(granted(opened)) == 49


def test_a_wait_of_at_most_two_seconds_is_reserved(opened):
    slots = granted(opened)
    assert slots[0].wait == 0
    assert 0 < slots[-1].wait <= LONGEST_WAIT
    assert ask(opened).wait > LONGEST_WAIT


@pytest.mark.parametrize("scarce", ["input_tokens", "output_tokens"])
def test_all_dimensions_or_none(opened, scarce):
    costs = {"input_tokens": 1, "output_tokens": 1, scarce: LIMITS[scarce]}
    assert ask(opened, CallCost(**costs)).granted
    before = level(opened, "requests")
    assert not ask(opened, CallCost(**costs)).granted
    assert level(opened, "requests") == before


def test_input_and_output_can_be_limited_together(opened):
    slot = ask(opened)
    opened.settle(slot, CALL, {"tokens": {"limit": 10_000}})
    # 8500 and two seconds of 9800 a minute, by 612 a call
    assert len(granted(opened)) == 14


def test_what_was_not_sent_is_given_back(opened):
    slots = granted(opened)
    opened.settle(slots[0], None)
    assert len(granted(opened)) == 1


def test_what_was_not_used_is_given_back(opened):
    large = CallCost(input_tokens=50_000, output_tokens=10)
    slot = ask(opened, large)
    assert not ask(opened, large).granted
    answer(opened, slot, CallCost(input_tokens=1000, output_tokens=10))
    assert ask(opened, large).granted


def test_what_was_used_beyond_the_estimate_is_charged(opened):
    answer(opened, ask(opened), CallCost(input_tokens=50_000, output_tokens=12))
    assert not ask(opened, CallCost(input_tokens=5000, output_tokens=12)).granted


def test_a_wild_count_stops_nobody_for_longer_than_a_minute_or_two(opened):
    answer(opened, used=CallCost(input_tokens=2**31, output_tokens=2**31, characters=100))
    assert opened.estimate(NAME, 1000).input_tokens < 400
    assert not ask(opened).granted
    later(opened, 70)
    assert ask(opened).granted


def test_each_judge_has_its_own_allowance(opened):
    granted(opened)
    assert opened.reserve("key:another", CALL).granted


def ask_often(url: str) -> int:
    """How many of 600 went, of those that four threads of a process asked for."""
    asking = Limiter(url)
    with ThreadPoolExecutor(4) as threads:
        went = sum(threads.map(lambda _: asking.reserve(NAME, CALL).granted, range(600)))
    asking.close()
    return went


def test_threads_and_processes_share_one_allowance(opened, redis_url):
    """However many ask: what a bucket held, and what the clock of Redis put into it meanwhile."""
    start = opened._redis.time()
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as processes:
        went = sum(processes.map(ask_often, [redis_url] * 2))
    end = opened._redis.time()
    seconds = end[0] - start[0] + (end[1] - start[1]) / 1e6
    assert 88 <= went <= BURST * 100 + (LONGEST_WAIT + seconds) * PACE * 100 / 60


# --- who goes first --------------------------------------------------------------------------------------------------


def test_backlog_leaves_the_reserve(opened):
    backlog = granted(opened, spare=0.2)
    assert len(backlog) == 68
    assert len(granted(opened)) == 20


def test_the_reserve_is_a_level_so_that_nothing_goes_unused(opened):
    """After the first burst the backlog gets the whole rate."""
    granted(opened, spare=0.2)
    later(opened, 30)
    assert len(granted(opened, spare=0.2)) == 49


def test_a_reserve_of_nearly_everything_lets_backlog_go_when_the_bucket_is_full(opened):
    assert ask(opened, CALL, spare=0.95).granted


def test_what_is_larger_than_the_bucket_goes_when_the_bucket_is_full(opened):
    huge = CallCost(input_tokens=200_000, output_tokens=12)
    assert ask(opened, huge).granted
    assert ask(opened).wait > 60


def test_small_ones_do_not_starve_a_large_one(opened):
    granted(opened)
    large, small = CallCost(input_tokens=30_000, output_tokens=12), CallCost(input_tokens=600, output_tokens=12)
    assert not ask(opened, large, who="large").granted
    while not ask(opened, small, who="small").granted:
        later(opened, 1)
    assert ask(opened, large, who="large").granted


def test_new_sessions_do_not_wait_behind_the_backlog(opened):
    granted(opened, spare=0.2)
    assert not ask(opened, CALL, spare=0.2, who="backlog").granted
    assert ask(opened, CALL, who="new").granted


def test_a_new_session_takes_the_head_from_the_backlog(opened):
    granted(opened)
    ask(opened, CALL, spare=0.2, who="backlog")
    ask(opened, CALL, who="new")
    later(opened, 5)
    assert ask(opened, CALL, spare=0.2, who="backlog").wait > ask(opened, CALL, who="other").wait


def test_a_head_that_does_not_come_back_loses_its_place(opened):
    granted(opened)
    large = CallCost(input_tokens=50_000, output_tokens=12)
    assert not ask(opened, large, who="gone").granted
    later(opened, 70)
    assert ask(opened, large, who="another").granted


# --- what answers say ------------------------------------------------------------------------------------------------


def test_another_program_on_the_same_key_is_made_room_for(opened):
    answer(opened, requests=25)
    assert len(granted(opened)) == 13


def test_what_is_left_never_adds_to_the_level(opened):
    slots = granted(opened)
    answer(opened, slots[0], requests=100, input_tokens=60_000, output_tokens=12_000)
    assert not ask(opened).granted


def test_calls_in_flight_may_not_be_in_what_is_left(opened):
    """The first call's answer knows nothing of the nine that went after it."""
    first = ask(opened)
    for _ in range(9):
        ask(opened)
    answer(opened, first, requests=59)
    assert len(granted(opened)) == 38


def test_what_was_turned_away_does_not_hide_what_went_after_it(opened):
    """A refusal says what is left; the large call after it is not in that figure."""
    refused = ask(opened, CallCost(input_tokens=20_000, output_tokens=12))
    ask(opened, CallCost(input_tokens=20_000, output_tokens=12))
    answer(opened, refused, None, input_tokens=30_000)
    # 30,000, less 20,000, less what a full minute has beyond the burst
    assert level(opened, "input_tokens") == 1000


def test_a_lower_limit_takes_hold_at_once(opened):
    opened.settle(ask(opened), CALL, {"requests": {"limit": 10}})
    assert len(granted(opened)) == 8


def test_nobody_goes_before_a_hold_ends(opened):
    opened.block(NAME, timezone.now() + dt.timedelta(seconds=30))
    opened.block(NAME, timezone.now() + dt.timedelta(seconds=10))
    opened.block(NAME, timezone.now() - dt.timedelta(seconds=10))
    slot = ask(opened)
    assert not slot.granted
    assert 10 < slot.wait <= 30
    assert opened.state(NAME).blocked_until is not None
    later(opened, 30)
    assert ask(opened).wait == 0
    assert opened.state(NAME).blocked_until is None


def test_no_hold_lasts_longer_than_an_hour(opened):
    opened.block(NAME, timezone.now() + dt.timedelta(days=30))
    assert ask(opened).wait <= 3600


def test_after_an_outage_the_rate_climbs_for_a_minute(opened):
    opened.ramp(NAME)
    assert len(granted(opened)) == 8
    later(opened, 30)
    assert opened.state(NAME).share == pytest.approx(0.55, abs=0.05)
    # 30 s at .1 to .55 of 98 a minute; the climb itself is on the clock of Redis.
    assert 18 <= len(granted(opened)) <= 20
    later(opened, 30)
    assert opened.state(NAME).share == 1
    later(opened, 60)
    assert len(granted(opened)) == 88


# --- estimates and figures -------------------------------------------------------------------------------------------


def test_estimates_follow_the_answers(opened):
    assert opened.estimate(NAME, 1000) == CallCost(input_tokens=300, output_tokens=700)
    for _ in range(100):
        used = CallCost(input_tokens=5000, output_tokens=200, characters=20_000)
        opened.settle(ask(opened), used)
    estimate = opened.estimate(NAME, 1000)
    assert estimate.input_tokens == pytest.approx(250, abs=3)
    assert estimate.output_tokens == pytest.approx(200, abs=10)


def test_what_was_not_counted_teaches_nothing(opened):
    for _ in range(20):
        opened.settle(ask(opened), CallCost(input_tokens=10**6, output_tokens=10**6))
    assert opened.estimate(NAME, 1000).input_tokens == 300


def test_the_page_sees_limits_levels_and_the_last_minutes_use(opened):
    answer(opened, used=CallCost(input_tokens=1000, output_tokens=50))
    state = opened.state(NAME)
    assert state.is_shared
    assert state.dimensions["input_tokens"].limit == 60_000
    assert 0 < state.dimensions["input_tokens"].level <= BURST * 60_000
    # Spread over the minute that it came in.
    assert 0 < state.dimensions["input_tokens"].used <= 1600
    assert "tokens" not in state.dimensions  # it has no limit


def test_use_is_forgotten_after_two_minutes(opened):
    answer(opened)
    opened._redis.hincrby(KEY, "minute", -2)
    assert opened.state(NAME).dimensions["input_tokens"].used == 0


def test_looking_changes_nothing(limits):
    limits.state(NAME)
    limits.estimate(NAME, 1000)
    assert limits._redis.keys() == []


def test_what_is_kept_expires(opened):
    assert 0 < opened._redis.ttl(KEY) <= 86_400


# --- when Redis forgets or is away -----------------------------------------------------------------------------------


def test_after_a_flush_a_few_go_and_their_answers_open_it_again(opened, redis_url):
    slots = [ask(opened) for _ in range(3)]
    opened._redis.flushall()
    assert len(granted(opened)) == int(BURST * FIRST_LIMIT)
    answer(opened, slots[0], requests=80)
    assert len(granted(opened)) == 68


@pytest.fixture
def own(tmp_path, monkeypatch) -> broker.Broker:
    """A broker that a test may stop and start."""
    monkeypatch.setattr(limiter, "RETRY_SECONDS", 0)
    return broker.prepare(tmp_path)


def test_without_redis_a_few_go_and_no_error_comes(own, caplog):
    away = Limiter(own.url)
    assert len(granted(away)) == int(BURST * FIRST_LIMIT)
    away.block(NAME, timezone.now())
    away.ramp(NAME)
    assert not away.state(NAME).is_shared
    assert away.estimate(NAME, 1000).input_tokens == 300
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_without_redis_a_small_share_of_the_last_known_limits_is_kept(own):
    away = Limiter(own.url)
    away.remember(NAME, said())
    # 0.85 of 25, and two seconds of 25 a minute ahead
    assert len(granted(away)) == 22
    away.block(NAME, timezone.now() + dt.timedelta(seconds=30))
    assert away.reserve(NAME, CALL).wait > 20


def test_without_redis_nothing_is_stuck(own):
    away = Limiter(own.url)
    away.remember(NAME, said())
    assert away.reserve(NAME, CallCost(input_tokens=10**6, output_tokens=1)).granted
    # A minute's debt, and its own room.
    assert away.reserve(NAME, CALL).wait < 70


def test_redis_may_go_and_come_back(own, tmp_path, caplog):
    caplog.set_level("INFO", "grading.judging.allowance.limiter")
    limits = Limiter(own.url)
    with started(broker.command(own, tmp_path), stdout=DEVNULL):
        own.wait_until_up()
        answer(limits)
        slot = ask(limits)
        assert slot.marks
    answer(limits, slot)
    away = ask(limits)
    assert away.granted
    assert not away.marks
    with started(broker.command(own, tmp_path), stdout=DEVNULL):
        own.wait_until_up()
        answer(limits, away)
        assert limits.state(NAME).is_shared
        assert ask(limits).marks
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    limits.close()


def test_a_redis_that_refuses_is_away_too(limits, redis_url):
    with redis.Redis.from_url(redis_url) as other:
        other.set(KEY, "not a hash")
    assert ask(limits).granted
    assert not limits.state(NAME).is_shared
