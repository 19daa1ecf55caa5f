"""The production of a session: one sum over the caller's facts, the transcript and the patch.

Each thing is counted once, whichever sources show it: a commit by its hash, a pull request by its address, a file by
its path. Things of another session are left out. The sum is in commit-equivalents, with diminishing returns within a
kind.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from grading.signals import EffectKind, Signals
from grading.signals.changes import matching
from grading.signals.facts import NOTHING_FOREIGN, Foreign, ObservedFacts
from grading.signals.links import pull_request
from grading.signals.model import UNNAMED
from grading.signals.patch import Patch

# What one thing of each kind is worth, in commit-equivalents.
UNITS = MappingProxyType(
    {
        "commit": 1.0,
        "pr_merged": 1.5,
        "pr_opened": 1.2,
        "ci_fixed": 0.8,
        "issue_closed": 0.4,
        "pr_closed": 0.4,
        "pr_reviewed": 0.4,
        "issue_opened": 0.3,
        "tests_fixed": 0.3,
        "comment": 0.2,
        "push": 0.1,
        "file": 0.3,
        "bookkeeping_commit": 0.1,
        "bookkeeping_file": 0.03,
    }
)
# The names of each kind, singular and plural.
NAMES = MappingProxyType(
    {
        "commit": ("commit", "commits"),
        "push": ("push", "pushes"),
        "pr_opened": ("pull request opened", "pull requests opened"),
        "pr_merged": ("pull request merged", "pull requests merged"),
        "pr_closed": ("pull request closed", "pull requests closed"),
        "pr_reviewed": ("pull request reviewed", "pull requests reviewed"),
        "issue_opened": ("issue opened", "issues opened"),
        "issue_closed": ("issue closed", "issues closed"),
        "comment": ("comment", "comments"),
        "ci_fixed": ("CI run fixed", "CI runs fixed"),
        "tests_fixed": ("test run fixed", "test runs fixed"),
        "file": ("file changed", "files changed"),
        "bookkeeping_commit": ("commit of bookkeeping", "commits of bookkeeping"),
        "bookkeeping_file": ("bookkeeping file", "bookkeeping files"),
    }
)
# Files that an agent's loop writes about itself: a commit of nothing else isn't work.
BOOKKEEPING = (
    "**/{journal,journals,state,memory}/**/*.{md,txt,json,jsonl,yml,yaml}",
    "**/{.claude,.beads}/**",
    "**/{*.log,*.lock,package-lock.json,pnpm-lock.yaml}",
)
SCRATCH = re.compile(r"(?:/private)?/(?:var/)?tmp/(?:[^/]+|.*/scratchpad/.*)|.*\.tmp")
FACTS, TRANSCRIPT, PATCH = "facts", "transcript", "patch"
MAX_THINGS = 3_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """One confirmed result. `key` is its identity within its kind; `seen_in` names the sources that show it (facts,
    transcript, patch); `at` is the number of the transcript's event, None if only the others show it.
    """

    kind: str
    key: str
    seen_in: tuple[str, ...]
    at: int | None = None

    @property
    def is_bookkeeping(self) -> bool:
        return self.kind.startswith("bookkeeping")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionTerm:
    """One row of the sum: `count` things of `units` commit-equivalents each, which come to `adds` of them together."""

    kind: str
    count: int
    units: float

    @property
    def adds(self) -> float:
        return self.units * math.log2(1 + self.count)

    @property
    def name(self) -> str:
        singular, plural = NAMES[self.kind]
        return singular if self.count == 1 else plural

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "words": self.name,
            "count": self.count,
            "units": self.units,
            "adds": round(self.adds, 6),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Production:
    """The confirmed things of a session, each once."""

    things: tuple[Thing, ...] = ()

    @property
    def terms(self) -> tuple[ProductionTerm, ...]:
        """The rows of the sum, by kind; kinds without anything are left out."""
        counts = Counter(thing.kind for thing in self.things)
        return tuple(
            ProductionTerm(kind=kind, count=counts[kind], units=units) for kind, units in UNITS.items() if counts[kind]
        )

    @property
    def units(self) -> float:
        """The sum in commit-equivalents."""
        return math.fsum(term.adds for term in self.terms)

    @property
    def is_work(self) -> bool:
        """Whether there is anything besides bookkeeping."""
        return any(not thing.is_bookkeeping for thing in self.things)

    @property
    def summary(self) -> str:
        """The terms as text: `3 commits, 1 pull request opened`."""
        return ", ".join(f"{term.count} {term.name}" for term in self.terms)


def collect(
    signals: Signals | None = None,
    *,
    facts: ObservedFacts | None = None,
    patch: Patch | None = None,
    foreign: Foreign = NOTHING_FOREIGN,
    root: str = "",
    artifacts: Sequence[str] = (),
) -> Production:
    """The confirmed things of a session, from the evidence that there is.

    `root` is the folder that contains the absolute paths. `artifacts` are globs of files (ideas, tasks, posts, notes)
    that are left out here: they count only in the consumption grade, and there only if they have substance. A thing
    that two sources show counts once. The transcript's form is taken, because only it tells what a commit contained.
    """
    facts, signals = facts or ObservedFacts(), signals or Signals()
    things = [*_commits(signals, facts, foreign), *_pull_requests(signals, facts, foreign)]
    things += [
        Thing(kind=effect.kind.value, key=effect.key, seen_in=(TRANSCRIPT,), at=effect.at)
        for effect in signals.effects
        if effect.kind is not EffectKind.PR_OPENED
    ]
    things += _files(signals, patch, root, artifacts)
    return Production(things=tuple(things[:MAX_THINGS]))


def _commits(signals: Signals, facts: ObservedFacts, foreign: Foreign) -> Iterator[Thing]:
    """The commits of the transcript, then those that only the facts name, without those of other sessions.

    A commit whose hash the transcript doesn't show is skipped if the facts have any: it is one of these.
    """
    only_in_facts = dict.fromkeys(facts.commits)
    for commit in signals.commits:
        if only_in_facts and commit.hash.startswith(UNNAMED):
            continue
        same = [sha for sha in only_in_facts if commit.is_same(sha)]
        for sha in same:
            del only_in_facts[sha]
        if not _is_foreign(commit.hash, foreign):
            kind = "bookkeeping_commit" if is_bookkeeping(commit.paths) else "commit"
            yield Thing(kind=kind, key=commit.hash, seen_in=_sources(TRANSCRIPT, FACTS if same else ""), at=commit.at)
    for sha in only_in_facts:
        if not _is_foreign(sha, foreign) and not any(sha.startswith(short) for short in signals.undone):
            yield Thing(kind="commit", key=sha, seen_in=(FACTS,))


def _is_foreign(sha: str, foreign: Foreign) -> bool:
    """Whether another session owns the commit; either hash may be abbreviated."""
    return any(sha.startswith(other) or other.startswith(sha) for other in foreign.commits)


def _pull_requests(signals: Signals, facts: ObservedFacts, foreign: Foreign) -> Iterator[Thing]:
    """The opened pull requests: the transcript's, then those that only the facts name, without other sessions'."""
    in_facts = dict.fromkeys(facts.pull_requests)
    opened: dict[str, int] = {}
    for effect in signals.effects:
        if effect.kind is not EffectKind.PR_OPENED:
            continue
        try:
            address = pull_request(effect.key)
        except ValueError:
            address = effect.key
        opened.setdefault(address, effect.at)
    for url in [*opened, *(url for url in in_facts if url not in opened)]:
        if url not in foreign.pull_requests:
            sources = _sources(TRANSCRIPT if url in opened else "", FACTS if url in in_facts else "")
            yield Thing(kind="pr_opened", key=url, seen_in=sources, at=opened.get(url))


def _files(signals: Signals, patch: Patch | None, root: str, artifacts: Sequence[str]) -> Iterator[Thing]:
    """The changed files, each once, without artifacts and without the transcript's scratch files outside the root."""
    patch_files = patch.files if patch else ()
    all_paths = {change.path for change in (*signals.files, *patch_files)}
    artifact_paths = matching(all_paths, artifacts, root) if artifacts else set()
    changed: dict[str, int] = {}
    prefix = _prefix(root)
    for change in signals.files:
        is_scratch = change.is_scratch and (prefix == "/" or not change.path.startswith(prefix))
        if change.path not in artifact_paths and not is_scratch:
            changed.setdefault(_relative(change.path, root), change.at)
    patched = dict.fromkeys(_relative(change.path, root) for change in patch_files if change.path not in artifact_paths)
    paths = [*changed, *(path for path in patched if path not in changed)]
    bookkeeping = _bookkeeping(paths)
    for path in paths:
        kind = "bookkeeping_file" if path in bookkeeping else "file"
        sources = _sources(TRANSCRIPT if path in changed else "", PATCH if path in patched else "")
        yield Thing(kind=kind, key=path, seen_in=sources, at=changed.get(path))


def is_bookkeeping(paths: Sequence[str]) -> bool:
    """Whether there are paths, and all of them are bookkeeping or scratch files."""
    return bool(paths) and set(paths) <= _bookkeeping(paths)


def _bookkeeping(paths: Sequence[str]) -> set[str]:
    """Those of the paths that are bookkeeping or scratch files."""
    scratch = {path for path in paths if SCRATCH.fullmatch(path)}
    others = [path for path in paths if path not in scratch]
    return scratch | (matching(others, BOOKKEEPING) if others else set())


def _sources(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name)


def _prefix(root: str) -> str:
    """What paths below the folder begin with; "/" if there is none."""
    return root.replace("\\", "/").rstrip("/") + "/"


def _relative(path: str, root: str) -> str:
    """The path relative to the root folder, if it is below it."""
    prefix = _prefix(root)
    clean = path.replace("\\", "/")
    return clean.removeprefix(prefix).removeprefix("./") if len(prefix) > 1 else clean.removeprefix("./")


def by_kind(things: Iterable[Thing]) -> dict[str, list[Thing]]:
    """Things grouped by kind, in the order of `UNITS`."""
    grouped: dict[str, list[Thing]] = {kind: [] for kind in UNITS}
    for thing in things:
        grouped[thing.kind].append(thing)
    return {kind: rows for kind, rows in grouped.items() if rows}
