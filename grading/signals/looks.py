"""What a call only looks at, and exits that are answers and no errors."""

from collections.abc import Iterator

from grading.formats.events import Clarity, ToolCall, ToolResult
from grading.signals.intents import commands_of
from grading.signals.outputs import NOT_RUN
from grading.signals.shell import ShellCommand, words

READERS = words(
    "cat bat head tail less more nl ls tree find fd stat file wc du df grep egrep fgrep rg ag ack jq yq xmllint "
    "awk diff cmp sed which type whereis ps top env printenv uname strings hexdump od xxd column sqlite3 psql "
    "Get-Content Get-ChildItem Select-String dir"
)
GIT_READS = words(
    "log show diff status blame grep ls-files ls-tree ls-remote rev-parse rev-list shortlog describe cat-file reflog"
)
GH_READS = frozenset(["list", "view", "status", "diff", "checks", "search"])
WRITING = {"sed": ("-i", "--in-place"), "find": ("-delete", "-exec", "-execdir"), "awk": ("-i",), "yq": ("-i",)}
QUERIES = frozenset({"sqlite3", "psql"})
# Programs that answer "no" by exit status 1.
ANSWERING = words("grep egrep fgrep zgrep rg ag ack which type diff cmp test [ [[ pgrep expr false")
GIT_ANSWERING = words("diff grep show-ref check-ignore merge-base rev-parse ls-files config")
KINDS = frozenset({"read", "search", "web"})


def of_call(call: ToolCall, commands: tuple[ShellCommand, ...], digest: str) -> Iterator[str]:
    """What a call reads, each by a name that is the same for the same thing; `digest` names the call itself."""
    if call.clarity is not Clarity.UNDERSTOOD:
        return
    if call.kind in KINDS:
        yield f"{call.kind} {call.path}" if call.kind == "read" and call.path else digest
    for command in commands:
        program, words = command.program, command.argv[1:]
        if program == "git":
            reads = next((word for word in words if not word.startswith("-")), "") in GIT_READS
        elif program in ("gh", "glab"):
            reads = bool(GH_READS & set(words[:2]))
        elif program not in READERS or (program in QUERIES and not any("select" in word.lower() for word in words)):
            reads = False
        else:
            # A filter at the end of a pipeline reads no file of its own: without a file's name nothing is looked at.
            has_name = any(not word.startswith("-") for word in words)
            has_operand = has_name or program in ("ls", "tree", "ps", "env", "df", "dir")
            writes = any(word.startswith(flag) for flag in WRITING.get(program, ()) for word in words)
            reads = has_operand and not writes
        if reads:
            yield " ".join(command.argv)[:400]


def worked(result: ToolResult, call: ToolCall | None) -> bool | None:
    """Whether a call worked; None where the format does not say, or where it only answered "no"."""
    ok = said(result)
    if ok is False and call is not None and is_answer(commands_of(call), result.exit_code, result.text[:4_000]):
        return None
    return ok


def said(result: ToolResult) -> bool | None:
    """Whether a call worked, by its result's own word; None where the format does not say."""
    if result.failed is not None:
        return not result.failed
    return None if result.exit_code is None else result.exit_code == 0


def is_answer(commands: tuple[ShellCommand, ...], exit_code: int | None, text: str) -> bool:
    """Whether a failed call only answered "no": its last command does so by exit status 1, and nothing complained."""
    if not commands or exit_code not in (1, None):
        return False
    last = commands[-1]
    sub = next((word for word in last.argv[1:] if not word.startswith("-")), "")
    answers = last.program in ANSWERING or (last.program == "git" and sub in GIT_ANSWERING)
    body = text.strip()
    if exit_code is None and body not in ("", "Exit code 1", "Error: Exit code 1"):
        return False
    return answers and NOT_RUN.search(text) is None and "fatal:" not in text and "rror:" not in body[:200]
