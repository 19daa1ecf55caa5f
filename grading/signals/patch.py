"""A parser of unified diffs. The input may be hostile: it is bounded, and every failure is one exception."""

from collections.abc import Iterator
from dataclasses import dataclass

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from grading.signals.changes import FileChange, capped

MAX_CHARACTERS = 20_000_000
MAX_LINE = 4_000


class MalformedPatch(ValueError):
    """A patch that isn't a unified diff, as `git diff` and `git format-patch` write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """The files that a patch changes, in order; binary files have no lines."""

    files: tuple[FileChange, ...] = ()


def parse(text: str) -> Patch:
    """Parse a unified diff; an empty text is a patch without files.

    Raises MalformedPatch, naming the line and the remedy, for a text that isn't a diff, is cut off or is longer than
    20 million characters.
    """
    if len(text) > MAX_CHARACTERS:
        raise MalformedPatch(
            f"expected a patch of at most {MAX_CHARACTERS:,} characters, got {len(text):,}; leave out generated files"
        )
    lines = [line[:MAX_LINE] + "\n" for line in text.replace("\r\n", "\n").removesuffix("\n").split("\n")]
    line_number = 0

    def read_lines() -> Iterator[str]:
        nonlocal line_number
        for line in lines:
            line_number += 1
            yield line

    try:
        files = list(PatchSet(read_lines()))
    except (UnidiffParseError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise MalformedPatch(
            f"expected a unified diff, got something else at line {line_number}: {str(error).strip()[:200]}; "
            "write it with `git diff` or `git format-patch --stdout` and submit it whole"
        ) from error
    if not files and text.strip():
        raise MalformedPatch(
            f"expected a unified diff, got no file header in {len(lines)} lines, the first {lines[0].strip()[:80]!r}; "
            "write it with `git diff` or `git format-patch --stdout`"
        )
    changes: list[FileChange] = []
    for file in files:
        rows = [line for hunk in file for line in hunk]
        change = FileChange(
            path=file.path[:500],
            at=file.diff_line_no or 0,
            is_new=bool(file.is_added_file),
            added=capped([row.value.rstrip("\n") for row in rows if row.is_added]),
            removed=capped([row.value.rstrip("\n") for row in rows if row.is_removed]),
        )
        changes.append(change)
    return Patch(files=tuple(changes))
