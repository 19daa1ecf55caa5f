"""How a session ended: the state of the tests, and the failures that its log shows.

A failure needs evidence. A red run is one if the session had changed code before it, nothing that may be green covers
it later, and the same tests had not failed before the change. A run counts as unknown if its outcome can't be told
apart from another's, if only a sandbox or the network refused something, or if code was changed after it.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from grading.signals.changes import TEST_FILE
from grading.signals.outputs import NO_FAILURES, Failures
from grading.signals.shell import ShellCommand, operands
from grading.signals.suites import Suite, SuiteKind, is_within

# The most runs that are compared, the last ones.
MAX_RUNS = 200
MAX_TEXT = 4_000
# How many of the user's last messages before a restore are searched for a request to take work back.
MAX_REQUESTS_BEFORE_RESTORE = 3
DOCUMENTS = re.compile(r"\.(?:md|mdx|rst|adoc)$", re.IGNORECASE)
# Statements that tests have to fail for now.
DELIBERATE = re.compile(
    r"\b(?:expected|supposed|meant|intended|has|have|needs?|must|should) (?:\w{1,12} ){0,3}(?:fail|be red)\b|"
    r"\bfail(?:s|ing)? (?:on purpose|by design|as (?:expected|intended)|until|for now)|\bfailing (?:unit )?tests?\b|"
    r"\bred (?:for now|on purpose|until|phase|first)\b|\breproduc|"
    r"\bmüssen\b.{0,30}\b(?:rot|fehlschlagen)\b|\brot sein\b|\bdoit échouer\b|\bdebe fallar\b",
    re.IGNORECASE,
)
# Requests of the user to take work back.
TAKE_BACK = re.compile(
    r"\bundo\b|\brevert\b|\broll (?:\w{1,10} ){0,2}back\b|\btake (?:\w{1,10} ){1,3}back\b|"
    r"\bback (?:\w{1,10} ){0,2}out\b|\bthrow (?:\w{1,12} ){1,3}(?:away|out)\b|\bdiscard\b|"
    r"\bscrap (?:it|that|this|everything)\b|\bget rid of\b|\bremove (?:it|that|everything|all of)\b|\brestore\b|"
    r"\breset\b|\brückgängig\b|\bzurück(?:nehmen|setzen|drehen)\b|"
    r"\bnimm\b.{0,40}\bzurück\b|\bverw[ei]rf|\bannule|\bdeshaz|\brevierte|\bdéfais|\bотмени|\bоткат|撤销|取り消|元に戻",
    re.IGNORECASE,
)


class TestState(StrEnum):
    """The state of the project's tests at the end: `UNKNOWN`: they ran, but how they ended is not shown."""

    __test__ = False

    GREEN = "green"
    RED = "red"
    UNKNOWN = "unknown"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """One run. `passed` is None if the outcome is unknown; `was_refused`: because a sandbox or the network refused
    something. `place` is a folder or file that it ran on, "" if unknown. `failures` are those in its report.
    """

    suite: Suite
    passed: bool | None
    at: int
    place: str = ""
    was_refused: bool = False
    failures: Failures = NO_FAILURES

    @property
    def shows_failures(self) -> bool:
        """Whether it failed, or may have failed by what it printed."""
        return self.passed is False or self.was_refused or self.failures != NO_FAILURES

    def fails_no_more_than(self, earlier: Self) -> bool:
        """Whether every failure of this run was there in an earlier one, by name or else by number."""
        if not self.suite.may_overlap(earlier.suite):
            return False
        own, others = self.failures, earlier.failures
        if own.tests and others.tests:
            return own.tests <= others.tests
        return 0 < own.count <= others.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A command that took changes in files back: those of `paths`, or all if it is empty."""

    at: int
    paths: tuple[str, ...] = ()

    def includes(self, path: str) -> bool:
        """Whether it took back the changes in a file, or may have."""
        return not self.paths or any(is_within(path, folder) or is_within(folder, path) for folder in self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCourse:
    """What the final state is worked out from. All numbers are those of events.

    `edits` are the (number, path) of the session's own file changes, in order; `commits_at` and `pushes_at` its own
    commits and pushes; `rejected_push_at` its last push that the remote rejected, 0 for none; `failed_check_at` the
    last check of CI if it was waited for and failed, else 0; `undone_at` when one of the `undone_count` own commits was
    last reverted or reset, 0 for never. `requests` are the (number, text) of the user's messages; `closing_text` is the
    last message and the subjects of the commits.
    """

    runs: Sequence[SuiteRun]
    edits: Sequence[tuple[int, str]]
    commits_at: Sequence[int] = ()
    pushes_at: Sequence[int] = ()
    rejected_push_at: int = 0
    failed_check_at: int = 0
    restores: Sequence[Restore] = ()
    undone_at: int = 0
    undone_count: int = 0
    requests: Sequence[tuple[int, str]] = ()
    closing_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalState:
    """`failures` are the observed failures as text; `broke_tests`: one of them is of its own tests."""

    tests: TestState
    failures: tuple[str, ...] = ()
    broke_tests: bool = False


def find_final_state(course: SessionCourse) -> FinalState:
    """How a session ended."""
    changes_at = sorted(at for at, path in course.edits if is_code(path))
    runs = course.runs[-MAX_RUNS:]
    tests = _Standing([run for run in runs if run.suite.kind is SuiteKind.TESTS], changes_at)
    builds = _Standing(runs, changes_at)  # with the tests: green ones show that the code builds
    first_change = min([*changes_at, *course.commits_at], default=None)
    baseline = [run for run in runs if run.passed is False and (first_change is None or run.at < first_change)]
    red_tests = [run for run in tests.red if _is_own(run, first_change, baseline)]
    if _is_deliberate(red_tests, course):
        red_tests = []
    red_builds = [
        run for run in builds.red if run.suite.kind is SuiteKind.BUILD and _is_own(run, first_change, baseline)
    ]
    failures = []
    if red_tests:
        failures.append(f"the last run of {_names(red_tests)} failed")
    elif red_builds:
        failures.append(f"the last build by {_names(red_builds)} failed")
    if any(at < course.failed_check_at for at in course.pushes_at):
        failures.append("CI failed after its last push")
    if course.rejected_push_at > max(course.pushes_at, default=0):
        failures.append("its last push was rejected")
    if taken_back := _find_taken_back(course):
        failures.append(taken_back)
    return FinalState(tests=tests.state, failures=tuple(failures), broke_tests=bool(red_tests))


class _Standing:
    """What runs leave behind at the end: the red ones that stand, those whose state is unclear, and the green ones.

    `changes_at` are the events of the session's changes of code, in order.
    """

    def __init__(self, runs: Sequence[SuiteRun], changes_at: Sequence[int]) -> None:
        self.red: list[SuiteRun] = []
        self.unclear: list[SuiteRun] = []
        self.green: list[SuiteRun] = []
        self.changes_at = changes_at
        for run in runs:
            self.add(run)
        last_change = changes_at[-1] if changes_at else 0
        self.unclear += [run for run in self.red if run.at < last_change]
        self.red = [run for run in self.red if run.at >= last_change]

    def add(self, run: SuiteRun) -> None:
        """Follow one more run. A run with a known outcome replaces the earlier ones that it covers."""
        if run.passed is None:
            if run.was_refused or not self.passed_before(run):
                self.unclear.append(run)
            return
        self.red = [red for red in self.red if not run.suite.covers(red.suite, red.failures.places)]
        self.unclear = [one for one in self.unclear if not run.suite.covers(one.suite, one.failures.places)]
        if not run.passed:
            self.red.append(run)
            return
        self.green.append(run)
        # An unclear run that shows no failure says nothing against a later green one.
        self.unclear = [one for one in self.unclear if one.shows_failures or not run.suite.is_related(one.suite)]
        # A red run that may have run some of the same tests becomes unclear.
        touched = [red for red in self.red if run.suite.may_overlap(red.suite, red.failures.places)]
        self.red = [red for red in self.red if red not in touched]
        self.unclear += touched

    def passed_before(self, run: SuiteRun) -> bool:
        """Whether a run that may include the same tests passed since the last change of code before `run`."""
        index = bisect_left(self.changes_at, run.at)  # a hostile log may have many changes and many runs
        last_change = self.changes_at[index - 1] if index else 0  # the number of its event
        return any(green.at >= last_change and green.suite.may_overlap(run.suite) for green in self.green)

    @property
    def state(self) -> TestState:
        if self.red:
            return TestState.RED
        if self.unclear:
            return TestState.UNKNOWN
        return TestState.GREEN if self.green else TestState.NONE


def is_code(path: str) -> bool:
    """Whether a change of the file can break tests: it is code, a test, configuration or a lock file."""
    return not DOCUMENTS.search(path[-300:])


def _is_own(run: SuiteRun, first_change: int | None, baseline: Sequence[SuiteRun]) -> bool:
    """Whether the session changed code before the run, and the same failures were not in the `baseline` before that."""
    is_after_change = first_change is not None and first_change < run.at
    return is_after_change and not any(run.fails_no_more_than(one) for one in baseline)


def _is_deliberate(runs: Sequence[SuiteRun], course: SessionCourse) -> bool:
    """Whether the session only wrote tests, and its closing text states that they have to fail for now."""
    last = max((run.at for run in runs), default=0)
    paths = [path for at, path in course.edits if at < last and is_code(path)]
    only_tests = all(TEST_FILE.search(path[-400:]) for path in paths)
    return only_tests and DELIBERATE.search(course.closing_text) is not None


def _find_taken_back(course: SessionCourse) -> str:
    """How the session's work was undone at the end, in words; "" if it was not, or more work followed."""
    if course.commits_at:  # a commit of its own remains
        return ""
    last_work = max((at for at, _path in course.edits), default=0)
    if course.undone_at > last_work:
        return "its own commit was taken back" if course.undone_count == 1 else "its own commits were taken back"
    restores = [restore for restore in course.restores if restore.at >= last_work]
    if not restores or not course.edits:
        return ""
    # Only messages after the work and before the restore can have asked for it.
    texts = [text for at, text in course.requests if course.edits[0][0] < at < restores[-1].at]
    if not any(map(TAKE_BACK.search, texts[-MAX_REQUESTS_BEFORE_RESTORE:])):
        return ""
    all_restored = all(any(restore.includes(path) for restore in restores) for _at, path in course.edits)
    return "the user had its work taken back" if all_restored else ""


def find_restore(commands: Sequence[ShellCommand], at: int) -> Restore | None:
    """The files whose changes a command line takes back; None if it takes none back."""
    paths: list[str] = []
    for command in commands:
        if command.program == "rm":
            paths += operands(command.argv[1:])
        elif command.program == "git":
            paths += _restored_paths(command)
    if not paths:
        return None
    return Restore(at=at, paths=() if "." in paths else tuple(path.rstrip("/") for path in paths))


def _restored_paths(command: ShellCommand) -> list[str]:
    """The paths whose changes a git command takes back; "." for all of them."""
    verb, *names = operands(command.argv[1:]) or [""]
    flags = {word for word in command.argv[1:] if word.startswith("-")}
    if verb == "restore":
        only_unstages = "--staged" in flags and "--worktree" not in flags
        return [] if only_unstages else names
    if verb == "checkout":
        makes_branch = bool(flags & {"-b", "-B", "--orphan"})
        return [] if makes_branch else [name for name in names if "--" in flags or "." in name]  # else a branch
    if verb == "clean":
        is_forced = any("f" in flag for flag in flags)
        return (names or ["."]) if is_forced else []
    takes_all_back = (verb == "reset" and "--hard" in flags) or (
        verb == "stash" and names[:1] in ([], ["push"], ["save"])
    )
    return ["."] if takes_all_back else []


def _names(runs: Sequence[SuiteRun]) -> str:
    return ", ".join(sorted({run.suite.runner for run in runs}))
