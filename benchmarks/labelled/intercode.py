"""InterCode: turns of a shell or a MySQL prompt, as calls of a shell with the observations as their results.

bash: the environment ran each action and recorded whether it exited with 0. SQL: `mysql -e` of the action, a failure if
the observation is an error. CTF: like bash; the agent's answer is submitted, and the environment's reply to it, which
is the label, is left out. The Python set is not read: there every observation is the label.

The environment stops at the first right answer, so failures are long.
"""

import gzip
import json
import shlex
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.labelled.sessions import EventLog, LabelledSession
from grading.formats.events import Role

FILE = "intercode.jsonl.gz"
SETS = {"ic_bash": "intercode-bash", "ic_sql": "intercode-sql", "ic_ctf": "intercode-ctf"}
RIGHT = 0.999
COMPLAINTS = ("Error executing query", "Traceback (most recent call last)", "Malformed command", "Error")


def sessions(folder: Path) -> Iterator[LabelledSession]:
    with gzip.open(folder / FILE, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["environment"] not in SETS:
                continue
            log = EventLog()
            log.add_message(Role.USER, str(row["query"]))
            _add_turns(log, row["environment"], row["turn_history"])
            yield LabelledSession(
                set=SETS[row["environment"]],
                task=str(row["query"]),
                name=row["id"],
                good=float(row["max_reward"]) >= RIGHT,
                answered=bool(row["turn_history"]["actions"]),
                events=tuple(log.events),
            )


def _add_turns(log: EventLog, environment: str, history: dict[str, Any]) -> None:
    ran = history.get("valid_action", [])
    for action, observation, worked in zip_longest(history["actions"], history["observations"], ran):
        text = "" if observation is None else str(observation)
        if environment == "ic_sql":
            command = f"mysql -e {shlex.quote(str(action))}"
            log.add_call("bash", "shell", text, failed=text.startswith(COMPLAINTS), command=command)
        elif str(action).startswith("submit"):
            log.add_message(Role.ASSISTANT, str(action).removeprefix("submit").strip() or "Done")
        else:
            command = str(action).removeprefix("cmd ")
            status = int(text.startswith(COMPLAINTS)) if worked is None else int(not worked)
            log.add_call("bash", "shell", text, exit_code=status, command=command)
