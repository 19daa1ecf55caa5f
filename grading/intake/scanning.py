"""Find the files in folders: every regular file once, and an outcome for everything that is skipped."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grading.models.imports import Fate

# Folders with many files, none of which are logs.
NEVER_LOGS = frozenset({".git", "node_modules"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOutcome:
    """What became of one file. If it wasn't imported: `why`, a phrase shared by many files, and the file's `detail`.

    `session` is the key of its session, if there is one.
    """

    path: Path
    fate: Fate
    why: str = ""
    detail: str = ""
    session: int | None = None


def scan(paths: Iterable[Path]) -> Iterator[Path | ImportOutcome]:
    """The regular files in these folders, in a stable order, and the files among `paths`; each once, of any name.

    Yields the outcome of what it skips: links, other files that aren't regular, and, one for the whole folder, folders
    that can't be read or never contain logs. A path in `paths` may be a link itself.
    """
    names: set[Path] = set()
    for path in paths:
        is_folder = path.is_dir()
        # No link below a folder is followed, so only the path that leads to it can have links.
        place = path.resolve() if is_folder else path.parent.resolve() / path.name
        for entry in _scan_folder(path) if is_folder else [_scan_file(path)]:
            entry_path = entry if isinstance(entry, Path) else entry.path
            name = place / entry_path.relative_to(path)
            if name not in names:
                names.add(name)
                yield entry


def _scan_file(path: Path) -> Path | ImportOutcome:
    return path if path.is_file() else _left_out(path)


def _scan_folder(folder: Path) -> Iterator[Path | ImportOutcome]:
    """What `scan` yields for a folder, depth first and in the order of names."""
    stack: list[ImportOutcome | os.DirEntry[str]] = _entries(folder)
    while stack:
        entry = stack.pop()
        if isinstance(entry, ImportOutcome):
            yield entry
            continue
        path = Path(entry.path)
        if entry.is_symlink():
            yield ImportOutcome(path=path, fate=Fate.SKIPPED, why="links")
        elif entry.is_file(follow_symlinks=False):
            yield path
        elif not entry.is_dir(follow_symlinks=False):
            yield _left_out(path)
        elif entry.name in NEVER_LOGS:
            yield ImportOutcome(path=path, fate=Fate.FOLDER, why=f"{entry.name} folders, where no logs are")
        else:
            stack += _entries(path)


def _entries(folder: Path) -> "list[ImportOutcome | os.DirEntry[str]]":
    """The entries of a folder in reverse order, for the stack in `_scan_folder`; or the outcome if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return [*sorted(entries, key=lambda entry: entry.name, reverse=True)]
    except OSError as error:
        why = "folders that cannot be read"
        return [ImportOutcome(path=folder, fate=Fate.FOLDER, why=why, detail=str(error.strerror))]


def _left_out(path: Path) -> ImportOutcome:
    return ImportOutcome(path=path, fate=Fate.SKIPPED, why="devices, pipes and sockets")
