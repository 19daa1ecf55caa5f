"""The trajectory grade: confirmed work in commit-equivalents, with diminishing returns (10-evidence.md).

Effort is not success: nothing here grows with the number of calls, turns or tokens.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from grading.core.changes import path_matches
from grading.core.grade import SourceGrade, scored, unscored
from grading.core.signals import EffectKind, Signals
from grading.core.vocabulary import Reason, Source

VERSION = "trajectory/1"
# A complete session without an effect; apart from the floor of 0.1, which says that nothing is known.
BASE = 0.08
# Where doing nothing can be right (I47): looked, found nothing to change, without trouble.
RESTRAINT = 0.35
TROUBLE = 0.25
GAIN = 0.87
HALF_LIFE = 2.0
LOWEST = 0.02
ERROR_PENALTY = 0.10
RETRY_PENALTY = 0.05
UNITS = MappingProxyType(
    {
        EffectKind.PR_MERGED: 1.5,
        EffectKind.PR_OPENED: 1.2,
        EffectKind.CI_FIXED: 0.8,
        EffectKind.ISSUE_CLOSED: 0.4,
        EffectKind.PR_CLOSED: 0.4,
        EffectKind.PR_REVIEWED: 0.4,
        EffectKind.ISSUE_OPENED: 0.3,
        EffectKind.TESTS_FIXED: 0.3,
        EffectKind.COMMENT: 0.2,
        EffectKind.PUSH: 0.1,
    }
)
COMMIT_UNITS = 1.0
FILE_UNITS = 0.3
TESTS_PASS_UNITS = 0.2
BOOKKEEPING_COMMIT_UNITS = 0.1
BOOKKEEPING_FILE_UNITS = 0.03
# Files a loop writes about itself (I32): a commit of nothing else is no work.
BOOKKEEPING = (
    "**/{journal,journals,state,memory}/**/*.{md,txt,json,jsonl,yml,yaml}",
    "**/{.claude,.beads}/**",
    "**/{*.log,*.lock,package-lock.json,pnpm-lock.yaml}",
)
# One and several of each, as people say it.
WORDS = MappingProxyType(
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
        "tests_pass": ("last test run passed", "last test run passed"),
        "bookkeeping_commit": ("commit of bookkeeping", "commits of bookkeeping"),
        "bookkeeping_file": ("bookkeeping file", "bookkeeping files"),
    }
)
SCRATCH = re.compile(r"(?:/private)?/(?:var/)?tmp/(?:[^/]+|.*/scratchpad/.*)|.*\.tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One row of the sum: `count` things of `units` commit-equivalents each, which come to `adds` of them together."""

    kind: str
    count: int
    units: float

    @property
    def adds(self) -> float:
        return self.units * math.log2(1 + self.count)

    @property
    def words(self) -> str:
        return WORDS[self.kind][self.count != 1]


def grade(signals: Signals, *, stub: Reason | None = None, restraint: bool = False) -> SourceGrade:
    """How much confirmed work a transcript shows, in [0.02, 0.95]; more is never less, an error never more.

    `0.08 + 0.87·(1 − exp(−u/2)) − 0.10·error rate − 0.05·retry rate`, where u is the sum of `units·log2(1 + count)`.
    `stub`: the caller's finding that this transcript must not be graded. `restraint`: the category is one where finding
    nothing to do is a right outcome; a session without an effect and without trouble is then worth 0.35.
    """
    if stub is not None:
        return unscored(Source.TRAJECTORY, stub, version=VERSION, detail=f"{stub.words}; not graded from this log")
    if not signals.has_model_turn:
        return _without_a_turn(signals)
    terms = work(signals)
    units = math.fsum(term.adds for term in terms)
    error_rate = _rate(signals.failed_calls, signals.known_results)
    retry_rate = _rate(signals.retries, signals.calls)
    is_calm = restraint and signals.calls > 0 and error_rate < TROUBLE
    base = max(BASE + GAIN * -math.expm1(-units / HALF_LIFE), RESTRAINT if is_calm else 0.0)
    penalty = ERROR_PENALTY * error_rate + RETRY_PENALTY * retry_rate
    value = max(LOWEST, base - penalty)
    return scored(
        Source.TRAJECTORY,
        value,
        version=VERSION,
        detail=_detail(terms, units),
        terms=[
            {"kind": t.kind, "words": t.words, "count": t.count, "units": t.units, "adds": round(t.adds, 6)}
            for t in terms
        ],
        units=round(units, 6),
        before_penalties=round(base, 6),
        error_rate=round(error_rate, 6),
        retry_rate=round(retry_rate, 6),
        penalty=round(penalty, 6),
    )


def work(signals: Signals) -> tuple[Term, ...]:
    """The confirmed work of a session by kind; kinds without any are left out."""
    minor_commits = sum(_is_minor(commit.paths) for commit in signals.commits)
    paths = {change.path for change in signals.files}
    minor_paths = sum(_is_minor((path,)) for path in paths)
    counts = [
        Term(kind="commit", count=len(signals.commits) - minor_commits, units=COMMIT_UNITS),
        *(Term(kind=kind.value, count=signals.count(kind), units=units) for kind, units in UNITS.items()),
        Term(kind="file", count=len(paths) - minor_paths, units=FILE_UNITS),
        Term(kind="tests_pass", count=int(_ends_green(signals)), units=TESTS_PASS_UNITS),
        Term(kind="bookkeeping_commit", count=minor_commits, units=BOOKKEEPING_COMMIT_UNITS),
        Term(kind="bookkeeping_file", count=minor_paths, units=BOOKKEEPING_FILE_UNITS),
    ]
    return tuple(term for term in counts if term.count > 0)


def _without_a_turn(signals: Signals) -> SourceGrade:
    """No answer and no call: the session died before it began, or this is not its log."""
    if signals.api_errors:
        reasons = ", ".join(sorted(signals.api_errors))
        return unscored(
            Source.TRAJECTORY,
            Reason.INFRASTRUCTURE,
            version=VERSION,
            detail=f"The model never answered; its API failed ({reasons})",
        )
    return unscored(
        Source.TRAJECTORY,
        Reason.STUB_NO_TOOL_CALLS,
        version=VERSION,
        detail="Neither an answer nor a tool call in the log; expected the whole transcript",
    )


def _ends_green(signals: Signals) -> bool:
    """Whether every test runner's last run passed, in a session that changed something to test."""
    last = {run.runner: run.passed for run in signals.test_runs}
    return bool(last) and all(last.values()) and bool(signals.files or signals.commits)


def _is_minor(paths: Sequence[str]) -> bool:
    return bool(paths) and all(
        SCRATCH.fullmatch(path) is not None or any(path_matches(path, glob) for glob in BOOKKEEPING) for path in paths
    )


def _rate(part: int, whole: int) -> float:
    return min(1.0, part / whole) if whole > 0 else 0.0


def _detail(terms: Sequence[Term], units: float) -> str:
    if not terms:
        return "The transcript is complete and shows no effect"
    listed = ", ".join(f"{term.count} {term.words}" for term in terms)
    return f"{listed}: {units:.1f} commit-equivalents"
