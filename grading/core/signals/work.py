"""The confirmed work of a session, as its results come in."""

from collections.abc import Sequence
from dataclasses import replace

from grading.core.changes import FileChange
from grading.core.signals import confirm, outputs
from grading.core.signals.confirm import Shown
from grading.core.signals.intents import Check, Intent
from grading.core.signals.model import Commit, Effect, EffectKind, TestRun

MAX_RECORDS = 1_000
MAX_PATHS = 2_000
MAX_LINES_KEPT = 4_000
MAX_KEY = 300
MAX_CARRIED = 50


class Work:
    """What has been shown to happen so far, and the intents that may still come true."""

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.effects: dict[tuple[EffectKind, str], Effect] = {}
        self.files: list[FileChange] = []
        self.test_runs: list[TestRun] = []
        self.carried: list[Intent] = []
        self.quiet: list[Intent] = []
        self.known_paths: set[str] = set()
        self.lines_kept = 0
        self.red: dict[str, int] = {}
        self.done = 0
        self.truncated = False

    def add_file(self, change: FileChange) -> None:
        seen = change.path in self.known_paths
        self.see_path(change.path)
        self.lines_kept += len(change.added) + len(change.removed)
        self.done += 1
        if len(self.files) >= MAX_RECORDS:
            self.truncated = True
            return
        if self.lines_kept > MAX_LINES_KEPT:
            self.truncated = True
            change = replace(change, added=(), removed=())
        self.files.append(replace(change, is_new=False) if seen and change.is_new is None else change)

    def see_path(self, path: str) -> None:
        """A file that was read or written: a later write does not make it new."""
        if len(self.known_paths) < MAX_PATHS:
            self.known_paths.add(path)

    def add_result(self, intents: Sequence[Intent], shown: Shown) -> None:
        """The result of a call with these intents. A call that runs on has not succeeded yet."""
        if outputs.RUNNING.search(shown.text[:500]):
            shown = replace(shown, ok=None)
        self.carried = [*self.carried, *self.confirm(intents, shown)][-MAX_CARRIED:]

    def confirm(self, intents: Sequence[Intent], shown: Shown) -> list[Intent]:
        """Count what a result shows of the intents; returns those that may still come true."""
        possible = [intent for intent in intents if isinstance(intent.kind, Check) or shown.may_confirm(intent)]
        committing = [intent for intent in possible if intent.is_commit]
        found = confirm.commits(committing, shown)
        for commit, amends in found:
            self.add_commit(commit, amends=amends)
        if not found:
            self.quiet = [*self.quiet, *(intent for intent in committing if intent.quiet)][-MAX_CARRIED:]
        rest = [intent for intent in possible if not intent.is_commit and not self.has_come(intent, shown)]
        return [*confirm.open_commits(committing, len(found), shown), *(rest if shown.ok is None else [])]

    def confirm_carried(self, shown: Shown) -> None:
        """The output of an earlier call, read later: a persistent shell, a task in the background (I09)."""
        self.carried = self.confirm(self.carried, shown)

    def confirm_quiet(self, shown: Shown) -> None:
        """A later log may list what a quiet commit command made: under its own subject, or it is not that commit."""
        for intent in list(self.quiet):
            for commit, amends in confirm.logged_commit(intent, shown):
                self.add_commit(commit, amends=amends)
                self.quiet.remove(intent)

    def has_come(self, intent: Intent, shown: Shown) -> bool:
        """Whether a result says what became of an intent that is no commit, and if so count it."""
        if isinstance(intent.kind, EffectKind):
            keys = confirm.effect_keys(intent, shown)
            for key in keys:
                self.add(intent.kind, key, shown.at)
            return bool(keys)
        passed = confirm.check_outcome(intent, shown)
        if passed is not None:
            self.follow(intent, passed=passed, at=shown.at)
        return passed is not None

    def follow(self, intent: Intent, *, passed: bool, at: int) -> None:
        """A check's way from red to green. Only work in between makes it a fix; a rerun that passes was not broken."""
        key = f"{intent.kind}:{intent.target}"
        if intent.kind is Check.TESTS and len(self.test_runs) < MAX_RECORDS:
            self.test_runs.append(TestRun(runner=intent.target, passed=passed, at=at))
        if not passed:
            self.red.setdefault(key, self.done)
        elif key in self.red and self.red.pop(key) < self.done:
            self.add(EffectKind.CI_FIXED if intent.kind is Check.CI else EffectKind.TESTS_FIXED, intent.target, at)

    def add_commit(self, commit: Commit, *, amends: bool) -> None:
        if any(known.is_same(commit.hash) for known in self.commits):
            return
        if amends and self.commits:
            self.commits.pop()
        if len(self.commits) >= MAX_RECORDS:
            self.truncated = True
            return
        since = self.commits[-1].at if self.commits else 0
        if not commit.paths:
            changed = tuple(dict.fromkeys(change.path for change in self.files if change.at > since))[:50]
            commit = replace(commit, paths=changed)
        self.done += 1
        self.commits.append(commit)

    def add(self, kind: EffectKind, key: str, at: int) -> None:
        if len(self.effects) >= MAX_RECORDS:
            self.truncated = True
            return
        key = key[:MAX_KEY]
        self.done += (kind, key) not in self.effects
        self.effects.setdefault((kind, key), Effect(kind=kind, key=key, at=at))
