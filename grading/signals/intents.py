"""What a tool call sets out to do, read from its argv or its tool's name. An intent is never evidence by itself."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from grading.formats.events import ToolCall
from grading.signals import forges
from grading.signals.model import EffectKind
from grading.signals.shell import SHELLS, ShellCommand, parse

GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
COMMITTING = frozenset({"merge", "cherry-pick", "revert"})
MOVING = frozenset({"pull", "checkout", "switch", "merge", "rebase", "cherry-pick", "revert", "am"})
LOGS = frozenset({"log", "show", "rev-parse", "reflog"})
NO_PUSH = frozenset({"-n", "--dry-run", "--delete", "-d"})
# Somebody's own `git safe-commit` or `git ci`, but not git's `commit-tree` and the like.
ALIAS = re.compile(r"^(?!commit-).*commit|^ci$")
VALUED = re.compile(r"-[a-zA-Z]*[mFCct]|--(?:message|file|author|date)")
MESSAGE = re.compile(r"-[a-zA-Z]*m|--message")
REUSED = frozenset({"-C", "-c", "--reuse-message", "--reedit-message"})
RUNNERS = frozenset({"pytest", "py.test", "tox", "nox", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest"})
# Elsewhere `check` is a linter or compiler.
CHECKING = frozenset({"make", "gradle", "gradlew"})
TEST_VERBS = frozenset({"test", "tests", "nextest", "vitest", "jest", "pytest"})
VERB_RUNNERS = frozenset(
    {"npm", "pnpm", "yarn", "bun", "cargo", "go", "make", "just", "mvn", "gradle", "gradlew", "dotnet", "deno", "mise"}
)
LAUNCHERS = frozenset({"uv", "poetry", "pipenv", "hatch", "pdm", "rye"})


# `done` ends a loop, `function` begins one's own command: what stands in them may run more than once.
MAX_COMMITTING, MAX_ALIKE = 200, 40
PREPARING = frozenset({"cd", "export", "source", ".", "set", "pushd", "unset", "echo"})
OPAQUE = frozenset({"make", "just", "done", "function", "gt", "jj", "sl", "cz", "oco", "lerna"})
INTERPRETERS = re.compile(r"(?:python[\d.]*|node|ruby|perl|php|deno|bun)$")


class Check(StrEnum):
    """What a session asks the outcome of: runs, and whether a pull request is merged."""

    CI = "ci"
    TESTS = "tests"
    MERGE = "merge"


class HeadMove(StrEnum):
    """Commands that change what HEAD is, or what keeps a commit, without committing."""

    RESET = "reset"
    ELSEWHERE = "elsewhere"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One thing a call sets out to do.

    `target` is what the argv names (a PR number, a runner, where to reset). `is_last`: a failure of the call may be its
    own. `proven`: a success of the call is its own too. `is_first`: nothing that could fail stands before it. `nth`:
    how many of the same kind stand before it in the call; `repeats`: the call has a loop or function. `waits`: its
    success does not mean that the thing is done. `echoes_status`: its exit status is printed after it. `body`: a digest
    of the comment it posts. `opaque`: a script of unknown content. `kind` None: a commit.

    Of a commit: `subject`, where the command line has it; `reuses`, the hash of the commit whose message it takes;
    `shows_hash`: its hash is printed after it; `rewrites`: it stands for an earlier one of the same subject;
    `counts`: its repository is not made to be deleted; `may_be_empty`: only git's count of files says that it holds
    anything; `can_hide`: git may print nothing of it; `times`: how many it makes.
    """

    kind: EffectKind | Check | HeadMove | None
    target: str = ""
    is_last: bool = True
    proven: bool = True
    is_first: bool = True
    nth: int = 0
    repeats: bool = False
    waits: bool = False
    echoes_status: bool = False
    body: str = ""
    shows_hash: bool = False
    subject: str = ""
    reuses: str = ""
    amends: bool = False
    rewrites: bool = False
    counts: bool = True
    may_be_empty: bool = False
    can_hide: bool = False
    is_merge: bool = False
    times: int = 1
    opaque: bool = False
    paths: tuple[str, ...] = ()

    @property
    def is_commit(self) -> bool:
        return self.kind is None


def of_call(call: ToolCall, commands: tuple[ShellCommand, ...], throwaway: tuple[bool, ...] = ()) -> tuple[Intent, ...]:
    """The intents of a call: of each of its simple commands, or of the tool itself where it is no shell.

    `throwaway` says of each command whether its repository is made to be deleted.
    """
    if not commands:
        request = forges.of_tool(call.name, call.arguments)
        if request.effect is None:
            return ()
        return (Intent(kind=request.effect, target=request.target, body=request.body, proven=False),)
    found: list[Intent] = []
    added: list[str] = []
    seen: Counter[object] = Counter()
    repeats = any(command.program in ("done", "function") for command in commands)
    is_strict = any(command.argv[:2] == ("set", "-e") for command in commands[:5])
    marked = zip(commands, throwaway or (False,) * len(commands), strict=True)
    for index, (command, is_throwaway) in enumerate(marked):
        rest = commands[index:]
        for intent in _of_git(rest, commands[:index], added) if command.program == "git" else _of_other(command):
            # What stands after `||` has run only if what stands before failed: a reset that may not have run is none.
            if intent.kind is HeadMove.RESET and index and commands[index - 1].then == "||":
                continue
            if seen[intent.kind] >= (MAX_COMMITTING if intent.is_commit else MAX_ALIKE):
                continue
            is_last = all(one.then == "|" for one in rest[:-1])
            ands = ("&&", ";") if is_strict else ("&&",)
            decides = all(one.then in ands for one in rest[:-1]) and rest[-1].then in ("", ";")
            prints_next = len(rest) > 1 and rest[1].program in ("echo", "printf")
            told = replace(
                intent,
                is_last=is_last,
                proven=intent.proven and decides,
                counts=not is_throwaway,
                is_first=all(one.program in PREPARING or not one.argv for one in commands[:index]),
                nth=seen[intent.kind],
                repeats=repeats,
                echoes_status=prints_next and "$?" in " ".join(rest[1].argv),
            )
            found.append(told)
            seen[intent.kind] += 1
    return tuple(found)


def commands_of(call: ToolCall) -> tuple[ShellCommand, ...]:
    """The simple commands of a shell call, of text typed into a running shell included."""
    text = call.command
    if not text and is_continuation(call):
        typed = call.arguments.get("chars") or call.arguments.get("input") or ""
        text = typed if isinstance(typed, str) else ""
    return parse(text) if text else ()


def is_continuation(call: ToolCall) -> bool:
    """Whether a call reads on in a shell started earlier (codex `write_stdin`, Claude Code `BashOutput`)."""
    return re.search(r"stdin|output|poll|session|^wait", call.name, re.IGNORECASE) is not None and not call.path


def _of_git(commands: tuple[ShellCommand, ...], before: tuple[ShellCommand, ...], added: list[str]) -> Iterator[Intent]:
    """The intents of the first command, a git command; `added` collects what `git add` names for the next commit."""
    sub, arguments = _git(commands[0].argv)
    named = [word for word in arguments if not word.startswith("-")]
    if sub == "add":
        added += named
    elif sub == "push" and not NO_PUSH & set(arguments):
        yield Intent(kind=EffectKind.PUSH)
    elif sub == "commit" and "--dry-run" not in arguments:
        yield _commit(commands, before, arguments, added)
    elif sub == "reset":
        yield Intent(kind=HeadMove.RESET, target=" ".join(arguments)[:300])
    elif sub in ("branch", "tag"):  # one that is made, not listed or deleted, gives HEAD another name
        if arguments and not any(re.match(r"-[^fam]|--(?!force|annotate)", word) for word in arguments):
            yield Intent(kind=HeadMove.KEPT)
    elif sub in ("checkout", "switch") and {"-b", "-c", "--create"} & set(arguments):
        yield Intent(kind=HeadMove.KEPT)
    if sub in MOVING:
        yield Intent(kind=HeadMove.ELSEWHERE)
    if sub in COMMITTING or (sub == "rebase" and "--continue" in arguments):  # they commit what is there already
        picked = named if sub != "merge" else []
        yield Intent(kind=None, rewrites=sub == "rebase", times=max(1, len(picked[:50])), is_merge=sub == "merge")
        if any(".." in word for word in picked):
            yield Intent(kind=None, opaque=True)
    elif ALIAS.search(sub) and sub != "commit":
        yield Intent(kind=None, opaque=True)


def _commit(
    commands: tuple[ShellCommand, ...], before: tuple[ShellCommand, ...], arguments: tuple[str, ...], added: list[str]
) -> Intent:
    """The intent of the first command, `git commit`."""
    paths: list[str] = []
    for flag, word in zip(("", *arguments), arguments, strict=False):
        if not word.startswith("-") and not VALUED.fullmatch(flag) and flag not in REUSED:
            paths.append(word)
    # The first line of the message where the command line has it, or a here-document or file before it.
    flags = list(pairwise(commands[0].argv))
    message = next((word for flag, word in flags if MESSAGE.fullmatch(flag)), "")
    message = message or next((word[10:] for word in commands[0].argv if word.startswith("--message=")), "")
    if message.startswith("$()") and before:
        message = before[-1].document or ""
    file = next((word for flag, word in flags if flag in ("-F", "--file")), "-")
    written = (one.document for one in before[-5:] for path, _ in one.outputs if path == file)
    message = message or commands[0].document or next(written, None) or ""
    shows_hash = False  # whether, only if the commit succeeds, a later command prints the hash of HEAD
    for earlier, command in pairwise(commands):
        if earlier.then != "&&":
            break
        if _prints_head(command):
            shows_hash = True
            break
    return Intent(
        kind=None,
        subject=message.strip().split("\n")[0].strip()[:200],
        shows_hash=shows_hash,
        amends="--amend" in arguments,
        reuses=next((word for flag, word in pairwise(arguments) if flag in REUSED), ""),
        may_be_empty="--allow-empty" in arguments,
        can_hide=True,
        paths=tuple(paths or added),
    )


def _of_other(command: ShellCommand) -> Iterator[Intent]:
    if command.program in forges.PROGRAMS:
        request = forges.of_argv(command.argv, command.document)
        kind = Check.CI if request.is_check else Check.MERGE if request.is_view else request.effect
        if kind is not None:
            waits = not request.tells_by_status
            yield Intent(kind=kind, target=request.target, proven=not waits, waits=waits, body=request.body)
        return
    if (runner := _runner(command.argv)) is not None:
        yield Intent(kind=Check.TESTS, target=runner)
        return
    # What runs commands that are not in sight may commit.
    script = command.argv[1] if command.program in SHELLS and len(command.argv) > 1 else "".join(command.argv[:1])
    if INTERPRETERS.match(command.program):
        may_commit = "commit" in " ".join(command.argv[1:4]) or "commit" in (command.document or "")
    else:
        may_commit = script.startswith(("./", "../")) or script.endswith(".sh") or command.program in OPAQUE
    if may_commit:
        yield Intent(kind=None, opaque=True)


def _git(argv: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        at += 2 if argv[at] in GIT_VALUED else 1
    return (argv[at], argv[at + 1 :]) if at < len(argv) else ("", ())


def prints_log(commands: tuple[ShellCommand, ...]) -> bool:
    """Whether a call asks git for commits it has."""
    return any(command.program == "git" and _git(command.argv)[0] in LOGS for command in commands)


def shows_head(commands: tuple[ShellCommand, ...]) -> bool:
    """Whether the first commit that a call prints is HEAD."""
    first = next((one for one in commands if one.program == "git" and _git(one.argv)[0] in LOGS), None)
    return first is not None and _prints_head(first)


def _prints_head(command: ShellCommand) -> bool:
    sub, arguments = _git(command.argv) if command.program == "git" else ("", ())
    if sub not in LOGS or {"--reverse", "--all", "--author", "--grep"} & set(arguments):
        return False
    words = {word for word in arguments if not word.startswith("-") and not word.isdigit()}
    return words == {"HEAD"} or (not words and sub != "rev-parse")


def _runner(argv: tuple[str, ...]) -> str | None:
    """The name of the test runner that an argv starts, or None."""
    if {"--listTests", "--list", "--collect-only", "--version", "--help", "-h"} & set(argv):
        return None
    words = [word for word in argv if not word.startswith("-")][:6]
    programs = [word.rsplit("/", 1)[-1] for word in words]
    if programs and programs[0] in LAUNCHERS:
        programs = [word for word in programs[1:] if word != "run"]
    if not programs:
        return None
    if programs[0].startswith("python"):
        module = programs[1] if len(programs) > 1 and "-m" in argv else ""
        return module if module in ("pytest", "unittest", "tox", "nox") else None
    if programs[0] in RUNNERS or (programs[0] == "node" and "--test" in argv):
        return programs[0]
    verbs = [word.split(":")[0] for word in programs[1:] if word != "run"][:1]
    if programs[0] not in VERB_RUNNERS or not verbs:
        return None
    is_test = verbs[0] in TEST_VERBS or (verbs[0] == "check" and programs[0] in CHECKING)
    return f"{programs[0]} {verbs[0]}" if is_test else None
