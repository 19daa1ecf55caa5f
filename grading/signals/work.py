"""The confirmed work of a session, counted while its results are read in order."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from grading.signals import confirm, outputs
from grading.signals.changes import FileChange, loosens
from grading.signals.confirm import CallResult
from grading.signals.history import History
from grading.signals.intents import HeadMove, Intent
from grading.signals.model import UNNAMED, Check, Commit, Effect, EffectKind, TestRun
from grading.signals.places import Places

if TYPE_CHECKING:
    from grading.signals.final_state import SuiteRun

MAX_RECORDS = 1_000
MAX_PATHS = 2_000
MAX_STORED_LINES = 4_000
MAX_KEY = 300
MAX_OPEN_INTENTS = 50
# How many paths with the same file name are compared with a path that git lists.
MAX_CANDIDATES = 50
# How many files changed since the last commit are taken for those of a commit that names none.
MAX_COMMITTED = 50


class _ChangeCounts(NamedTuple):
    """`change_count`, `edit_count` and `loosened_count` of a `Work` at one time."""

    change: int
    edit: int
    loosened: int


class Work:
    """The commits, effects, file changes and test runs confirmed so far, and the intents that may still be confirmed.

    `change_count` counts confirmed changes of every kind, also those that the capped lists leave out. Of these,
    `loosened_count` are file changes that loosen tests, and `edit_count` all other file changes. `count_when_fixed` is
    the `change_count` when tests were last counted as fixed. `failing` has these counts at the first failure of each
    check that fails.

    `runs` are the last runs of tests and builds, those of hooks too. `pushes_at` are the events of pushes that may have
    worked, `rejected_push_at` the last one that the remote rejected, `failed_check_at` the last check of CI if it was
    waited for and failed, and `undone_at` the last event that undid an own commit.

    `open_intents` pairs each open intent with the id of the shell or task it runs in ("" if unknown).
    `requested_merges` are pull requests that the session may have merged, without an output that says so.
    `comment_digests` are of the comments posted. `existing_paths` are files read or written so far. `script_paths` maps
    file names to the paths that scripts named and may have written. `appended` has (path, lines) of each change that
    only appends: the same lines are not counted twice. `line_count` sums the lines of all file changes; beyond
    MAX_STORED_LINES, changes are stored without their lines.
    """

    def __init__(self, places: Places) -> None:
        self.places = places
        self.history = History()
        self.effects: dict[tuple[EffectKind, str], Effect] = {}
        self.files: list[FileChange] = []
        self.test_runs: list[TestRun] = []
        self.runs: deque[SuiteRun] = deque(maxlen=MAX_RECORDS)
        self.pushes_at: list[int] = []
        self.rejected_push_at = 0
        self.failed_check_at = 0
        self.undone_at = 0
        self.open_intents: list[tuple[str, Intent]] = []
        self.requested_merges: set[str] = set()
        self.comment_digests: set[str] = set()
        self.existing_paths: set[str] = set()
        self.script_paths: dict[str, set[str]] = {}
        self.appended: set[tuple[str, tuple[str, ...]]] = set()
        self.line_count = 0
        self.failing: dict[tuple[Check, str], _ChangeCounts] = {}
        self.change_count = 0
        self.count_when_fixed = 0
        self.edit_count = 0
        self.loosened_count = 0
        self.truncated = False

    def add_file(self, change: FileChange) -> None:
        """Count a file change, unless it only appends lines that were appended to the same file before."""
        if change.added and not change.removed and change.is_new is False:
            key = (change.path, change.added)
            if key in self.appended:
                return
            if len(self.appended) < MAX_RECORDS:
                self.appended.add(key)
        existed = change.path in self.existing_paths
        self.add_existing_path(change.path)
        self.line_count += len(change.added) + len(change.removed)
        self.change_count += 1
        if loosens(change):
            self.loosened_count += 1
        else:
            self.edit_count += 1
        if len(self.files) >= MAX_RECORDS:
            self.truncated = True
            return
        if self.line_count > MAX_STORED_LINES:
            self.truncated = True
            change = replace(change, added=(), removed=())
        if existed and change.is_new is None:  # overwritten: which of its lines are new is unknown
            change = replace(change, is_new=False, added=())
        self.files.append(change)

    def add_possible_writes(self, paths: Iterable[str]) -> None:
        """Note paths that a script names and may have written; `confirm_writes` counts them."""
        for path in paths:
            if len(self.script_paths) < MAX_PATHS:
                self.script_paths.setdefault(path.rsplit("/", 1)[-1], set()).add(path)

    def confirm_writes(self, paths: Iterable[str], at: int) -> None:
        """Count the paths that git lists as changed if an earlier script named them.

        Git or the script may have named only the end of a path.
        """
        for path in paths:
            name = path.rsplit("/", 1)[-1]
            candidates = islice(self.script_paths.get(name, ()), MAX_CANDIDATES)
            if any(named.endswith(path) or path.endswith(named) for named in candidates):
                del self.script_paths[name]
                self.add_file(FileChange(path=path, at=at, is_new=None))

    def add_existing_path(self, path: str) -> None:
        """Note a file that was read or written, so that a later write does not count as creating it."""
        if len(self.existing_paths) < MAX_PATHS:
            self.existing_paths.add(path)

    def add_result(self, intents: Sequence[Intent], result: CallResult) -> None:
        """Count what the result of a call confirms of its intents, and keep open what later output may still confirm.

        Whether a call that still runs succeeds is unknown. `result.session` is the shell or task that it runs in.
        """
        if not intents:
            return
        running = outputs.find_running(result.text)
        if running is not None:
            result = replace(result, ok=None, is_running=True, session=running["id"] or "")
        undone_before = len(self.history.all_undone())
        still_open = [(result.session, intent) for intent in self.confirm(intents, result, is_new=True)]
        if len(self.history.all_undone()) > undone_before:  # this call undid a commit of the session's own
            self.undone_at = result.at
        self.open_intents = [*self.open_intents, *still_open][-MAX_OPEN_INTENTS:]

    def confirm(self, intents: Sequence[Intent], result: CallResult, *, is_new: bool = False) -> list[Intent]:
        """Count what a result confirms of the intents, in order; returns the intents that may still be confirmed.

        `is_new`: this is the result of the call itself, not later output of it.
        """
        pushes = any(intent.kind is EffectKind.PUSH and intent.counts for intent in intents)
        if pushes and result.ok is False and outputs.PUSH_REJECTED.search(result.text):
            self.rejected_push_at = result.at
        still_open = self.add_runs(intents, result)
        # What a failed call did before it failed may have worked; a check's outcome may be that it failed.
        possible = [intent for intent in intents if isinstance(intent.kind, Check) or result.may_confirm(intent)]
        commits = confirm.match_commits([intent for intent in possible if intent.is_commit], result)
        for intent in possible:
            stays_open = False
            if isinstance(intent.kind, HeadMove):
                self.move_head(intent, result)
            elif intent.is_commit:
                own_commits = [commit for commit, maker in commits if maker is intent]
                for commit in own_commits:
                    self.add_commit(commit, intent)
                stays_open = not own_commits and self.confirm_silent_commit(intent, result, is_new=is_new)
            elif intent.suite is None:
                stays_open = not self.confirm_other(intent, result) and result.ok is None
            if stays_open:
                still_open.append(intent)
        return still_open

    def add_runs(self, intents: Sequence[Intent], result: CallResult) -> list[Intent]:
        """Note the runs of tests and builds that a result shows; returns the intents of those that may still run.

        Several runs of the same runner in one output count once as effects.
        """
        still_open = []
        runners: set[str] = set()
        runs = confirm.find_suite_runs(intents, result)
        for intent, run in runs:
            if run is None:
                if result.ok is None:
                    still_open.append(intent)
                continue
            self.runs.append(run)
            if intent.kind is Check.TESTS and run.passed is not None and intent.target not in runners:
                runners.add(intent.target)
                self.track_check(Check.TESTS, intent.target, passed=run.passed, at=result.at)
        shows_hook = any(intent.shows_hook for intent in intents)
        hook_run = confirm.find_hook_run(result) if shows_hook and not runs else None
        if hook_run is not None:
            self.runs.append(hook_run)
        return still_open

    def move_head(self, intent: Intent, result: CallResult) -> None:
        """Apply a command that moves HEAD, unless it failed without moving it."""
        if intent.counts and (result.ok is not False or outputs.HEAD_MOVED.search(result.text)):
            self.history.move_head(intent)

    def confirm_silent_commit(self, intent: Intent, result: CallResult, *, is_new: bool) -> bool:
        """Note as hidden a commit that no output announces, unless git said that there was nothing to commit.

        To be called only if the intent may have worked (`CallResult.may_confirm`). Returns whether later output may
        still announce it. `is_new`: this is the result of the call itself, not later output of it.
        """
        if intent.opaque or outputs.NOTHING_TO_COMMIT.search(result.text):
            return False
        if outputs.RTK_COMMITTED.search(result.text):
            unnamed = Commit(hash=f"{UNNAMED}{result.at}", branch="", subject=intent.subject, at=result.at)
            self.add_commit(unnamed, intent)
            return False
        # Of a merge, git prints how it was made, but not the commit.
        can_hide = intent.can_hide or (intent.is_merge and outputs.MERGE_MADE.search(result.text) is not None)
        if is_new and can_hide and intent.counts and not intent.may_be_empty:
            self.history.hide(intent, result, confirm.named_files(intent) or self.changed_since_commit())
        return result.ok is None

    def changed_since_commit(self) -> tuple[str, ...]:
        """At most MAX_COMMITTED paths of files changed since the last commit."""
        since = self.history.commits[-1].at if self.history.commits else 0
        return tuple(dict.fromkeys(change.path for change in self.files if change.at > since))[:MAX_COMMITTED]

    def confirm_open(self, result: CallResult) -> None:
        """Match later output of an earlier call (a persistent shell, a background task) with the open intents.

        If both the output and the intent name their shell or task, it must be the same.
        """
        if not self.open_intents:
            return
        result = replace(result, is_running=outputs.find_running(result.text) is not None)
        matching: list[Intent] = []
        others: list[tuple[str, Intent]] = []
        for session, intent in self.open_intents:
            are_different = session and result.session and session != result.session
            if are_different:
                others.append((session, intent))
            else:
                matching.append(intent)
        still_open = [(result.session, intent) for intent in self.confirm(matching, result)]
        self.open_intents = [*others, *still_open][-MAX_OPEN_INTENTS:]

    def confirm_hidden(self, result: CallResult, *, is_head: bool) -> None:
        """Count hidden commits that a log lists. `is_head`: the log's first commit is HEAD."""
        self.change_count += self.history.add_logged(result, is_head=is_head)

    def confirm_other(self, intent: Intent, result: CallResult) -> bool:
        """Count what a result proves about an intent that is not a commit. Returns whether it proves anything; if not,
        the intent may stay open.
        """
        if intent.kind is EffectKind.PUSH:
            return self.confirm_push(intent, result)
        if isinstance(intent.kind, EffectKind):
            return self.confirm_effect(intent, intent.kind, result)
        if intent.kind is Check.MERGE:
            return self.confirm_merge(intent, result)
        return self.confirm_check(intent, result)

    def confirm_check(self, intent: Intent, result: CallResult) -> bool:
        """Count the outcomes of CI that a result shows; returns whether it shows any."""
        outcomes = confirm.find_check_outcomes(intent, result)
        if not outcomes:
            return False
        for target, passed in outcomes.items():
            self.track_check(Check.CI, target, passed=passed, at=result.at)
        # A list of runs also has earlier ones, so only the exit status shows that the awaited run is red.
        is_red = result.ok is False and intent.is_last and False in outcomes.values()
        self.failed_check_at = result.at if is_red else 0
        return True

    def confirm_effect(self, intent: Intent, kind: EffectKind, result: CallResult) -> bool:
        """Count the effects of an intent's kind that a result proves; returns whether it proves any."""
        keys = confirm.find_effect_keys(intent, result)
        if keys and intent.body:
            if intent.body in self.comment_digests:  # the same comment posted again
                return True
            self.comment_digests.add(intent.body)
        for key in keys:
            self.add_effect(kind, key, result.at)
        if not keys and kind is EffectKind.PR_MERGED and confirm.may_have_merged(intent, result):
            self.requested_merges.add(intent.target)  # counted if a later view of it shows the merge
        return bool(keys)

    def confirm_merge(self, intent: Intent, result: CallResult) -> bool:
        """Count a merge that the session requested, once a view of the pull request shows it as merged. Returns whether
        it does.
        """
        is_shown = result.ok is not False and outputs.STATE_MERGED.search(result.text) is not None
        if intent.target not in self.requested_merges or not is_shown:
            return False
        self.requested_merges.discard(intent.target)
        self.add_effect(EffectKind.PR_MERGED, intent.target, result.at)
        return True

    def confirm_push(self, intent: Intent, result: CallResult) -> bool:
        """Count the refs that the output of a push lists as updated, except in repositories that the session made
        itself. Returns whether the output lists any.

        Even a push that succeeds without listing any shows that the commits so far are at the remote.
        """
        pushed = list(outputs.parse_pushes(result.text))
        if result.ok is not False or pushed:
            self.pushes_at = [*self.pushes_at, result.at][-MAX_RECORDS:]
        counted = []
        for ref in pushed:
            may_count = intent.counts or ref.address
            if may_count and not self.places.is_own_remote(ref.address):
                counted.append(ref)
        for ref in counted:
            last = self.history.commits[-1].hash if self.history.commits else ref.source
            self.add_effect(EffectKind.PUSH, f"{ref.target} {ref.new or last}", result.at)
        is_silent_success = not pushed and result.ok is True and intent.proven and intent.counts
        if counted or is_silent_success:
            self.change_count += self.history.add_pushed(counted, result.at)
        return bool(pushed)

    def track_check(self, check: Check, target: str, *, passed: bool, at: int) -> None:
        """Note the outcome of tests or of CI, and count a fix when what failed passes after changes in between.

        `target` is the tests' runner, or what CI checks. A rerun that passes without changes fixes nothing. Nor is
        anything fixed if the only file changes in between loosened tests.
        """
        if check is Check.TESTS and len(self.test_runs) < MAX_RECORDS:
            self.test_runs.append(TestRun(runner=target, passed=passed, at=at))
        if not passed:
            if len(self.failing) < MAX_RECORDS:
                counts = _ChangeCounts(self.change_count, self.edit_count, self.loosened_count)
                self.failing.setdefault((check, target), counts)
            return
        counts_at_failure = self.failing.pop((check, target), None)
        if counts_at_failure is None or counts_at_failure.change == self.change_count:
            return
        # Edits that loosen tests are not in `edit_count`.
        only_loosened = self.loosened_count > counts_at_failure.loosened and self.edit_count == counts_at_failure.edit
        if only_loosened:
            return
        if check is Check.CI:
            self.add_effect(EffectKind.CI_FIXED, target, at)
        elif self.count_when_fixed < self.change_count:  # else the same work has fixed another runner's tests
            self.add_effect(EffectKind.TESTS_FIXED, target, at)
            self.count_when_fixed = self.change_count

    def add_commit(self, commit: Commit, intent: Intent) -> None:
        """Count a commit, unless it is empty (it has no hash then) or in a throwaway repository."""
        if not commit.hash or not intent.counts:
            return
        if not commit.paths:
            commit = replace(commit, paths=self.changed_since_commit())
        if self.history.add(commit, intent):
            self.change_count += 1

    def add_effect(self, kind: EffectKind, key: str, at: int) -> None:
        """Count an effect, once for each kind and key."""
        if len(self.effects) >= MAX_RECORDS:
            self.truncated = True
            return
        key = key[:MAX_KEY]
        if (kind, key) not in self.effects:
            self.change_count += 1
            self.effects[kind, key] = Effect(kind=kind, key=key, at=at)
