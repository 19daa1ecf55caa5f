"""What a tool call sets out to do, read from its argv or its tool's name. An intent is never evidence by itself."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from grading.core.events import ToolCall
from grading.core.signals.model import EffectKind
from grading.core.signals.shell import SHELLS, Command, parse

GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
COMMITTING = frozenset({"commit", "merge", "cherry-pick", "revert"})
GH = {
    ("pr", "create"): EffectKind.PR_OPENED,
    ("pr", "merge"): EffectKind.PR_MERGED,
    ("pr", "close"): EffectKind.PR_CLOSED,
    ("pr", "review"): EffectKind.PR_REVIEWED,
    ("pr", "comment"): EffectKind.COMMENT,
    ("mr", "create"): EffectKind.PR_OPENED,
    ("mr", "merge"): EffectKind.PR_MERGED,
    ("mr", "note"): EffectKind.COMMENT,
    ("issue", "create"): EffectKind.ISSUE_OPENED,
    ("issue", "close"): EffectKind.ISSUE_CLOSED,
    ("issue", "comment"): EffectKind.COMMENT,
    ("issue", "note"): EffectKind.COMMENT,
}
GH_CHECKS = frozenset({("pr", "checks"), ("run", "watch"), ("run", "view"), ("ci", "status")})
API = (
    (re.compile(r"pulls/\d+/merge/?$|merge_requests/\d+/merge/?$"), EffectKind.PR_MERGED),
    (re.compile(r"(?:pulls|merge_requests)/?$"), EffectKind.PR_OPENED),
    (re.compile(r"pulls/\d+/reviews/?$"), EffectKind.PR_REVIEWED),
    (re.compile(r"(?:comments(?:/\d+/replies)?|replies|notes)/?$"), EffectKind.COMMENT),
    (re.compile(r"issues/?$"), EffectKind.ISSUE_OPENED),
)
API_WRITES = re.compile(r"-[fF]$|-[fF]\w|--(?:raw-)?field|--input|(?:-X|--method)?=?(?:POST|PUT)$")
TOOLS = (
    (re.compile(r"create_(?:pull_request|merge_request|pr)$"), EffectKind.PR_OPENED),
    (re.compile(r"merge_(?:pull_request|merge_request|pr)$"), EffectKind.PR_MERGED),
    (re.compile(r"(?:create|submit)\w{0,20}_review$|review_write$"), EffectKind.PR_REVIEWED),
    (re.compile(r"(?:add|create|reply)\w{0,30}_comment$|comment_on_\w{1,20}$"), EffectKind.COMMENT),
    (re.compile(r"(?:create_issue|issue_write)$"), EffectKind.ISSUE_OPENED),
    (re.compile(r"close_issue$"), EffectKind.ISSUE_CLOSED),
)
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
    name = re.split(r"__|\.|/", call.name)[-1].lower()
    return tuple(Intent(kind=kind, target=call.name) for pattern, kind in TOOLS if pattern.search(name))[:1]


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
        is_last = all(one.then == "|" for one in rest[:-1])
        proven = all(one.then == "&&" for one in rest[:-1]) and rest[-1].then in ("", ";")
        if command.program == "git":
            sub, arguments = _git(command.argv)
            if sub == "add":
                added += [word for word in arguments if not word.startswith("-")]
            elif sub in COMMITTING and "--dry-run" not in arguments:
                commit = _commit(arguments, tuple(added), is_last=is_last, shows_hash=_shows_hash(rest))
                subject = _subject(command, commands[max(0, index - 1)])
                yield replace(commit, subject=subject) if sub == "commit" else replace(commit, paths=())
            elif sub == "push" and not {"-n", "--dry-run", "--delete", "-d"} & set(arguments):
                yield Intent(kind=EffectKind.PUSH, is_last=is_last, proven=proven)
            elif re.search("commit|^ci$", sub) and not re.match("commit(?:-|$)", sub):
                yield Intent(kind=None, opaque=True, is_last=is_last)
        elif command.program in ("gh", "glab", "hub"):
            yield from _forge(command.argv, is_last=is_last, proven=proven)
        elif (runner := _runner(command.argv)) is not None:
            yield Intent(kind=Check.TESTS, target=runner, is_last=is_last, proven=proven)
        elif _is_script(command):
            yield Intent(kind=None, opaque=True, is_last=is_last)


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


def _commit(arguments: tuple[str, ...], added: tuple[str, ...], *, is_last: bool, shows_hash: bool) -> Intent:
    flags = [word for word in arguments if word.startswith("-")]
    named = tuple(
        word
        for before, word in zip(("", *arguments), arguments, strict=False)
        if not word.startswith("-") and not re.fullmatch(r"-[a-zA-Z]*[mFCct]|--(?:message|file|author|date)", before)
    )
    return Intent(
        kind=None,
        is_last=is_last,
        shows_hash=shows_hash,
        quiet="--quiet" in flags or any(re.fullmatch(r"-[a-z]*q[a-z]*", flag) for flag in flags),
        amends="--amend" in flags,
        paths=named or added,
    )


def _forge(argv: tuple[str, ...], *, is_last: bool, proven: bool) -> Iterator[Intent]:
    words = _without_repository(argv[1:])
    if {"--dry-run", "--web", "--help", "-w"} & set(words):
        return
    verb = tuple(words[:2])
    kind = GH.get(verb) if len(verb) == 2 else None  # noqa: PLR2004 (a noun and a verb)
    if words[:1] == ["api"]:
        kind = _api(words)
    elif argv[0].endswith("hub") and words[:1] == ["pull-request"]:
        kind = EffectKind.PR_OPENED
    elif kind is EffectKind.PR_MERGED and "--auto" in words:
        proven = False
    target = next((word for word in words[2:] if re.fullmatch(r"#?\d{1,9}|https?://\S{1,300}", word)), "")
    if verb in GH_CHECKS:
        yield Intent(kind=Check.CI, target="checks", is_last=is_last, proven=proven and "--exit-status" in words)
    elif kind is not None:
        yield Intent(kind=kind, target=target.lstrip("#"), is_last=is_last, proven=proven)


def _without_repository(words: tuple[str, ...]) -> list[str]:
    kept = []
    skip = False
    for word in words:
        if skip or word.startswith("--repo="):
            skip = False
        elif word in ("-R", "--repo"):
            skip = True
        else:
            kept.append(word)
    return kept


def _api(words: list[str]) -> EffectKind | None:
    if not any(API_WRITES.match(word) for word in words):
        return None
    for word in words[1:]:
        path = word.split("?")[0]
        for pattern, kind in API:
            if "/" in path and pattern.search(path):
                return kind
    return None


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
