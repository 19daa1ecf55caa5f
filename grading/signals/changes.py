"""A changed file as patches and transcripts both show it, and the globs that name files."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

MAX_LINES = 400
MAX_LINE = 400
GLOB_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|\{|\}|,|[^*?{},]+")
GLOB_REGEX = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One change of one file, known to have happened.

    `is_new` is None where nothing says whether the file existed before. `added` and `removed` are lines in their order,
    capped; empty where unknown. Where `is_new` is None, `added` is what was written, of which some may have been there.
    `at` is the event's number, or the line of the patch.
    """

    path: str
    at: int
    is_new: bool | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def line_changes(old: str, new: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines of `new` that `old` lacks and the reverse, as multisets in their order; linear, capped."""
    before, after = capped(old.splitlines()), capped(new.splitlines())
    return lacking(after, before), lacking(before, after)


def capped(lines: Sequence[str]) -> tuple[str, ...]:
    """At most `MAX_LINES` lines of at most `MAX_LINE` characters."""
    return tuple(line[:MAX_LINE] for line in lines[:MAX_LINES])


def lacking(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The lines that are not among the others, in their order; each of the others stands for one."""
    left = Counter(others)
    kept = []
    for line in lines:
        if left[line] > 0:
            left[line] -= 1
        else:
            kept.append(line)
    return tuple(kept)


@lru_cache(maxsize=256)
def glob_regex(glob: str) -> re.Pattern[str]:
    """A glob with `*`, `?`, `**` and `{a,b}` as a regular expression over a whole relative path.

    Raises ValueError where braces do not pair.
    """
    depth = 0
    parts = []
    for part in GLOB_TOKENS.findall(glob):
        depth += (part == "{") - (part == "}")
        if depth not in (0, 1):
            break
        is_literal = part not in GLOB_REGEX or (part == "," and depth == 0)
        parts.append(re.escape(part) if is_literal else GLOB_REGEX[part])
    if depth != 0:
        raise ValueError(f"braces of a glob must pair, one level deep; got {glob!r}; write {{a,b}} or drop the brace")
    return re.compile("".join(parts))


def path_matches(path: str, glob: str, root: str = "") -> bool:
    """Whether `glob` names `path`.

    A path below `root` and a relative path match from their beginning; an absolute path elsewhere (another worktree, an
    unknown root) matches from any of its folders.
    """
    regex = glob_regex(glob)
    clean = path.replace("\\", "/")
    prefix = root.replace("\\", "/").rstrip("/") + "/"
    if prefix != "/" and clean.startswith(prefix):
        clean = clean[len(prefix) :]
    if not is_absolute(clean):
        return regex.fullmatch(clean.removeprefix("./")) is not None
    parts = [part for part in clean.split("/") if part][-20:]
    return any(regex.fullmatch("/".join(parts[start:])) for start in range(len(parts)))


def matching(paths: Iterable[str], globs: Sequence[str], root: str = "") -> set[str]:
    """Those of these paths that one of the globs names."""
    return {path for path in paths if any(path_matches(path, glob, root) for glob in globs)}


def is_absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or re.match(r"[A-Za-z]:[/\\]", path) is not None
