"""The intents of tool calls: what a call would do if it succeeds, from its argv or tool name. Never evidence alone."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from grading.formats.events import ToolCall
from grading.signals import forges
from grading.signals.model import Check, EffectKind
from grading.signals.places import CommandPlace
from grading.signals.shell import SHELLS, ShellCommand, operands, split_git
from grading.signals.suites import Suite, SuiteKind, find_suite

COMMITTING_VERBS = frozenset({"merge", "cherry-pick", "revert"})
HEAD_MOVING_VERBS = frozenset({"pull", "checkout", "switch", "merge", "rebase", "cherry-pick", "revert", "am"})
LOG_VERBS = frozenset({"log", "show", "rev-parse", "reflog"})
# Options of these verbs with which the first commit listed may be another than HEAD.
SELECTING_OPTION = re.compile(
    r"--(?:reverse|all|author|committer|grep|invert-grep|skip|until|before|merges|no-merges|branches|remotes|tags|"
    r"diff-filter)(?:=|\Z)|-[SG]"
)
# The flags with which `git branch` and `git tag` still make a ref: with most others they list, rename or delete.
MAKING_FLAGS = {
    "branch": re.compile(r"-[cf]|--(?:copy|force)"),
    "tag": re.compile(r"-[afmsuF]|--(?:annotate|file|force|local-user|message|sign)"),
}
NO_PUSH_FLAGS = frozenset({"-n", "--dry-run", "--delete", "-d"})
# A user's alias such as `git safe-commit` or `git ci`, but not git's own `commit-tree` and the like.
COMMIT_ALIAS = re.compile(r"^(?!commit-).*commit|^ci$")
VALUED_FLAG = re.compile(r"-[a-zA-Z]*[mFCct]|--(?:message|file|author|date)")
MESSAGE_FLAG = re.compile(r"-[a-zA-Z]*m|--message")
REUSE_FLAGS = frozenset({"-C", "-c", "--reuse-message", "--reedit-message"})
# Git, and programs that print nothing.
HOOK_PROGRAMS = frozenset({"", "cd", "export", "git", "set", "true"})
# Programs that run a command for each line of their input.
XARGS = re.compile(r"\b(?:xargs|parallel)\b")
MAX_SEARCHED = 4_000
# The most commit intents of one call, and the most intents of each other kind.
MAX_COMMITS, MAX_OF_A_KIND = 200, 40
# The most commits of one cherry-pick or revert.
MAX_PICKED = 50
# How many commands before a commit may have written its message to a file.
MAX_COMMANDS_BEFORE = 5
PREPARING_PROGRAMS = frozenset({"cd", "export", "source", ".", "set", "pushd", "unset", "echo"})
# Programs that may commit. `done` ends a loop and `function` begins a definition: their commands may run repeatedly.
OPAQUE_PROGRAMS = frozenset({"make", "just", "done", "function", "gt", "jj", "sl", "cz", "oco", "lerna"})
INTERPRETERS = re.compile(r"(?:python[\d.]*|node|ruby|perl|php|deno|bun)$")

Commands = tuple[ShellCommand, ...]


class HeadMove(StrEnum):
    """Commands that move HEAD, or that make another branch or tag of the current commit (NEW_REF)."""

    RESET = "reset"
    ELSEWHERE = "elsewhere"
    NEW_REF = "new_ref"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One thing that a call does if it succeeds. `kind` None: a commit.

    `target` is what the argv names (a PR number, a test runner, the arguments of a reset). `is_last`: if the call
    fails, this part may have failed. `proven`: if the call succeeds, this part has too. `is_first`: nothing before it
    in the call could fail. `nth`: how many intents of the same kind come before it; `repeats`: the call has a loop or
    function. `is_deferred`: success only schedules it. `echoes_status`: its exit status is printed after it.
    `body`: the digest of the comment it posts. `opaque`: a script of unknown content. `counts`: its repository is not
    throwaway. `suite` are the tests or the build it runs, in `place` (a folder or file, "" if unknown); `heading` is
    the text that the call prints just before. `shows_hook`: of a commit or push in a call that prints nothing but
    what git and its hooks print.

    Of a commit: `subject`, if the command line has it; `reuses`: the hash of the commit whose message it takes;
    `shows_hash`: its hash is printed after it; `rewrites`: it replaces an earlier commit of the same subject;
    `may_be_empty`: it only changed something if git prints a count of files; `can_hide`: git may print nothing about
    it; `times`: how many commits it makes; `paths`: the files that the command line names.
    """

    kind: EffectKind | Check | HeadMove | None
    target: str = ""
    is_last: bool = True
    proven: bool = True
    is_first: bool = True
    nth: int = 0
    repeats: bool = False
    is_deferred: bool = False
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
    suite: Suite | None = None
    place: str = ""
    heading: str = ""
    shows_hook: bool = False

    @property
    def is_commit(self) -> bool:
        return self.kind is None


def find_intents(call: ToolCall, commands: Commands, places: tuple[CommandPlace, ...] = ()) -> tuple[Intent, ...]:
    """The intents of a call: of each of its simple commands, or of the tool itself if it isn't a shell.

    `places` has where each command acts; empty if that is unknown.
    """
    if not commands:
        request = forges.parse_tool_call(call.name, call.arguments)
        return (_forge_intent(request, proven=False),) if request else ()
    intents: list[Intent] = []
    counts: Counter[object] = Counter()  # intents by kind
    added: list[str] = []  # the paths of the `git add`s so far
    heading = ""
    repeats = _repeats_commands(call, commands)
    shows_hook = all(command.program in HOOK_PROGRAMS or command.document is not None for command in commands)
    places = places or tuple(CommandPlace(argv=command.argv) for command in commands)
    for index, (command, place) in enumerate(zip(commands, places, strict=True)):
        if command.program == "echo" and len(command.argv) > 1 and command.then != "|":
            heading = " ".join(command.argv[1:])
        is_git = command.program == "git"
        own_intents = _git_intents(commands, index, added) if is_git else _other_intents(command, place)
        for intent in own_intents:
            # A command after `||` runs only if the one before failed: a reset that may not have run is skipped.
            is_alternative = index > 0 and commands[index - 1].then == "||"
            if intent.kind is HeadMove.RESET and is_alternative:
                continue
            if counts[intent.kind] >= (MAX_COMMITS if intent.is_commit else MAX_OF_A_KIND):
                continue
            intents.append(
                replace(
                    _with_position(intent, commands, index),
                    counts=not place.is_throwaway,
                    heading=heading if intent.suite is not None else "",
                    nth=counts[intent.kind],
                    repeats=repeats,
                    shows_hook=shows_hook and intent.kind in (None, EffectKind.PUSH),
                )
            )
            counts[intent.kind] += 1
            if intent.suite is not None:
                heading = ""
    return tuple(intents)


def _repeats_commands(call: ToolCall, commands: Commands) -> bool:
    """Whether a call may run some of its commands several times."""
    has_loop = any(command.program in ("done", "function") for command in commands)
    return has_loop or XARGS.search(call.command[:MAX_SEARCHED]) is not None


def _with_position(intent: Intent, commands: Commands, index: int) -> Intent:
    """The intent of the command at `index`, with the fields that depend on its position in the command line."""
    before, after = commands[:index], commands[index + 1 :]
    operators = [command.then for command in commands[index:-1]]  # between the command and the last one
    # After these operators a failure ends the call, so if the call succeeds, the command before them has succeeded.
    is_strict = any(command.argv[:2] == ("set", "-e") for command in commands[:5])
    stopping = ("&&", ";") if is_strict else ("&&",)
    stops_on_failure = all(operator in stopping for operator in operators) and commands[-1].then in ("", ";")
    prints_next = bool(after) and after[0].program in ("echo", "printf")
    return replace(
        intent,
        is_last=all(operator == "|" for operator in operators),
        proven=intent.proven and stops_on_failure,
        is_first=all(command.program in PREPARING_PROGRAMS or not command.argv for command in before),
        echoes_status=prints_next and "$?" in " ".join(after[0].argv),
    )


def _forge_intent(request: forges.ForgeRequest, *, proven: bool) -> Intent:
    """The intent of a request to a forge."""
    return Intent(
        kind=request.kind,
        target=request.target,
        proven=proven,
        is_deferred=not request.done_on_success,
        body=request.body,
    )


def _git_intents(commands: Commands, index: int, added: list[str]) -> Iterator[Intent]:
    """The intents of the git command at `index`. Appends the paths of a `git add` to `added`."""
    verb, arguments = split_git(commands[index].argv)
    flags = [word for word in arguments if word.startswith("-")]
    if verb == "add":
        added += operands(arguments)
    elif verb == "push" and not NO_PUSH_FLAGS & set(arguments):
        yield Intent(kind=EffectKind.PUSH)
    elif verb == "commit" and "--dry-run" not in arguments:
        yield _commit_intent(commands, index, added)
    elif verb == "reset":
        yield Intent(kind=HeadMove.RESET, target=" ".join(arguments)[:300])
    elif verb in MAKING_FLAGS:
        makes_ref = len(flags) < len(arguments) and all(map(MAKING_FLAGS[verb].match, flags))
        if makes_ref:
            yield Intent(kind=HeadMove.NEW_REF)
    elif verb in ("checkout", "switch") and {"-b", "-c", "--create"} & set(arguments):
        yield Intent(kind=HeadMove.NEW_REF)
    if verb in HEAD_MOVING_VERBS:
        yield Intent(kind=HeadMove.ELSEWHERE)
    if verb in COMMITTING_VERBS or (verb == "rebase" and "--continue" in arguments):
        picked = [] if verb == "merge" else operands(arguments)  # each makes a commit
        times = max(1, min(len(picked), MAX_PICKED))
        yield Intent(kind=None, rewrites=verb == "rebase", times=times, is_merge=verb == "merge")
        if any(".." in word for word in picked):  # a range of unknown length
            yield Intent(kind=None, opaque=True)
    elif verb != "commit" and COMMIT_ALIAS.search(verb):
        yield Intent(kind=None, opaque=True)


def _commit_intent(commands: Commands, index: int, added: list[str]) -> Intent:
    """The intent of the `git commit` at `index`. `added` are the paths of the `git add`s before it."""
    _verb, arguments = split_git(commands[index].argv)
    paths = [
        word
        for flag, word in pairwise(("", *arguments))
        if not word.startswith("-") and not VALUED_FLAG.fullmatch(flag) and flag not in REUSE_FLAGS
    ]
    message = _commit_message(commands[index], commands[:index])
    return Intent(
        kind=None,
        subject=message.strip().split("\n")[0].strip()[:200],
        shows_hash=_prints_own_hash(commands[index:]),
        amends="--amend" in arguments,
        reuses=next((word for flag, word in pairwise(arguments) if flag in REUSE_FLAGS), ""),
        may_be_empty="--allow-empty" in arguments,
        can_hide=True,
        paths=tuple(paths or added),
    )


def _prints_own_hash(commands: Commands) -> bool:
    """Whether a command that runs only if the first one, a commit, succeeds prints the hash of HEAD."""
    for previous, command in pairwise(commands):
        if previous.then != "&&":
            return False
        if find_log_command((command,)) is not None and shows_head(command):
            return True
    return False


def _commit_message(command: ShellCommand, before: Commands) -> str:
    """The message of a `git commit`: from its flags, its here-document, or the file that a command before wrote; "" if
    it is unknown.
    """
    flags = list(pairwise(command.argv))
    message = next((word for flag, word in flags if MESSAGE_FLAG.fullmatch(flag)), "")
    if not message:
        prefix = "--message="
        message = next((word.removeprefix(prefix) for word in command.argv if word.startswith(prefix)), "")
    if message.startswith("$()") and before:  # `-m "$(cat <<EOF …)"`: the command in it comes just before
        message = before[-1].document or ""
    if message:
        return message
    if command.document:
        return command.document
    file = next((word for flag, word in flags if flag in ("-F", "--file")), "-")
    for earlier in before[-MAX_COMMANDS_BEFORE:]:
        if any(path == file for path, _appends in earlier.outputs):
            return earlier.document or ""
    return ""


def _other_intents(command: ShellCommand, place: CommandPlace) -> Iterator[Intent]:
    """The intents of a command that isn't git: a forge's program, tests, a build, or a script that may commit."""
    if command.program in forges.PROGRAMS:
        if request := forges.parse_command(command.argv, command.document):
            yield _forge_intent(request, proven=request.done_on_success)
        return
    suite = find_suite(place.argv, place.directory)
    if suite is not None:
        kind = Check.TESTS if suite.kind is SuiteKind.TESTS else Check.BUILD
        path = suite.paths[0] if suite.paths else place.directory
        yield Intent(kind=kind, target=suite.runner, suite=suite, place=path)
        if kind is Check.TESTS or command.program not in OPAQUE_PROGRAMS:
            return
    if _may_commit(command):
        yield Intent(kind=None, opaque=True)


def _may_commit(command: ShellCommand) -> bool:
    """Whether a command that isn't git runs a script or a program that may commit."""
    if INTERPRETERS.match(command.program):
        return "commit" in " ".join(command.argv[1:4]) or "commit" in (command.document or "")
    runs_script = command.program in SHELLS and len(command.argv) > 1
    script = "".join(command.argv[1:2] if runs_script else command.argv[:1])
    return script.startswith(("./", "../")) or script.endswith(".sh") or command.program in OPAQUE_PROGRAMS


def find_log_command(commands: Commands) -> ShellCommand | None:
    """The first command that makes git list or name commits; None if there is none."""
    for command in commands:
        if command.program == "git" and split_git(command.argv)[0] in LOG_VERBS:
            return command
    return None


def shows_head(log_command: ShellCommand) -> bool:
    """Whether the first commit that a git command with one of LOG_VERBS prints is HEAD: it names no other commit and no
    path, and no option may leave HEAD out.
    """
    verb, arguments = split_git(log_command.argv)
    if any(map(SELECTING_OPTION.match, arguments)):
        return False
    commits = set(operands(arguments, ("-n", "--max-count")))
    # `git rev-parse` prints nothing without an operand.
    return commits == {"HEAD"} or (not commits and verb != "rev-parse")
