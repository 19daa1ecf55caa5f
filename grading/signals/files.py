"""The file changes of a call that did not fail, from its arguments or command lines."""

import re
from collections.abc import Iterator, Mapping
from itertools import dropwhile, islice, pairwise, zip_longest
from typing import Any

from grading.formats.events import ToolCall
from grading.formats.values import mappings
from grading.signals.changes import FileChange, capped, line_changes
from grading.signals.shell import ShellCommand, operands

CONTENT_KEYS = ("content", "file_text", "contents", "text")
EDIT_KEYS = (("old_string", "new_string"), ("old_str", "new_str"), ("old_text", "new_text"))
CREATED = re.compile(r"\b(?:created|creating)\b", re.IGNORECASE)
CHANGED = re.compile(r"\b(?:updated|overwritten|overwrote|appended|edited|modified)\b", re.IGNORECASE)
APPENDED = re.compile(r"\bappended\b", re.IGNORECASE)
ENVELOPE_FILE = re.compile(r"^\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>[^\n]{1,500})$")
COMPLAINT = re.compile(r"\s{0,20}(?:<tool_use_error>|error\b|failed\b|traceback\b)", re.IGNORECASE)
WRITE_ERRORS = (
    "No such file or directory",
    "Permission denied",
    "Read-only file system",
    "cannot create",
    "can't read",
)
PATCHED_FILE = re.compile(
    r"^(?:patching file|Applied patch(?: to)?|Checking patch) '?(?P<path>[^'\n]{1,300}?)'?(?: cleanly)?\.*$",
    re.MULTILINE,
)
DIFF_PATH = re.compile(r"^\+\+\+ (?:b/)?(?P<path>[^\t\n]{1,300})", re.MULTILINE)
# A row of `git status --short` or of `--stat`, or git's mode line for a created or deleted file.
STATUS_ROW = re.compile(
    r"^(?:(?:[ MARC][MARC ]|\?\?| (?:create|delete) mode \d{6}) (?P<path>[^\n|]{1,300})"
    r"| (?P<counted>[^\n|]{1,300}?) {1,200}\| {1,9}(?:\d{1,7}|Bin)\b.{0,100})$",
    re.MULTILINE,
)
PATH_WORD = re.compile(r"[\w./-]{1,200}\.\w{1,10}\b")
EDITORS = frozenset({"sed", "gsed", "perl", "ruby"})
INTERPRETERS = re.compile(r"^(?:python[\d.]*|node|ruby|perl|php|deno|bun|pwsh|powershell)$")
PRINT_OPTION = re.compile(r"-(?:[neE]{1,3}|-)")
IN_PLACE = re.compile(r"-(?:-in-place.{0,20}|[a-zA-Z]{0,5}i.{0,10})$")
SCRIPT_FLAGS = ("-e", "-f", "--expression", "--file")
# Flags in one word, with `-e` as the last, such as `-pie`.
COMBINED_SCRIPT_FLAG = re.compile(r"-[a-z]{1,4}e")
WRITES = re.compile(r"write|open\(|Set-Content|Out-File|dump\(|save|rename|replace\(")
MAX_ROWS = 300
MAX_SCRIPT_PATHS = 2_000
MAX_TEXT = 400_000
MAX_EDITS = 200
MAX_FIRST_LINE = 500
# How targets of redirections begin that are no files to count.
NO_FILE = ("/dev/", "&", "-")


def find_changes(call: ToolCall, result: str, commands: tuple[ShellCommand, ...]) -> Iterator[FileChange]:
    """The file changes of a call that did not fail; `result` is its output, `commands` its parsed command line."""
    if COMPLAINT.match(result):
        return
    if call.kind not in ("write", "edit"):
        yield from _shell_changes(call, commands, result)
        if any(command.program in ("apply_patch", "applypatch") for command in commands):
            yield from _envelope_changes(call, call.command)
        return
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    patch = next((text for text in texts if "*** Begin Patch" in text), "")
    if patch:
        yield from _envelope_changes(call, patch)
    elif call.path:
        yield _tool_change(call, result)


def _tool_change(call: ToolCall, result: str) -> FileChange:
    """The change by a write or edit tool; the first line of its result may say whether the file is new."""
    first_line = result[:MAX_FIRST_LINE].split("\n", 1)[0].replace(call.path, "")
    was_created = CREATED.search(first_line) is not None
    content = _first_text(call.arguments, CONTENT_KEYS)
    if call.kind == "write" and content is not None:
        is_new: bool | None = True if was_created else None
        if not was_created and CHANGED.search(first_line):
            is_new = False
        # The earlier lines of an overwritten file are unknown, so none of its lines counts as added.
        was_overwritten = is_new is False and not APPENDED.search(first_line)
        added = () if was_overwritten else capped(content.splitlines())
        return FileChange(path=call.path, at=call.number, is_new=is_new, added=added)
    is_new = was_created or call.arguments.get("command") == "create"
    added, removed = _edited_lines(call.arguments)
    return FileChange(path=call.path, at=call.number, is_new=is_new, added=added, removed=removed)


def _edited_lines(arguments: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The added and the removed lines of an edit tool's call.

    They come from pairs of an old and a new text, alone or in a list of `edits`, and from gptme's patch blocks. Without
    any of these, the content or the inserted text is added.
    """
    edits = arguments.get("edits")
    rows = mappings(edits[:MAX_EDITS]) if isinstance(edits, list) else [arguments]
    replacements: list[tuple[str, str]] = []  # pairs of the old and the new text
    for row in rows:
        for old_key, new_key in EDIT_KEYS:
            replacements.append((_first_text(row, (old_key,)) or "", _first_text(row, (new_key,)) or ""))
        for value in row.values():
            if isinstance(value, str):
                replacements += _patch_blocks(value[:MAX_TEXT])
    old = "\n".join(before for before, _after in replacements if before)
    new = "\n".join(after for _before, after in replacements if after)
    if not old and not new:
        inserted = _first_text(arguments, (*CONTENT_KEYS, "insert_text")) or ""
        return capped(inserted.splitlines()), ()
    return line_changes(old[:MAX_TEXT], new[:MAX_TEXT])


def _patch_blocks(text: str) -> Iterator[tuple[str, str]]:
    """The (old text, new text) of each complete block of gptme's patch syntax."""
    for block in text.split("<<<<<<< ORIGINAL\n")[1:]:
        before, _separator, rest = block.partition("=======\n")
        after, end_marker, _rest = rest.partition(">>>>>>> UPDATED")
        if end_marker:
            yield before, after


def _envelope_changes(call: ToolCall, text: str) -> Iterator[FileChange]:
    """The file changes of a `*** Begin Patch` envelope (codex `apply_patch`); deleted files are left out."""
    if "*** Begin Patch" not in text:
        return
    header: re.Match[str] | None = None
    lines: list[str] = []  # since the header
    for line in [*text[:MAX_TEXT].splitlines(), "*** End Patch"]:
        match = ENVELOPE_FILE.match(line)
        if match is None and line != "*** End Patch":
            lines.append(line)
            continue
        if header is not None and header["verb"] != "Delete":
            yield FileChange(
                path=header["path"].strip(),
                at=call.number,
                is_new=header["verb"] == "Add",
                added=capped([row[1:] for row in lines if row.startswith("+")]),
                removed=capped([row[1:] for row in lines if row.startswith("-")]),
            )
        header, lines = match, []


def find_script_paths(call: ToolCall, commands: tuple[ShellCommand, ...]) -> set[str]:
    """The paths named in the text of scripts that write files; nothing shows that the scripts changed them."""
    text = call.command[:MAX_TEXT]
    if not any(INTERPRETERS.match(command.program) for command in commands) or not WRITES.search(text):
        return set()
    return {match.group().removeprefix("./") for match in islice(PATH_WORD.finditer(text), MAX_SCRIPT_PATHS)}


def find_changed_paths(commands: tuple[ShellCommand, ...], result: str) -> list[str]:
    """The paths that git lists as changed, if a call asks it to (`git status --short`, `--stat`)."""
    if not any(
        command.program == "git" and {"status", "diff", "commit", "show"} & set(command.argv[:4])
        for command in commands
    ):
        return []
    return [(match["path"] or match["counted"]).strip() for match in islice(STATUS_ROW.finditer(result), MAX_ROWS)]


def _shell_changes(call: ToolCall, commands: tuple[ShellCommand, ...], result: str) -> list[FileChange]:
    """The changes by redirections, `tee`, edits in place and patches; none if the output has a write error."""
    changes = [FileChange(path=path, at=call.number, is_new=False) for path in _paths_edited_in_place(commands, result)]
    for previous, command in pairwise((ShellCommand(argv=()), *commands)):
        outputs = list(command.outputs)
        source = command  # the command that prints what is written
        if command.program == "tee":
            outputs += [(path, "-a" in command.argv) for path in operands(command.argv[1:])]
            source = previous
        outputs = [(path, appends) for path, appends in outputs if not path.startswith(NO_FILE) and "$" not in path]
        if not outputs:
            continue
        text = _printed_text(source) if command.document is None else command.document
        lines = capped(text.splitlines()) if text is not None else ()
        for path, appends in outputs:
            changes.append(FileChange(path=path, at=call.number, is_new=False if appends else None, added=lines))
    has_write_error = bool(changes) and any(error in result for error in WRITE_ERRORS)
    return [] if has_write_error else changes


def _paths_edited_in_place(commands: tuple[ShellCommand, ...], result: str) -> Iterator[str]:
    """The paths that commands such as `sed -i`, `patch` and `git apply` change."""
    for command in commands:
        arguments = command.argv[1:]
        if command.program in EDITORS and any(IN_PLACE.match(word) for word in arguments):
            yield from _edited_operands(command)
        elif command.program == "patch" or (command.program == "git" and {"apply", "am"} & set(arguments[:3])):
            if {"--check", "--stat", "--dry-run", "--numstat", "--cached", "-R", "--reverse"} & set(arguments):
                continue
            paths = [match["path"] for match in islice(PATCHED_FILE.finditer(result), MAX_ROWS)]
            if not paths:
                document = command.document or ""
                paths = [match["path"].strip() for match in islice(DIFF_PATH.finditer(document), MAX_ROWS)]
            yield from (path for path in paths if path != "/dev/null")


def _edited_operands(command: ShellCommand) -> list[str]:
    """The files of an in-place edit: its operands, without the script and without words that have a `$` or `*`.

    The script is the first operand, unless it is the value of a flag such as `-e`.
    """
    arguments = command.argv[1:]
    script_flags = [word for word in arguments if word in SCRIPT_FLAGS or COMBINED_SCRIPT_FLAG.fullmatch(word)]
    valued = [flag for flag in script_flags if flag not in SCRIPT_FLAGS] + ["-e"]
    if command.program.endswith("sed"):
        valued += SCRIPT_FLAGS
    paths = [word for word in operands(arguments, valued) if word]
    if not script_flags:
        paths = paths[1:]
    return [path for path in paths if "$" not in path and "*" not in path]


def _printed_text(command: ShellCommand) -> str | None:
    """What `echo` or `printf` prints; None for other commands. Of printf's directives only `%s` is replaced."""
    if command.program not in ("echo", "printf"):
        return None
    arguments = list(dropwhile(PRINT_OPTION.fullmatch, command.argv[1:]))
    text = " ".join(arguments)
    if command.program == "printf" and arguments:
        text = _fill_template(arguments[0], arguments[1:])
    return text.replace("\\n", "\n")


def _fill_template(template: str, values: list[str]) -> str:
    """The template with each `%s` replaced by the next value, repeated until all values are used, as printf does."""
    size = template.count("%s")
    if not size or not values:
        return template.replace("%s", "")
    text = ""
    for start in range(0, len(values), size):
        filled = zip_longest(template.split("%s"), values[start : start + size], fillvalue="")
        text += "".join(literal + value for literal, value in filled)
    return text


def _first_text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """The first text argument with one of these keys, cut to `MAX_TEXT` characters; None if there is none."""
    values = (arguments.get(key) for key in keys)
    return next((value[:MAX_TEXT] for value in values if isinstance(value, str)), None)
