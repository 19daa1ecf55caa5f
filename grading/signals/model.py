"""What a session did, in the same form for all harnesses: the values that `extract` builds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

from msgspec import convert

from grading.signals.changes import FileChange
from grading.signals.final_state import TestState
from grading.signals.vitals import Vitals

# A larger share of unreadable calls makes a session blind.
MAX_UNREADABLE_SHARE = 0.3
# How the hash of a commit begins that is confirmed, but not named.
UNNAMED = "unnamed-"
# Fields of `Signals` that earlier versions stored.
FORMER_FIELDS = frozenset({"unpaired_results", "retries", "web_reads", "tokens", "models", "linked_pull_requests"})


class EffectKind(StrEnum):
    """Kinds of effects that tool results confirm. Commits and file changes have classes of their own."""

    PUSH = "push"
    PR_OPENED = "pr_opened"
    PR_MERGED = "pr_merged"
    PR_CLOSED = "pr_closed"
    PR_REVIEWED = "pr_reviewed"
    ISSUE_OPENED = "issue_opened"
    ISSUE_CLOSED = "issue_closed"
    COMMENT = "comment"
    CI_FIXED = "ci_fixed"
    TESTS_FIXED = "tests_fixed"


class Check(StrEnum):
    """Outcomes that a session queries: of a build, of CI, of tests, and whether a pull request is merged."""

    BUILD = "build"
    CI = "ci"
    TESTS = "tests"
    MERGE = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One confirmed effect, unique by kind and `key` (a URL, a reference, a test runner). `at`: the event's number."""

    kind: EffectKind
    key: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit that git's own output announced. `paths` are files known to be in it; empty if unknown.

    `hash` is "unnamed-" and the event's number if a wrapper of git confirmed the commit without its hash.
    """

    hash: str
    branch: str
    subject: str
    at: int
    paths: tuple[str, ...] = ()

    def is_same(self, hash_: str) -> bool:
        """Whether a short or full hash names this commit."""
        if self.hash.startswith(UNNAMED):
            return self.hash == hash_
        return self.hash.startswith(hash_) or hash_.startswith(self.hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """One run of a test runner with a known outcome."""

    runner: str
    passed: bool
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Everything that graders take from a transcript.

    Counts are numbers of events. `known_results` are results that record success or failure; `failed_calls` of them
    failed. `duration` is the seconds between the first and the last event with a timestamp, None without timestamps.
    `final_message` is the event number of the last assistant message. `task` is the first line of the user's own text,
    cut: a name for the session if its log has none. `truncated`: a cap on records was reached, so the lists are
    incomplete.

    Readability of the log: `opaque_calls` are well-formed calls whose effect cannot be known; `unreadable_calls` should
    record what they do but could not be parsed; `unknown_calls` are of tools that the harness is not known to have;
    `bare_shell_calls` of the `shell_calls` have no command. Course: `reads` are distinct things read successfully;
    `cut` is the reason (quota, rate_limit, auth, overloaded, other) if the harness recorded that an API error ended the
    log, else empty; `concluded`: an assistant message comes after the last call and result. `rejected` are calls that
    the user refused; they count as neither failed nor known.

    Not counted as work: `undone` are hashes of commits that were reverted or reset; `loosened_tests` are edits that
    loosened assertions.

    How it ended (see `final_state`): `tests_at_end`: the state of the tests; `failures`: the failures that the log
    shows, as text; `broke_tests`: tests failed at the end because of what it changed.

    Conduct (see `conduct`): `empty_results` of the `must_print` calls, which always print something, printed nothing;
    `repeats` of the `repeatable` calls were made again with the same result while nothing changed; `dead_start`: the
    first calls all failed.

    `vitals` never enter a grade. They are not part of the JSON, and stored as the session's facts; None if the signals
    were not extracted just now.
    """

    tool_calls: Mapping[str, int] = field(default_factory=dict)
    results: int = 0
    known_results: int = 0
    failed_calls: int = 0
    commits: tuple[Commit, ...] = ()
    effects: tuple[Effect, ...] = ()
    files: tuple[FileChange, ...] = ()
    test_runs: tuple[TestRun, ...] = ()
    user_turns: int = 0
    assistant_turns: int = 0
    api_errors: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    duration: float | None = None
    compactions: int = 0
    final_message: int | None = None
    task: str = ""
    truncated: bool = False
    opaque_calls: int = 0
    unreadable_calls: int = 0
    unknown_calls: int = 0
    shell_calls: int = 0
    bare_shell_calls: int = 0
    reads: int = 0
    cut: str = ""
    concluded: bool = False
    rejected: int = 0
    undone: tuple[str, ...] = ()
    loosened_tests: int = 0
    must_print: int = 0
    empty_results: int = 0
    repeatable: int = 0
    repeats: int = 0
    dead_start: bool = False
    tests_at_end: TestState = TestState.NONE
    failures: tuple[str, ...] = ()
    broke_tests: bool = False
    vitals: Vitals | None = field(default=None, compare=False)

    @property
    def calls(self) -> int:
        """The number of tool calls."""
        return sum(self.tool_calls.values())

    @property
    def has_model_turn(self) -> bool:
        """Whether the model did anything at all."""
        return self.assistant_turns > 0 or self.calls > 0

    @property
    def are_results_known(self) -> bool:
        """Whether at least half of the calls have a known result."""
        return self.known_results > 0 and 2 * self.known_results >= self.calls

    @property
    def error_rate(self) -> float:
        """The share of failed calls in the known results; 0 if the results are not known."""
        return min(1.0, self.failed_calls / self.known_results) if self.are_results_known else 0.0

    @property
    def last_tests(self) -> bool | None:
        """True if the tests were green at the end, False if the session broke them, else None."""
        if self.broke_tests:
            return False
        return True if self.tests_at_end is TestState.GREEN else None

    @property
    def is_blind(self) -> bool:
        """Whether the log is too unreadable to grade the session: more than 30 % of the calls are unreadable, or most
        are of unknown tools, or no shell call has a command, or no result records success or failure and no effect is
        confirmed.
        """
        return (
            2 * self.unknown_calls > self.calls
            or self.unreadable_calls > MAX_UNREADABLE_SHARE * self.calls
            or 0 < self.shell_calls == self.bare_shell_calls
            or (self.results > 0 and self.known_results == 0 and not self.did_something)
        )

    @property
    def did_something(self) -> bool:
        """Whether any effect was confirmed."""
        return bool(self.commits or self.effects or self.files)

    @property
    def pull_requests(self) -> tuple[str, ...]:
        """URLs of the pull requests that the session opened."""
        return tuple(effect.key for effect in self.effects if effect.kind is EffectKind.PR_OPENED)

    def count(self, kind: EffectKind) -> int:
        return sum(effect.kind is kind for effect in self.effects)

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain JSON, without the vitals; `from_dict` is the inverse."""
        return {name: value for name, value in asdict(self).items() if name != "vitals"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The signals from a dict that `as_dict` of this or an earlier version returned. Raises ValueError for anything
        else.
        """
        if unknown := data.keys() - {each.name for each in fields(cls)} - FORMER_FIELDS:
            raise ValueError(f"Expected the fields of signals; got {sorted(unknown)}")
        return convert(data, cls)
