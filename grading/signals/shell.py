"""A command line as the simple commands it runs: what an agent really called, apart from what it only mentions.

Enough of the shell's grammar for that: quotes, operators, comments, redirections, here-documents, substitutions and
`sh -c`. One pass, linear in the text, nothing is run or expanded.
"""

import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise


def words(text: str) -> frozenset[str]:
    """A set of words from one text."""
    return frozenset(text.split())


MAX_COMMAND = 200_000
MAX_COMMANDS = 500
MAX_DEPTH = 8
TOKEN = re.compile(
    r"""(?P<join>\\\n)|(?P<space>[ \t\r]+)|(?P<newline>\n)|(?P<comment>(?<![^\s;&|(])\#[^\n]*)
    |(?P<heredoc><<-?[ \t]*(?:'(?P<q1>[^'\n]+)'|"(?P<q2>[^"\n]+)"|\\?(?P<q3>[\w.-]+)))
    |(?P<redirect>&>>?|\d*>>?\|?(?:&[\d-])?|\d*<{1,3}(?:&[\d-])?)
    |(?P<operator>&&|\|\||;;|\|&|[;|&`])
    |(?P<single>'[^']*'?)|(?P<double>\$?")|(?P<substitution>[$<>]\()|(?P<open>\()|(?P<close>\))
    |(?P<escape>\\.)|(?P<plain>[^\s'"\\$;|&()<>`]+|.)""",
    re.VERBOSE | re.DOTALL,
)
IN_DOUBLE = re.compile(r"""(?P<end>")|(?P<escape>\\.)|(?P<substitution>\$\()|(?P<plain>[^"\\$]+|.)""", re.DOTALL)
KEYWORDS = words("if then else elif do while until ! { time")
# Programs that run the command in their arguments, with their options that take a value.
WRAPPERS = {
    "sudo": "-u --user -g --group -h -p -C -D",
    "doas": "-u -C",
    "env": "-u --unset -C --chdir -S",
    "nohup": "",
    "setsid": "",
    "command": "",
    "builtin": "",
    "exec": "-a",
    "nice": "-n --adjustment",
    "ionice": "-c -n",
    "timeout": "-k --kill-after -s --signal",
    "gtimeout": "-k --kill-after -s --signal",
    "stdbuf": "-i -o -e",
    "caffeinate": "-t",
    "chronic": "",
    "xargs": "-I -i -n -P -L -d -E -s -a --max-args --max-procs --replace --delimiter",
    "rtk": "",
    "corepack": "",
    "npx": "-p --package",
    "bunx": "",
    "uvx": "--from --with -p --python",
}
# The same for a program and its verb.
RUNNING_VERBS = {
    "uv run": "--with --python -p --project --directory --extra --group --env-file --package",
    "poetry run": "",
    "pipenv run": "",
    "pdm run": "",
    "hatch run": "",
    "rye run": "",
    "pixi run": "-e --environment",
    "pnpm exec": "-C --filter",
    "pnpm dlx": "",
    "npm exec": "",
    "yarn exec": "",
    "yarn dlx": "",
    "bundle exec": "",
    "mise exec": "",
    "mise x": "",
    "rtk proxy": "",
}
CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
CONTAINER_VALUED = words(
    "-e --env --env-file -u --user -w --workdir --detach-keys -f --file -p --project-name --profile --index"
)
SSH_VALUED = words("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w")
KUBE_VALUED = frozenset(["-n", "--namespace", "-c", "--container", "--context", "--kubeconfig"])
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)\+?=")
DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """One simple command. `then` is the operator after it (`&&`, `||`, `;`, `|`, `&`; empty at the end).

    `outputs` are the files its output goes to, as (path, appends); `document` is its here-document, if it has one.
    `assigned` are the variables set before it, as (name, value); `level` counts the subshells around it.
    """

    argv: tuple[str, ...]
    then: str = ""
    outputs: tuple[tuple[str, bool], ...] = ()
    document: str | None = None
    assigned: tuple[tuple[str, str], ...] = ()
    level: int = 0

    @property
    def program(self) -> str:
        return self.argv[0].rsplit("/", 1)[-1] if self.argv else ""


@dataclass(slots=True)
class _Draft:
    words: list[str] = field(default_factory=list)
    outputs: list[tuple[str, bool]] = field(default_factory=list)
    document: str | None = None
    word: str | None = None
    redirect: str = ""

    def add(self, text: str) -> None:
        self.word = (self.word or "") + text

    def end_word(self) -> None:
        if self.word is None:
            return
        if not self.redirect:
            self.words.append(self.word)
        elif ">" in self.redirect:
            self.outputs.append((self.word, ">>" in self.redirect))
        self.word, self.redirect = None, ""


def parse(text: str) -> tuple[ShellCommand, ...]:
    """The simple commands of a command line or script, substitutions and `sh -c` included, in order of their end."""
    return tuple(islice(_unwrapped(_Scanner(text[:MAX_COMMAND]).run(), MAX_DEPTH), MAX_COMMANDS))


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: list[ShellCommand] = []
        self.documents: list[tuple[str, _Draft]] = []
        self.level = 0

    def run(self) -> list[ShellCommand]:
        while self.at < len(self.text):
            self.level = 0
            self.scan(depth=0)
        return self.found

    def scan(self, depth: int) -> None:
        """Commands up to the closing parenthesis of this level, or the end of the text."""
        draft = _Draft()
        outside = self.level
        while (match := TOKEN.match(self.text, self.at)) is not None:
            self.at = match.end()
            kind, value = match.lastgroup or "", match.group()
            if kind in ("q1", "q2", "q3"):
                kind = "heredoc"
            if kind == "close" and self.level <= outside:
                break
            draft = self.take(kind, value, match, draft, depth)
        self.close(draft, "" if depth == 0 else ";")

    def take(self, kind: str, value: str, match: re.Match[str], draft: _Draft, depth: int) -> _Draft:
        if kind in ("single", "escape", "plain"):
            draft.add(value.strip("'") if kind == "single" else value.removeprefix("\\"))
        elif kind == "double":
            self.double(draft, depth)
        elif kind == "substitution":
            self.nested(draft, depth)
        elif kind == "space":
            draft.end_word()
        elif kind == "heredoc":
            draft.end_word()
            self.documents.append((match["q1"] or match["q2"] or match["q3"], draft))
        elif kind == "redirect":
            self.redirect(value, draft)
        elif kind in ("newline", "operator", "open", "close"):
            if kind == "newline":
                draft.end_word()
                self.read_documents()
            if kind == "open" and draft.word is not None:  # a function's name
                draft.words.insert(0, "function")
            self.close(draft, value if kind == "operator" else ";")
            self.level += {"open": 1, "close": -1}.get(kind, 0)
            return _Draft()
        return draft

    def redirect(self, value: str, draft: _Draft) -> None:
        if draft.word is not None and not draft.word.isdigit():
            draft.end_word()
        draft.word = None
        draft.redirect = "" if "&" in value[1:] else value

    def double(self, draft: _Draft, depth: int) -> None:
        draft.add("")
        while (match := IN_DOUBLE.match(self.text, self.at)) is not None:
            self.at = match.end()
            if match.lastgroup == "end":
                return
            if match.lastgroup == "substitution":
                self.nested(draft, depth)
            else:
                draft.add(match.group())

    def nested(self, draft: _Draft, depth: int) -> None:
        draft.add("$()")
        if depth < MAX_DEPTH:
            self.level += 1
            self.scan(depth + 1)
            self.level -= 1

    def read_documents(self) -> None:
        """The bodies of the here-documents that this line announced: text, never commands."""
        for word, draft in self.documents:
            end = re.compile(rf"^\t*{re.escape(word)}[ \t\r]*$", re.MULTILINE).search(self.text, self.at)
            stop = end.start() if end else len(self.text)
            draft.document = self.text[self.at : stop]
            self.at = end.end() if end else len(self.text)
        self.documents = []

    def close(self, draft: _Draft, then: str) -> None:
        draft.end_word()
        if draft.words or draft.outputs:
            self.found.append(
                ShellCommand(
                    argv=tuple(draft.words),
                    then=then,
                    outputs=tuple(draft.outputs),
                    document=draft.document,
                    level=self.level,
                )
            )


def _unwrapped(commands: list[ShellCommand], depth: int) -> Iterator[ShellCommand]:
    """Commands without assignments, keywords and wrappers; the script of `sh -c` in place of the shell."""
    for command in commands:
        argv = command.argv
        assigned: list[tuple[str, str]] = []
        at = 0
        while at < len(argv):
            first = argv[at].rsplit("/", 1)[-1]
            verb = f"{first} {argv[at + 1]}" if at + 1 < len(argv) else ""
            if match := ASSIGNMENT.match(argv[at]):
                assigned.append((match["name"], argv[at][match.end() :]))
                at += 1
            elif first in KEYWORDS:
                at += 1
            elif verb in RUNNING_VERBS and at + 2 < len(argv):
                at = _past_options(argv, at + 2, RUNNING_VERBS[verb].split())
            elif first in WRAPPERS and at + 1 < len(argv):
                at = _past_options(argv, at + 1, WRAPPERS[first].split())
            else:
                break
        bare = replace(command, argv=argv[at:], assigned=tuple(assigned))
        script = _script(bare)
        if script is None or depth == 0:
            yield bare
            continue
        inner = list(_unwrapped(_Scanner(script).run(), depth - 1))
        inner = [replace(one, level=one.level + command.level + 1) for one in inner]
        yield from inner[:-1]
        if inner:
            yield replace(inner[-1], then=command.then)


def _past_options(argv: tuple[str, ...], at: int, valued: Collection[str]) -> int:
    """The index of the first word that is no option, no option's value and no duration."""
    while at < len(argv) and (argv[at].startswith("-") or DURATION.fullmatch(argv[at])):
        at += 2 if argv[at] in valued else 1
    return at


def _script(command: ShellCommand) -> str | None:
    """What a shell was given to run: the word after `-c`, the words after `eval`, or a here-document.

    What a machine or container is told to run likewise.
    """
    argv = command.argv
    if command.program == "eval":
        return " ".join(argv[1:])
    if command.program == "ssh":
        at = _past_options(argv, 1, SSH_VALUED) + 1
        return " ".join(argv[at:]) or command.document
    if command.program in CONTAINERS or command.program in ("docker-compose", "kubectl"):
        # `docker exec`, `docker compose exec` or `kubectl exec` run a command.
        valued = KUBE_VALUED if argv[0].endswith("kubectl") else CONTAINER_VALUED
        at = _past_options(argv, 1, valued)
        if argv[at : at + 1] == ("compose",):
            at = _past_options(argv, at + 1, valued)
        if argv[at : at + 1] != ("exec",):
            return None
        at = _past_options(argv, at + 1, valued) + 1
        words = argv[at + 1 :] if argv[at : at + 1] == ("--",) else argv[at:]
        return shlex.join(words) if words else None
    if command.program not in SHELLS:
        return None
    for flag, word in pairwise(argv[1:]):
        if re.fullmatch(r"-[a-z]*c", flag):
            return word
    return command.document if len(argv) == 1 or argv[1] in ("-s", "-e", "-l") else None
