"""The confirmed work of a session, as its results come in."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from grading.signals import confirm, outputs
from grading.signals.changes import FileChange
from grading.signals.confirm import CallResult
from grading.signals.history import History
from grading.signals.intents import Check, HeadMove, Intent
from grading.signals.loosening import loosens
from grading.signals.model import Commit, Effect, EffectKind, TestRun
from grading.signals.places import Places

MAX_RECORDS = 1_000
MAX_PATHS = 2_000
MAX_LINES_KEPT = 4_000
MAX_KEY = 300
MAX_CARRIED = 50


class Work:
    """What has been shown to happen so far, and the intents that may still come true."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.history = History()
        self.effects: dict[tuple[EffectKind, str], Effect] = {}
        self.files: list[FileChange] = []
        self.test_runs: list[TestRun] = []
        self.carried: list[tuple[str, Intent]] = []
        self.asked_to_merge: set[str] = set()
        self.bodies: dict[str, None] = {"": None}
        self.known_paths: set[str] = set()
        self.scripted: dict[str, set[str]] = {}
        self.appended: set[tuple[str, tuple[str, ...]]] = set()
        self.lines_kept = 0
        self.red: dict[str, tuple[int, int, int]] = {}
        self.done = 0
        self.fixed = 0
        self.edits = 0
        self.loosened = 0
        self.truncated = False

    def add_file(self, change: FileChange) -> None:
        """Count a change of a file; the same lines appended again are none."""
        if change.added and not change.removed and change.is_new is False:
            key = (change.path, change.added)
            if key in self.appended:
                return
            if len(self.appended) < MAX_RECORDS:
                self.appended.add(key)
        seen = change.path in self.known_paths
        self.see_path(change.path)
        self.lines_kept += len(change.added) + len(change.removed)
        self.done += 1
        is_loosening = loosens(change)
        self.loosened += is_loosening
        self.edits += not is_loosening
        if len(self.files) >= MAX_RECORDS:
            self.truncated = True
            return
        if self.lines_kept > MAX_LINES_KEPT:
            self.truncated = True
            change = replace(change, added=(), removed=())
        is_overwritten = seen and change.is_new is None
        self.files.append(replace(change, is_new=False, added=()) if is_overwritten else change)

    def may_write(self, paths: Iterable[str]) -> None:
        """Files that a script names and may have written."""
        for path in paths:
            if len(self.scripted) < MAX_PATHS:
                self.scripted.setdefault(path.rsplit("/", 1)[-1], set()).add(path)

    def see_changed(self, paths: Iterable[str], at: int) -> None:
        """Files that git says are changed: a script that names one has written it."""
        for path in paths:
            named = self.scripted.get(path.rsplit("/", 1)[-1], set())
            if any(one.endswith(path) or path.endswith(one) for one in islice(named, MAX_CARRIED)):
                self.scripted.pop(path.rsplit("/", 1)[-1])
                self.add_file(FileChange(path=path, at=at, is_new=None))

    def see_path(self, path: str) -> None:
        """A file that was read or written: a later write does not make it new."""
        if len(self.known_paths) < MAX_PATHS:
            self.known_paths.add(path)

    def add_result(self, intents: Sequence[Intent], shown: CallResult) -> None:
        """The result of a call with these intents. A call that runs on has not succeeded yet."""
        running = outputs.RUNNING.search(shown.text[:500])
        if running is not None:
            shown = replace(shown, ok=None, is_running=True, session=running["id"] or "")
        rest = [(shown.session, intent) for intent in self.confirm(intents, shown, is_new=True)]
        self.carried = [*self.carried, *rest][-MAX_CARRIED:]

    def confirm(self, intents: Sequence[Intent], shown: CallResult, *, is_new: bool = False) -> list[Intent]:
        """Count what a result shows of the intents, in their order; returns those that may still come true.

        `is_new`: it is the result of the call itself, and not what came of it later.
        """
        possible = [intent for intent in intents if isinstance(intent.kind, Check) or shown.may_confirm(intent)]
        found = confirm.commits([intent for intent in possible if intent.is_commit], shown)
        still_open = []
        ran: set[str] = set()
        for intent in possible:
            # What one output says of several runs of a test runner cannot be told apart: they count once.
            if intent.kind is Check.TESTS and intent.target in ran:
                continue
            if intent.kind is Check.TESTS:
                ran.add(intent.target)
            made = [commit for commit, maker in found if maker is intent]
            for commit in made:
                self.add_commit(commit, intent)
            if isinstance(intent.kind, HeadMove):
                self.move(intent, shown)
            elif intent.is_commit:
                if not made and self.may_have_committed(intent, shown, is_new=is_new):
                    still_open.append(intent)
            elif not self.has_come(intent, shown) and shown.ok is None:
                still_open.append(intent)
        return still_open

    def move(self, intent: Intent, shown: CallResult) -> None:
        if intent.counts and (shown.ok is not False or outputs.MOVED.search(shown.text)):
            self.history.move(intent)

    def may_have_committed(self, intent: Intent, shown: CallResult, *, is_new: bool) -> bool:
        """Whether a commit command of which git said nothing may still run; it may also be done, and hidden."""
        if intent.opaque or confirm.is_refused(shown):
            return False
        can_hide = intent.can_hide or (intent.is_merge and outputs.MERGE_MADE.search(shown.text) is not None)
        if is_new and can_hide and intent.counts and not intent.may_be_empty:
            self.history.hide(intent, shown, confirm.files_named(intent) or self.changed_since_commit())
        return shown.ok is None

    def changed_since_commit(self) -> tuple[str, ...]:
        since = self.history.commits[-1].at if self.history.commits else 0
        return tuple(dict.fromkeys(change.path for change in self.files if change.at > since))[:50]

    def confirm_carried(self, shown: CallResult) -> None:
        """The output of an earlier call, read later: a persistent shell, a task in the background.

        Where both name their shell or task, it must be the same.
        """
        running = outputs.RUNNING.search(shown.text[:500])
        shown = replace(shown, is_running=running is not None)
        is_own = [not session or not shown.session or session == shown.session for session, _ in self.carried]
        asked = [intent for (_, intent), own in zip(self.carried, is_own, strict=True) if own]
        rest = self.confirm(asked, shown)
        others = [one for one, own in zip(self.carried, is_own, strict=True) if not own]
        self.carried = [*others, *((shown.session, intent) for intent in rest)][-MAX_CARRIED:]

    def confirm_hidden(self, shown: CallResult, *, is_head: bool) -> None:
        """A log may list what a commit command made without a word: under its own subject, or first as HEAD."""
        self.done += self.history.read_log(shown, is_head=is_head)

    def has_come(self, intent: Intent, shown: CallResult) -> bool:
        """Whether a result says what became of an intent that is no commit, and if so count it."""
        if intent.kind is EffectKind.PUSH:
            return self.push(intent, shown)
        if intent.kind is Check.MERGE:
            return self.see_merge(intent, shown)
        if isinstance(intent.kind, EffectKind):
            keys = confirm.effect_keys(intent, shown)
            if keys and intent.body and intent.body in self.bodies:
                return True
            self.bodies.setdefault(intent.body if keys else "")
            for key in keys:
                self.add(intent.kind, key, shown.at)
            if not keys and intent.kind is EffectKind.PR_MERGED and confirm.may_have_merged(intent, shown):
                self.asked_to_merge.add(intent.target)
            return bool(keys)
        outcomes = confirm.check_outcomes(intent, shown)
        for target, passed in outcomes.items():
            self.follow(replace(intent, target=target), passed=passed, at=shown.at)
        return bool(outcomes)

    def see_merge(self, intent: Intent, shown: CallResult) -> bool:
        """A pull request that the session asked to merge is said to be merged."""
        if intent.target not in self.asked_to_merge or shown.ok is False or not outputs.STATE_MERGED.search(shown.text):
            return False
        self.asked_to_merge.discard(intent.target)
        self.add(EffectKind.PR_MERGED, intent.target, shown.at)
        return True

    def push(self, intent: Intent, shown: CallResult) -> bool:
        """Count the branches that a push moved, unless it went to a repository that the session made."""
        lines = list(outputs.pushes(shown.text))
        moved = [one for one in lines if intent.counts or one.address]
        moved = [one for one in moved if not self.places.is_own_remote(one.address)]
        for one in moved:
            last = self.history.commits[-1].hash if self.history.commits else one.source
            self.add(EffectKind.PUSH, f"{one.target} {one.new or last}", shown.at)
        if moved or (not lines and shown.ok is True and intent.proven and intent.counts):
            self.done += self.history.pushed(moved, shown.at)
        return bool(lines)

    def follow(self, intent: Intent, *, passed: bool, at: int) -> None:
        """A check's way from red to green. Only work in between makes it a fix; a rerun that passes was not broken.

        Tests that pass after nothing but a loosening of tests were not fixed either.
        """
        key = f"{intent.kind}:{intent.target}"
        if intent.kind is Check.TESTS and len(self.test_runs) < MAX_RECORDS:
            self.test_runs.append(TestRun(runner=intent.target, passed=passed, at=at))
        if not passed:
            if len(self.red) < MAX_RECORDS:
                self.red.setdefault(key, (self.done, self.edits, self.loosened))
            return
        done, edits, loosened = self.red.pop(key, (self.done, 0, 0))
        only_loosened = self.loosened > loosened and self.edits == edits
        if done == self.done or only_loosened:
            return
        if intent.kind is Check.CI:
            self.add(EffectKind.CI_FIXED, intent.target, at)
        elif self.fixed < self.done:  # else the same work has mended another runner's tests
            self.add(EffectKind.TESTS_FIXED, intent.target, at)
            self.fixed = self.done

    def add_commit(self, commit: Commit, intent: Intent) -> None:
        if not commit.hash or not intent.counts:
            return
        commit = commit if commit.paths else replace(commit, paths=self.changed_since_commit())
        self.done += self.history.add(commit, intent)

    def add(self, kind: EffectKind, key: str, at: int) -> None:
        if len(self.effects) >= MAX_RECORDS:
            self.truncated = True
            return
        key = key[:MAX_KEY]
        self.done += (kind, key) not in self.effects
        self.effects.setdefault((kind, key), Effect(kind=kind, key=key, at=at))
