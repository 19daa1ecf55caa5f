"""aider on SWE-bench Lite: its chat log, the try that was kept; the label is that of hidden tests.

aider edits without tool calls: each file that it applied an edit to is an edit, each block that did not match a failed
one. It runs the linter and the repository's own tests after an edit and prints them only where they fail; that they
passed in the end is in the benchmark's index, which the harness wrote.
"""

import csv
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.labelled.labelled import Labelled, Log
from grading.formats.events import Role

FOLDER = "aider-swe-bench-lite"
CHAT = re.compile(r"^# aider chat started at .*$", re.MULTILINE)
MODEL = re.compile(r"^> Models?: (\S+)", re.MULTILINE)
APPLIED = re.compile(r"Applied edit to (\S+)")
UNMATCHED = re.compile(r"# \d+ SEARCH/REPLACE blocks? failed to match")


def sessions(folder: Path) -> Iterator[Labelled]:
    with (folder / FOLDER / "index.csv").open() as lines:
        for row in csv.DictReader(lines):
            text = gzip.decompress((folder / FOLDER / f"{row['id']}.md.gz").read_bytes()).decode()
            log = Log()
            _chat(log, _kept(text, row["model"]), green=row["test_outcome"] == "True")
            yield Labelled(
                set=FOLDER,
                task=row["id"],
                name=row["id"],
                good=row["resolved"] == "1",
                answered=any(getattr(event, "role", None) is Role.ASSISTANT for event in log.events),
                events=tuple(log.events),
            )


def _kept(text: str, model: str) -> str:
    """The last chat with the model whose try was kept; the last one where that is not known."""
    chats = CHAT.split(text)[1:] or [text]
    mine = [chat for chat in chats if (found := MODEL.search(chat)) and found[1] == model]
    return (mine or chats)[-1]


def _chat(log: Log, chat: str, *, green: bool) -> None:
    """One chat. A line that begins with `####` is the user's, with `>` aider's, any other the model's."""
    asked = False
    for speaker, text in _spoken(chat):
        if speaker == "#### ":
            log.says(Role.SCAFFOLD if asked else Role.USER, text)
            asked = True
        elif speaker == "> ":
            _told(log, text)
        elif text.strip():
            log.says(Role.ASSISTANT, text)
    if green:
        log.calls("shell", "shell", "1 passed", exit_code=0, command="pytest")


def _told(log: Log, text: str) -> None:
    """What aider reports: edits, and what the linter or the tests complained of before it asked to go on."""
    for line in text.split("\n"):
        if applied := APPLIED.match(line):
            path = applied[1]
            log.calls("edit", "edit", line, failed=False, path=path, arguments={"new_string": f"edited {line}"})
        elif UNMATCHED.match(line):
            log.calls("edit", "edit", line, failed=True, arguments={})
    if "Attempt to fix lint errors?" in text:
        log.calls("shell", "shell", text[-2_000:], exit_code=1, command="flake8")
    if "Attempt to fix test errors?" in text:
        log.calls("shell", "shell", f"1 failed\n{text[-2_000:]}", exit_code=1, command="pytest")


def _spoken(chat: str) -> Iterator[tuple[str, str]]:
    """The chat as (mark, text) in order, neighbouring lines of one speaker together."""
    mark, lines = "", []
    for line in chat.split("\n"):
        found = next((one for one in ("#### ", "> ") if line.startswith(one)), "")
        if found != mark and lines:
            yield mark, "\n".join(lines)
            lines = []
        mark = found
        lines.append(line.removeprefix(found))
    yield mark, "\n".join(lines)
