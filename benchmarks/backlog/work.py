"""The work: a site with sessions that wait for a verdict, and limits that make their number a backlog."""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks import scratch
from benchmarks.backlog import sessions
from benchmarks.backlog.stand import THREADS

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


def site(place: Path) -> None:
    """A site of its own in this process, without a broker: nothing is judged while the backlog is made."""
    (place / "site").mkdir()
    scratch.site(
        place / "site",
        LOG_LEVEL="CRITICAL",
        ANTHROPIC_API_KEY="ours",
        JUDGE_MODEL=MODEL,
        WORKER_CONCURRENCY=str(THREADS),
        RIVAL_STATE=str(place),
    )


def backlog(place: Path, size: Size) -> dict[str, int]:
    """Sessions that wait for a verdict, their prompts for the rivals, and limits that input tokens make tight."""
    from grading.models import Session

    submit(size)
    bodies = [body(session) for session in Session.objects.order_by("pk")]
    with (place / "prompts.jsonl").open("w") as file:
        file.writelines(json.dumps({"name": str(n), "body": body}) + "\n" for n, body in enumerate(bodies))
    counted = describe(bodies)
    per_minute = 60 * size.rate
    limits = {
        "requests": round(1.3 * per_minute),
        "input-tokens": round(statistics.mean(counted) * per_minute),
        "output-tokens": round(400 * per_minute),
    }
    print("limits a minute: " + ", ".join(f"{limit:,} {name}" for name, limit in limits.items()))
    return limits


def describe(bodies: list[dict]) -> list[int]:
    """Print what kind of work it is; the tokens of each prompt."""
    from grading.simulator import tokens

    texts = ["\n".join((b["system"], b["messages"][0]["content"], json.dumps(b["output_config"]))) for b in bodies]
    counted = [tokens.count(text) for text in texts]
    by_length = sum(counted) / sum(map(len, texts))
    errors = statistics.quantiles((len(t) * by_length / n - 1 for t, n in zip(texts, counted, strict=True)), n=20)
    print(
        f"{len(bodies):,} sessions of {min(counted):,} to {max(counted):,} tokens; "
        f"an estimate by length is {errors[0]:+.0%} to {errors[-1]:+.0%} off (5th to 95th percentile)"
    )
    return counted


def submit(size: Size) -> None:
    from grading.models import JudgePolicy
    from tests.site import Site

    # The same work for everybody: one verdict a session.
    JudgePolicy.objects.create(reserved_share=size.reserved, repeat_share=0, second_share=0)
    site, rng = Site(), Random(3)
    said = {"category": "code", "harness": "claude-code", "ended_at": sessions.ENDED}
    for number in range(size.sessions):
        name = f"bench-{number}"
        log, journal = sessions.transcript(name, rng), sessions.journal(name, rng)
        site.upload(name, log, journal=journal, agent="bench", **said)


def body(session: object) -> dict:
    """The call that our judge would make, word for word."""
    from django.conf import settings

    from grading.judging import client, inputs
    from grading.judging.core import verdict
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
