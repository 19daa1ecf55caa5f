"""tau-bench's airline desk: chats with a simulated customer, and tools whose effects a log doesn't show.

A tool's result says "Error: …" if it failed. The label compares the database at the end.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.labelled.sessions import EventLog, LabelledSession
from grading.formats.events import Clarity, Role

FILE = "tau-bench-airline.jsonl.gz"


def sessions(folder: Path) -> Iterator[LabelledSession]:
    with gzip.open(folder / FILE, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            log = EventLog()
            for index, message in enumerate(row["traj"]):
                _add_message(log, message, row["traj"][index + 1 :])
            yield LabelledSession(
                set="tau-bench-airline",
                task=str(row["task_id"]),
                name=str(row["id"]),
                good=float(row["reward"]) == 1.0,
                answered=any(message["role"] == "assistant" for message in row["traj"]),
                events=tuple(log.events),
            )


def _add_message(log: EventLog, message: dict[str, Any], rest: list[dict[str, Any]]) -> None:
    text = message.get("content") or ""
    if message["role"] == "system":
        log.add_message(Role.SCAFFOLD, text)
    elif message["role"] == "user":
        text = text.replace("###STOP###", "").strip()
        if text:
            log.add_message(Role.USER, text)
    elif message["role"] == "assistant":
        if text:
            log.add_message(Role.ASSISTANT, text)
        for call in message.get("tool_calls") or ():
            result = next((each["content"] for each in rest if each.get("tool_call_id") == call["id"]), None)
            arguments = json.loads(call["function"]["arguments"])
            failed = None if result is None else result.startswith("Error")
            name = call["function"]["name"]
            log.add_call(name, "other", result, failed=failed, arguments=arguments, clarity=Clarity.OPAQUE)
