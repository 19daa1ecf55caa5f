"""What one would write instead: a Celery task a session that calls the SDK. Two ways to meet a 429.

`sdk` leaves it to the SDK (two retries, sleeping in the worker) and queues again what failed all the same.
`celery` leaves it to Celery: autoretry with its exponential backoff and jitter, for as long as it takes.
Both are given finished prompts, and only note which sessions are done: all else is in their favour.
"""

import json
import os
from pathlib import Path

import anthropic
from celery import Celery

STATE = Path(os.environ.get("RIVAL_STATE", "."))
DONE = "done"

app = Celery("rivals", broker=os.environ.get("REDIS_URL"))
app.conf.update(
    worker_pool="threads",
    worker_concurrency=int(os.environ.get("WORKER_CONCURRENCY", "8")),
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)


def prompts() -> dict[str, dict]:
    return {line["name"]: line["body"] for line in map(json.loads, (STATE / "prompts.jsonl").open())}


PROMPTS = prompts() if (STATE / "prompts.jsonl").exists() else {}


def judge(name: str, client: anthropic.Anthropic) -> None:
    client.messages.create(**PROMPTS[name])
    with (STATE / DONE).open("a") as file:
        file.write(f"{name}\n")


PATIENT = anthropic.Anthropic(api_key="rival")
HASTY = anthropic.Anthropic(api_key="rival", max_retries=0)


@app.task
def sdk(name: str) -> None:
    try:
        judge(name, PATIENT)
    except anthropic.APIError:
        sdk.delay(name)


@app.task(autoretry_for=(anthropic.APIError,), retry_backoff=True, retry_jitter=True, max_retries=None)
def celery(name: str) -> None:
    judge(name, HASTY)
