"""One pass over the events of a transcript: what happened, as far as a tool's result shows it."""

import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grading.formats.events import (
    ApiError,
    Boundary,
    Clarity,
    Event,
    Message,
    PullRequestLink,
    Role,
    ToolCall,
    ToolResult,
    Usage,
)
from grading.formats.scaffold import first_request_line
from grading.signals import files, looks, outputs
from grading.signals.conduct import Conduct
from grading.signals.confirm import CallResult
from grading.signals.intents import Intent, commands_of, is_continuation, of_call, prints_log, shows_head
from grading.signals.looks import is_answer
from grading.signals.model import Signals, TokenTotals
from grading.signals.places import Places
from grading.signals.shell import ShellCommand
from grading.signals.work import MAX_KEY, Work

if TYPE_CHECKING:
    from datetime import datetime

MAX_OPEN_CALLS = 2_000
MAX_TASK = 120
MAX_LINKS = 200
MAX_READS = 2_000
# By which a call names the running shell or task that it reads on in.
RUNNING_KEYS = ("session_id", "bash_id", "shell_id", "task_id")


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
    commands: tuple[ShellCommand, ...]
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
        self.places = Places()
        self.work = Work(self.places)
        self.conduct = Conduct()
        self.reads: set[str] = set()
        self.linked: OrderedDict[str, None] = OrderedDict()
        self.cut = ""
        self.concluded = False
        self.asked_more = False
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.final_message: int | None = None
        self.task, self.first_line = "", ""
        self.heard = ""
        """The record of the last thing a person said: its other parts are the same turn."""

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
                self.on_api_error(event)
            case PullRequestLink() if len(self.linked) < MAX_LINKS:
                self.linked.setdefault(event.url[:MAX_KEY])
            case Boundary(kind="compaction"):
                self.counts["compactions"] += 1

    def on_api_error(self, error: ApiError) -> None:
        """An error right after the assistant's words cut them short: they are final only if a person asked for more."""
        self.api_errors[error.reason] += 1
        if not error.sidechain:
            self.cut = error.reason
            self.concluded = self.concluded and self.asked_more

    def on_message(self, message: Message) -> None:
        if message.role is Role.ASSISTANT and not message.sidechain:
            self.cut, self.asked_more = "", False
            self.concluded = self.concluded or bool(not message.thinking and message.text.strip())
        if message.role is Role.ASSISTANT and not message.thinking:
            self.counts["assistant"] += 1
            if not message.sidechain:
                self.final_message = message.number
        elif message.role is Role.USER and not message.sidechain:
            self.counts["user"] += not message.record or message.record != self.heard
            self.heard, self.asked_more = message.record, True
            self.conduct.on_change()
            self.task = self.task or first_request_line(message.text)
            self.first_line = self.first_line or next(
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
        self.count_clarity(call)
        self.cut = ""
        self.concluded = self.concluded and call.sidechain
        # What makes two calls the same call: name, command, path and arguments.
        named = [call.name, call.command, call.path]
        try:
            body = json.dumps([*named, dict(call.arguments)], sort_keys=True, default=str)
        except RecursionError:
            body = json.dumps(named)
        digest = hashlib.blake2b(body.encode(errors="surrogatepass"), digest_size=16).hexdigest()
        if digest in self.failed:
            self.counts["retries"] += 1
            del self.failed[digest]
        commands = commands_of(call)
        throwaway = self.places.visit(call, commands)
        self.open[call.call_id] = _Open(call, commands, of_call(call, commands, throwaway), digest)
        if len(self.open) > MAX_OPEN_CALLS:
            self.open.popitem(last=False)

    def count_clarity(self, call: ToolCall) -> None:
        self.counts[call.clarity] += 1
        if call.kind == "shell" and (call.command or call.clarity is Clarity.UNREADABLE):
            self.counts["shell"] += 1
            self.counts["bare_shell"] += not call.command

    def on_result(self, result: ToolResult) -> None:
        self.counts["results"] += 1
        self.concluded = self.concluded and result.sidechain
        self.counts["rejected"] += result.failed is not False and outputs.REJECTED.match(result.text) is not None
        opened = self.open.pop(result.call_id, None)
        if opened is None:
            self.counts["unpaired"] += 1
        shown = CallResult(text=outputs.readable(result.text), ok=looks.said(result), at=result.number)
        self.counts["known"] += shown.ok is not None
        if (
            shown.ok is False
            and opened is not None
            and is_answer(opened.commands, result.exit_code, result.text[:4_000])
        ):
            shown = replace(shown, ok=None)
        self.counts["failed"] += shown.ok is False
        if opened is None:
            self.work.confirm_carried(replace(shown, ok=None, session=""))
            return
        if is_continuation(opened.call) and all(len(command.argv) <= 1 for command in opened.commands):
            # It only waits for, or answers, what runs already: a log it prints is not the commit's output.
            named = [opened.call.arguments.get(key) for key in RUNNING_KEYS]
            session = next((str(value)[:60] for value in named if isinstance(value, int | str)), "")
            self.work.confirm_carried(replace(shown, ok=None, session=session))
        done = self.work.done
        if shown.ok is False:
            self.failed[opened.digest] = None
            if len(self.failed) > MAX_OPEN_CALLS:
                self.failed.popitem(last=False)
        else:
            self.on_success(opened, shown)
        self.work.add_result(opened.intents, shown)
        if shown.ok is not False and prints_log(opened.commands):
            shows_this = any(intent.shows_hash for intent in opened.intents)
            is_alone = not any(intent.is_commit for intent in opened.intents) and shows_head(opened.commands)
            self.work.confirm_hidden(shown, is_head=shows_this or is_alone)
        self.places.told(shown.text)
        self.conduct.on_result(opened.call, opened.commands, opened.intents, shown, changed=self.work.done > done)

    def on_success(self, opened: _Open, shown: CallResult) -> None:
        if opened.call.kind == "web":
            self.counts["web"] += 1
        if opened.call.kind == "read" and opened.call.path:
            self.work.see_path(opened.call.path)
        if len(self.reads) < MAX_READS:
            self.reads.update(looks.of_call(opened.call, opened.commands, opened.digest))
        for change in files.of_call(opened.call, shown.text, opened.commands):
            self.work.add_file(change)
        self.work.may_write(files.named_by_scripts(opened.call, opened.commands))
        self.work.see_changed(files.shown_changed(opened.commands, shown.text), shown.at)

    def signals(self) -> Signals:
        counts = self.counts
        return Signals(
            tool_calls=dict(self.tool_calls),
            results=counts["results"],
            known_results=counts["known"],
            failed_calls=counts["failed"],
            unpaired_results=counts["unpaired"],
            retries=counts["retries"],
            commits=tuple(self.work.history.commits),
            effects=tuple(self.work.effects.values()),
            files=tuple(self.work.files),
            test_runs=tuple(self.work.test_runs),
            web_reads=counts["web"],
            user_turns=counts["user"],
            assistant_turns=counts["assistant"],
            api_errors=dict(self.api_errors),
            tokens=TokenTotals(**self.tokens),
            cost_usd=self.cost,
            models=tuple(self.models),
            duration=(self.last - self.first).total_seconds() if self.first and self.last else None,
            compactions=counts["compactions"],
            final_message=self.final_message,
            task=(self.task or self.first_line)[:MAX_TASK],
            truncated=self.work.truncated or self.work.history.truncated,
            reads=len(self.reads),
            cut=self.cut,
            concluded=self.concluded,
            rejected=counts["rejected"],
            undone=self.work.history.all_undone(),
            linked_pull_requests=tuple(self.linked),
            loosened_tests=self.work.loosened,
            opaque_calls=counts[Clarity.OPAQUE],
            unreadable_calls=counts[Clarity.UNREADABLE],
            shell_calls=counts["shell"],
            bare_shell_calls=counts["bare_shell"],
            must_print=self.conduct.must_print,
            empty_results=self.conduct.empty_results,
            repeatable=self.conduct.repeatable,
            repeats=self.conduct.repeats,
            dead_start=self.conduct.dead_start,
        )
