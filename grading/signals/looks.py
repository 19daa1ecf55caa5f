"""What calls read, and which failing exit codes are negative answers and not errors."""

from collections.abc import Iterator

from grading.formats.events import Clarity, ToolCall, ToolResult
from grading.formats.values import word_set
from grading.signals.calls import parse_commands
from grading.signals.outputs import NOT_RUN
from grading.signals.shell import ShellCommand

READERS = word_set(
    "cat bat head tail less more nl ls tree find fd stat file wc du df grep egrep fgrep rg ag ack jq yq xmllint "
    "awk diff cmp sed which type whereis ps top env printenv uname strings hexdump od xxd column sqlite3 psql "
    "Get-Content Get-ChildItem Select-String dir"
)
# Readers that need no operand. Any other without one is a filter in a pipeline, which reads no file of its own.
LISTERS = word_set("ls tree ps env df dir")
GIT_READS = word_set(
    "log show diff status blame grep ls-files ls-tree ls-remote rev-parse rev-list shortlog describe cat-file reflog"
)
GH_READS = word_set("list view status diff checks search")
WRITING_FLAGS = {"sed": ("-i", "--in-place"), "find": ("-delete", "-exec", "-execdir"), "awk": ("-i",), "yq": ("-i",)}
QUERIES = word_set("sqlite3 psql")
# Programs that answer "no" by exit status 1.
ANSWERING = word_set("grep egrep fgrep zgrep rg ag ack which type diff cmp test [ [[ pgrep expr false")
GIT_ANSWERING = word_set("diff grep show-ref check-ignore merge-base rev-parse ls-files config")
READING_KINDS = word_set("read search web")
# How many characters at the beginning of a failed call's output may name an error.
MAX_ANSWER, MAX_ERROR_START = 4_000, 200
MAX_KEY = 400


def find_reads(call: ToolCall, commands: tuple[ShellCommand, ...], digest: str) -> Iterator[str]:
    """A key for each thing that a call reads, the same for the same thing; none unless the call is understood.

    `digest` identifies the call itself: it is the key of a search, of a web page, and of a read without a path.
    """
    if call.clarity is not Clarity.UNDERSTOOD:
        return
    if call.kind in READING_KINDS:
        yield f"{call.kind} {call.path}" if call.kind == "read" and call.path else digest
    for command in commands:
        if _reads(command):
            yield " ".join(command.argv)[:MAX_KEY]


def _reads(command: ShellCommand) -> bool:
    """Whether a command is known to read something."""
    program, arguments = command.program, command.argv[1:]
    if program == "git":
        return command.first_operand in GIT_READS
    if program in ("gh", "glab"):
        return not GH_READS.isdisjoint(arguments[:2])
    if program not in READERS or command.has_option(*WRITING_FLAGS.get(program, ())):
        return False
    if program in QUERIES and not any("select" in word.lower() for word in arguments):
        return False
    return program in LISTERS or any(not word.startswith("-") for word in arguments)


def call_worked(result: ToolResult, call: ToolCall | None) -> bool | None:
    """Whether a call succeeded; None if the format does not record it, or if the failure is a negative answer."""
    ok = reported_success(result)
    if ok is False and call is not None and is_negative_answer(parse_commands(call), result):
        return None
    return ok


def reported_success(result: ToolResult) -> bool | None:
    """Whether a result reports success, by its flag or else its exit code; None if the format records neither."""
    if result.failed is not None:
        return not result.failed
    return None if result.exit_code is None else result.exit_code == 0


def is_negative_answer(commands: tuple[ShellCommand, ...], failure: ToolResult) -> bool:
    """Whether a failed call only answered "no": its last command does so by exit code 1, and no error was printed."""
    if not commands or failure.exit_code not in (1, None):
        return False
    text = failure.text[:MAX_ANSWER]
    output = text.strip()
    if failure.exit_code is None and output not in ("", "Exit code 1", "Error: Exit code 1"):
        return False
    last = commands[-1]
    answers = last.program in ANSWERING or (last.program == "git" and last.first_operand in GIT_ANSWERING)
    has_error = NOT_RUN.search(text) is not None or "fatal:" in text or "rror:" in output[:MAX_ERROR_START]
    return answers and not has_error
