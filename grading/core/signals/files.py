"""File changes that a call set out to make, from its arguments or its argv; only calls that did not fail are asked."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from grading.core.changes import FileChange, capped, line_changes
from grading.core.events import ToolCall
from grading.core.signals.shell import Command

CONTENT_KEYS = ("content", "file_text", "contents", "text")
EDIT_KEYS = (("old_string", "new_string"), ("old_str", "new_str"), ("old_text", "new_text"))
CREATED = re.compile(r"\b(?:created|creating)\b", re.IGNORECASE)
CHANGED = re.compile(r"\b(?:updated|overwritten|overwrote|appended|edited|modified)\b", re.IGNORECASE)
APPENDED = re.compile(r"\bappended\b", re.IGNORECASE)
ENVELOPE = re.compile(r"^\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>[^\n]{1,500})$")
COMPLAINT = re.compile(r"\s{0,20}(?:<tool_use_error>|error\b|failed\b|traceback\b)", re.IGNORECASE)
MISSING = re.compile(r"No such file or directory|Permission denied|Read-only file system|cannot create")
MAX_TEXT = 400_000


def of_call(call: ToolCall, result: str, commands: tuple[Command, ...]) -> Iterator[FileChange]:
    """The changes of a call that did not fail, with this result."""
    if COMPLAINT.match(result):
        return
    if call.kind not in ("write", "edit"):
        yield from _of_shell(call, commands, result)
        if any(command.program in ("apply_patch", "applypatch") for command in commands):
            yield from _of_envelopes(call, call.command)
        return
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    patch = next((text for text in texts if "*** Begin Patch" in text), None)
    if patch is not None:
        yield from _of_envelopes(call, patch)
    elif call.path:
        yield _of_file(call, result)


def _of_file(call: ToolCall, result: str) -> FileChange:
    head = result[:500].split("\n", 1)[0].replace(call.path, "")
    content = _text(call.arguments, CONTENT_KEYS)
    if call.kind == "write" and content is not None:
        is_new = True if CREATED.search(head) else False if CHANGED.search(head) else None
        # An overwritten file's earlier lines are unknown, so nothing can be called added.
        added = capped(content.splitlines()) if is_new or APPENDED.search(head) else ()
        return FileChange(path=call.path, at=call.number, is_new=is_new, added=added)
    added, removed = _edited(call.arguments)
    is_new = call.arguments.get("command") == "create" or CREATED.search(head) is not None
    return FileChange(path=call.path, at=call.number, is_new=is_new, added=added, removed=removed)


def _edited(arguments: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    edits = arguments.get("edits")
    rows = [row for row in edits[:200] if isinstance(row, Mapping)] if isinstance(edits, list) else [arguments]
    old: list[str] = []
    new: list[str] = []
    for row in rows:
        for old_key, new_key in EDIT_KEYS:
            old.append(_text(row, (old_key,)) or "")
            new.append(_text(row, (new_key,)) or "")
        for value in row.values():
            for part in value[:MAX_TEXT].split("<<<<<<< ORIGINAL\n")[1:] if isinstance(value, str) else ():
                before, _, rest = part.partition("=======\n")
                after, closed, _ = rest.partition(">>>>>>> UPDATED")
                old += [before] * bool(closed)
                new += [after] * bool(closed)
    if not any(old) and not any(new):
        return (capped((_text(arguments, (*CONTENT_KEYS, "insert_text")) or "").splitlines()), ())
    return line_changes("\n".join(filter(None, old))[:MAX_TEXT], "\n".join(filter(None, new))[:MAX_TEXT])


def _of_envelopes(call: ToolCall, text: str) -> Iterator[FileChange]:
    """The files of a `*** Begin Patch` envelope (codex `apply_patch`)."""
    if "*** Begin Patch" not in text:
        return
    head: re.Match[str] | None = None
    lines: list[str] = []
    for line in [*text[:MAX_TEXT].splitlines(), "*** End Patch"]:
        match = ENVELOPE.match(line)
        if match is None and line != "*** End Patch":
            lines.append(line)
            continue
        if head is not None and head["verb"] != "Delete":
            yield FileChange(
                path=head["path"].strip(),
                at=call.number,
                is_new=head["verb"] == "Add",
                added=capped([row[1:] for row in lines if row.startswith("+")]),
                removed=capped([row[1:] for row in lines if row.startswith("-")]),
            )
        head, lines = match, []


def _of_shell(call: ToolCall, commands: tuple[Command, ...], result: str) -> Iterator[FileChange]:
    """Redirections and `tee`, unless the output complains."""
    if MISSING.search(result):
        return
    for before, command in pairwise((Command(argv=()), *commands)):
        outputs = list(command.outputs)
        text = command.document
        if command.program == "tee":
            outputs += [(word, "-a" in command.argv) for word in command.argv[1:] if not word.startswith("-")]
            text = text if text is not None else _echoed(before)
        elif text is None:
            text = _echoed(command)
        for path, appends in outputs:
            if path.startswith(("/dev/", "&", "$(", "-")) or "$" in path:
                continue
            lines = capped(text.splitlines()) if text is not None and appends else ()
            yield FileChange(path=path, at=call.number, is_new=False if appends else None, added=lines)


def _echoed(command: Command) -> str | None:
    if command.program not in ("echo", "printf"):
        return None
    text = " ".join(word for word in command.argv[1:] if not word.startswith("-"))
    return text.replace("\\n", "\n")


def _text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value[:MAX_TEXT] for key in keys if isinstance(value := arguments.get(key), str)), None)
