"""Where the commands of a session run, as far as its command lines tell, and which repositories are made to be deleted.

Nothing is looked up: a path is text, a variable has the value that the command line gave it.
"""

import posixpath
import re

from grading.formats.events import ToolCall
from grading.signals.shell import ShellCommand, words

TEMPORARY = re.compile(
    r"^(?:/private)?(?:/var)?/tmp(?:/|$)|^(?:/private)?/var/folders/|^/dev/shm/|(?:^|/)scratchpad(?:/|$)|"
    r"^\$\{?(?:TMPDIR|TEMP|TMP)\b|\$\(mktemp\)|^\$env:TEMP|^%TE?MP%|[\\/]AppData[\\/]Local[\\/]Temp(?:[\\/]|$)",
    re.IGNORECASE,
)
REMOTE = re.compile(r"^(?!file:)[a-z+]{2,10}://|^(?:[\w.-]{1,60}@)?[\w.-]{2,100}:|^[\w-]{1,60}/[\w.-]{1,100}$")
BEGUN = re.compile(
    r"^(?:Initialized empty|Reinitialized existing) (?:shared )?Git repository in (.{1,300})$", re.MULTILINE
)
RETURNED = re.compile(r"^Shell cwd was reset to (.{1,300})$", re.MULTILINE)
VARIABLE = re.compile(r"\$(?:\{(\w{1,60})\}|(\w{1,60}))")
DIRECTORY_KEYS = ("workdir", "cwd", "working_directory", "dir_path")
# Every call of these starts anew in its own directory.
FORGETFUL = frozenset({"exec_command", "shell_command", "container.exec", "exec", "local_shell", "unified_exec"})
GIT_VALUED = frozenset({"-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
INIT_VALUED = frozenset(
    ["-b", "--initial-branch", "--template", "--separate-git-dir", "--object-format", "--ref-format"]
)
CLONE_VALUED = words("-b --branch -o --origin --depth -c --config -u --reference -j --jobs --filter")
MAX_PATH = 400
MAX_KNOWN = 500


class Places:
    """The directory of each command, kept over the calls of a session.

    A repository is thrown away where `git init` made it in a temporary directory, or where it was cloned from one that
    the session made, or from a local path into a temporary directory.
    """

    def __init__(self) -> None:
        self.here = ""
        self.variables: dict[str, str] = {}
        self.throwaway: set[str] = set()
        self.bare: set[str] = set()
        self.begun: str | None = None

    def visit(self, call: ToolCall, commands: tuple[ShellCommand, ...]) -> tuple[bool, ...]:
        """Whether each command acts on a repository that is made to be deleted."""
        given = next((value for key in DIRECTORY_KEYS if isinstance(value := call.arguments.get(key), str)), None)
        walk = _Walk(self, self.here if given is None else _join("", given))
        seen = tuple(walk.step(command) for command in commands)
        if given is None and call.name not in FORGETFUL:
            self.here = walk.outermost
        return seen

    def told(self, text: str) -> None:
        """What a result says of directories."""
        if self.begun is not None and (match := BEGUN.search(text)) and TEMPORARY.search(match[1]):
            self.keep(self.throwaway, self.begun)
        self.begun = None
        if match := RETURNED.search(text[-1_000:]):
            self.here = _join("", match[1].strip())

    def is_throwaway(self, directory: str) -> bool:
        for _ in range(50):
            if directory in self.throwaway:
                return True
            if not directory or directory == "/":
                return False
            directory = posixpath.dirname(directory)
        return False

    def is_own_remote(self, address: str) -> bool:
        """Whether a push's address is a temporary path or a bare repository that the session made."""
        if REMOTE.search(address):
            return False
        path = address.removeprefix("file://")
        names = {posixpath.basename(one).removesuffix(".git") for one in self.bare}
        return TEMPORARY.search(path) is not None or posixpath.basename(path.rstrip("/")).removesuffix(".git") in names

    def keep(self, known: set[str], directory: str) -> None:
        if len(known) < MAX_KNOWN:
            known.add(directory)


class _Walk:
    """One pass over a command line. A subshell's `cd` ends with it."""

    def __init__(self, places: Places, start: str) -> None:
        self.places = places
        self.at = start
        self.before: list[tuple[int, str]] = []
        self.made_temporary = False

    @property
    def outermost(self) -> str:
        return self.before[0][1] if self.before else self.at

    def step(self, command: ShellCommand) -> bool:
        while self.before and command.level < self.before[-1][0]:
            self.at = self.before.pop()[1]
        if command.level > (self.before[-1][0] if self.before else 0):
            self.before.append((command.level, self.at))
        variables = self.places.variables
        words = command.argv[1:] if command.program in ("export", "local", "declare", "readonly") else ()
        pairs = [(name, value) for name, found, value in (word.partition("=") for word in words) if found]
        for name, value in (*command.assigned, *pairs):
            if len(variables) < MAX_KNOWN or name in variables:
                variables[name] = self.resolved(value)
        if command.program in ("cd", "pushd", "Set-Location"):
            target = next((word for word in command.argv[1:] if not word.startswith("-")), "")
            self.at = _join(self.at, self.resolved(target)) if target else self.at
        where = self.git(command) if command.program in ("git", "gh") else self.at
        self.made_temporary = command.program == "mktemp"
        return self.places.is_throwaway(where)

    def resolved(self, word: str) -> str:
        """A word with the variables that the session itself set."""
        word = word[:MAX_PATH]
        if self.made_temporary:
            word = word.replace("$()", "$(mktemp)", 1)
        return VARIABLE.sub(lambda m: self.places.variables.get(m[1] or m[2], m[0]), word)[:MAX_PATH]

    def git(self, command: ShellCommand) -> str:
        """The directory that a git command acts in; what it makes is noted."""
        where, words = self.at, list(command.argv[1:])
        while words and words[0].startswith("-"):
            if words[0] == "-C" and len(words) > 1:
                where = _join(where, self.resolved(words[1]))
            words = words[2:] if words[0] == "-C" or words[0] in GIT_VALUED else words[1:]
        if command.program == "gh":
            words = words[1:] if words[:2] == ["repo", "clone"] else []
        if words[:1] == ["init"]:
            self.init(where, words[1:])
        elif words[:1] == ["clone"]:
            self.clone(where, words[1:])
        return where

    def init(self, where: str, words: list[str]) -> None:
        named = _operands(words, INIT_VALUED)
        made = _join(where, self.resolved(named[0])) if named else where
        if "--bare" in words:
            self.places.keep(self.places.bare, made)
        if TEMPORARY.search(made):
            self.places.keep(self.places.throwaway, made)
        else:
            self.places.begun = made

    def clone(self, where: str, words: list[str]) -> None:
        named = [self.resolved(word) for word in _operands(words, CLONE_VALUED)]
        if not named:
            return
        source = _join(where, named[0].removeprefix("file://"))
        name = named[1] if len(named) > 1 else posixpath.basename(named[0].rstrip("/")).removesuffix(".git")
        made = _join(where, name)
        is_local = not REMOTE.search(named[0])
        if is_local and (TEMPORARY.search(made) or source in self.places.bare or self.places.is_throwaway(source)):
            kind = self.places.bare if "--bare" in words or "--mirror" in words else self.places.throwaway
            self.places.keep(kind, made)


def _operands(words: list[str], valued: frozenset[str]) -> list[str]:
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and before not in valued
    ]


def _join(directory: str, path: str) -> str:
    """A path from a directory, without `.` and `..`; one that begins with a variable stands for itself."""
    is_whole = path.startswith(("/", "~", "$", "%")) or re.match(r"[A-Za-z]:[\\/]", path) is not None
    joined = posixpath.normpath(path if is_whole else posixpath.join(directory, path))
    return "" if joined == "." else joined[:MAX_PATH]
