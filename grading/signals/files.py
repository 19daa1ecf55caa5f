"""File changes that a call set out to make, from its arguments or its argv; only calls that did not fail are asked."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import Any

from grading.formats.events import ToolCall
from grading.signals.changes import FileChange, capped, line_changes
from grading.signals.shell import ShellCommand

CONTENT_KEYS = ("content", "file_text", "contents", "text")
EDIT_KEYS = (("old_string", "new_string"), ("old_str", "new_str"), ("old_text", "new_text"))
CREATED = re.compile(r"\b(?:created|creating)\b", re.IGNORECASE)
CHANGED = re.compile(r"\b(?:updated|overwritten|overwrote|appended|edited|modified)\b", re.IGNORECASE)
APPENDED = re.compile(r"\bappended\b", re.IGNORECASE)
ENVELOPE = re.compile(r"^\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>[^\n]{1,500})$")
COMPLAINT = re.compile(r"\s{0,20}(?:<tool_use_error>|error\b|failed\b|traceback\b)", re.IGNORECASE)
MISSING = re.compile(r"No such file or directory|Permission denied|Read-only file system|cannot create|can't read")
PATCHED = re.compile(
    r"^(?:patching file|Applied patch(?: to)?|Checking patch) '?(?P<path>[^'\n]{1,300}?)'?(?: cleanly)?\.*$",
    re.MULTILINE,
)
DIFF_PATH = re.compile(r"^\+\+\+ (?:b/)?(?P<path>[^\t\n]{1,300})", re.MULTILINE)
# A row of `git status --short`, or of a `--stat`.
STATUS_ROW = re.compile(
    r"^(?:(?:[ MARC][MARC ]|\?\?| (?:create|delete) mode \d{6}) (?P<path>[^\n|]{1,300})"
    r"| (?P<counted>[^\n|]{1,300}?) {1,200}\| {1,9}(?:\d{1,7}|Bin)\b.{0,100})$",
    re.MULTILINE,
)
PATH_WORD = re.compile(r"[\w./-]{1,200}\.\w{1,10}\b")
EDITORS = frozenset({"sed", "gsed", "perl", "ruby"})
INTERPRETERS = re.compile(r"^(?:python[\d.]*|node|ruby|perl|php|deno|bun|pwsh|powershell)$")
IN_PLACE = re.compile(r"-(?:-in-place.{0,20}|[a-zA-Z]{0,5}i.{0,10})$")
WRITES = re.compile(r"write|open\(|Set-Content|Out-File|dump\(|save|rename|replace\(")
MAX_ROWS = 300
MAX_NAMED = 2_000
MAX_TEXT = 400_000


def of_call(call: ToolCall, result: str, commands: tuple[ShellCommand, ...]) -> Iterator[FileChange]:
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
        head = result[:500].split("\n", 1)[0].replace(call.path, "")
        is_new: bool | None = CREATED.search(head) is not None
        content = _text(call.arguments, CONTENT_KEYS)
        removed: tuple[str, ...] = ()
        if call.kind == "write" and content is not None:
            if not is_new:
                is_new = False if CHANGED.search(head) else None
            # An overwritten file's earlier lines are unknown, so nothing can be called added.
            is_added = is_new is not False or APPENDED.search(head)
            added = capped(content.splitlines()) if is_added else ()
        else:
            is_new = is_new or call.arguments.get("command") == "create"
            added, removed = _edited(call.arguments)
        yield FileChange(path=call.path, at=call.number, is_new=is_new, added=added, removed=removed)


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


def named_by_scripts(call: ToolCall, commands: tuple[ShellCommand, ...]) -> set[str]:
    """The paths in the text of scripts that write: they may change them, but nothing shows that they did."""
    if not any(INTERPRETERS.match(command.program) for command in commands) or not WRITES.search(
        call.command[:MAX_TEXT]
    ):
        return set()
    found = (match.group() for match in PATH_WORD.finditer(call.command[:MAX_TEXT]))
    return {path.removeprefix("./") for path in islice(found, MAX_NAMED)}


def shown_changed(commands: tuple[ShellCommand, ...], result: str) -> list[str]:
    """The paths that git says are changed, where a call asks it: `git status --short`, or a `--stat`."""
    asks = any(
        command.program == "git" and {"status", "diff", "commit", "show"} & set(command.argv[:4])
        for command in commands
    )
    return (
        [(match["path"] or match["counted"]).strip() for match in islice(STATUS_ROW.finditer(result), MAX_ROWS)]
        if asks
        else []
    )


def _of_shell(call: ToolCall, commands: tuple[ShellCommand, ...], result: str) -> Iterator[FileChange]:
    """Redirections, `tee`, edits in place and patches, unless the output complains."""
    if MISSING.search(result):
        return
    for path in _edited_in_place(commands, result):
        yield FileChange(path=path, at=call.number, is_new=False)
    for before, command in pairwise((ShellCommand(argv=()), *commands)):
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
            lines = capped(text.splitlines()) if text is not None else ()
            yield FileChange(path=path, at=call.number, is_new=False if appends else None, added=lines)


def _edited_in_place(commands: tuple[ShellCommand, ...], result: str) -> Iterator[str]:
    for command in commands:
        words = command.argv[1:]
        if command.program in EDITORS and any(IN_PLACE.match(word) for word in words):
            has_script = any(word in ("-e", "-f", "--expression", "--file") for word in words)
            valued = ("-e", "-f", "--expression", "--file") if command.program.endswith("sed") else ("-e",)
            named = [
                word
                for before, word in zip(("", *words), words, strict=False)
                if word and not word.startswith("-") and not (before in valued or re.fullmatch(r"-[a-z]{1,4}e", before))
            ]
            is_script_first = not has_script and not any(re.fullmatch(r"-[a-z]{1,4}e", word) for word in words)
            yield from (path for path in named[is_script_first:] if "$" not in path and "*" not in path)
        elif command.program == "patch" or (command.program == "git" and {"apply", "am"} & set(words[:3])):
            if {"--check", "--stat", "--dry-run", "--numstat", "--cached", "-R", "--reverse"} & set(words):
                continue
            told = [match["path"] for match in islice(PATCHED.finditer(result), MAX_ROWS)]
            document = command.document or ""
            told = told or [match["path"].strip() for match in islice(DIFF_PATH.finditer(document), MAX_ROWS)]
            yield from (path for path in told if path != "/dev/null")


def _echoed(command: ShellCommand) -> str | None:
    if command.program not in ("echo", "printf"):
        return None
    text = " ".join(word for word in command.argv[1:] if not word.startswith("-"))
    return text.replace("\\n", "\n")


def _text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value[:MAX_TEXT] for key in keys if isinstance(value := arguments.get(key), str)), None)
