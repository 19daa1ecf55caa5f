"""Artifacts: what a session produces besides commits, found by rules that are data.

Only an artifact with substance counts: enough text, and not a copy of another artifact.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import re2

from grading.signals import EffectKind, Signals, substance
from grading.signals.changes import MAX_LINES, FileChange, glob_regex, path_matches, subtract_lines
from grading.signals.patch import Patch

SHOWED_UP = "non-null"
ENGAGEMENT = "engagement"
MAX_PATTERN = 300
MAX_KEY = 500
MAX_ROWS = 200
# Three of a kind earn the full value; the text of more than these is not examined.
MAX_OF_A_KIND = 50
MIN_CHARACTERS = 200
# A title and a sentence; a paragraph.
MIN_TASK_CHARACTERS, MIN_NOTE_CHARACTERS = 60, 120
MIN_ROW_CHARACTERS = 12
MAX_LEAST_CHARACTERS = 5_000
# With this share of words in common (Jaccard index), an added row is an edit of a removed one.
MIN_ROW_SIMILARITY = 0.5
REPEATED_ROW = "the same as a row that was removed"
SEPARATOR = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*")
WORD = re.compile(r"\w+")


class InvalidRule(ValueError):
    """An invalid rule; the message says which part, why, and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactDefinition:
    """How one kind of artifact is found and what it is worth.

    `path_glob` matches files (`*`, `?`, `**`, `{a,b}`). With `line_pattern`, each added line that it matches is an
    artifact; without, each file is. The pattern is for RE2, which runs in linear time and has no lookahead, lookbehind
    or backreference. `weight` in [0, 1]; `scale` > 0 is that of the diminishing return. `least_characters`: how much
    text without markup a file, or a row, needs to count. A rule without a glob finds nothing in files: `non-null` is
    the session itself, and `engagement` takes confirmed comments besides its files. Raises InvalidRule.
    """

    kind: str
    weight: float
    path_glob: str = ""
    line_pattern: str = ""
    new_files_only: bool = False
    scale: float = 1.0
    least_characters: int = MIN_CHARACTERS
    regex: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InvalidRule(f"weight of rule {self.kind!r}: expected 0 to 1, got {self.weight!r}")
        if not 0 < self.scale < float("inf"):
            raise InvalidRule(f"scale of rule {self.kind!r}: expected a number above 0, got {self.scale!r}")
        if not 0 <= self.least_characters <= MAX_LEAST_CHARACTERS:
            raise InvalidRule(
                f"least characters of rule {self.kind!r}: expected 0 to {MAX_LEAST_CHARACTERS:,}, "
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
                why = error.args[0].decode(errors="replace") if isinstance(error, re2.error) else "no text"
                raise InvalidRule(
                    f"line pattern of rule {self.kind!r} does not compile: {why}; correct it. Lookaheads (?=…) (?!…), "
                    "lookbehinds and backreferences are not supported, because they can run without end"
                ) from error
        object.__setattr__(self, "regex", regex)


RULE_FIELDS = ("kind", "path_glob", "line_pattern", "new_files_only", "weight", "scale", "least_characters")


def rules_from(rows: Iterable[Mapping[str, Any]]) -> tuple[ArtifactDefinition, ...]:
    """The rules of rows with the keys RULE_FIELDS. Raises InvalidRule."""
    return tuple(ArtifactDefinition(**row) for row in rows)


DEFAULT_RULES = (
    ArtifactDefinition(
        kind="idea",
        path_glob="**/idea-backlog.md",
        line_pattern=r"(?i)^\s*\|.*\bideas?(?:[^a-z]|$)",
        weight=0.4,
        least_characters=MIN_ROW_CHARACTERS,
    ),
    ArtifactDefinition(
        kind="task", path_glob="tasks/**", new_files_only=True, weight=0.2, least_characters=MIN_TASK_CHARACTERS
    ),
    ArtifactDefinition(
        kind=ENGAGEMENT,
        path_glob="**/{tweets,posts,drafts,_posts,replies}/**/*.{md,txt,yml,yaml}",
        new_files_only=True,
        weight=0.2,
    ),
    ArtifactDefinition(
        kind="knowledge",
        path_glob="knowledge/**",
        new_files_only=True,
        weight=0.1,
        least_characters=MIN_NOTE_CHARACTERS,
    ),
    ArtifactDefinition(kind=SHOWED_UP, weight=0.1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundArtifact:
    """One artifact. `key` is its path, URL or line; `where` says where it was found.

    `left_out` is the reason why it does not count, empty if it counts. `text_hash` is its text's, to recognise copies;
    None without a text. `path` is the file that it is, or is in; empty for a comment.
    """

    kind: str
    key: str
    where: str
    origin: str
    left_out: str = ""
    text_hash: int | None = None
    path: str = ""


def find_artifacts(
    rules: Sequence[ArtifactDefinition], *, patch: Patch | None = None, signals: Signals | None = None, root: str = ""
) -> tuple[FoundArtifact, ...]:
    """The artifacts of a session, each once; those without substance with the reason in `left_out`.

    Files come from the patch, or without one from the confirmed writes of the transcript; there, a file whose text no
    call shows does not count. Comments come from the transcript's confirmed effects. `root`: the folder that absolute
    paths of the transcript are relative to. A file belongs to the first rule that matches it, and stays with that rule
    when the session changes it again.
    """
    artifacts: dict[tuple[str, str], FoundArtifact] = {}
    counts: Counter[str] = Counter()  # artifacts by kind
    signals = signals or Signals()
    changes = signals.files if patch is None else patch.files
    written_lines = _written_lines(signals.files) if patch is None else {}
    rules_by_path: dict[str, ArtifactDefinition] = {}
    for change in changes:
        rule = _first_rule(rules, change, root)
        if rule is None or rules_by_path.setdefault(change.path, rule) is not rule:
            continue
        for key, reason in _artifact_keys(rule, change):
            artifact = FoundArtifact(
                kind=rule.kind,
                key=key[:MAX_KEY],
                where=f"{change.path}, event {change.at}" if patch is None else f"{change.path}, in the patch",
                origin="transcript" if patch is None else "patch",
                left_out=reason,
                path=change.path,
            )
            if (rule.kind, artifact.key) not in artifacts:
                counts[rule.kind] += 1
                lines = written_lines.get(change.path, change.added)
                artifacts[rule.kind, artifact.key] = _examine(artifact, rule, lines, number=counts[rule.kind])
    if any(rule.kind == ENGAGEMENT for rule in rules):
        for effect in signals.effects:
            if effect.kind is EffectKind.COMMENT:
                where = f"event {effect.at}"
                comment = FoundArtifact(kind=ENGAGEMENT, key=effect.key, where=where, origin="transcript")
                artifacts.setdefault((ENGAGEMENT, comment.key), comment)
    return tuple(_mark_copies(artifacts.values()))


def _written_lines(changes: Iterable[FileChange]) -> dict[str, tuple[str, ...]]:
    """The lines that the changes added to each file and did not remove again, at most MAX_LINES by path."""
    written: dict[str, tuple[str, ...]] = {}
    for change in changes:
        remaining = subtract_lines(written.get(change.path, ()), change.removed)
        written[change.path] = (*remaining, *change.added)[:MAX_LINES]
    return written


def _first_rule(rules: Iterable[ArtifactDefinition], change: FileChange, root: str) -> ArtifactDefinition | None:
    """The first rule that matches a change; None if none does."""
    for rule in rules:
        # A write that may have created its file counts as new: gptme's log does not record it.
        may_apply = change.is_new is not False or not rule.new_files_only
        if may_apply and rule.path_glob and path_matches(change.path, rule.path_glob, root):
            return rule
    return None


def _examine(artifact: FoundArtifact, rule: ArtifactDefinition, lines: Sequence[str], *, number: int) -> FoundArtifact:
    """The artifact with its text's hash, or with why it does not count. It is the `number`th of its kind.

    The text of a row is its key; that of a file are the `lines` that the session wrote to it.
    """
    if artifact.left_out:
        return artifact
    if number > MAX_OF_A_KIND:
        return replace(artifact, left_out=f"only the first {MAX_OF_A_KIND} of a kind are looked at")
    is_row = bool(rule.line_pattern)
    text = substance.read_row(artifact.key) if is_row else substance.read_lines(lines)
    count, needed = text.characters, rule.least_characters
    if count < needed:
        if artifact.origin == "transcript" and not is_row and not lines:
            return replace(artifact, left_out=f"no call shows its text, {needed:,} characters needed")
        unit = "character" if count == 1 else "characters"
        return replace(artifact, left_out=f"{count} {unit} of text, {needed:,} needed; {needed - count:,} missing")
    if not is_row and count < MIN_CHARACTERS:
        # A word counts again in another phrase. At least half of a short text must be distinct words.
        distinct, needed = text.distinct_characters, needed // 2
        if distinct < needed:
            reason = f"{distinct} characters of different words, {needed:,} needed; {needed - distinct:,} missing"
            return replace(artifact, left_out=reason)
    return replace(artifact, text_hash=text.text_hash)


def _mark_copies(artifacts: Iterable[FoundArtifact]) -> Iterator[FoundArtifact]:
    """The artifacts in order; a copy of an earlier one gets that reason in `left_out`."""
    originals: dict[int, FoundArtifact] = {}
    for artifact in artifacts:
        if artifact.text_hash is None:
            yield artifact
            continue
        original = originals.setdefault(artifact.text_hash, artifact)
        is_copy = original is not artifact
        yield replace(artifact, text_hash=None, left_out=f"a copy of {original.key[:200]}") if is_copy else artifact


def _artifact_keys(rule: ArtifactDefinition, change: FileChange) -> Iterator[tuple[str, str]]:
    """The (key, reason to leave it out or "") of each artifact of a change, by the rule that its path matches.

    Without a line pattern the artifact is the file, and its key the path. With one, each added row that matches is an
    artifact. If it isn't known whether the file is new, none of its lines is known to be added, so it has no rows.
    """
    if rule.regex is None:
        yield change.path, ""
        return
    if change.is_new is None:
        return
    removed = change.removed[:MAX_ROWS]
    removed_hashes = {substance.read_row(row).text_hash for row in removed}
    for row in _rows_beyond_edits(_matching_rows(rule, change)[:MAX_ROWS], removed):
        is_repeated = substance.read_row(row).text_hash in removed_hashes
        yield row.strip(), REPEATED_ROW if is_repeated else ""


def _rows_beyond_edits(added: list[str], removed: Sequence[str]) -> Iterator[str]:
    """The added rows that aren't a removed row in other words.

    Each added row is taken for an edit of the removed row that is most similar to it, by the share of common words, if
    they are similar enough. A removed row has one edit only.
    """
    unmatched = [_distinct_words(row) for row in removed]  # the words of removed rows without an edit so far
    for row in added:
        row_words = _distinct_words(row)
        similarities = [len(row_words & other) / max(1, len(row_words | other)) for other in unmatched]
        highest = max(similarities, default=0.0)
        if highest >= MIN_ROW_SIMILARITY:
            del unmatched[similarities.index(highest)]
        else:
            yield row


def _matching_rows(rule: ArtifactDefinition, change: FileChange) -> list[str]:
    """The added lines that match the rule's line pattern, without the headers and separators of tables."""
    rows: list[str] = []
    for line, next_line in pairwise((*change.added, "")):
        is_separator = SEPARATOR.fullmatch(line) is not None
        is_header = "|" in next_line and SEPARATOR.fullmatch(next_line) is not None
        if not is_separator and not is_header and rule.regex.search(line):
            rows.append(line)
    return rows


def _distinct_words(line: str) -> frozenset[str]:
    return frozenset(WORD.findall(line.lower()))
