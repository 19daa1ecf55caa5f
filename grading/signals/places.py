"""The directories that a session's commands run in, and which of its repositories are throwaway.

Worked out from the command lines alone: paths are text, a variable has the value that a command line assigned.
"""

import posixpath
import re
from dataclasses import dataclass
from itertools import islice

from grading.formats.events import ToolCall
from grading.formats.values import word_set
from grading.signals.shell import GIT_VALUED, ShellCommand, operands

TEMPORARY = re.compile(
    r"^(?:/private)?(?:/var)?/tmp(?:/|$)|^(?:/private)?/var/folders/|^/dev/shm/|(?:^|/)scratchpad(?:/|$)|"
    r"^\$\{?(?:TMPDIR|TEMP|TMP)\b|\$\(mktemp\)|^\$env:TEMP|^%TE?MP%|[\\/]AppData[\\/]Local[\\/]Temp(?:[\\/]|$)",
    re.IGNORECASE,
)
REMOTE = re.compile(r"^(?!file:)[a-z+]{2,10}://|^(?:[\w.-]{1,60}@)?[\w.-]{2,100}:|^[\w-]{1,60}/[\w.-]{1,100}$")
INITIALIZED = re.compile(
    r"^`?(?:Initialized empty|(?P<again>Reinitialized existing)) (?:shared )?Git repository in (?P<path>.{1,300})$",
    re.MULTILINE,
)
# A row of `git worktree list`.
WORKTREE_ROW = re.compile(r"^(/\S{1,300}) {1,60}[0-9a-f]{7,40} (?:\[|\(detached)", re.MULTILINE)
MAX_LISTED = 20_000
RESET = "Shell cwd was reset to "
CWD_RESET = re.compile(rf"^{RESET}(.{{1,300}})$", re.MULTILINE)
DRIVE = re.compile(r"[A-Za-z]:[\\/]")
VARIABLE = re.compile(r"\$(?:\{(\w{1,60})\}|(\w{1,60}))")
DIRECTORY_KEYS = ("workdir", "cwd", "working_directory", "dir_path")
# Tools whose calls don't share a working directory.
STATELESS_TOOLS = frozenset({"exec_command", "shell_command", "container.exec", "exec", "local_shell", "unified_exec"})
INIT_VALUED = word_set("-b --initial-branch --template --separate-git-dir --object-format --ref-format")
CLONE_VALUED = word_set("-b --branch -o --origin --depth -c --config -u --reference -j --jobs --filter")
WORKTREE_VALUED = frozenset({"-b", "-B", "--reason", "--orphan"})
MAX_PATH = 400
# How many characters at the end of an output may have the notice that the working directory was reset.
MAX_END = 1_000
MAX_ENTRIES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlace:
    """Where a command acts: its directory, "" if unknown, and whether its repository is throwaway.

    `argv` is the command's, with the values of variables that command lines assigned.
    """

    argv: tuple[str, ...]
    directory: str = ""
    is_throwaway: bool = False


class Places:
    """The working directory and the session's own repositories, tracked over its calls.

    A repository is throwaway if `git init` made it in a temporary directory, or if it was cloned from one that the
    session made, or from a local path into a temporary directory.

    `cwd` is "" until a command line shows it. `variables` are shell variables that command lines assigned.
    `throwaway` and `bare` are directories of repositories that the session made. `projects` are the directory that its
    first call names, and those of other repositories that it works in: what lies below them is not scratch, even in a
    temporary directory. `pending_init` is the directory of a `git init`, whose output may show that it is in a
    temporary directory, or that the repository existed before. `lists_worktrees`: the current call runs
    `git worktree list`.
    """

    def __init__(self) -> None:
        self.cwd = ""
        self.variables: dict[str, str] = {}
        self.throwaway: set[str] = set()
        self.bare: set[str] = set()
        self.projects: set[str] = set()
        self.pending_init: str | None = None
        self.lists_worktrees = False

    def track_call(self, call: ToolCall, commands: tuple[ShellCommand, ...]) -> tuple[CommandPlace, ...]:
        """Follow a call's commands; returns where each acts."""
        named_directories = [call.arguments.get(key) for key in DIRECTORY_KEYS]
        workdir = next((value for value in named_directories if isinstance(value, str)), None)
        if workdir is not None and not self.projects:  # where the session begins is what it works on
            _add_capped(self.projects, _join("", workdir))
        walk = _Walk(self, self.cwd if workdir is None else _join("", workdir))
        places = tuple(walk.track(command) for command in commands)
        if workdir is None and call.name not in STATELESS_TOOLS:
            self.cwd = walk.final_cwd
        return places

    def track_result(self, text: str) -> None:
        """Update the directories from a call's output: of `git init`, or a reset of the working directory."""
        if self.pending_init is not None and (match := INITIALIZED.search(text)):
            if match["again"]:  # somebody else had made it
                self.throwaway.discard(self.pending_init)
            elif TEMPORARY.search(match["path"]):
                _add_capped(self.throwaway, self.pending_init)
        self.pending_init = None
        if self.lists_worktrees:
            for match in islice(WORKTREE_ROW.finditer(text[:MAX_LISTED]), MAX_ENTRIES):
                _add_capped(self.projects, match[1])
        self.lists_worktrees = False
        end = text[-MAX_END:]
        if RESET in end and (match := CWD_RESET.search(end)):
            self.cwd = _join("", match[1].strip())

    def is_scratch(self, path: str) -> bool:
        """Whether a path lies in a temporary directory and in no repository that the session works in."""
        if not TEMPORARY.search(path):
            return False
        return not any(path == project or path.startswith(f"{project}/") for project in self.projects)

    def is_throwaway(self, directory: str) -> bool:
        """Whether the directory, or one of the 49 above it, is a throwaway repository."""
        if not self.throwaway:
            return False
        for _ in range(50):
            if directory in self.throwaway:
                return True
            if not directory or directory == "/":
                return False
            directory = posixpath.dirname(directory)
        return False

    def is_own_remote(self, address: str) -> bool:
        """Whether a push to `address` goes to a temporary path, or to a path with the name of one of the session's own
        bare repositories.
        """
        if REMOTE.search(address):
            return False
        path = address.removeprefix("file://")
        own_names = {_repository_name(directory) for directory in self.bare}
        return TEMPORARY.search(path) is not None or _repository_name(path) in own_names


class _Walk:
    """One pass over a command line. A `cd` in a subshell ends with the subshell.

    `subshells` has (level, working directory outside) for each subshell that the current command is in.
    `after_mktemp`: the last command was `mktemp`, whose output a `$()` stands for.
    """

    def __init__(self, places: Places, cwd: str) -> None:
        self.places = places
        self.cwd = cwd
        self.subshells: list[tuple[int, str]] = []
        self.after_mktemp = False

    @property
    def final_cwd(self) -> str:
        """The working directory outside of all subshells."""
        return self.subshells[0][1] if self.subshells else self.cwd

    def track(self, command: ShellCommand) -> CommandPlace:
        """Follow one command; returns where it acts."""
        self.enter_level(command.level)
        self.note_variables(command)
        if command.program in ("cd", "pushd", "Set-Location") and command.first_operand:
            self.cwd = _join(self.cwd, self.expand(command.first_operand))
        directory = self.track_git(command) if command.program in ("git", "gh") else self.cwd
        self.after_mktemp = command.program == "mktemp"
        is_throwaway = self.places.is_throwaway(directory)
        makes_repository = command.argv[1:2] in (("init",), ("clone",))
        if command.program == "git" and not makes_repository and not is_throwaway and TEMPORARY.search(directory):
            _add_capped(self.places.projects, directory)
        argv = tuple(self.expand(word) if word.startswith("$") else word for word in command.argv)
        return CommandPlace(argv=argv, directory=directory, is_throwaway=is_throwaway)

    def enter_level(self, level: int) -> None:
        """Leave the subshells that have ended before a command at this level, or enter a new one."""
        while self.subshells and level < self.subshells[-1][0]:
            _, self.cwd = self.subshells.pop()
        current_level = self.subshells[-1][0] if self.subshells else 0
        if level > current_level:
            self.subshells.append((level, self.cwd))

    def note_variables(self, command: ShellCommand) -> None:
        """Store the variables that a command assigns (`A=1 program`, `export A=1`)."""
        assignments = list(command.assigned)
        if command.program in ("export", "local", "declare", "readonly"):
            for argument in command.argv[1:]:
                name, equals, value = argument.partition("=")
                if equals:
                    assignments.append((name, value))
        variables = self.places.variables
        for name, value in assignments:
            if len(variables) < MAX_ENTRIES or name in variables:
                variables[name] = self.expand(value)

    def expand(self, word: str) -> str:
        """The word with the values of variables that command lines assigned."""
        word = word[:MAX_PATH]
        if self.after_mktemp:  # the parser of commands leaves `$()` where mktemp was
            word = word.replace("$()", "$(mktemp)", 1)
        return VARIABLE.sub(lambda m: self.places.variables.get(m[1] or m[2], m[0]), word)[:MAX_PATH]

    def track_git(self, command: ShellCommand) -> str:
        """Note a repository that a git or gh command makes; returns the directory the command acts in."""
        directory, arguments = self.cwd, list(command.argv[1:])
        while arguments and arguments[0].startswith("-"):
            if arguments[0] == "-C" and len(arguments) > 1:
                directory = _join(directory, self.expand(arguments[1]))
            arguments = arguments[2:] if arguments[0] in GIT_VALUED else arguments[1:]
        if command.program == "gh":
            arguments = arguments[1:] if arguments[:2] == ["repo", "clone"] else []
        if arguments[:1] == ["init"]:
            self.track_init(directory, arguments[1:])
        elif arguments[:1] == ["clone"]:
            self.track_clone(directory, arguments[1:])
        elif arguments[:2] == ["worktree", "list"]:
            self.places.lists_worktrees = True
        elif arguments[:2] == ["worktree", "add"]:
            for path in operands(arguments[2:], WORKTREE_VALUED)[:1]:
                _add_capped(self.places.projects, _join(directory, self.expand(path)))
        return directory

    def track_init(self, directory: str, arguments: list[str]) -> None:
        """Note the repository that `git init` makes. In a temporary directory it is throwaway. It is pending, because
        the output may show that its path leads to a temporary directory, or that it existed before.
        """
        paths = operands(arguments, INIT_VALUED)
        repository = _join(directory, self.expand(paths[0])) if paths else directory
        if "--bare" in arguments:
            _add_capped(self.places.bare, repository)
        if repository not in self.places.throwaway:
            self.places.pending_init = repository
        if TEMPORARY.search(repository):
            _add_capped(self.places.throwaway, repository)

    def track_clone(self, directory: str, arguments: list[str]) -> None:
        """Note the repository that `git clone SOURCE [TARGET]` makes.

        A clone of a remote into a named folder is a project. A clone of a local path is the session's own if it is in a
        temporary directory or the session made its source: bare, or else throwaway.
        """
        source, target = [*(self.expand(word) for word in operands(arguments, CLONE_VALUED)), "", ""][:2]
        if not source or REMOTE.search(source):
            if target:
                _add_capped(self.places.projects, _join(directory, target))
            return
        repository = _join(directory, target or _repository_name(source))
        source_directory = _join(directory, source.removeprefix("file://"))
        is_source_own = source_directory in self.places.bare or self.places.is_throwaway(source_directory)
        if TEMPORARY.search(repository) or is_source_own:
            is_bare = "--bare" in arguments or "--mirror" in arguments
            _add_capped(self.places.bare if is_bare else self.places.throwaway, repository)


def _add_capped(directories: set[str], directory: str) -> None:
    """Add a directory, unless there are MAX_ENTRIES already."""
    if len(directories) < MAX_ENTRIES:
        directories.add(directory)


def _repository_name(path: str) -> str:
    """The name of a repository's folder, without `.git`."""
    return posixpath.basename(path.rstrip("/")).removesuffix(".git")


def _join(directory: str, path: str) -> str:
    """The normalised path, below the directory unless it is absolute or begins with a variable; "" for `.`."""
    is_absolute = path.startswith(("/", "~", "$", "%")) or DRIVE.match(path) is not None
    joined = posixpath.normpath(path if is_absolute else posixpath.join(directory, path))
    return "" if joined == "." else joined[:MAX_PATH]
