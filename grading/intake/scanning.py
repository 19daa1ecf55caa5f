"""What lies in folders: every regular file, once; and what is left out of it, so that nothing goes unsaid."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grading.models.imports import Fate

# Full of files, and never of logs.
NEVER_LOGS = frozenset({".git", "node_modules"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOutcome:
    """What became of one file; where it is not simply imported, why (one phrase for many files), and what was seen.

    `session` is the key of the session that it belongs to, where there is one.
    """

    path: Path
    fate: Fate
    why: str = ""
    detail: str = ""
    session: int | None = None


def scan(paths: Iterable[Path]) -> Iterator[Path | ImportOutcome]:
    """The regular files in these folders, in a stable order, and the files named themselves; each once, whatever its
    name ends in. In place of what is not looked at comes its outcome: links and what is no regular file, and folders
    that cannot be read or never hold logs, one for the whole folder.

    A folder or file that was named may be a link itself.
    """
    seen: set[Path] = set()
    for path in paths:
        is_folder = path.is_dir()
        # Below a folder that was named no link is followed, so that only what leads to it can be one.
        place = path.resolve() if is_folder else path.parent.resolve() / path.name
        for found in _folder(path) if is_folder else [_named(path)]:
            name = place / (found if isinstance(found, Path) else found.path).relative_to(path)
            if name not in seen:
                seen.add(name)
                yield found


def _named(path: Path) -> Path | ImportOutcome:
    return path if path.is_file() else _left_out(path)


def _folder(folder: Path) -> Iterator[Path | ImportOutcome]:
    waiting: list[Path | ImportOutcome | os.DirEntry[str]] = [*_entries(folder)]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, Path | ImportOutcome):
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
            waiting += _entries(path)


def _entries(folder: Path) -> "list[ImportOutcome | os.DirEntry[str]]":
    """What is in a folder, the last first."""
    try:
        with os.scandir(folder) as entries:
            return [*sorted(entries, key=lambda entry: entry.name, reverse=True)]
    except OSError as error:
        why = "folders that cannot be read"
        return [ImportOutcome(path=folder, fate=Fate.FOLDER, why=why, detail=str(error.strerror))]


def _left_out(path: Path) -> ImportOutcome:
    return ImportOutcome(path=path, fate=Fate.SKIPPED, why="devices, pipes and sockets")
