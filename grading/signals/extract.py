"""One pass over the events of a transcript that builds its `Signals`: what the results of tool calls show."""

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grading.formats.events import (
    ApiError,
    Boundary,
    Clarity,
    Event,
    Message,
    Role,
    ToolCall,
    ToolResult,
    Usage,
)
from grading.formats.scaffold import first_request_line
from grading.signals import files, looks, outputs
from grading.signals.calls import is_continuation, parse_commands, serialise_call
from grading.signals.changes import FileChange, is_absolute
from grading.signals.conduct import Conduct
from grading.signals.confirm import CallResult
from grading.signals.final_state import (
    MAX_TEXT,
    FinalState,
    Restore,
    SessionCourse,
    SuiteRun,
    find_final_state,
    find_restore,
)
from grading.signals.intents import Intent, find_intents, find_log_command, shows_head
from grading.signals.model import Check, EffectKind, Signals
from grading.signals.places import Places
from grading.signals.shell import ShellCommand
from grading.signals.vitals import VitalsCollector
from grading.signals.work import Work

if TYPE_CHECKING:
    from datetime import datetime

MAX_OPEN_CALLS = 2_000
MAX_TASK = 120
MAX_RESTORES = 200
MAX_READS = 2_000
MAX_SESSION = 60
MAX_REQUESTS = 100
# The fewest failed edits, and calls of any kind, for a session all of whose edits or calls failed.
MIN_FAILED_EDITS, MIN_FAILED_CALLS = 2, 3
EDITING_KINDS = ("write", "edit")
# Arguments by which a call names the running shell or task whose output it reads.
SESSION_KEYS = ("session_id", "sessionId", "bash_id", "shell_id", "shellId", "task_id")


def extract(events: Iterable[Event]) -> Signals:
    """The signals of a session from its normalised events, in one pass and bounded memory.

    An effect counts if the result of a call intended to cause it shows it; text alone never counts. When a log changes
    to another session, everything before (copied from an earlier session) is discarded.
    """
    collector = _Collector()
    for event in events:
        if isinstance(event, Boundary) and event.kind == "session_change":
            collector = _Collector()
        collector.feed(event)
    return collector.build_signals()


@dataclass(slots=True)
class _OpenCall:
    """A call without a result yet. `digest` is the same for calls with the same name, command, path and arguments.

    `directory` is where its last command acts, "" if unknown.
    """

    call: ToolCall
    commands: tuple[ShellCommand, ...]
    intents: tuple[Intent, ...]
    digest: str
    directory: str

    @property
    def only_continues(self) -> bool:
        """Whether the call only reads from a running command, or writes to it: its output is that command's."""
        return is_continuation(self.call) and all(len(command.argv) <= 1 for command in self.commands)

    @property
    def session(self) -> str:
        """The id of the running shell or task that the call names in its arguments; "" if it names none."""
        for key in SESSION_KEYS:
            value = self.call.arguments.get(key)
            if isinstance(value, int | str):
                return str(value)[:MAX_SESSION]
        return ""


class _Collector:
    """The state of the pass. `counts` has counts of `Signals` by their names there.

    `open_calls` is capped, oldest out first. `done_digests` are of the edits that succeeded.
    `user_record` is the record of the last user message: further messages with it are parts of the same turn.
    `user_spoke_last`: no assistant message came since. `requests` are the (number, text) of the user's last messages,
    and `closing_text` is the last assistant message. `cut` is the reason of an API error after which neither an
    assistant message nor a call came. `concluded`: an assistant message came after the last call and result.
    """

    def __init__(self) -> None:
        self.tool_calls: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.api_errors: Counter[str] = Counter()
        self.edits = self.failed_edits = 0
        self.cost: float | None = None
        self.open_calls: OrderedDict[str, _OpenCall] = OrderedDict()
        self.places = Places()
        self.work = Work(self.places)
        self.conduct = Conduct()
        self.vitals = VitalsCollector()
        self.reads: set[str] = set()
        self.cut = ""
        self.concluded = False
        self.user_spoke_last = False
        self.first_at: datetime | None = None
        self.last_at: datetime | None = None
        self.final_message: int | None = None
        self.task = ""
        self.first_line = ""
        self.user_record = ""
        self.restores: list[Restore] = []
        self.requests: list[tuple[int, str]] = []
        self.closing_text = ""
        self.done_digests: set[str] = set()

    def feed(self, event: Event) -> None:
        """Count one event of the session. `extract` handles the change to another session."""
        if event.at is not None:
            if self.first_at is None or event.at < self.first_at:
                self.first_at = event.at
            if self.last_at is None or event.at > self.last_at:
                self.last_at = event.at
        self.vitals.feed(event)
        match event:
            case ToolCall():
                self.on_call(event)
            case ToolResult():
                self.on_result(event)
            case Message():
                self.on_message(event)
            case Usage(copied=False, cost_usd=cost) if cost is not None:
                self.cost = (self.cost or 0.0) + cost
            case ApiError():
                self.on_api_error(event)
            case Boundary(kind="compaction"):
                self.counts["compactions"] += 1

    def on_api_error(self, error: ApiError) -> None:
        """Count an API error, and note it as what cut the session. Then the session isn't concluded, unless it was and
        the error only answers something that the user said afterwards.
        """
        self.api_errors[error.reason] += 1
        if not error.sidechain:
            self.cut = error.reason
            self.concluded = self.concluded and self.user_spoke_last

    def on_message(self, message: Message) -> None:
        if message.role is Role.ASSISTANT:
            self.on_assistant_message(message)
        elif message.role is Role.USER and not message.sidechain:
            self.on_user_message(message)

    def on_assistant_message(self, message: Message) -> None:
        """Count a message of the assistant. Anything that it writes to the user concludes the session, for now."""
        is_thought = message.thinking
        if not is_thought:
            self.counts["assistant_turns"] += 1
        if message.sidechain:
            return
        self.cut = ""
        self.user_spoke_last = False
        if not is_thought:
            self.final_message = message.number
            self.closing_text = message.text[-MAX_TEXT:]
            self.concluded = self.concluded or bool(message.text.strip())

    def on_user_message(self, message: Message) -> None:
        """Count a message of the user, unless it is another part of the same turn. The first request is the task."""
        if not message.record or message.record != self.user_record:
            self.counts["user_turns"] += 1
        self.user_record = message.record
        self.user_spoke_last = True
        self.conduct.on_change()
        self.requests = [*self.requests, (message.number, message.text[:MAX_TEXT])][-MAX_REQUESTS:]
        if not self.task:
            self.task = first_request_line(message.text)
        if not self.first_line:
            lines = message.text[:MAX_TEXT].strip().splitlines() or [""]
            self.first_line = lines[0].strip()

    def on_call(self, call: ToolCall) -> None:
        """Count a call and keep it open until its result comes."""
        self.tool_calls[call.kind or "other"] += 1
        self.count_clarity(call)
        self.cut = ""
        self.concluded = self.concluded and call.sidechain
        digest = hashlib.blake2b(serialise_call(call), digest_size=16).hexdigest()
        commands = parse_commands(call)
        places = self.places.track_call(call, commands)
        intents = find_intents(call, commands, places)
        if any(intent.kind is Check.TESTS for intent in intents):
            self.vitals.on_tests(call.number)
        directory = places[-1].directory if places else ""
        self.open_calls[call.call_id] = _OpenCall(call, commands, intents, digest, directory)
        if len(self.open_calls) > MAX_OPEN_CALLS:
            self.open_calls.popitem(last=False)

    def count_clarity(self, call: ToolCall) -> None:
        """Count a call by how much of it we understand, and shell calls also by whether their command is known.

        A shell call without a command that isn't unreadable runs none: it reads from a running command.
        """
        self.counts["opaque_calls"] += call.clarity is Clarity.OPAQUE
        self.counts["unreadable_calls"] += call.clarity is Clarity.UNREADABLE
        self.counts["unknown_calls"] += not call.is_known
        runs_command = bool(call.command) or call.clarity is Clarity.UNREADABLE
        if call.kind == "shell" and runs_command:
            self.counts["shell_calls"] += 1
            self.counts["bare_shell_calls"] += not call.command

    def on_result(self, event: ToolResult) -> None:
        """Count a result, and what it confirms of its call's intents and of earlier ones that are still open.

        A result whose call is unknown can only confirm the earlier ones.
        """
        opened = self.open_calls.pop(event.call_id, None)
        result = CallResult(text=outputs.clean_output(event.text), ok=self.count_result(event, opened), at=event.number)
        if opened is None:
            self.work.confirm_open(replace(result, ok=None))
            return
        if opened.only_continues:  # its exit code is that of the command that it waited for; its success isn't
            ended_well = None if event.exit_code is None else event.exit_code == 0
            self.work.confirm_open(replace(result, ok=ended_well, session=opened.session))
        count_before = self.work.change_count
        if result.ok is False:
            self.failed_edits += opened.call.kind in EDITING_KINDS
        else:
            self.on_success(opened, result)
        self.work.add_result(opened.intents, result)
        if result.ok is not False:
            self.confirm_logged(opened, result)
        self.places.track_result(result.text)
        changed = self.work.change_count > count_before
        self.conduct.on_result(opened.call, opened.commands, opened.intents, result, changed=changed)

    def count_result(self, event: ToolResult, opened: _OpenCall | None) -> bool | None:
        """Count a result of a call, None if the call is unknown; returns whether the call succeeded, None if that is
        unknown. A negative answer is neither, such as that of a `grep` that finds nothing.
        """
        self.counts["results"] += 1
        self.concluded = self.concluded and event.sidechain
        if event.failed is not False and outputs.REJECTED.match(event.text):
            self.counts["rejected"] += 1
            return None
        ok = looks.reported_success(event)
        if ok is False and opened is not None and opened.digest in self.done_digests:
            return None  # the same edit was made before
        self.counts["known_results"] += ok is not None
        if ok is False and opened is not None and looks.is_negative_answer(opened.commands, event):
            return None
        self.counts["failed_calls"] += ok is False
        return ok

    def confirm_logged(self, opened: _OpenCall, result: CallResult) -> None:
        """Count hidden commits that the output of a git command lists.

        The list begins with HEAD if a commit of the same call has its hash printed after it, or if the call makes no
        commit and its first list begins there.
        """
        log_command = find_log_command(opened.commands)
        if log_command is None:
            return
        if any(intent.is_commit for intent in opened.intents):
            is_head = any(intent.shows_hash for intent in opened.intents)
        else:
            is_head = shows_head(log_command)
        self.work.confirm_hidden(result, is_head=is_head)

    def on_success(self, opened: _OpenCall, result: CallResult) -> None:
        """Record what a call that did not fail read, changed, or may have changed."""
        call, commands = opened.call, opened.commands
        if call.kind == "read" and call.path:
            self.work.add_existing_path(call.path)
        reads_before = len(self.reads)
        if reads_before < MAX_READS:
            self.reads.update(looks.find_reads(call, commands, opened.digest))
        changes = self.find_changes(opened, result)
        for change in changes:
            self.work.add_file(change)
        outside = [change for change in changes if not self.places.is_scratch(change.path)]
        self.vitals.on_success(call, commands, result.text, outside, reads=reads_before)
        restore = find_restore(commands, result.at)
        if restore is not None:
            self.restores = [*self.restores, restore][-MAX_RESTORES:]
        if call.kind in EDITING_KINDS:
            self.edits += 1
            if len(self.done_digests) < MAX_OPEN_CALLS:
                self.done_digests.add(opened.digest)
        self.work.add_possible_writes(files.find_script_paths(call, commands))
        self.work.confirm_writes(files.find_changed_paths(commands, result.text), result.at)

    def find_changes(self, opened: _OpenCall, result: CallResult) -> list[FileChange]:
        """The file changes of a call that did not fail; relative paths in a temporary directory become absolute."""
        changes = list(files.find_changes(opened.call, result.text, opened.commands))
        if not changes or not self.places.is_scratch(opened.directory):
            return changes
        return [
            change if is_absolute(change.path) else replace(change, path=f"{opened.directory}/{change.path}")
            for change in changes
        ]

    def own_runs(self) -> list[SuiteRun]:
        """The runs of tests and builds outside temporary directories."""
        return [run for run in self.work.runs if not self.places.is_scratch(run.place)]

    def final_state(self, changes: Sequence[FileChange]) -> FinalState:
        """How the session ended so far; `changes` are its file changes outside temporary directories."""
        history = self.work.history
        subjects = [commit.subject for commit in history.commits] + [one.subject for one in history.hidden]
        # A pull request is opened or merged of a branch that was pushed.
        pull_request_kinds = (EffectKind.PR_OPENED, EffectKind.PR_MERGED)
        pull_requests_at = [effect.at for effect in self.work.effects.values() if effect.kind in pull_request_kinds]
        state = find_final_state(
            SessionCourse(
                runs=self.own_runs(),
                edits=[(change.at, change.path) for change in changes],
                commits_at=[commit.at for commit in history.commits],
                pushes_at=[*self.work.pushes_at, *pull_requests_at],
                rejected_push_at=self.work.rejected_push_at,
                failed_check_at=self.work.failed_check_at,
                restores=self.restores,
                undone_at=self.work.undone_at,
                undone_count=len(history.all_undone()),
                requests=self.requests,
                closing_text="\n".join([self.closing_text, *subjects]),
            )
        )
        failed = self.find_failed_calls() if not (changes or history.commits or self.work.effects) else ()
        return replace(state, failures=(*state.failures, *failed))

    def find_failed_calls(self) -> tuple[str, ...]:
        """The failure that none of the session's edits, or none of its calls, succeeded; empty if there is none."""
        if self.failed_edits >= MIN_FAILED_EDITS and not self.edits:
            return (f"none of its {self.failed_edits} edits succeeded",)
        results, failed = self.counts["known_results"], self.counts["failed_calls"]
        if results == failed >= MIN_FAILED_CALLS and 2 * results >= self.tool_calls.total():
            return (f"all of its {failed} calls failed",)
        return ()

    def build_signals(self) -> Signals:
        """The signals of the events so far."""
        changes = [replace(each, is_scratch=self.places.is_scratch(each.path)) for each in self.work.files]
        final_state = self.final_state([each for each in changes if not each.is_scratch])
        return Signals(
            **self.counts,
            tool_calls=dict(self.tool_calls),
            commits=tuple(self.work.history.commits),
            effects=tuple(self.work.effects.values()),
            files=tuple(changes),
            test_runs=tuple(self.work.test_runs),
            api_errors=dict(self.api_errors),
            cost_usd=self.cost,
            duration=(self.last_at - self.first_at).total_seconds() if self.first_at and self.last_at else None,
            final_message=self.final_message,
            task=(self.task or self.first_line)[:MAX_TASK],
            truncated=self.work.truncated or self.work.history.truncated,
            reads=len(self.reads),
            cut=self.cut,
            concluded=self.concluded,
            undone=self.work.history.all_undone(),
            loosened_tests=self.work.loosened_count,
            must_print=self.conduct.must_print,
            empty_results=self.conduct.empty_results,
            repeatable=self.conduct.repeatable,
            repeats=self.conduct.repeats,
            dead_start=self.conduct.dead_start,
            tests_at_end=final_state.tests,
            failures=final_state.failures,
            broke_tests=final_state.broke_tests,
            vitals=self.vitals.vitals(self.own_runs(), self.closing_text),
        )
