"""How much of a rate limit is used, and how often is one refused? Our workers beside two that people would write.

A simulator with real token buckets, two worker processes with eight threads each, a backlog of 2,000 short sessions:
judged by our own path, by tasks that leave a 429 to the SDK's retries and queue again what failed, and by tasks that
leave it to Celery's autoretry with backoff and jitter. Each has a simulator, a broker and the limits to itself.

The steady state begins when as much was served as the full buckets held at the start, and ends when fewer sessions are
left than there are threads. Used is, in the tightest dimension, what was served then ÷ what could be: limit × time, and
what the bucket held more at first than at last. Answered 429 is refusals ÷ calls then. Calls that gave no verdict, over
the whole run, are wasted.

    python benchmarks/quota.py [--quick]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.backlog import rivals, sessions, stand
from benchmarks.backlog.stand import CELERY, THREADS, WORKERS, Contender, Run, Stand
from benchmarks.backlog.window import Window, steady

NOWHERE = "redis://127.0.0.1:1/0"
MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many sessions, and verdicts a second that the limits allow; how full the buckets are at first, and what share
    of a full one the backlog leaves to new sessions; seconds of a reply, and after which a run is ended.
    """

    sessions: int
    rate: float
    filled: float
    reserved: float
    latency: float
    longest: float


FULL = Size(sessions=2000, rate=6, filled=1.0, reserved=0.2, latency=1.0, longest=700)
# Buckets that are nearly empty at first have their steady state at once.
QUICK = Size(sessions=96, rate=4, filled=0.2, reserved=0.0, latency=0.5, longest=18)
RIVALS = {
    "sdk": "the SDK's retries, then queued again",
    "celery": "Celery's autoretry, backoff and jitter",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="96 sessions against buckets that are nearly empty at first"
    )
    size = QUICK if parser.parse_args().quick else FULL
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        prepare(place)
        limits = make_backlog(place, size)
        windows = {name: rival(place, name, words, size, limits) for name, words in RIVALS.items()}
        windows["ours"] = ours(place, size, limits)
        print(json.dumps(figures(windows, lost())))


def prepare(place: Path) -> None:
    """A site of its own in this process, without a broker: nothing is judged while the backlog is made."""
    os.environ |= {
        "GRADINGSITE_STATE": str(place / "site"),
        "DJANGO_SETTINGS_MODULE": "gradingsite.settings",
        "LOG_LEVEL": "CRITICAL",
        "REDIS_URL": NOWHERE,
        "ANTHROPIC_API_KEY": "ours",
        "JUDGE_MODEL": MODEL,
        "WORKER_CONCURRENCY": str(THREADS),
        "RIVAL_STATE": str(place),
    }
    os.environ.pop("DATABASE_URL", None)
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


# --- the work --------------------------------------------------------------------------------------------------------


def make_backlog(place: Path, size: Size) -> dict[str, int]:
    """Sessions that wait for a verdict, their prompts for the rivals, and limits that input tokens make tight."""
    from grading.models import Session
    from grading.simulator import tokens

    submit(size)
    bodies = [body(session) for session in Session.objects.order_by("pk")]
    with (place / "prompts.jsonl").open("w") as file:
        file.writelines(json.dumps({"name": str(n), "body": body}) + "\n" for n, body in enumerate(bodies))
    texts = ["\n".join((b["system"], b["messages"][0]["content"], json.dumps(b["output_config"]))) for b in bodies]
    counted = [tokens.count(text) for text in texts]
    by_length = sum(counted) / sum(map(len, texts))
    errors = statistics.quantiles((len(t) * by_length / n - 1 for t, n in zip(texts, counted, strict=True)), n=20)
    print(
        f"{size.sessions:,} sessions of {min(counted):,} to {max(counted):,} tokens; "
        f"an estimate by length is {errors[0]:+.0%} to {errors[-1]:+.0%} off (5th to 95th percentile)"
    )
    per_minute = 60 * size.rate
    limits = {
        "requests": round(1.3 * per_minute),
        "input-tokens": round(statistics.mean(counted) * per_minute),
        "output-tokens": round(400 * per_minute),
    }
    print("limits a minute: " + ", ".join(f"{limit:,} {name}" for name, limit in limits.items()))
    return limits


def submit(size: Size) -> None:
    import io

    from django.utils import timezone

    from grading import intake
    from grading.models import Agent, JudgePolicy

    # The same work for everybody: one verdict a session.
    JudgePolicy.objects.create(reserved_share=size.reserved, repeat_share=0, second_share=0)
    agent, rng = Agent.objects.create(name="bench"), Random(3)
    ended = timezone.now() - timezone.timedelta(days=2)
    for number in range(size.sessions):
        name = f"bench-{number}"
        metadata = intake.SubmittedSession(session_id=name, category="code", harness="claude-code", ended_at=ended)
        intake.submit(
            agent=agent,
            metadata=metadata,
            transcript=io.BytesIO(sessions.transcript(name, rng)),
            journal=io.BytesIO(sessions.journal(name, rng)),
        )


def body(session: object) -> dict:
    """The call that our judge would make, word for word."""
    from django.conf import settings

    from grading.core import verdict
    from grading.judging import client, inputs
    from grading.models import Rubric

    rubric = Rubric.objects.active()
    prompt = inputs.build(session, rubric, budget=settings.JUDGE_INPUT_TOKENS)
    schema = verdict.schema([dimension["name"] for dimension in rubric.dimensions])
    return {
        "model": MODEL,
        "max_tokens": client.MAX_OUTPUT_TOKENS,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }


# --- the runs --------------------------------------------------------------------------------------------------------


def rival(place: Path, name: str, words: str, size: Size, limits: Mapping[str, int]) -> Window:
    def enqueue(held: Stand) -> None:
        rivals.app.conf.broker_url = held.broker.url
        with rivals.app.connection_for_write() as connection:
            for number in range(size.sessions):
                rivals.app.send_task(f"benchmarks.backlog.rivals.{name}", args=[str(number)], connection=connection)

    contender = Contender(name=name, app="benchmarks.backlog.rivals")
    with Stand(place / name, {}) as held:
        run = compete(held, contender, size, limits, enqueue)
        return report(words, run, size, limits)


def ours(place: Path, size: Size, limits: Mapping[str, int]) -> Window:
    beat = [*CELERY, "-A", "gradingsite", "beat", "--pidfile=", f"--schedule={place / 'beat'}"]
    contender = Contender(name="ours", app="gradingsite", beside=[beat])
    with Stand(place / "ours", {}) as held:
        run = compete(held, contender, size, limits, lambda _held: None)
        stand.wait_until(is_judged, 60)
        return report("ours", run, size, limits)


def compete(
    held: Stand, contender: Contender, size: Size, limits: Mapping[str, int], enqueue: Callable[[Stand], None]
) -> Run:
    options = [f"--{name}={limit}" for name, limit in limits.items()]
    url = held.simulator([*options, f"--latency={size.latency}", f"--filled={size.filled}"])
    enqueue(held)
    return stand.watch(url, held.workers(contender), sessions=size.sessions, seconds=size.longest)


def is_judged() -> bool:
    """Whether the last replies are applied."""
    from grading.models import JudgeJob

    return not JudgeJob.objects.open().exists()


def lost() -> int:
    """Sessions of ours that have no verdict."""
    from grading.models import Grade, Session

    judged = Grade.objects.filter(source="judge", status="scored").values("session")
    return Session.objects.exclude(pk__in=judged).count()


# --- the figures -----------------------------------------------------------------------------------------------------


def report(words: str, run: Run, size: Size, limits: Mapping[str, int]) -> Window:
    state = run.state
    seconds = {int(second): counts for second, counts in state["seconds"].items()}
    window = steady(seconds, limits, sessions=size.sessions, threads=WORKERS * THREADS, filled=size.filled)
    refused, done = sum(state["answered_429"].values()), min(state["served"], size.sessions)
    print(
        f"{words:40} {window.used:6.1%} of {window.tightest} used, {window.answered_429:6.1%} answered 429 "
        f"in seconds {window.start}-{window.end}; in all {state['calls']:,} calls, {refused:,} refused, "
        f"{state['calls'] - done:,} wasted, {done:,} done in {run.elapsed:.0f} s, "
        f"{1000 * run.cpu / max(done, 1):.0f} ms CPU each",
        flush=True,
    )
    return window


def figures(windows: Mapping[str, Window], lost_sessions: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, window in (("ours", windows["ours"]), *windows.items()):
        prefix = "" if name == "ours" else f"{name}_"
        found[f"{prefix}used"] = round(window.used, 4)
        found[f"{prefix}answered_429" if name == "ours" else f"{prefix}429"] = round(window.answered_429, 4)
    return {**found, "lost": lost_sessions}


if __name__ == "__main__":
    main()
