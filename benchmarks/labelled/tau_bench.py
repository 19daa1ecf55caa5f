"""tau-bench's airline desk: chats with a simulated customer and tools whose effects a log cannot tell.

A tool says of itself when it failed ("Error: …"), and not otherwise. The label compares the database at the end.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.labelled.labelled import Labelled, Log
from grading.formats.events import Role

FILE = "tau-bench-airline.jsonl.gz"


def sessions(folder: Path) -> Iterator[Labelled]:
    with gzip.open(folder / FILE, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            log = Log()
            for index, message in enumerate(row["traj"]):
                _message(log, message, row["traj"][index + 1 :])
            yield Labelled(
                set="tau-bench-airline",
                task=str(row["task_id"]),
                name=str(row["id"]),
                good=float(row["reward"]) == 1.0,
                answered=any(message["role"] == "assistant" for message in row["traj"]),
                events=tuple(log.events),
            )


def _message(log: Log, message: dict[str, Any], rest: list[dict[str, Any]]) -> None:
    text = message.get("content") or ""
    if message["role"] == "system":
        log.says(Role.SCAFFOLD, text)
    elif message["role"] == "user":
        said = text.replace("###STOP###", "").strip()
        if said:
            log.says(Role.USER, said)
    elif message["role"] == "assistant":
        if text:
            log.says(Role.ASSISTANT, text)
        for call in message.get("tool_calls") or ():
            result = next((one["content"] for one in rest if one.get("tool_call_id") == call["id"]), None)
            arguments = json.loads(call["function"]["arguments"])
            failed = None if result is None else result.startswith("Error")
            log.opaque(call["function"]["name"], arguments, result, failed=failed)
