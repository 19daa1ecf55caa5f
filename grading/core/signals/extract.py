"""One pass over the events of a transcript: what happened, as far as a tool's result shows it."""

import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grading.core.changes import FileChange
from grading.core.events import (
    ApiError,
    Boundary,
    Event,
    Message,
    PullRequestLink,
    Role,
    ToolCall,
    ToolResult,
    Usage,
)
from grading.core.signals import confirm, files
from grading.core.signals.confirm import Shown
from grading.core.signals.intents import Check, Intent, commands_of, is_continuation, of_call, prints_log
from grading.core.signals.model import Commit, Effect, EffectKind, Signals, TestRun, Tokens
from grading.core.signals.outputs import readable
from grading.core.signals.shell import Command

if TYPE_CHECKING:
    from datetime import datetime

MAX_RECORDS = 1_000
MAX_OPEN_CALLS = 2_000
MAX_LINES_KEPT = 4_000
MAX_KEY = 300
MAX_CARRIED = 50


def extract(events: Iterable[Event]) -> Signals:
    """The signals of a session from its normalised events, in one pass and bounded memory.

    An effect counts when the result of a call that set out to cause it shows it; text alone never does.
    """
    collector = _Collector()
    for event in events:
        collector.feed(event)
    return collector.signals()


@dataclass(slots=True)
class _Open:
    """A call that waits for its result."""

    call: ToolCall
    commands: tuple[Command, ...]
    intents: tuple[Intent, ...]
    digest: str


class _Collector:
    def __init__(self) -> None:
        self.tool_calls: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.api_errors: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.cost: float | None = None
        self.models: OrderedDict[str, None] = OrderedDict()
        self.open: OrderedDict[str, _Open] = OrderedDict()
        self.failed: OrderedDict[str, None] = OrderedDict()
        self.carried: list[Intent] = []
        self.quiet: list[Intent] = []
        self.commits: list[Commit] = []
        self.effects: dict[tuple[EffectKind, str], Effect] = {}
        self.files: list[FileChange] = []
        self.known_paths: set[str] = set()
        self.lines_kept = 0
        self.test_runs: list[TestRun] = []
        self.red: dict[str, int] = {}
        self.work = 0
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.final_message: int | None = None
        self.truncated = False

    def feed(self, event: Event) -> None:
        if event.at is not None:
            self.first = min(self.first or event.at, event.at)
            self.last = max(self.last or event.at, event.at)
        match event:
            case ToolCall():
                self.on_call(event)
            case ToolResult():
                self.on_result(event)
            case Message():
                self.on_message(event)
            case Usage():
                self.on_usage(event)
            case ApiError():
                self.api_errors[event.reason] += 1
            case PullRequestLink():
                self.add(EffectKind.PR_OPENED, event.url, event.number)
            case Boundary(kind="compaction"):
                self.counts["compactions"] += 1

    def on_message(self, message: Message) -> None:
        if message.role is Role.ASSISTANT and not message.thinking:
            self.counts["assistant"] += 1
            if not message.sidechain:
                self.final_message = message.number
        elif message.role is Role.USER and not message.sidechain:
            self.counts["user"] += 1

    def on_usage(self, usage: Usage) -> None:
        self.models.setdefault(usage.model)
        for name in ("input", "output", "cache_read", "cache_write"):
            count: int | None = getattr(usage, f"{name}_tokens")
            if count is not None:
                self.tokens[name] += count
        if usage.cost_usd is not None:
            self.cost = (self.cost or 0.0) + usage.cost_usd

    def on_call(self, call: ToolCall) -> None:
        self.tool_calls[call.kind or "other"] += 1
        digest = _digest(call)
        if digest in self.failed:
            self.counts["retries"] += 1
            del self.failed[digest]
        commands = commands_of(call)
        self.open[call.call_id] = _Open(call, commands, of_call(call, commands), digest)
        if len(self.open) > MAX_OPEN_CALLS:
            self.open.popitem(last=False)

    def on_result(self, result: ToolResult) -> None:
        self.counts["results"] += 1
        opened = self.open.pop(result.call_id, None)
        if opened is None:
            self.counts["unpaired"] += 1
        shown = Shown(text=readable(result.text), ok=_worked(result), at=result.number)
        self.counts["known"] += shown.ok is not None
        self.counts["failed"] += shown.ok is False
        if opened is None or _reads_on(opened):
            self.confirm_carried(replace(shown, ok=None))
        if opened is None:
            return
        if shown.ok is False:
            self.failed[opened.digest] = None
            if len(self.failed) > MAX_OPEN_CALLS:
                self.failed.popitem(last=False)
        else:
            self.on_success(opened, shown)
        self.carried = [*self.carried, *self.confirm(opened.intents, shown)][-MAX_CARRIED:]

    def on_success(self, opened: _Open, shown: Shown) -> None:
        if opened.call.kind == "web":
            self.counts["web"] += 1
        if opened.call.kind == "read" and opened.call.path:
            self.known_paths.add(opened.call.path)
        for change in files.of_call(opened.call, shown.text, opened.commands):
            self.add_file(change)
        if self.quiet and prints_log(opened.commands):
            self.confirm_quiet(shown)

    def add_file(self, change: FileChange) -> None:
        seen = change.path in self.known_paths
        if len(self.known_paths) < MAX_OPEN_CALLS:
            self.known_paths.add(change.path)
        self.lines_kept += len(change.added) + len(change.removed)
        self.work += 1
        if len(self.files) >= MAX_RECORDS:
            self.truncated = True
            return
        if self.lines_kept > MAX_LINES_KEPT:
            self.truncated = True
            change = replace(change, added=(), removed=())
        self.files.append(replace(change, is_new=False) if seen and change.is_new is None else change)

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
            self.red.setdefault(key, self.work)
        elif key in self.red and self.red.pop(key) < self.work:
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
        self.work += 1
        self.commits.append(commit)

    def add(self, kind: EffectKind, key: str, at: int) -> None:
        if len(self.effects) >= MAX_RECORDS:
            self.truncated = True
            return
        key = key[:MAX_KEY]
        self.work += (kind, key) not in self.effects
        self.effects.setdefault((kind, key), Effect(kind=kind, key=key, at=at))

    def signals(self) -> Signals:
        counts = self.counts
        return Signals(
            tool_calls=dict(self.tool_calls),
            results=counts["results"],
            known_results=counts["known"],
            failed_calls=counts["failed"],
            unpaired_results=counts["unpaired"],
            retries=counts["retries"],
            commits=tuple(self.commits),
            effects=tuple(self.effects.values()),
            files=tuple(self.files),
            test_runs=tuple(self.test_runs),
            web_reads=counts["web"],
            user_turns=counts["user"],
            assistant_turns=counts["assistant"],
            api_errors=dict(self.api_errors),
            tokens=Tokens(**self.tokens),
            cost_usd=self.cost,
            models=tuple(self.models),
            duration=(self.last - self.first).total_seconds() if self.first and self.last else None,
            compactions=counts["compactions"],
            final_message=self.final_message,
            truncated=self.truncated,
        )


def _reads_on(opened: _Open) -> bool:
    """Whether a call only waits for, or answers, what runs already: a log it prints is not the commit's output."""
    return is_continuation(opened.call) and all(len(command.argv) <= 1 for command in opened.commands)


def _worked(result: ToolResult) -> bool | None:
    """Whether the call worked; None where the format does not say."""
    if result.failed is not None:
        return not result.failed
    return None if result.exit_code is None else result.exit_code == 0


def _digest(call: ToolCall) -> str:
    """What makes two calls the same call: name, command, path and arguments."""
    body = json.dumps([call.name, call.command, call.path, dict(call.arguments)], sort_keys=True, default=str)
    return hashlib.blake2b(body.encode(errors="surrogatepass"), digest_size=16).hexdigest()
