"""One pass over the events of a transcript: what happened, as far as a tool's result shows it."""

import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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
from grading.core.signals import files
from grading.core.signals.conduct import Conduct
from grading.core.signals.confirm import Shown
from grading.core.signals.intents import Intent, commands_of, is_continuation, of_call, prints_log
from grading.core.signals.model import EffectKind, Signals, Tokens
from grading.core.signals.outputs import readable
from grading.core.signals.shell import Command
from grading.core.signals.work import Work

if TYPE_CHECKING:
    from datetime import datetime

MAX_OPEN_CALLS = 2_000
MAX_TASK = 120


def extract(events: Iterable[Event]) -> Signals:
    """The signals of a session from its normalised events, in one pass and bounded memory.

    An effect counts when the result of a call that set out to cause it shows it; text alone never does. What a log
    copied from another session counts for nothing (L11).
    """
    collector = _Collector()
    for event in events:
        if isinstance(event, Boundary) and event.kind == "session_change":
            collector = _Collector()
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
        self.work = Work()
        self.conduct = Conduct()
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.final_message: int | None = None
        self.task = ""

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
                self.work.add(EffectKind.PR_OPENED, event.url, event.number)
            case Boundary(kind="compaction"):
                self.counts["compactions"] += 1

    def on_message(self, message: Message) -> None:
        if message.role is Role.ASSISTANT and not message.thinking:
            self.counts["assistant"] += 1
            if not message.sidechain:
                self.final_message = message.number
        elif message.role is Role.USER and not message.sidechain:
            self.counts["user"] += 1
            self.conduct.on_change()
            self.task = self.task or next(
                (line.strip() for line in message.text[:4_000].splitlines() if line.strip()), ""
            )

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
            self.work.confirm_carried(replace(shown, ok=None))
        if opened is None:
            return
        done = self.work.done
        if shown.ok is False:
            self.failed[opened.digest] = None
            if len(self.failed) > MAX_OPEN_CALLS:
                self.failed.popitem(last=False)
        else:
            self.on_success(opened, shown)
        self.work.add_result(opened.intents, shown)
        self.conduct.on_result(opened.call, opened.commands, opened.intents, shown, changed=self.work.done > done)

    def on_success(self, opened: _Open, shown: Shown) -> None:
        if opened.call.kind == "web":
            self.counts["web"] += 1
        if opened.call.kind == "read" and opened.call.path:
            self.work.see_path(opened.call.path)
        for change in files.of_call(opened.call, shown.text, opened.commands):
            self.work.add_file(change)
        if self.work.quiet and prints_log(opened.commands):
            self.work.confirm_quiet(shown)

    def signals(self) -> Signals:
        counts = self.counts
        return Signals(
            tool_calls=dict(self.tool_calls),
            results=counts["results"],
            known_results=counts["known"],
            failed_calls=counts["failed"],
            unpaired_results=counts["unpaired"],
            retries=counts["retries"],
            commits=tuple(self.work.commits),
            effects=tuple(self.work.effects.values()),
            files=tuple(self.work.files),
            test_runs=tuple(self.work.test_runs),
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
            task=self.task[:MAX_TASK],
            truncated=self.work.truncated,
            must_print=self.conduct.must_print,
            empty_results=self.conduct.empty_results,
            repeatable=self.conduct.repeatable,
            repeats=self.conduct.repeats,
            dead_start=self.conduct.dead_start,
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
    try:
        body = json.dumps([call.name, call.command, call.path, dict(call.arguments)], sort_keys=True, default=str)
    except RecursionError:
        body = json.dumps([call.name, call.command, call.path])
    return hashlib.blake2b(body.encode(errors="surrogatepass"), digest_size=16).hexdigest()
