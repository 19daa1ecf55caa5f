"""What calls read, and which failing exit codes are negative answers and not errors."""

from collections.abc import Iterator

from grading.formats.events import Clarity, ToolCall, ToolResult
from grading.signals.intents import parse_commands
from grading.signals.outputs import NOT_RUN
from grading.signals.shell import ShellCommand, word_set

READERS = word_set(
    "cat bat head tail less more nl ls tree find fd stat file wc du df grep egrep fgrep rg ag ack jq yq xmllint "
    "awk diff cmp sed which type whereis ps top env printenv uname strings hexdump od xxd column sqlite3 psql "
    "Get-Content Get-ChildItem Select-String dir"
)
GIT_READS = word_set(
    "log show diff status blame grep ls-files ls-tree ls-remote rev-parse rev-list shortlog describe cat-file reflog"
)
GH_READS = frozenset(["list", "view", "status", "diff", "checks", "search"])
WRITING_FLAGS = {"sed": ("-i", "--in-place"), "find": ("-delete", "-exec", "-execdir"), "awk": ("-i",), "yq": ("-i",)}
QUERIES = frozenset({"sqlite3", "psql"})
# Programs that answer "no" by exit status 1.
ANSWERING = word_set("grep egrep fgrep zgrep rg ag ack which type diff cmp test [ [[ pgrep expr false")
GIT_ANSWERING = word_set("diff grep show-ref check-ignore merge-base rev-parse ls-files config")
READING_KINDS = frozenset({"read", "search", "web"})


def find_reads(call: ToolCall, commands: tuple[ShellCommand, ...], digest: str) -> Iterator[str]:
    """A key for each thing that a call reads, the same for the same thing; none unless the call is understood.

    `digest` identifies the call itself: it is the key of a search, of a web page, and of a read without a path.
    """
    if call.clarity is not Clarity.UNDERSTOOD:
        return
    if call.kind in READING_KINDS:
        yield f"{call.kind} {call.path}" if call.kind == "read" and call.path else digest
    for command in commands:
        program, arguments = command.program, command.argv[1:]
        if program == "git":
            reads = next((word for word in arguments if not word.startswith("-")), "") in GIT_READS
        elif program in ("gh", "glab"):
            reads = bool(GH_READS & set(arguments[:2]))
        elif program not in READERS or (program in QUERIES and not any("select" in word.lower() for word in arguments)):
            reads = False
        else:
            # A filter at the end of a pipeline has no operand: it reads no file of its own.
            has_name = any(not word.startswith("-") for word in arguments)
            has_operand = has_name or program in ("ls", "tree", "ps", "env", "df", "dir")
            writes = any(word.startswith(WRITING_FLAGS.get(program, ())) for word in arguments)
            reads = has_operand and not writes
        if reads:
            yield " ".join(command.argv)[:400]


def call_worked(result: ToolResult, call: ToolCall | None) -> bool | None:
    """Whether a call succeeded; None if the format does not record it, or if the failure is a negative answer."""
    ok = reported_success(result)
    if ok is False and call is not None:
        is_answer = is_negative_answer(parse_commands(call), result.exit_code, result.text[:4_000])
        return None if is_answer else False
    return ok


def reported_success(result: ToolResult) -> bool | None:
    """Whether a result reports success, by its flag or else its exit code; None if the format records neither."""
    if result.failed is not None:
        return not result.failed
    return None if result.exit_code is None else result.exit_code == 0


def is_negative_answer(commands: tuple[ShellCommand, ...], exit_code: int | None, text: str) -> bool:
    """Whether a failed call only answered "no": its last command does so by exit code 1, and no error was printed."""
    if not commands or exit_code not in (1, None):
        return False
    last = commands[-1]
    verb = next((word for word in last.argv[1:] if not word.startswith("-")), "")
    answers = last.program in ANSWERING or (last.program == "git" and verb in GIT_ANSWERING)
    body = text.strip()
    if exit_code is None and body not in ("", "Exit code 1", "Error: Exit code 1"):
        return False
    return answers and NOT_RUN.search(text) is None and "fatal:" not in text and "rror:" not in body[:200]
