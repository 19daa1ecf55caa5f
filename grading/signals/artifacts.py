"""Artifacts: what a session leaves behind besides commits, found by rules that are data.

Only an artifact with substance counts: enough text of its own that no other artifact had before.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import re2

from grading.signals import EffectKind, Signals, substance
from grading.signals.changes import MAX_LINES, FileChange, glob_regex, lacking, path_matches
from grading.signals.patch import Patch

VERSION = "artifacts/2"
SHOWED_UP = "non-null"
ENGAGEMENT = "engagement"
MAX_PATTERN = 300
MAX_ROWS = 200
# Three of a kind are full marks; the text of more than these is not looked at.
MAX_OF_A_KIND = 50
LEAST_CHARACTERS = 200
# A title and a sentence; a paragraph.
LEAST_IN_A_TASK, LEAST_IN_A_NOTE = 60, 120
LEAST_IN_A_ROW = 12
MOST_CHARACTERS = 5_000
SIMILAR = 0.5
REPEATED = "the same as a row that was removed"
SEPARATOR = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*")
WORD = re.compile(r"\w+")


class InvalidRule(ValueError):
    """A rule that cannot work; the message says which part, why, and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactDefinition:
    """How one kind of artifact is found and what it is worth.

    `path_glob` names files (`*`, `?`, `**`, `{a,b}`). With `line_pattern`, each added line that it is found in is an
    artifact; without, each file. The pattern is RE2's, whose time is linear whatever it and the line are: it knows no
    lookahead, lookbehind or backreference. `weight` in [0, 1]; `scale` > 0: the diminishing return's.
    `least_characters`: of text without markup that a file, or a row, must have to count. A rule without glob finds
    nothing in files: `non-null` is the session itself, and `engagement` takes confirmed comments besides its files.
    Raises InvalidRule.
    """

    kind: str
    weight: float
    path_glob: str = ""
    line_pattern: str = ""
    new_files_only: bool = False
    scale: float = 1.0
    least_characters: int = LEAST_CHARACTERS
    regex: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InvalidRule(f"weight of rule {self.kind!r}: expected 0 to 1, got {self.weight!r}")
        if not 0 < self.scale < float("inf"):
            raise InvalidRule(f"scale of rule {self.kind!r}: expected a number above 0, got {self.scale!r}")
        if not 0 <= self.least_characters <= MOST_CHARACTERS:
            raise InvalidRule(
                f"least characters of rule {self.kind!r}: expected 0 to {MOST_CHARACTERS:,}, "
                f"got {self.least_characters!r}"
            )
        if len(self.line_pattern) > MAX_PATTERN:
            raise InvalidRule(f"line pattern of rule {self.kind!r}: at most {MAX_PATTERN} characters; shorten it")
        if self.line_pattern and not self.path_glob:
            raise InvalidRule(f"rule {self.kind!r} has a line pattern but no path glob; say which files it is for")
        try:
            glob_regex(self.path_glob)
        except ValueError as error:
            raise InvalidRule(f"pattern of rule {self.kind!r} does not compile: {error}; correct it") from error
        regex = None
        if self.line_pattern:
            options = re2.Options()
            options.log_errors = False
            try:
                regex = re2.compile(self.line_pattern, options)
            except (re2.error, UnicodeError) as error:
                said = error.args[0].decode(errors="replace") if isinstance(error, re2.error) else "no text"
                raise InvalidRule(
                    f"line pattern of rule {self.kind!r} does not compile: {said}; correct it. Lookaheads (?=…) (?!…), "
                    "lookbehinds and backreferences are not known here, because they can take for ever"
                ) from error
        object.__setattr__(self, "regex", regex)


RULE_FIELDS = ("kind", "path_glob", "line_pattern", "new_files_only", "weight", "scale", "least_characters")


def rules_from(rows: Iterable[Mapping[str, Any]]) -> tuple[ArtifactDefinition, ...]:
    """The rules that these rows of RULE_FIELDS say. Raises InvalidRule for one that cannot work."""
    return tuple(ArtifactDefinition(**row) for row in rows)


DEFAULT_RULES = (
    ArtifactDefinition(
        kind="idea",
        path_glob="**/idea-backlog.md",
        line_pattern=r"(?i)^\s*\|.*\bideas?(?:[^a-z]|$)",
        weight=0.4,
        least_characters=LEAST_IN_A_ROW,
    ),
    ArtifactDefinition(
        kind="task", path_glob="tasks/**", new_files_only=True, weight=0.2, least_characters=LEAST_IN_A_TASK
    ),
    ArtifactDefinition(
        kind=ENGAGEMENT,
        path_glob="**/{tweets,posts,drafts,_posts,replies}/**/*.{md,txt,yml,yaml}",
        new_files_only=True,
        weight=0.2,
    ),
    ArtifactDefinition(
        kind="knowledge", path_glob="knowledge/**", new_files_only=True, weight=0.1, least_characters=LEAST_IN_A_NOTE
    ),
    ArtifactDefinition(kind=SHOWED_UP, weight=0.1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundArtifact:
    """One thing left behind. `key` is its path, address or line; `where` says where it was seen; `rule` found it.

    `left_out` says in words why it does not count; empty where it does. `sketch` is of its text, by which copies are
    recognised; empty where it has none. `path` is the file that it is, or is in; empty where it is in none.
    """

    kind: str
    key: str
    where: str
    origin: str
    rule: str
    left_out: str = ""
    sketch: substance.Sketch = ()
    path: str = ""
    short: substance.Text | None = field(default=None, compare=False, repr=False)
    """Its text, where that is a file's of fewer than `LEAST_CHARACTERS`."""


def find(
    rules: Sequence[ArtifactDefinition], *, patch: Patch | None = None, signals: Signals | None = None, root: str = ""
) -> tuple[FoundArtifact, ...]:
    """The artifacts of a session, each once; those without substance with the reason.

    Files come from the patch; without one, from the confirmed writes of the transcript, and there a file whose text no
    call shows cannot be said to have any. Comments come from the transcript's confirmed effects. `root`: the folder
    that absolute paths of the transcript are relative to. A file is one artifact: the first rule that takes it has it.
    """
    found: dict[tuple[str, str], FoundArtifact] = {}
    looked: Counter[str] = Counter()
    signals = signals or Signals()
    changes = signals.files if patch is None else patch.files
    origin = "transcript" if patch is None else "patch"
    # What the transcript's changes wrote into each file, one after the other, without what they removed again.
    written: dict[str, tuple[str, ...]] = {}
    for change in changes if patch is None else ():
        held = lacking(written.get(change.path, ()), change.removed)
        written[change.path] = (*held, *change.added)[:MAX_LINES]
    taken: set[str] = set()
    for change in changes:
        # A write that may have made its file counts as new: gptme does not say.
        fitting = (rule for rule in rules if change.is_new is not False or not rule.new_files_only)
        rule = next((one for one in fitting if one.path_glob and path_matches(change.path, one.path_glob, root)), None)
        if rule is None or (not rule.line_pattern and change.path in taken):
            continue
        taken.add(change.path)
        where = f"{change.path}, " + ("in the patch" if origin == "patch" else f"event {change.at}")
        for key, why in _keys(rule, change):
            artifact = FoundArtifact(
                kind=rule.kind,
                key=key[:500],
                where=where,
                origin=origin,
                rule=rule.kind,
                left_out=why,
                path=change.path,
            )
            if (rule.kind, artifact.key) not in found:
                looked[rule.kind] += 1
                lines = written.get(change.path, change.added)
                found[rule.kind, artifact.key] = _weighed(artifact, rule, lines, number=looked[rule.kind])
    for effect in signals.effects if any(rule.kind == ENGAGEMENT for rule in rules) else ():
        if effect.kind is EffectKind.COMMENT:
            comment = FoundArtifact(
                kind=ENGAGEMENT, key=effect.key, where=f"event {effect.at}", origin="transcript", rule=ENGAGEMENT
            )
            found.setdefault((ENGAGEMENT, comment.key), comment)
    return tuple(_distinct(found.values()))


def _weighed(artifact: FoundArtifact, rule: ArtifactDefinition, lines: Sequence[str], *, number: int) -> FoundArtifact:
    """The artifact, `number` of its kind, with the sketch of its text; or with why it does not count."""
    if artifact.left_out:
        return artifact
    if number > MAX_OF_A_KIND:
        return replace(artifact, left_out=f"only the first {MAX_OF_A_KIND} of a kind are looked at")
    text = substance.read_row(artifact.key) if rule.line_pattern else substance.read(lines)
    is_short = not rule.line_pattern and text.characters < LEAST_CHARACTERS
    # A word counts again in another phrase. In a short text, that must not be most of it.
    least_distinct = rule.least_characters // 2 if is_short else 0
    if text.characters >= rule.least_characters:
        if text.distinct >= least_distinct:
            return replace(artifact, sketch=text.sketch, short=text if is_short else None)
        lacking_words = f"{text.distinct} characters of different words, {least_distinct:,} needed"
        return replace(artifact, left_out=f"{lacking_words}; {least_distinct - text.distinct:,} missing")
    is_unknown = artifact.origin == "transcript" and not rule.line_pattern and not lines
    if is_unknown:
        return replace(artifact, left_out=f"no call shows its text, {rule.least_characters:,} characters needed")
    counted = f"{text.characters} character{'s' * (text.characters != 1)} of text"
    missing = rule.least_characters - text.characters
    return replace(artifact, left_out=f"{counted}, {rule.least_characters:,} needed; {missing:,} missing")


def _distinct(found: Iterable[FoundArtifact]) -> Iterator[FoundArtifact]:
    """The artifacts in their order; one whose text an earlier one has is left out."""
    kept: list[FoundArtifact] = []
    for artifact in found:
        if not artifact.sketch:  # no text to compare
            yield artifact
            continue
        same = next((other for other in kept if _is_copy(artifact, other)), None)
        if same is None:
            kept.append(artifact)
            yield artifact
        else:
            yield replace(artifact, sketch=(), short=None, left_out=f"a near copy of {same.key[:200]}")


def _is_copy(ours: FoundArtifact, theirs: FoundArtifact) -> bool:
    if ours.short is not None and theirs.short is not None and ours.short.is_like(theirs.short):
        return True
    return substance.is_copy(ours.sketch, theirs.sketch)


def _keys(rule: ArtifactDefinition, change: FileChange) -> Iterator[tuple[str, str]]:
    """What the change left behind by a rule that takes it: the file, or its added lines that match, without table
    headers, separators and rows that replace a similar removed row. Each with why it cannot count, where that is so.

    Of a file that may have been there, it is not known which lines were added.
    """
    if rule.regex is None:
        yield change.path, ""
        return
    if change.is_new is None:
        return
    rows: list[str] = []
    for line, after in zip_longest(change.added, change.added[1:], fillvalue=""):
        is_header = "|" in after and SEPARATOR.fullmatch(after) is not None
        if not SEPARATOR.fullmatch(line) and not is_header and rule.regex.search(line):
            rows.append(line)
    removed = [_words(line) for line in change.removed[:MAX_ROWS]]
    gone = {substance.read_row(line).sketch for line in change.removed[:MAX_ROWS]}
    for line in rows[:MAX_ROWS]:
        # By the share of words in common a row is an edit of a removed one; each removed row excuses one.
        words = _words(line)
        shares = [len(words & other) / max(1, len(words | other)) for other in removed]
        best = max(range(len(shares)), key=shares.__getitem__, default=None)
        if best is not None and shares[best] >= SIMILAR:
            removed.pop(best)
        else:
            yield line.strip(), REPEATED if substance.read_row(line).sketch in gone else ""


def _words(line: str) -> frozenset[str]:
    return frozenset(WORD.findall(line.lower()))
