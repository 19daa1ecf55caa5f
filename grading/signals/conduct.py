"""How a session went about its work: calls made again for nothing, calls that printed nothing, a start without success.

A *repeat* is the same call with the same result, where nothing changed since that call was last made. Calls are
compared as what they run: without comments, white space and what differs from one moment to the next (times, unique
ids, names of temporary files); long ones just as they are. What is not known to only read may have changed something,
and so may a person who spoke in between. Whoever waits asks again on purpose: test runs, status queries and reading on
are no repeats.

An *empty result* is one of a call that worked and cannot help printing something: `cat` of a file, `git log`, `wc`. A
search or a query may rightly find nothing.

A *dead start* is a session that did not get going: of the first three results that say whether their call worked none
says that it did. Where fewer say so, those count; where none does, nothing is held against the session.
"""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Sequence

from grading.formats.events import ToolCall
from grading.signals.confirm import CallResult
from grading.signals.intents import GIT_VALUED, Check, Intent, is_continuation
from grading.signals.shell import ShellCommand

MAX_REMEMBERED = 2_000
COMPARED = 2_000
FIRST = 3
NONCE = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\b"
    r"|\b1[5-9]\d{8}(?:\d{3})?\b"
    r"|\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|\btmp[._-]?\w{6,12}\b"
    r"|\b\d{1,6}\.\d{1,6} ?(?:ms|s|sec|seconds)\b"
)
# What harnesses print where a command printed nothing.
NOTHING = re.compile(r"(?:\A|\n)[ \t]{0,20}\(?(?:Bash completed with )?no output\)?\s{0,20}\Z", re.IGNORECASE)
# A call's own words about itself, not what it does.
TOLD = frozenset({"description", "explanation", "reason", "justification"})
# Where parts of a command line run once, often or never, what it must print cannot be told from its commands.
CONDITIONAL = re.compile(r"\$\(|`|<\(|\|\||\(\)|\b(?:if|for|while|until|case|function)\b")
PRINTING_FILES = frozenset({"cat", "file", "head", "nl", "stat", "tail"})
PRINTING = frozenset({"date", "df", "du", "env", "hostname", "id", "ps", "pwd", "uname", "wc", "whoami"})
PRINTING_GIT = frozenset({"blame", "log", "show", "status"})
CHOOSING = (
    "-s",
    "--short",
    "--porcelain",
    "--since",
    "--after",
    "--until",
    "--before",
    "--grep",
    "--author",
    "-S",
    "-G",
)
WATCHING = frozenset({"date", "jobs", "lsof", "pgrep", "ping", "ps", "sleep", "top", "uptime", "wait", "watch"})
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
READING = frozenset(
    {"[", "awk", "basename", "cat", "cd", "cmp", "column", "comm", "cut", "df", "diff", "dirname", "du", "echo"}
    | {"egrep", "false", "fgrep", "file", "find", "grep", "head", "id", "jq", "less", "ls", "md5sum", "more", "nl"}
    | {"od", "printf", "pwd", "readlink", "realpath", "rg", "sed", "seq", "sha1sum", "sha256sum", "sort", "stat"}
    | {"strings", "tail", "test", "tr", "tree", "true", "type", "uname", "uniq", "wc", "which", "whoami", "xxd", "yq"}
)
READING_GIT = frozenset({"blame", "branch", "diff", "grep", "log", "ls-files", "remote", "rev-parse", "show"})
READING_KINDS = frozenset({"plan", "read", "search", "web"})
SQL = frozenset({"duckdb", "mysql", "psql", "sqlite3"})
QUERY = re.compile(r"\s{0,100}(?:select|show|describe|desc|explain|with)\b", re.IGNORECASE)
CHANGING_FLAGS = {"find": ("-delete", "-exec", "-ok"), "sed": ("-i", "--in-place"), "yq": ("-i", "--inplace")}


class Conduct:
    """Follows a session's results in order, in bounded memory."""

    def __init__(self) -> None:
        self.must_print = 0
        self.empty_results = 0
        self.repeatable = 0
        self.repeats = 0
        self._known: list[bool] = []
        self._state = 0
        self._last: OrderedDict[str, tuple[int, str]] = OrderedDict()

    @property
    def dead_start(self) -> bool:
        return bool(self._known) and not any(self._known)

    def on_change(self) -> None:
        """Something may be different now: a person spoke, say."""
        self._state += 1

    def on_result(
        self,
        call: ToolCall,
        commands: Sequence[ShellCommand],
        intents: Sequence[Intent],
        shown: CallResult,
        *,
        changed: bool,
    ) -> None:
        """A call and its result. `changed`: it was seen to change a file or to have another effect."""
        if shown.ok is not None and len(self._known) < FIRST:
            self._known.append(shown.ok)
        if shown.ok and _must_print(call, commands):
            self.must_print += 1
            self.empty_results += not shown.text.strip() or NOTHING.search(shown.text[-100:]) is not None
        before = self._state
        # Whether the call leaves everything as it was, as far as can be told.
        only_reads = all(map(_reads, commands)) if commands else call.kind in READING_KINDS
        if changed or (shown.ok is not False and not only_reads):
            self.on_change()
        # It asks how something goes on: a test run, a status, the output of what runs already.
        is_watching = is_continuation(call) or any(isinstance(intent.kind, Check) for intent in intents)
        if is_watching or any(map(_watches, commands)):
            return
        self.repeatable += 1
        what, result = _what(call, commands), _short(shown.text)
        state, earlier = self._last.pop(what, (-1, ""))
        # The call's last time left the state that it found now, and had the same result.
        self.repeats += state == before and _plain(earlier) == _plain(result)
        self._last[what] = (self._state, result)
        if len(self._last) > MAX_REMEMBERED:
            self._last.popitem(last=False)


def _must_print(call: ToolCall, commands: Sequence[ShellCommand]) -> bool:
    """Whether a shell call that works cannot help printing: one of its commands cannot, and is sure to run."""
    if not commands or CONDITIONAL.search(call.command[:COMPARED]):
        return False
    piped = False  # what a command is piped may be nothing
    for command in commands:
        is_piped, piped = piped, command.then == "|"
        if command.outputs or command.then not in ("", ";", "&&"):
            continue
        words = _words(command)
        if command.program == "git":
            prints = len(words) == 2 and words[1] in PRINTING_GIT and not _has_flag(command, CHOOSING)  # noqa: PLR2004
        elif command.program in PRINTING_FILES:
            prints = len(words) > 1 and not is_piped and "/dev/null" not in words
        else:
            prints = command.program in PRINTING
        if prints:
            return True
    return False


def _watches(command: ShellCommand) -> bool:
    words = _words(command)
    follows = command.program == "tail" and _has_flag(command, ("-f", "-F", "--follow"))
    return follows or command.program in WATCHING or words[:2] in WATCHING_VERBS or words[:3] in WATCHING_VERBS


def _reads(command: ShellCommand) -> bool:
    program = command.program
    if any(not path.startswith("/dev/") for path, _ in command.outputs):
        return False
    if _has_flag(command, CHANGING_FLAGS.get(program, ())):
        return False
    if program == "git":
        return bool(READING_GIT & set(_words(command)[1:2])) or _watches(command)
    if program in SQL:
        return any(QUERY.match(word) for word in command.argv[1:])
    return not program or program in READING or _watches(command)


def _words(command: ShellCommand) -> tuple[str, ...]:
    """The program and its words that are no flags; of git's own flags the values are left out too."""
    given = zip(("", *command.argv[1:]), command.argv[1:], strict=False)
    is_git = command.program == "git"
    return (
        command.program,
        *(word for before, word in given if not word.startswith("-") and not (is_git and before in GIT_VALUED)),
    )


def _has_flag(command: ShellCommand, flags: tuple[str, ...]) -> bool:
    return any(word.startswith(flags) for word in command.argv[1:])


def _what(call: ToolCall, commands: Sequence[ShellCommand]) -> str:
    """What makes two calls the same: what a shell runs, parsed; else the tool and its arguments."""
    if commands:
        return _plain(_short(repr([(one.argv, one.then, one.outputs, one.document) for one in commands])))
    arguments = {name: value for name, value in call.arguments.items() if name not in TOLD}
    try:
        return _plain(_short(json.dumps([call.name, call.command, call.path, arguments], sort_keys=True, default=str)))
    except (RecursionError, TypeError, ValueError):
        return f"{call.number} is like no other"


def _short(text: str) -> str:
    """The text, or a fingerprint of one that is too long to be kept."""
    return text if len(text) <= COMPARED else hashlib.blake2b(text.encode(errors="surrogatepass")).hexdigest()


def _plain(text: str) -> str:
    """The text without what differs from one moment to the next."""
    return NONCE.sub("~", " ".join(text.split()))
