"""A file change, as both patches and transcripts show it, globs that match paths, and changes that loosen tests."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

MAX_LINES = 400
MAX_LINE = 400
GLOB_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|\{|\}|,|[^*?{},]+")
GLOB_REGEX = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}

TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec|specs)/|(?:^|/)(?:test_[^/]{1,200}|[^/]{1,200}(?:_test|_spec|\.test|\.spec|Tests?))"
    r"\.\w{1,5}$|(?:^|/)conftest\.py$"
)
ASSERTION = re.compile(
    r"\b(?:assert\w{0,40}[ (!.]|expect\w{0,20}\(|t\.(?:Error|Fatal)f?\(|(?:require|assert)\.\w{1,40}\(|"
    r"EXPECT_\w{1,30}\()|\.should\b"
)
SKIP = re.compile(
    r"@(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)|"
    r"\b(?:pytest\.(?:skip|xfail)\(|self\.skipTest\(|(?:it|test|describe|context)\.(?:skip|todo|fixme)\b|"
    r"x(?:it|describe|test)\(|t\.Skip(?:f|Now)?\()|"
    r"^\s{0,40}(?:#\[ignore|@(?:Disabled|Ignore)\b)"
)
# What comes before the expected value of an assertion.
COMPARISON = re.compile(
    r"==|!=|\bis\b|\.to(?:Be|Equal|StrictEqual|Match|Contain|HaveLength)\w{0,20}\(|,|\.(?:eq|equal)\("
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One confirmed change of one file.

    `is_new` is None if it is unknown whether the file existed before. `added` and `removed` are lines in order, capped;
    empty if unknown. If `is_new` is None, `added` is all that was written, and some of it may have been there before.
    `at` is the event's number, or the line number in the patch. `is_scratch`: it lies in a temporary directory, and in
    no repository that the session is known to work in.
    """

    path: str
    at: int
    is_new: bool | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_scratch: bool = False


def line_changes(old: str, new: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines added to and removed from `old` to get `new`, compared as multisets; capped, in linear time."""
    before, after = capped(old.splitlines()), capped(new.splitlines())
    return subtract_lines(after, before), subtract_lines(before, after)


def capped(lines: Sequence[str]) -> tuple[str, ...]:
    """At most `MAX_LINES` lines of at most `MAX_LINE` characters."""
    return tuple(line[:MAX_LINE] for line in lines[:MAX_LINES])


def subtract_lines(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The multiset difference of the lines, in order: each of the others removes one equal line."""
    to_remove = Counter(others)
    difference = []
    for line in lines:
        if to_remove[line] > 0:
            to_remove[line] -= 1
        else:
            difference.append(line)
    return tuple(difference)


@lru_cache(maxsize=256)
def glob_regex(glob: str) -> re.Pattern[str]:
    """A glob with `*`, `?`, `**` and `{a,b}` as a regular expression for a whole relative path.

    Raises ValueError if braces are unbalanced or nested.
    """
    depth = 0
    parts = []
    for part in GLOB_TOKENS.findall(glob):
        if part == "{":
            depth += 1
        elif part == "}":
            depth -= 1
        if depth not in (0, 1):
            break
        is_literal = part not in GLOB_REGEX or (part == "," and depth == 0)
        parts.append(re.escape(part) if is_literal else GLOB_REGEX[part])
    if depth != 0:
        raise ValueError(f"braces of a glob must pair, one level deep; got {glob!r}; write {{a,b}} or drop the brace")
    return re.compile("".join(parts))


def path_matches(path: str, glob: str, root: str = "") -> bool:
    """Whether `glob` matches `path`.

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
    """The paths that at least one of the globs matches."""
    return {path for path in paths if any(path_matches(path, glob, root) for glob in globs)}


def is_absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or re.match(r"[A-Za-z]:[/\\]", path) is not None


def loosens(change: FileChange) -> bool:
    """Whether a change of a test file removes assertions, adds skips, or changes an expected value. False for a change
    of any other file.
    """
    if not TEST_FILE.search(change.path[-400:]):
        return False
    added = [line.strip() for line in change.added if ASSERTION.search(line[:500])]
    removed = [line.strip() for line in change.removed if ASSERTION.search(line[:500])]
    skipped = sum(SKIP.search(line[:500]) is not None for line in change.added)
    was_skipped = sum(SKIP.search(line[:500]) is not None for line in change.removed)
    if skipped > was_skipped or len(removed) > len(added):
        return True
    # The same comparison was removed and is back with another expected value.
    subjects = {_subject(line) for line in removed} - {""}
    return any(_subject(line) in subjects for line in added if line not in removed)


def _subject(line: str) -> str:
    """What an assertion compares: its line up to and including the last comparison, without the expected value after
    it; "" if the line has no comparison.
    """
    ends = [match.end() for match in COMPARISON.finditer(line[:500])]
    return line[: ends[-1]] if ends else ""
