"""aider on SWE-bench Lite: the chat log of the try that was submitted. The label is that of hidden tests.

aider edits without tool calls: each file that it applied an edit to is an edit, each block that did not match is a
failed one. After an edit it runs the linter and the repository's own tests, and prints them only if they fail. Whether
they passed in the end is in the benchmark's index, which the harness wrote.
"""

import csv
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.labelled.sessions import EventLog, LabelledSession
from grading.formats.events import Role

FOLDER = "aider-swe-bench-lite"
CHAT = re.compile(r"^# aider chat started at .*$", re.MULTILINE)
MODEL = re.compile(r"^> Models?: (\S+)", re.MULTILINE)
APPLIED = re.compile(r"Applied edit to (\S+)")
UNMATCHED = re.compile(r"# \d+ SEARCH/REPLACE blocks? failed to match")


def sessions(folder: Path) -> Iterator[LabelledSession]:
    with (folder / FOLDER / "index.csv").open() as lines:
        for row in csv.DictReader(lines):
            text = gzip.decompress((folder / FOLDER / f"{row['id']}.md.gz").read_bytes()).decode()
            log = EventLog()
            _add_chat(log, _submitted_chat(text, row["model"]), tests_passed=row["test_outcome"] == "True")
            yield LabelledSession(
                set=FOLDER,
                task=row["id"],
                name=row["id"],
                good=row["resolved"] == "1",
                answered=any(getattr(event, "role", None) is Role.ASSISTANT for event in log.events),
                events=tuple(log.events),
            )


def _submitted_chat(text: str, model: str) -> str:
    """The last chat with the model whose try was submitted; the last one if none names that model."""
    chats = CHAT.split(text)[1:] or [text]
    of_model = [chat for chat in chats if (match := MODEL.search(chat)) and match[1] == model]
    return (of_model or chats)[-1]


def _add_chat(log: EventLog, chat: str, *, tests_passed: bool) -> None:
    """A line that begins with `####` is the user's, with `>` aider's, any other the model's."""
    has_task = False
    for speaker, text in _split_by_speaker(chat):
        if speaker == "#### ":
            log.add_message(Role.SCAFFOLD if has_task else Role.USER, text)
            has_task = True
        elif speaker == "> ":
            _add_report(log, text)
        elif text.strip():
            log.add_message(Role.ASSISTANT, text)
    if tests_passed:
        log.add_call("shell", "shell", "1 passed", exit_code=0, command="pytest")


def _add_report(log: EventLog, text: str) -> None:
    """What aider reports: edits, and complaints of the linter or the tests before it asks to go on."""
    for line in text.split("\n"):
        if applied := APPLIED.match(line):
            path = applied[1]
            log.add_call("edit", "edit", line, failed=False, path=path, arguments={"new_string": f"edited {line}"})
        elif UNMATCHED.match(line):
            log.add_call("edit", "edit", line, failed=True, arguments={})
    if "Attempt to fix lint errors?" in text:
        log.add_call("shell", "shell", text[-2_000:], exit_code=1, command="flake8")
    if "Attempt to fix test errors?" in text:
        log.add_call("shell", "shell", f"1 failed\n{text[-2_000:]}", exit_code=1, command="pytest")


def _split_by_speaker(chat: str) -> Iterator[tuple[str, str]]:
    """The chat as (mark, text) in order. Neighbouring lines of one speaker are together."""
    mark, lines = "", []
    for line in chat.split("\n"):
        its_mark = next((each for each in ("#### ", "> ") if line.startswith(each)), "")
        if its_mark != mark and lines:
            yield mark, "\n".join(lines)
            lines = []
        mark = its_mark
        lines.append(line.removeprefix(mark))
    yield mark, "\n".join(lines)
