"""Vitals: what a session ran with and how its work went, beside what it achieved. Nothing here enters a grade.

`VITALS` defines each vital in the words that pages show. Those that `Signals` have already (turns, calls, failed calls,
compactions) are not counted again.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Final

from grading.formats.events import (
    ApiError,
    Event,
    Interruption,
    LoadedInstructions,
    Message,
    Role,
    Setting,
    ToolCall,
    ToolResult,
    Usage,
)
from grading.formats.values import word_set
from grading.signals.changes import FileChange
from grading.signals.files import PATH_WORD
from grading.signals.final_state import SuiteRun, TestState, is_code
from grading.signals.shell import ShellCommand
from grading.signals.suites import Suite, SuiteKind

if TYPE_CHECKING:
    from datetime import datetime

VERSION = "vitals/1"

MAX_NAMES = 100
MAX_NAME = 120
MAX_FILES = 200
MAX_SUITES = 20
MAX_SEEN = 5_000
MAX_OUTPUT = 10_000
MAX_PATH = 300
# How many characters of a setting's value are stored, and of its first one.
MAX_VALUE, MAX_FIRST_VALUE = 200, 1_000
# A longer pause counts as this long: the machine slept, or something hung.
MAX_PAUSE_SECONDS = 600.0
INTERRUPTED = ("[Request interrupted by user", "Interrupted by user")
SKILL = re.compile(r"\s{0,20}<skill>\s{0,20}<name>([^<>\n]{1,200})</name>")
AGENT_TOOLS = word_set("Agent Task spawn_agent subagent")
AGENT_KEYS = ("subagent_type", "agent_type", "role")
# Commands that name files without reading them.
NOT_READING = word_set("cd chmod cp find ls mkdir mv rm rmdir touch tree")
GIT_READING = word_set("blame cat-file diff grep log show")
# Commands whose output has the lines of the files that it names.
PRINTING_LINES = word_set("ack ag diff egrep fgrep git grep rg")
WILDCARDS = re.compile(r"[*?\[]")
SENTENCE = re.compile(r"[.!?\n。！？]+")
PASSING = re.compile(
    r"\btests?\b.{0,60}\b(?:pass(?:es|ed|ing)?|succeed(?:ed|s)?|green)\b|\b(?:pass(?:es|ed|ing)?|green)\b.{0,30}\btests?\b|"
    r"\bTests?\b.{0,40}\b(?:grün|bestanden|laufen durch)\b|测试.{0,12}通过|テスト.{0,12}(?:成功|通)",
    re.IGNORECASE,
)
DONE = re.compile(
    r"\b(?:all set|completed?|done|finished|fixed|implemented|resolved|ready (?:for|to) (?:merge|review|use)|"
    r"works (?:as expected|correctly|now)|"
    r"abgeschlossen|behoben|erledigt|fertig|corrigé|terminé|corregido|hecho|listo|terminado|готово|исправлено)\b|"
    r"完成|已修复|完了|修正しました",
    re.IGNORECASE,
)
# A sentence with one of these claims nothing: it denies, doubts, asks or plans.
HEDGE = re.compile(
    r"n['’]t\b|\b(?:cannot|could|fail(?:s|ed|ing|ures?)?|if|incomplete|might|next|not|no|once|remaining|should|todo|"
    r"unable|until|when|will|without|would|noch|nicht|kein|wenn|soll|pas|aún|не)\b|未|没|ません",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vital:
    """A vital's column in the facts, its title, what exactly is counted, and why harnesses may not be comparable."""

    name: str
    title: str
    definition: str
    caution: str = ""


VITALS: Final = (
    Vital(
        name="minutes",
        title="Minutes in the log",
        definition="From the first to the last time in the log.",
        caution="A log without times has none.",
    ),
    Vital(
        name="active_minutes",
        title="Active minutes",
        definition="The time that the agent took: pauses that end with a person's message are left out, and any other "
        "pause counts as ten minutes at most.",
        caution="Harnesses write times at different moments, and some of them none.",
    ),
    Vital(name="user_turns", title="User turns", definition="Messages that a person wrote."),
    Vital(
        name="interruptions",
        title="Interruptions",
        definition="How often a person stopped the agent.",
        caution="Not every version of a harness records it.",
    ),
    Vital(
        name="refusals",
        title="Refused calls",
        definition="Calls of tools that a person refused.",
        caution="Depends on what the permission mode asks for.",
    ),
    Vital(
        name="failed_share",
        title="Failed calls",
        definition="The share of failed calls in those whose result is known. Unknown if more than half are unknown. "
        "Searches that find nothing and refused calls haven't failed.",
        caution="Claude Code records each failure; Codex and gptme record it as text, which is not always there.",
    ),
    Vital(
        name="reads_before_edit",
        title="Reads before the first edit",
        definition="Different files, searches and pages that it had read when it first changed a file.",
        caution="Tools for reading show one file each, and a shell command may read many.",
    ),
    Vital(
        name="unread_edits",
        title="Edits of unread files",
        definition="Files that existed and were changed before any call had read or named them.",
        caution="Claude Code refuses such edits.",
    ),
    Vital(
        name="test_runs", title="Test runs", definition="Runs of tests, whatever their result; of the last thousand."
    ),
    Vital(
        name="suites",
        title="Tests at the end",
        definition="The result of the last run of each suite; unknown if its output does not show it.",
    ),
    Vital(
        name="retries",
        title="Retries after API errors",
        definition="Failed calls of the model after which the session went on.",
        caution="Claude Code logs each attempt in some versions, and only the last in others.",
    ),
    Vital(
        name="compactions",
        title="Compactions",
        definition="How often the harness shortened the conversation.",
    ),
    Vital(
        name="claimed_without_green",
        title="Claimed without a green run",
        definition="It changed code, its last message says that it is done or that tests pass, and no run of tests "
        "passed after the last change. Unknown if the result of such a run is unknown.",
        caution="Messages are searched for words of a few languages, English above all.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionFile:
    """A file of instructions. `size` is in bytes; `sha256` is of its text."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What the events show beyond `Signals`. Texts are empty and numbers None if the log does not show them.

    `model_calls` are the responses by model; None for a model that the log names without its responses. Of settings
    that changed, the one counts under which most of the work was done. `suites` are (suite, state) of its last run.
    """

    harness_version: str = ""
    model_calls: Mapping[str, int | None] = field(default_factory=dict)
    reasoning_effort: str = ""
    permission_mode: str = ""
    repository: str = ""
    folder: str = ""
    mcp_servers: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    subagents: tuple[str, ...] = ()
    instruction_files: tuple[InstructionFile, ...] = ()
    active_seconds: float | None = None
    interruptions: int = 0
    reads_before_edit: int | None = None
    unread_edits: int = 0
    test_runs: int = 0
    suites: tuple[tuple[str, TestState], ...] = ()
    retries: int = 0
    claimed_without_green: bool | None = None


class SeenFiles:
    """The names of files that calls have read or named, without their folders. When in doubt, a file was read."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._patterns: set[str] = set()

    def __contains__(self, path: str) -> bool:
        if len(self._names) >= MAX_SEEN:  # some may be missing
            return True
        name = _file_name(path)
        return name in self._names or any(fnmatchcase(name, pattern) for pattern in self._patterns)

    def add(self, path: str) -> None:
        if len(self._names) < MAX_SEEN:
            self._names.add(_file_name(path))

    def add_call(self, call: ToolCall, commands: Sequence[ShellCommand], output: str) -> None:
        """Add what a call that did not fail has read or named."""
        if call.kind == "read" and call.path:
            self.add(call.path)
        prints_lines = call.kind == "search"
        for command in commands:
            is_git = command.program == "git"
            if command.program in NOT_READING or (is_git and command.first_operand not in GIT_READING):
                continue
            prints_lines = prints_lines or command.program in PRINTING_LINES
            for word in command.argv[1 : MAX_NAMES + 1]:
                self._add_word(word)
        if prints_lines:
            self._add_paths(output, MAX_SEEN)

    def _add_word(self, word: str) -> None:
        """Add a word of a command line: a path, a pattern of paths, or code that names paths."""
        if WILDCARDS.search(word) and len(self._patterns) < MAX_NAMES:
            self._patterns.add(_file_name(word)[:MAX_NAME])
        if " " in word:
            self._add_paths(word, MAX_FILES)
        else:
            self.add(word)

    def _add_paths(self, text: str, limit: int) -> None:
        """Add what looks like a path in a text."""
        for match in islice(PATH_WORD.finditer(text[:MAX_OUTPUT]), limit):
            self.add(match.group())


class VitalsCollector:
    """Collects the vitals of the events of one session, in order and in bounded memory."""

    def __init__(self) -> None:
        self._settings: dict[str, str] = {}
        self._own_settings: set[str] = set()
        """The names of settings that the main thread's log shows."""
        self._work_under: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """By setting: the number of messages and calls of the agent under each of its values."""
        self._first_settings: dict[str, str] = {}
        self._model_calls: Counter[str] = Counter()
        self._mcp_servers: dict[str, None] = {}
        self._skills: dict[str, None] = {}
        self._subagents: dict[str, None] = {}
        self._instruction_files: dict[str, InstructionFile] = {}
        self._last_at: datetime | None = None
        self._active_seconds: float | None = None
        self._interruptions = 0
        self._seen = SeenFiles()
        self._reads_before_edit: int | None = None
        self._unread_edits = 0
        self._pending_errors = 0
        self._retries = 0
        self._last_change_at = 0
        self._last_tests_at = 0

    def feed(self, event: Event) -> None:
        self._track_time(event)
        match event:
            case Message():
                self._on_message(event)
            case ToolCall():
                self._on_work(sidechain=event.sidechain)
                self._on_call(event)
            case ToolResult():
                self._interruptions += not event.sidechain and event.text.lstrip().startswith(INTERRUPTED[1])
            case Usage(model=model, copied=False) if model:
                name = model[:MAX_NAME]
                if name in self._model_calls or len(self._model_calls) < MAX_NAMES:
                    self._model_calls[name] += 1
            case Setting():
                self._on_setting(event)
            case LoadedInstructions():
                name = event.name.replace("\\", "/")[-MAX_VALUE:]
                file = InstructionFile(name=name, size=event.size, sha256=event.sha256)
                if len(self._instruction_files) < MAX_FILES:
                    self._instruction_files.setdefault(event.sha256, file)
            case Interruption() if not event.sidechain:
                self._interruptions += 1
            case ApiError() if not event.sidechain:
                self._pending_errors += 1

    def on_tests(self, at: int) -> None:
        """Note that a call runs tests, whose result may never be shown."""
        self._last_tests_at = at

    def on_success(
        self,
        call: ToolCall,
        commands: Sequence[ShellCommand],
        output: str,
        changes: Iterable[FileChange],
        *,
        reads: int,
    ) -> None:
        """Count a call that did not fail, with its changes outside temporary folders and the number of things that the
        session had read before it.
        """
        redirected = {path for command in commands for path, _appends in command.outputs}
        changed = [change for change in changes if change.path]
        if changed and self._reads_before_edit is None:
            self._reads_before_edit = reads
        for change in changed:
            # A redirection appends to a file whatever is in it.
            may_need_reading = change.is_new is False and change.path not in redirected
            if may_need_reading and change.path not in self._seen:
                self._unread_edits += 1
            if is_code(change.path):
                self._last_change_at = change.at
        for change in changed:
            self._seen.add(change.path)
        self._seen.add_call(call, commands, output)

    def vitals(self, runs: Sequence[SuiteRun], closing_text: str) -> Vitals:
        """The vitals so far. `runs` are the session's runs of tests and builds, `closing_text` its last message."""
        test_runs = [run for run in runs if run.suite.kind is SuiteKind.TESTS]
        model_calls: dict[str, int | None] = dict(self._model_calls)
        if not model_calls and (model := self._setting("model")):
            model_calls[model] = None
        return Vitals(
            harness_version=self._setting("harness_version"),
            model_calls=model_calls,
            reasoning_effort=self._setting("reasoning_effort"),
            permission_mode=self._setting("permission_mode"),
            repository=self._first_settings.get("repository", ""),
            folder=self._first_settings.get("folder", ""),
            mcp_servers=tuple(self._mcp_servers),
            skills=tuple(self._skills),
            subagents=tuple(self._subagents),
            instruction_files=tuple(self._instruction_files.values()),
            active_seconds=self._active_seconds,
            interruptions=self._interruptions,
            reads_before_edit=self._reads_before_edit,
            unread_edits=self._unread_edits,
            test_runs=len(test_runs),
            suites=last_states(test_runs),
            retries=self._retries,
            claimed_without_green=self._claimed_without_green(test_runs, closing_text),
        )

    def _track_time(self, event: Event) -> None:
        """Add the pause before an event, unless it waited for a person. Only time that goes forward counts: subagents'
        logs follow the main one.
        """
        if event.at is None:
            return
        if self._last_at is None:
            self._last_at, self._active_seconds = event.at, 0.0
        pause = (event.at - self._last_at).total_seconds()
        if pause <= 0:
            return
        self._last_at = event.at
        ends_with_person = isinstance(event, Message) and event.role is Role.USER and not event.sidechain
        if not ends_with_person:
            self._active_seconds = (self._active_seconds or 0.0) + min(pause, MAX_PAUSE_SECONDS)

    def _on_setting(self, setting: Setting) -> None:
        """Put a setting in force. A subagent's replaces none of the main thread's."""
        name, value = setting.name, setting.value[:MAX_VALUE]
        if name == "skill":
            _add_name(self._skills, value)
            return
        if not setting.sidechain:
            self._own_settings.add(name)
        elif name in self._own_settings:
            return
        self._settings[name] = value
        self._first_settings.setdefault(name, setting.value[:MAX_FIRST_VALUE])

    def _setting(self, name: str) -> str:
        """The value under which most of the work was done, or else the last one; "" if the log shows none."""
        work_by_value = self._work_under.get(name)
        if not work_by_value:
            return self._settings.get(name, "")
        return work_by_value.most_common(1)[0][0]

    def _on_work(self, *, sidechain: bool) -> None:
        """Count a message or call of the agent: by the settings in force, and as going on after API errors."""
        for name, value in self._settings.items():
            work_by_value = self._work_under[name]
            if value in work_by_value or len(work_by_value) < MAX_NAMES:
                work_by_value[value] += 1
        if not sidechain:
            self._retries += self._pending_errors
            self._pending_errors = 0

    def _on_message(self, message: Message) -> None:
        if message.role is Role.ASSISTANT:
            self._on_work(sidechain=message.sidechain)
        elif message.role is Role.SCAFFOLD and not message.sidechain:
            self._interruptions += message.text.lstrip()[:40].startswith(INTERRUPTED)
            if match := SKILL.match(message.text):
                _add_name(self._skills, match[1])

    def _on_call(self, call: ToolCall) -> None:
        """Note the MCP server, the skill or the subagent that a call uses."""
        server, separator, _tool = call.name.removeprefix("mcp__").partition("__")
        if call.name.startswith("mcp__") and separator:
            _add_name(self._mcp_servers, server)
        elif call.name == "Skill":
            _add_name(self._skills, call.arguments.get("skill") or call.arguments.get("command"))
        elif call.name in AGENT_TOOLS:
            kinds = [call.arguments.get(key) for key in AGENT_KEYS]
            _add_name(self._subagents, next((kind for kind in kinds if kind and isinstance(kind, str)), "default"))

    def _claimed_without_green(self, test_runs: Sequence[SuiteRun], closing_text: str) -> bool | None:
        """Whether the last message claims success after a change of code that no run of tests passed since."""
        if not self._last_change_at:
            return False
        outcomes = [run.passed for run in test_runs if run.at >= self._last_change_at]
        if True in outcomes or not claims_success(closing_text):
            return False
        has_hidden_run = not outcomes and self._last_tests_at > self._last_change_at
        return None if has_hidden_run or None in outcomes else True


def claims_success(text: str) -> bool:
    """Whether a message says that the work is done or that tests pass.

    >>> claims_success("All 12 tests pass."), claims_success("The tests should pass once the API is fixed.")
    (True, False)
    """
    for sentence in SENTENCE.split(text):
        if not HEDGE.search(sentence) and (DONE.search(sentence) or PASSING.search(sentence)):
            return True
    return False


def last_states(runs: Iterable[SuiteRun]) -> tuple[tuple[str, TestState], ...]:
    """The state of the last run of each suite, the suites that ran last if there are many."""
    states: dict[str, TestState] = {}
    for run in runs:
        name = _suite_name(run.suite)
        states.pop(name, None)
        states[name] = {True: TestState.GREEN, False: TestState.RED, None: TestState.UNKNOWN}[run.passed]
    return tuple(states.items())[-MAX_SUITES:]


def _suite_name(suite: Suite) -> str:
    """The runner, and what the run is limited to."""
    places = [] if suite.is_whole else [path.rsplit("/", 1)[-1] for path in suite.paths[:3]]
    return " ".join([suite.runner, *places, *(value for _option, value in suite.selectors[:3])])[:MAX_NAME]


def _file_name(path: str) -> str:
    return path[-MAX_PATH:].replace("\\", "/").rstrip("/").rpartition("/")[2]


def _add_name(names: dict[str, None], name: object) -> None:
    if isinstance(name, str) and name.strip() and len(names) < MAX_NAMES:
        names.setdefault(name.strip()[:MAX_NAME])
