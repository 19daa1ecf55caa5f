"""InterCode: turns of a shell or a MySQL prompt, as calls of a shell with what was observed as their results.

bash: the environment ran each action and recorded whether it exited with 0. SQL: `mysql -e` of the action, a failure
where the observation is an error. CTF: as bash; what is submitted is the agent's answer, and the environment's word on
it, which is the label, is left out. Its Python set is not here: there every observation is the label.

Everywhere the environment stops at the first right answer, so that failures are long: an agent in the wild is not told.
"""

import gzip
import json
import shlex
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.labelled.labelled import Labelled, Log
from grading.formats.events import Role

FILE = "intercode.jsonl.gz"
SETS = {"ic_bash": "intercode-bash", "ic_sql": "intercode-sql", "ic_ctf": "intercode-ctf"}
RIGHT = 0.999
COMPLAINTS = ("Error executing query", "Traceback (most recent call last)", "Malformed command", "Error")


def sessions(folder: Path) -> Iterator[Labelled]:
    with gzip.open(folder / FILE, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["environment"] not in SETS:
                continue
            log = Log()
            log.says(Role.USER, str(row["query"]))
            _turns(log, row["environment"], row["turn_history"])
            yield Labelled(
                set=SETS[row["environment"]],
                task=str(row["query"]),
                name=row["id"],
                good=float(row["max_reward"]) >= RIGHT,
                answered=bool(row["turn_history"]["actions"]),
                events=tuple(log.events),
            )


def _turns(log: Log, environment: str, history: dict[str, Any]) -> None:
    ran = history.get("valid_action", [])
    for action, observation, worked in zip_longest(history["actions"], history["observations"], ran):
        text = "" if observation is None else str(observation)
        if environment == "ic_sql":
            command = f"mysql -e {shlex.quote(str(action))}"
            log.calls("bash", "shell", text, failed=text.startswith(COMPLAINTS), command=command)
        elif str(action).startswith("submit"):
            log.says(Role.ASSISTANT, str(action).removeprefix("submit").strip() or "Done")
        else:
            command = str(action).removeprefix("cmd ")
            status = int(text.startswith(COMPLAINTS)) if worked is None else int(not worked)
            log.calls("bash", "shell", text, exit_code=status, command=command)
