"""How much of a rate limit do the workers use, and how often is a call refused?

A simulator with real token buckets, two worker processes with eight threads each, and a backlog of 2,000 short
sessions.

The steady state begins when the first burst is over, that is when the bucket of the tightest dimension is as low as it
gets, and ends when fewer sessions are left than there are threads. "used" is what was served in that time, divided by
what could have been: limit × time, and what the bucket held more at the start than at the end. "answered_429" is the
share of calls in that time that were refused.

    python benchmarks/quota.py [--quick | --smoke]
"""

import datetime as dt
import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.drill import site as programs

MODEL = "claude-sonnet-5-5"
THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """`sessions` to judge, and verdicts per second that the limits allow (`rate`).

    `filled`: the share of the limits that the buckets hold at first. `reserved`: the share of a full bucket that the
    backlog leaves to new sessions. `latency`: seconds of a reply. `max_seconds`: when a run is ended.
    """

    sessions: int
    rate: float
    filled: float
    reserved: float
    latency: float
    max_seconds: float


LOADS = {
    scratch.Size.FULL: Load(sessions=2000, rate=5, filled=1.0, reserved=0.2, latency=1.0, max_seconds=700),
    # Buckets that are nearly empty at first have their steady state at once.
    scratch.Size.QUICK: Load(sessions=64, rate=4, filled=0.1, reserved=0.0, latency=0.4, max_seconds=12),
    # Judged in this process, one after the other: there is no steady state.
    scratch.Size.SMOKE: Load(sessions=3, rate=50, filled=1.0, reserved=0.0, latency=0.0, max_seconds=5),
}


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="64 sessions against buckets that are nearly empty at first", smoke="3 sessions, without workers"
    )
    size = parser.parse_args().size
    load = LOADS[size]
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        broker = prepare_site(state)
        submit_backlog(load)
        limits = choose_limits(load)
        if size is scratch.Size.SMOKE:
            judge_in_this_process(limits)
            print(json.dumps({"used": None, "answered_429": None, "lost": count_lost()}))
            return
        judge_options = [f"--{name}={limit}" for name, limit in limits.items()]
        judge_options += [f"--latency={load.latency}", f"--filled={load.filled}"]
        commands = programs.commands(state, broker, judge_options)
        del commands[programs.WEB]
        with programs.started(programs.Site(commands, state, broker)) as running:
            counts, seconds, cpu = wait_for_verdicts(running, load)
            wait_until(all_replies_applied, 60)
        steady = steady_state(
            {int(second): by_name for second, by_name in counts["seconds"].items()},
            limits,
            sessions=load.sessions,
            threads=THREADS * len(programs.WORKERS),
            filled=load.filled,
        )
        refused = sum(counts["answered_429"].values())
        print(
            f"{steady.used:.1%} of {steady.tightest} used, {steady.answered_429:.1%} answered 429 in seconds "
            f"{steady.start} to {steady.end}; in all {counts['calls']:,} calls, {refused:,} refused, "
            f"{counts['served']:,} served in {seconds:.0f} s, {1000 * cpu / max(counts['served'], 1):.0f} ms CPU each"
        )
        figures = {"used": round(steady.used, 4), "answered_429": round(steady.answered_429, 4)}
        print(json.dumps({**figures, "lost": count_lost()}))


# The site and its backlog


def prepare_site(state: Path) -> Any:
    """Make a site in this process. Its broker, which is returned, does not run yet, so nothing is judged."""
    from gradingsite import broker as brokers

    broker = brokers.prepare(state / "broker")
    scratch.site(
        state,
        LOG_LEVEL="CRITICAL",
        ANTHROPIC_API_KEY="bench",
        ANTHROPIC_BASE_URL=f"http://127.0.0.1:{brokers.free_port()}",
        JUDGE_MODEL=MODEL,
        PORT=str(brokers.free_port()),
        REDIS_URL=broker.url,
        WORKER_CONCURRENCY=str(THREADS),
    )
    return broker


def submit_backlog(load: Load) -> None:
    from grading.models import JudgePolicy
    from tests.site import Site

    # One verdict for each session.
    JudgePolicy.objects.create(reserved_share=load.reserved, repeat_share=0, second_share=0)
    dice = Random(3)
    for number in range(load.sessions):
        name = f"bench-{number}"
        Site().upload(
            name,
            session_log(name, dice),
            journal=f"# {name}\n\n{make_prose(dice)}\n",
            agent="bench",
            category="code",
            harness="claude-code",
            ended_at=ENDED_AT,
        )


def choose_limits(load: Load) -> dict[str, int]:
    """Limits per minute that allow about `load.rate` verdicts a second. Input tokens are the tightest."""
    from grading.models import Session

    tokens = count_tokens([prompt_text(session) for session in Session.objects.order_by("pk")])
    per_minute = 60 * load.rate
    limits = {
        "requests": round(1.3 * per_minute),
        "input-tokens": round(statistics.mean(tokens) * per_minute),
        "output-tokens": round(400 * per_minute),
    }
    print("limits per minute: " + ", ".join(f"{limit:,} {name}" for name, limit in limits.items()))
    return limits


def prompt_text(session: Any) -> str:
    """All of a prompt that is counted as input."""
    from django.conf import settings

    from grading.judging import inputs
    from grading.judging.core import verdict
    from grading.models import Rubric

    rubric = Rubric.objects.active()
    prompt = inputs.build(session, rubric, budget=settings.JUDGE_INPUT_TOKENS)
    schema = verdict.schema([dimension["name"] for dimension in rubric.dimensions])
    return "\n".join((prompt.system, prompt.user, json.dumps({"format": {"type": "json_schema", "schema": schema}})))


def count_tokens(texts: list[str]) -> list[int]:
    """The tokens of each text. Prints how far an estimate by length is off."""
    from grading.simulator import tokens

    counts = [tokens.count(text) for text in texts]
    per_character = sum(counts) / sum(map(len, texts))
    errors = [len(text) * per_character / count - 1 for text, count in zip(texts, counts, strict=True)]
    low, *_, high = statistics.quantiles(errors, n=20)
    print(
        f"{len(texts):,} sessions of {min(counts):,} to {max(counts):,} tokens; an estimate by length is "
        f"{low:+.0%} to {high:+.0%} off (5th to 95th percentile)"
    )
    return counts


def count_lost() -> int:
    """Sessions that have no verdict."""
    from grading.models import Grade, Session

    judged = Grade.objects.filter(source="judge", status="scored").values("session")
    return Session.objects.exclude(pk__in=judged).count()


# Short sessions with text of different kinds: no two have the same number of characters per token.

ENDED_AT = dt.datetime(2026, 3, 31, 11, 40, tzinfo=dt.UTC)
# The share of a session's outputs that are of its main kind.
MAIN_KIND_SHARE = 0.8
WORDS = (
    "the guard retries a failed call once and then tells the caller why it was refused so that nothing is lost when "
    "a worker ends before its lease does the migration adds an index for pending jobs and the page shows how many "
    "wait which tests still fail after reading configuration from environment variables instead of a local file"
)
NAMES = ("retry", "lease", "quota", "parser", "ledger", "intake", "digest", "bucket", "settle", "render")
UKRAINIAN = "тести проходять після виправлення черги завдань і сторінка показує скільки роботи ще чекає на оцінку"


def make_prose(dice: Random) -> str:
    return " ".join(dice.choices(WORDS.split(), k=dice.randrange(30, 150))).capitalize() + "."


def make_code(dice: Random) -> str:
    lines = [
        f"def {dice.choice(NAMES)}_{dice.choice(NAMES)}(x: int, *, n={dice.randrange(99)}) -> dict[str, float]:"
        f"\n    return {{k[{dice.randrange(9)}]: (v / {dice.random():.3f}) for k, v in x.items() if v != n}}"
        for _ in range(dice.randrange(3, 14))
    ]
    return "\n".join(lines)


def make_log(dice: Random) -> str:
    lines = []
    for _ in range(dice.randrange(4, 18)):
        at = f"2026-03-31T11:{dice.randrange(60):02d}:{dice.randrange(60):02d}.{dice.randrange(1000):03d}Z"
        digest = hashlib.sha256(dice.randbytes(4)).hexdigest()[:24]
        lines.append(f"{at} 10.0.{dice.randrange(256)}.{dice.randrange(256)} {digest} {dice.randrange(10**6)} ok")
    return "\n".join(lines)


def make_ukrainian(dice: Random) -> str:
    return " ".join(dice.choices(UKRAINIAN.split(), k=dice.randrange(15, 70)))


OUTPUTS: tuple[Callable[[Random], str], ...] = (make_prose, make_code, make_log, make_ukrainian)


def session_log(name: str, dice: Random) -> bytes:
    """A task, some commands with output of mostly one kind, and a closing message."""
    main_kind, task, calls = dice.choice(OUTPUTS), make_prose(dice), []
    for _ in range(dice.randrange(1, 6)):
        make_output = main_kind if dice.random() < MAIN_KIND_SHARE else dice.choice(OUTPUTS)
        command = f"uv run {dice.choice(NAMES)} --{dice.choice(NAMES)} {dice.randrange(1000)}"
        calls.append((command, make_output(dice)))
    turns = [("user", task), *scratch.bash_turns(name, calls), scratch.text_turn("assistant", make_prose(dice))]
    return scratch.claude_log(name, turns, ENDED_AT, seconds=40)


# The run


def judge_in_this_process(limits: Mapping[str, int]) -> None:
    from django.conf import settings

    from grading.judging import worker
    from grading.simulator import Limits, Simulator

    with Simulator(limits=Limits(**{name.replace("-", "_"): limit for name, limit in limits.items()})) as simulator:
        settings.ANTHROPIC_BASE_URL = simulator.url
        worker.pump()


def wait_for_verdicts(running: programs.Site, load: Load) -> tuple[dict[str, Any], float, float]:
    """The simulator's counts once all sessions are judged or `load.max_seconds` have passed since the first call; with
    the seconds it took and the processor seconds of the workers.
    """
    workers = [running.running[name].pid for name in programs.WORKERS]
    if not wait_until(lambda: simulator_counts(running)["calls"], 120):
        raise RuntimeError(
            f"expected a call within two minutes; a worker says: {running.last_lines(programs.WORKERS[0])}"
        )
    started, cpu_before = time.monotonic(), scratch.cpu_seconds(workers)
    while True:
        counts, seconds = simulator_counts(running), time.monotonic() - started
        if counts["served"] >= load.sessions or seconds > load.max_seconds:
            return counts, seconds, scratch.cpu_seconds(workers) - cpu_before
        time.sleep(0.25)


def simulator_counts(running: programs.Site) -> dict[str, Any]:
    return httpx2.get(f"{running.judge}/_state", timeout=30).json()


def all_replies_applied() -> bool:
    from grading.models import JudgeJob

    return not JudgeJob.objects.open().exists()


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Wait until `condition` is true, for so long at most. Returns whether it is."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(condition())


# The steady state

MIN_STEADY_SECONDS = 2
# A bucket is as low as it gets when it is within this share of its size above its lowest level.
LOW_TOLERANCE = 0.005
# Counts by second and name.
SecondCounts = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """`start` and `end` are seconds since the first call, and `tightest` the dimension that `used` is about."""

    start: int
    end: int
    used: float
    answered_429: float
    tightest: str


def steady_state(
    seconds: SecondCounts, limits: Mapping[str, int], *, sessions: int, threads: int, filled: float
) -> SteadyState:
    """The figures from when the bucket is as low as it gets, in the first half of the work, to when fewer sessions are
    left than threads or the run was ended.

    `limits` are per minute, `filled` is the share of them that the buckets held at first. Raises ValueError if there
    was too little work for a steady state.
    """
    tightest = max(limits, key=lambda name: sum(_by_second(seconds, name)) / limits[name])
    served, limit = _by_second(seconds, tightest), limits[tightest]
    end = min(_seconds_until(_by_second(seconds, "served"), sessions - threads), len(served) - 1)
    if end < 2 * MIN_STEADY_SECONDS:
        raise ValueError(f"the work was done in {end} seconds, too soon for a steady state: use more sessions")
    levels = list(
        accumulate(served, lambda level, taken: min(limit, level + limit / 60) - taken, initial=filled * limit)
    )
    lowest = min(levels[: end // 2 + 1])
    start = next(second for second, level in enumerate(levels) if level <= lowest + LOW_TOLERANCE * limit)
    available = limit * (end - start) / 60 + max(0.0, levels[start] - levels[end])
    refused, calls = (sum(_by_second(seconds, name)[start:end]) for name in ("answered_429", "calls"))
    return SteadyState(
        start=start,
        end=end,
        used=sum(served[start:end]) / available,
        answered_429=refused / max(calls, 1),
        tightest=tightest,
    )


def _by_second(seconds: SecondCounts, name: str) -> list[int]:
    """The counts of every second from the first call to the last."""
    return [seconds.get(second, {}).get(name, 0) for second in range(min(seconds), max(seconds) + 1)]


def _seconds_until(counts: list[int], amount: float) -> int:
    """How many seconds it takes until the running total reaches `amount`."""
    return next((second for second, total in enumerate(accumulate(counts), 1) if total >= amount), len(counts))


if __name__ == "__main__":
    main()
