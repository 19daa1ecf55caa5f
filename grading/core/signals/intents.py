"""What a tool call sets out to do, read from its argv or its tool's name. An intent is never evidence by itself."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from grading.core.events import ToolCall
from grading.core.signals import forges
from grading.core.signals.model import EffectKind
from grading.core.signals.shell import SHELLS, Command, parse

GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
COMMITTING = frozenset({"merge", "cherry-pick", "revert"})
NO_PUSH = frozenset({"-n", "--dry-run", "--delete", "-d"})
# Somebody's own `git safe-commit` or `git ci`, but not git's `commit-tree` and the like.
ALIAS = re.compile(r"^(?!commit-).*commit|^ci$")
VALUED = re.compile(r"-[a-zA-Z]*[mFCct]|--(?:message|file|author|date)")
MESSAGE = re.compile(r"-[a-zA-Z]*m|--message")
RUNNERS = frozenset({"pytest", "py.test", "tox", "nox", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest"})
TEST_VERBS = frozenset({"test", "tests", "check", "nextest", "vitest", "jest", "pytest"})
VERB_RUNNERS = frozenset(
    {"npm", "pnpm", "yarn", "bun", "cargo", "go", "make", "just", "mvn", "gradle", "gradlew", "dotnet", "deno", "mise"}
)
LAUNCHERS = frozenset({"npx", "uv", "uvx", "poetry", "pipenv", "hatch", "pdm", "bunx", "rye"})


class Check(StrEnum):
    """Runs whose outcome is followed over the session."""

    CI = "ci"
    TESTS = "tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One thing a call sets out to do.

    `target` is what the argv names (a PR number, a runner). `is_last`: a failure of the call may be its own.
    `proven`: a success of the call is its own too. `opaque`: a script of unknown content. `shows_hash`: the hash of a
    quiet commit is printed after it. `subject`: of the commit, where the command line has it. `kind` None: a commit.
    """

    kind: EffectKind | Check | None
    target: str = ""
    is_last: bool = True
    proven: bool = True
    quiet: bool = False
    shows_hash: bool = False
    subject: str = ""
    amends: bool = False
    opaque: bool = False
    paths: tuple[str, ...] = ()

    @property
    def is_commit(self) -> bool:
        return self.kind is None


def of_call(call: ToolCall, commands: tuple[Command, ...]) -> tuple[Intent, ...]:
    """The intents of a call: of each of its simple commands, or of the tool itself where it is no shell."""
    if commands:
        return tuple(_of_commands(commands))
    request = forges.of_tool(call.name, call.arguments)
    return () if request.effect is None else (Intent(kind=request.effect, target=request.target),)


def commands_of(call: ToolCall) -> tuple[Command, ...]:
    """The simple commands of a shell call, of text typed into a running shell included."""
    text = call.command
    if not text and is_continuation(call):
        typed = call.arguments.get("chars") or call.arguments.get("input") or ""
        text = typed if isinstance(typed, str) else ""
    return parse(text) if text else ()


def is_continuation(call: ToolCall) -> bool:
    """Whether a call reads on in a shell started earlier (codex `write_stdin`, Claude Code `BashOutput`)."""
    return re.search(r"stdin|output|poll|session|^wait", call.name, re.IGNORECASE) is not None and not call.path


def _of_commands(commands: tuple[Command, ...]) -> Iterator[Intent]:
    added: list[str] = []
    for index, command in enumerate(commands):
        rest = commands[index:]
        is_git = command.program == "git"
        intent = _of_git(rest, commands[max(0, index - 1)], added) if is_git else _of_other(command)
        if intent is not None:
            is_last = all(one.then == "|" for one in rest[:-1])
            decides = all(one.then == "&&" for one in rest[:-1]) and rest[-1].then in ("", ";")
            yield replace(intent, is_last=is_last, proven=intent.proven and decides)


def _of_git(commands: tuple[Command, ...], before: Command, added: list[str]) -> Intent | None:
    """The intent of the first command, a git command; `added` collects what `git add` names for the next commit."""
    sub, arguments = _git(commands[0].argv)
    if sub == "add":
        added += [word for word in arguments if not word.startswith("-")]
        return None
    if sub == "push":
        return None if NO_PUSH & set(arguments) else Intent(kind=EffectKind.PUSH)
    if sub == "commit":
        commit = _commit(arguments, tuple(added))
        subject, shows_hash = _subject(commands[0], before), _shows_hash(commands)
        return None if "--dry-run" in arguments else replace(commit, subject=subject, shows_hash=shows_hash)
    if sub in COMMITTING:
        return Intent(kind=None)
    return Intent(kind=None, opaque=True) if ALIAS.search(sub) else None


def _of_other(command: Command) -> Intent | None:
    if command.program in forges.PROGRAMS:
        request = forges.of_argv(command.argv)
        kind = Check.CI if request.is_check else request.effect
        return None if kind is None else Intent(kind=kind, target=request.target, proven=request.tells_by_status)
    if (runner := _runner(command.argv)) is not None:
        return Intent(kind=Check.TESTS, target=runner)
    return Intent(kind=None, opaque=True) if _is_script(command) else None


def _is_script(command: Command) -> bool:
    """Whether a command runs something whose commands are not in sight, and that may commit."""
    script = command.argv[1] if command.program in SHELLS and len(command.argv) > 1 else "".join(command.argv[:1])
    return script.startswith(("./", "../")) or script.endswith(".sh") or command.program in ("make", "just", "for")


def _git(argv: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        at += 2 if argv[at] in GIT_VALUED else 1
    return (argv[at], argv[at + 1 :]) if at < len(argv) else ("", ())


def _subject(command: Command, before: Command) -> str:
    """The first line of a commit's message where the command line holds it; `before` may be `$(cat <<EOF …)`."""
    message = next((word for flag, word in pairwise(command.argv) if MESSAGE.fullmatch(flag)), "")
    if message.startswith("$()"):
        message = before.document or ""
    return (message or command.document or "").strip().split("\n")[0].strip()


def prints_log(commands: tuple[Command, ...]) -> bool:
    """Whether a call asks git for commits it has."""
    return any(command.program == "git" and _git(command.argv)[0] in ("log", "show") for command in commands)


def _shows_hash(commands: tuple[Command, ...]) -> bool:
    """Whether, only if the first command succeeds, a later one prints the hash of HEAD."""
    for before, command in pairwise(commands):
        if before.then != "&&":
            return False
        sub, arguments = _git(command.argv) if command.program == "git" else ("", ())
        if (sub == "log" and {"-1", "-n1"} & set(arguments)) or (sub == "rev-parse" and "HEAD" in arguments):
            return True
    return False


def _commit(arguments: tuple[str, ...], added: tuple[str, ...]) -> Intent:
    flags = [word for word in arguments if word.startswith("-")]
    named = tuple(
        word
        for before, word in zip(("", *arguments), arguments, strict=False)
        if not word.startswith("-") and not VALUED.fullmatch(before)
    )
    return Intent(
        kind=None,
        quiet="--quiet" in flags or any(re.fullmatch(r"-[a-z]*q[a-z]*", flag) for flag in flags),
        amends="--amend" in flags,
        paths=named or added,
    )


def _runner(argv: tuple[str, ...]) -> str | None:
    """The name of the test runner that an argv starts, or None."""
    words = [word for word in argv if not word.startswith("-")][:6]
    programs = [word.rsplit("/", 1)[-1] for word in words]
    if programs and programs[0] in LAUNCHERS:
        programs = [word for word in programs[1:] if word != "run"]
    if not programs:
        return None
    if programs[0].startswith("python"):
        module = programs[1] if len(programs) > 1 and "-m" in argv else ""
        return module if module in ("pytest", "unittest", "tox", "nox") else None
    if programs[0] in RUNNERS:
        return programs[0]
    verbs = [word.split(":")[0] for word in programs[1:] if word != "run"][:1]
    return f"{programs[0]} {verbs[0]}" if programs[0] in VERB_RUNNERS and verbs and verbs[0] in TEST_VERBS else None
