"""Artifacts: what a session leaves behind besides commits, found by rules that are data (seed 000)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from grading.core.changes import FileChange, glob_regex, path_matches
from grading.core.patch import Patch
from grading.core.signals import EffectKind, Signals

VERSION = "artifacts/1"
SHOWED_UP = "non-null"
ENGAGEMENT = "engagement"
MAX_PATTERN = 300
MAX_ROWS = 200
SIMILAR = 0.5
SEPARATOR = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*")
WORD = re.compile(r"\w+")


class InvalidRule(ValueError):
    """A rule that cannot work; the message says which part, why, and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one kind of artifact is found and what it is worth.

    `path_glob` names files (`*`, `?`, `**`, `{a,b}`). With `line_pattern`, each added line that it is found in is an
    artifact; without, each file. `weight` in [0, 1]; `scale` > 0: the diminishing return's. A rule without glob finds
    nothing in files: `non-null` is the session itself, and `engagement` takes confirmed comments besides its files.
    Raises InvalidRule.
    """

    kind: str
    weight: float
    path_glob: str = ""
    line_pattern: str = ""
    new_files_only: bool = False
    scale: float = 1.0
    regex: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InvalidRule(f"weight of rule {self.kind!r}: expected 0 to 1, got {self.weight!r}")
        if not 0 < self.scale < float("inf"):
            raise InvalidRule(f"scale of rule {self.kind!r}: expected a number above 0, got {self.scale!r}")
        if len(self.line_pattern) > MAX_PATTERN:
            raise InvalidRule(f"line pattern of rule {self.kind!r}: at most {MAX_PATTERN} characters; shorten it")
        if self.line_pattern and not self.path_glob:
            raise InvalidRule(f"rule {self.kind!r} has a line pattern but no path glob; say which files it is for")
        try:
            glob_regex(self.path_glob)
            regex = re.compile(self.line_pattern) if self.line_pattern else None
        except (ValueError, re.error, RecursionError, OverflowError) as error:
            raise InvalidRule(f"pattern of rule {self.kind!r} does not compile: {error}; correct it") from error
        object.__setattr__(self, "regex", regex)


DEFAULT_RULES = (
    Rule(kind="idea", path_glob="**/idea-backlog.md", line_pattern=r"(?i)^\s*\|.*\bideas?(?![a-z])", weight=0.4),
    Rule(kind="task", path_glob="tasks/**", new_files_only=True, weight=0.2),
    Rule(
        kind=ENGAGEMENT,
        path_glob="**/{tweets,posts,drafts,_posts,replies}/**/*.{md,txt,yml,yaml}",
        new_files_only=True,
        weight=0.2,
    ),
    Rule(kind="knowledge", path_glob="knowledge/**", new_files_only=True, weight=0.1),
    Rule(kind=SHOWED_UP, weight=0.1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One thing left behind. `key` is its path, address or line; `where` says where it was seen; `rule` found it."""

    kind: str
    key: str
    where: str
    origin: str
    rule: str


def find(
    rules: Sequence[Rule], *, patch: Patch | None = None, signals: Signals | None = None, root: str = ""
) -> tuple[Artifact, ...]:
    """The artifacts of a session, each once.

    Files come from the patch; without one, from the confirmed writes of the transcript. Comments come from the
    transcript's confirmed effects. `root`: the folder that absolute paths of the transcript are relative to. A file is
    one artifact: the first rule that takes it has it.
    """
    found: dict[tuple[str, str], Artifact] = {}
    taken: set[str] = set()
    for change, origin in _changes(patch, signals):
        rule = next((rule for rule in rules if _takes(rule, change, root)), None)
        if rule is None:
            continue
        keys = _rows(rule, change) if rule.line_pattern else [change.path]
        if not rule.line_pattern and change.path in taken:
            continue
        taken.add(change.path)
        for key in keys:
            where = f"{change.path}, " + ("in the patch" if origin == "patch" else f"event {change.at}")
            artifact = Artifact(kind=rule.kind, key=key[:500], where=where, origin=origin, rule=rule.kind)
            found.setdefault((rule.kind, artifact.key), artifact)
    for artifact in _comments(rules, signals):
        found.setdefault((artifact.kind, artifact.key), artifact)
    return tuple(found.values())


def _changes(patch: Patch | None, signals: Signals | None) -> Iterator[tuple[FileChange, str]]:
    if patch is not None:
        yield from ((change, "patch") for change in patch.files)
    elif signals is not None:
        yield from ((change, "transcript") for change in signals.files)


def _takes(rule: Rule, change: FileChange, root: str) -> bool:
    """Whether a rule is for this change. A write that may have made its file counts as new: gptme does not say."""
    if not rule.path_glob or (rule.new_files_only and change.is_new is False):
        return False
    return path_matches(change.path, rule.path_glob, root)


def _rows(rule: Rule, change: FileChange) -> list[str]:
    """Added lines that match, without table headers, separators and rows that replace a similar removed row."""
    assert rule.regex is not None  # noqa: S101 (a rule with a line pattern has compiled it)
    rows = [
        line
        for line, after in zip_longest(change.added, change.added[1:], fillvalue="")
        if not SEPARATOR.fullmatch(line) and not _is_separator(after) and rule.regex.search(line)
    ]
    removed = [_words(line) for line in change.removed[:MAX_ROWS]]
    return [line.strip() for line in rows[:MAX_ROWS] if not _replaces(line, removed)]


def _is_separator(line: str) -> bool:
    return "|" in line and SEPARATOR.fullmatch(line) is not None


def _replaces(line: str, removed: list[frozenset[str]]) -> bool:
    """Whether a row is an edit of a removed one, by the share of words in common; each removed row excuses one."""
    words = _words(line)
    shares = [len(words & other) / max(1, len(words | other)) for other in removed]
    best = max(range(len(shares)), key=shares.__getitem__, default=None)
    if best is None or shares[best] < SIMILAR:
        return False
    removed.pop(best)
    return True


def _words(line: str) -> frozenset[str]:
    return frozenset(WORD.findall(line.lower()))


def _comments(rules: Sequence[Rule], signals: Signals | None) -> Iterator[Artifact]:
    if signals is None or all(rule.kind != ENGAGEMENT for rule in rules):
        return
    for effect in signals.effects:
        if effect.kind is EffectKind.COMMENT:
            yield Artifact(
                kind=ENGAGEMENT, key=effect.key, where=f"event {effect.at}", origin="transcript", rule=ENGAGEMENT
            )
