"""A parser of unified diffs. The input may be hostile: it is bounded, and every failure is one exception."""

from dataclasses import dataclass

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from grading.signals.changes import FileChange, capped

MAX_CHARACTERS = 20_000_000
MAX_LINE = 4_000
MAX_PATH = 500


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
    remaining_lines = iter(lines)  # so that the line of an error is known
    try:
        files = list(PatchSet(remaining_lines))
    except (UnidiffParseError, ValueError, IndexError, AttributeError, RecursionError) as error:
        line_number = len(lines) - len(list(remaining_lines))
        raise MalformedPatch(
            f"expected a unified diff, got something else at line {line_number}: {str(error).strip()[:200]}; "
            "write it with `git diff` or `git format-patch --stdout` and submit it whole"
        ) from error
    if not files and text.strip():
        raise MalformedPatch(
            f"expected a unified diff, got no file header in {len(lines)} lines, the first {lines[0].strip()[:80]!r}; "
            "write it with `git diff` or `git format-patch --stdout`"
        )
    return Patch(files=tuple(map(_file_change, files)))


def _file_change(file: PatchedFile) -> FileChange:
    """The change of one file of a patch."""
    lines = [line for hunk in file for line in hunk]
    return FileChange(
        path=file.path[:MAX_PATH],
        at=file.diff_line_no or 0,
        is_new=bool(file.is_added_file),
        added=capped([line.value.rstrip("\n") for line in lines if line.is_added]),
        removed=capped([line.value.rstrip("\n") for line in lines if line.is_removed]),
    )
