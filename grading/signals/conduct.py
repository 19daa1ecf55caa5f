"""How a session worked: needless repeats of calls, empty results, and a start in which every call failed.

A *repeat* is the same call with the same result, if nothing changed since the call was last made. Calls are compared
by what they run, without comments, white space and parts that differ each time (times, unique ids, names of temporary
files); long ones are compared exactly. Any call that isn't known to only read may have changed something, and so may a
user's message in between. Test runs, status queries and reading from a running command are not repeats: they wait.

An *empty result* is one of a successful call that always prints something: `cat` of a file, `git log`, `wc`. A search
or a query may find nothing.

A *dead start*: none of the first three results that record success or failure records success. If fewer than three
record it, those count; if none does, it isn't a dead start.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Sequence

from grading.formats.events import ToolCall
from grading.formats.values import word_set
from grading.signals.calls import is_continuation, serialise_call
from grading.signals.confirm import CallResult
from grading.signals.intents import Intent
from grading.signals.model import Check
from grading.signals.shell import GIT_VALUED, ShellCommand, operands

MAX_REMEMBERED = 2_000
MAX_COMPARED = 2_000
START_RESULTS = 3
NONCE = re.compile(
    r"\b(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\b"
    r"|1[5-9]\d{8}(?:\d{3})?\b"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|tmp[._-]?\w{6,12}\b"
    r"|\d{1,6}\.\d{1,6} ?(?:ms|s|sec|seconds)\b)"
)
# What harnesses report if a command printed nothing.
NO_OUTPUT = re.compile(r"(?:\A|\n)[ \t]{0,20}\(?(?:Bash completed with )?no output\)?\s{0,20}\Z", re.IGNORECASE)
# Arguments that describe a call and don't change what it does.
DESCRIPTIONS = word_set("description explanation reason justification")
# Parts of such a command line may run repeatedly or never, so its commands don't show what it must print.
CONDITIONAL = re.compile(r"\$\(|`|<\(|\|\||\(\)|\b(?:if|for|while|until|case|function)\b")
PRINTING_FILES = word_set("cat file head nl stat tail")
PRINTING_PROGRAMS = word_set("date df du env hostname id ps pwd uname wc whoami")
PRINTING_GIT = word_set("blame log show status")
# With these, git may rightly print nothing.
NARROWING_FLAGS = word_set("-s --short --porcelain --since --after --until --before --grep --author -S -G")
WATCHERS = word_set("date jobs lsof pgrep ping ps sleep top uptime wait watch")
WATCHING_VERBS = frozenset(
    {
        *(("gh", "pr", verb) for verb in ("checks", "list", "status", "view")),
        *(("gh", verb) for verb in ("run", "status", "workflow")),
        *(("git", verb) for verb in ("fetch", "status")),
        *(("glab", verb) for verb in ("ci", "pipeline")),
        *(("docker", verb) for verb in ("inspect", "logs", "ps")),
        *(("kubectl", verb) for verb in ("get", "logs", "rollout")),
        *(("systemctl", verb) for verb in ("is-active", "status")),
    }
)
READING_PROGRAMS = word_set(
    "[ awk basename cat cd cmp column comm cut df diff dirname du echo egrep false fgrep file find grep head id jq "
    "less ls md5sum more nl od printf pwd readlink realpath rg sed seq sha1sum sha256sum sort stat strings tail test "
    "tr tree true type uname uniq wc which whoami xxd yq"
)
READING_GIT = word_set("blame branch diff grep log ls-files remote rev-parse show")
READING_KINDS = word_set("plan read search web")
SQL_PROGRAMS = word_set("duckdb mysql psql sqlite3")
SQL_QUERY = re.compile(r"\s{0,100}(?:select|show|describe|desc|explain|with)\b", re.IGNORECASE)
CHANGING_FLAGS = {"find": ("-delete", "-exec", "-ok"), "sed": ("-i", "--in-place"), "yq": ("-i", "--inplace")}


class Conduct:
    """Counts repeats and empty results over a session's results, in order and in bounded memory."""

    def __init__(self) -> None:
        self.must_print = 0
        self.empty_results = 0
        self.repeatable = 0
        self.repeats = 0
        self._start: list[bool] = []
        """Whether each of the first results that record it was a success."""
        self._state = 0
        """The number of times that something may have changed."""
        self._last: OrderedDict[str, tuple[int, str]] = OrderedDict()
        """By call: the state after it, and its result."""

    @property
    def dead_start(self) -> bool:
        return bool(self._start) and not any(self._start)

    def on_change(self) -> None:
        """Note that something may have changed, for example because the user sent a message."""
        self._state += 1

    def on_result(
        self,
        call: ToolCall,
        commands: Sequence[ShellCommand],
        intents: Sequence[Intent],
        result: CallResult,
        *,
        changed: bool,
    ) -> None:
        """Count a call and its result. `changed`: it was confirmed to change a file or to have another effect."""
        if result.ok is not None and len(self._start) < START_RESULTS:
            self._start.append(result.ok)
        if result.ok and _must_print(call, commands):
            self.must_print += 1
            if not result.text.strip() or NO_OUTPUT.search(result.text[-100:]):
                self.empty_results += 1
        state_before = self._state
        only_reads = all(map(_only_reads, commands)) if commands else call.kind in READING_KINDS
        if changed or (result.ok is not False and not only_reads):
            self.on_change()
        # Test runs, status queries and reading from a running command are made again on purpose.
        is_waiting = is_continuation(call) or any(isinstance(intent.kind, Check) for intent in intents)
        if not is_waiting and not any(map(_watches, commands)):
            self._count_repeat(_call_key(call, commands), _digest_if_long(result.text), state_before)

    def _count_repeat(self, key: str, text: str, state_before: int) -> None:
        """Count a call that may be a repeat: it is one if nothing changed since the same call had the same result."""
        self.repeatable += 1
        last_state, last_text = self._last.pop(key, (-1, ""))  # no state is -1
        if last_state == state_before and _without_nonces(last_text) == _without_nonces(text):
            self.repeats += 1
        self._last[key] = (self._state, text)
        if len(self._last) > MAX_REMEMBERED:
            self._last.popitem(last=False)


def _must_print(call: ToolCall, commands: Sequence[ShellCommand]) -> bool:
    """Whether a successful shell call always prints something: one of its commands does, is sure to run, and its output
    goes neither to a file nor to another command.
    """
    if not commands or CONDITIONAL.search(call.command[:MAX_COMPARED]):
        return False
    is_piped = False  # whether the command's input comes from the one before it
    for command in commands:
        goes_to_call = not command.outputs and command.then in ("", ";", "&&")
        if goes_to_call and _always_prints(command, is_piped=is_piped):
            return True
        is_piped = command.then == "|"
    return False


def _always_prints(command: ShellCommand, *, is_piped: bool) -> bool:
    """Whether a command prints something whenever it succeeds."""
    arguments = _operand_words(command)[1:]
    if command.program == "git":
        is_plain = len(arguments) == 1 and not command.has_option(*NARROWING_FLAGS)
        return is_plain and arguments[0] in PRINTING_GIT
    if command.program in PRINTING_FILES:  # with a file; what comes from a pipe may be empty
        return bool(arguments) and not is_piped and "/dev/null" not in arguments
    return command.program in PRINTING_PROGRAMS


def _watches(command: ShellCommand) -> bool:
    """Whether the command queries a state that changes by itself, such as the time, a process or a CI run."""
    if command.program == "tail" and command.has_option("-f", "-F", "--follow"):
        return True
    operand_words = _operand_words(command)
    return command.program in WATCHERS or operand_words[:2] in WATCHING_VERBS or operand_words[:3] in WATCHING_VERBS


def _only_reads(command: ShellCommand) -> bool:
    """Whether the command is known to change nothing."""
    program = command.program
    if any(not path.startswith("/dev/") for path, _appends in command.outputs):
        return False
    if program in CHANGING_FLAGS and command.has_option(*CHANGING_FLAGS[program]):
        return False
    if program == "git":
        return not READING_GIT.isdisjoint(_operand_words(command)[1:2]) or _watches(command)
    if program in SQL_PROGRAMS:
        return any(SQL_QUERY.match(word) for word in command.argv[1:])
    return not program or program in READING_PROGRAMS or _watches(command)


def _operand_words(command: ShellCommand) -> tuple[str, ...]:
    """The program and its arguments without options, and for git without the values of git's own options."""
    return (command.program, *operands(command.argv[1:], GIT_VALUED if command.program == "git" else ()))


def _call_key(call: ToolCall, commands: Sequence[ShellCommand]) -> str:
    """A key that is equal for equal calls: the parsed commands of a shell call, else the tool and its arguments."""
    if commands:
        key = repr([(command.argv, command.then, command.outputs, command.document) for command in commands])
    else:
        key = serialise_call(call, ignored=DESCRIPTIONS).decode()
    return _without_nonces(_digest_if_long(key))


def _digest_if_long(text: str) -> str:
    """The text, or the digest of one with more than `MAX_COMPARED` characters."""
    return text if len(text) <= MAX_COMPARED else hashlib.blake2b(text.encode(errors="surrogatepass")).hexdigest()


def _without_nonces(text: str) -> str:
    """The text with single spaces and without parts that differ each time, such as times and unique ids."""
    return NONCE.sub("~", " ".join(text.split()))
