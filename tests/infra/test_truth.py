"""The truth benchmark: what was logged becomes the events that a parser would give, and its figures are right."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.labelled import aider, gptme_evals, intercode, tau_bench
from benchmarks.labelled.ranking import HalfSet
from benchmarks.labelled.sessions import HELD_OUT, TRAIN, half_of_task
from grading.reward import trajectory
from grading.reward.production import collect
from grading.signals import extract
from grading.signals.facts import ObservedFacts

NAMES = {"mean_auc", "matched_auc", "best_feature_mean_auc", "worst_upper_bound", "coverage"}
WIPED = " " * 80 + "\r"
SHOWN = f"""
--- Start of generation ---
[03:06:03] Using model: some/model
--- ^^^ past messages ^^^ ---
User: commit hello.py
Assistant: Thinking...\r{WIPED}Assistant: <thinking>       \r<thinking>
Save it first.
</thinking>

```save hello.py
print("Hello")
```{WIPED}System: ✅ Saved to hello.py
Assistant: Thinking...\r{WIPED}Assistant: Now the commit.
```shell
git add hello.py && git commit -m "Say hello"
```{WIPED}
[main 1a2b3c4] Say hello
 1 file changed, 1 insertion(+)
System:\x20
Ran command: `git add hello.py && git commit -m "Say hello"`

```stdout
 Say hello
 1 file changed, 1 insertion(+)
```
Assistant: Thinking...\r{WIPED}Assistant: Done.{WIPED}[03:06:09] Session: $0.01
--- Finished generation ---
"""
UNANSWERED = SHOWN[: SHOWN.index("Assistant:")] + f"Assistant: Thinking...\r{WIPED}"


def signals_of(read, folder: Path):
    return [(one, extract(one.events)) for one in read(folder)]


def zipped(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


def run(*arguments: str, data: str = "") -> dict:
    command = [sys.executable, "benchmarks/truth.py", *arguments]
    env = {**os.environ, "GRADING_DATA_DIR": data}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


def test_without_data_the_figures_are_null():
    figures = run("--smoke", data="/nowhere")
    assert set(figures) >= NAMES
    assert set(figures.values()) == {None}


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("GRADING_DATA_DIR"), reason="GRADING_DATA_DIR is not set: NOT read")
def test_with_data_the_formula_ranks_better_than_chance():
    figures = run("--smoke", data=os.environ["GRADING_DATA_DIR"])
    assert figures["mean_auc"] > 0.6
    assert figures["matched_auc"] > 0.6


def test_what_gptme_showed_is_read_as_what_it_logged(tmp_path: Path):
    rows = [
        {"id": "a", "test": "hello", "passed": 1, "gen_stdout": SHOWN},
        {"id": "b", "test": "hello", "passed": 0, "gen_stdout": UNANSWERED},
    ]
    zipped(tmp_path / gptme_evals.FILE, "\n".join(map(json.dumps, rows)))
    (one, signals), (other, nothing) = signals_of(gptme_evals.sessions, tmp_path)
    assert (one.good, one.answered, other.good, other.answered) == (True, True, False, False)
    assert [commit.hash for commit in signals.commits] == ["1a2b3c4"]
    assert [change.path for change in signals.files] == ["hello.py"]
    assert (signals.user_turns, signals.assistant_turns, signals.failed_calls) == (1, 2, 0)
    seen = trajectory.TrajectoryInput(signals=nothing, production=collect(nothing), facts=ObservedFacts())
    assert trajectory.grade(seen).value is None


def test_an_intercode_action_is_a_call_and_its_observation_the_result(tmp_path: Path):
    def row(environment: str, actions: list, observations: list, **history):
        return {
            "id": environment,
            "environment": environment,
            "query": "How many?",
            "max_reward": 1,
            "turn_history": {"actions": actions, "observations": observations, **history},
        }

    rows = [
        row("ic_sql", ["SELECT x", "SELECT 1"], ["Error executing query: no x", "[(1,)]"], valid_action=[False, True]),
        row("ic_bash", ["cat 'a b'", "ls"], ["", "a"], valid_action=[False, True]),
        row("ic_ctf", ["cmd ls", "submit flag{1}"], ["a", "The submitted flag is correct."]),
        row("ic_python", ["def f(): 1"], ["Failed 1/1 Test Cases"]),
    ]
    zipped(tmp_path / intercode.FILE, "\n".join(map(json.dumps, rows)))
    read = signals_of(intercode.sessions, tmp_path)
    assert [one.set for one, _ in read] == ["intercode-sql", "intercode-bash", "intercode-ctf"]
    assert [(signals.failed_calls, signals.known_results) for _, signals in read] == [(1, 2), (1, 2), (0, 1)]
    assert read[0][0].events[1].command == "mysql -e 'SELECT x'"
    assert read[2][0].events[-1].text == "flag{1}"


def test_a_tau_bench_call_is_opaque_and_fails_by_its_own_word(tmp_path: Path):
    def call(id_: str):
        return {"id": id_, "function": {"name": "book", "arguments": "{}"}}

    chat = [
        {"role": "system", "content": "Policy"},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call("1")]},
        {"role": "tool", "tool_call_id": "1", "content": "Error: no seats"},
        {"role": "assistant", "content": "Sorry", "tool_calls": [call("2")]},
        {"role": "tool", "tool_call_id": "2", "content": "{}"},
        {"role": "user", "content": "###STOP###"},
    ]
    zipped(tmp_path / tau_bench.FILE, json.dumps({"task_id": 1, "id": "1-0", "reward": 0.0, "traj": chat}))
    ((one, signals),) = signals_of(tau_bench.sessions, tmp_path)
    assert (one.good, signals.user_turns, signals.failed_calls, signals.known_results) == (False, 1, 1, 2)
    assert {event.clarity for event in one.events if hasattr(event, "clarity")} == {"opaque"}


AIDER = """
# aider chat started at 2024-05-21 12:00:00

> Models: first with diff edit format

#### Fix it
I could not.

# aider chat started at 2024-05-21 12:10:00

> Models: kept/model with diff edit format

#### Fix it
#### please
Here:

> Applied edit to src/a.py
> # 1 SEARCH/REPLACE block failed to match!
> 1 test failed
> Attempt to fix test errors? yes

Once more:

> Applied edit to src/a.py
"""


def test_aiders_edits_and_complaints_are_calls_of_the_try_that_was_kept(tmp_path: Path):
    zipped(tmp_path / aider.FOLDER / "a__b-1.md.gz", AIDER)
    (tmp_path / aider.FOLDER / "index.csv").write_text("id,model,test_outcome,resolved\na__b-1,kept/model,True,1\n")
    ((one, signals),) = signals_of(aider.sessions, tmp_path)
    assert (one.good, signals.user_turns, signals.assistant_turns) == (True, 1, 2)
    assert {change.path for change in signals.files} == {"src/a.py"}
    assert [run.passed for run in signals.test_runs] == [False, True]
    assert signals.failed_calls == 2


def test_all_sessions_of_a_task_are_in_one_half_and_the_split_never_moves():
    assert [half_of_task("gptme-evals", task) for task in ("hello", "prime100", "init-git")] == [
        HELD_OUT,
        TRAIN,
        HELD_OUT,
    ]


def test_an_auc_counts_pairs_and_a_session_without_a_grade_is_level():
    sessions = HalfSet([True, True, False, False], [10, 10, 10, 20], ["a", "b", "c", "d"], resamples=50)
    assert sessions.auc([4, 3, 2, 1], matched=False).value == 1
    assert sessions.auc([4, 2, 3, 1], matched=False).value == 0.75
    assert sessions.auc([np.nan, 2, 3, 1], matched=False).value == 0.5
    matched = sessions.auc([4, 2, 3, 5], matched=True)
    assert (matched.value, matched.pairs) == (0.5, 2)
    assert 0 <= matched.low <= matched.high <= 1


def test_a_set_without_a_pair_has_no_auc():
    assert np.isnan(HalfSet([True], [1], ["a"], resamples=5).auc([1], matched=False).value)
