"""Do a core's own tests notice when it is changed? `python -m tests.mutants [core …]`, `make mutants CORE=decide`.

Each mutant is one small change of a source, and has a process of its own, forked once all is imported that does not
import the source. There the tests import the changed source, and stop at the first failure. What no test notices is
shown as a diff: it asks for a test, or for less code. One that nobody could see goes to `equivalents.py`, with the
reason. The last line is JSON: per core how many were killed, survived or are equivalent, the share of killed ones among
those that are not, and the seconds it took, by the clock and of the processors.
"""

import argparse
import ast
import contextlib
import difflib
import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import time
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.examples import quick_to_fail
from tests.mutants.changes import Change, Source, source
from tests.mutants.cores import CORES, Core
from tests.mutants.equivalents import EQUIVALENTS

# Threads of a library's own would compete for the two processors, and do not survive a fork.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
ROOT = Path(__file__).resolve().parent.parent.parent
# A mutant that takes so many times as long as the unchanged tests, and so many seconds more, hangs.
TIMES, SECONDS = 4, 10
MEMORY = 4 << 30
OPTIONS = ("-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:unraisableexception")
# Without Django there is no conftest: no settings, no broker, no database.
WITHOUT_DJANGO = ("--noconftest",)
WITH_DJANGO = ("-p", "pytest_django.plugin")
TARGET = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`path` with one change; without one it is the source as it stands."""

    path: str
    whole: Source
    change: Change | None = None

    @property
    def code(self) -> str:
        return self.whole.module.code if self.change is None else self.whole.mutant(self.change)

    @property
    def lines(self) -> tuple[str, str]:
        """The lines that go and those that come, as `equivalents.py` names a mutant."""
        before, after = self.whole.module.code.splitlines(), self.code.splitlines()
        changed = list(difflib.unified_diff(before, after, n=0, lineterm=""))[3:]
        gone, come = ("\n".join(line[1:].strip() for line in changed if line[0] == sign) for sign in "-+")
        return gone, come


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a source from a text instead of its file."""

    def __init__(self, path: str, code: str) -> None:
        self.path = path
        self.name = module(path)
        self.code = code

    def find_spec(self, name: str, path: object = None, target: object = None):
        return importlib.util.spec_from_loader(name, self, origin=self.path) if name == self.name else None

    def exec_module(self, made: types.ModuleType) -> None:
        made.__file__ = str(ROOT / self.path)
        exec(compile(self.code, made.__file__, "exec"), made.__dict__)  # noqa: S102 - that is what it is for


def run_tests(core: Core, mutant: Mutant, *, shown: bool) -> int:
    """Runs the core's tests on a mutant, in this process: pytest's exit status."""
    if not shown:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
    sys.meta_path.insert(0, Loader(mutant.path, mutant.code))
    quick_to_fail()
    return int(pytest.main([*OPTIONS, *(WITH_DJANGO if core.django else WITHOUT_DJANGO), *core.tests]))


class Closed(importlib.abc.MetaPathFinder):
    """Has no module of these names: whoever imports one can't be imported."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None):
        if name in self.names:
            raise ImportError(f"{name} is to be changed")


def preload(core: Core) -> None:
    """Import what sources and tests import, but for the sources and whatever imports them."""
    sources = [module(path) for path in core.sources]
    for name in sources:  # whose packages may import in their __init__ what needs Django
        package = name.rpartition(".")[0]
        bare = sys.modules[package] = types.ModuleType(package)
        bare.__path__ = [str(ROOT / package.replace(".", "/"))]
    closed = Closed(sources)
    sys.meta_path.insert(0, closed)
    for name in (name for path in (*core.tests, *core.sources) for name in imported(path)):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    sys.meta_path.remove(closed)


def imported(path: str) -> Iterator[str]:
    """What a file imports; of `from x import y` both x and x.y, which may be a module."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def fork(core: Core, mutant: Mutant, *, shown: bool = False) -> int:
    """The id of a process that ends with pytest's exit status."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        if not core.django:  # which may want PostgreSQL
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        status = run_tests(core, mutant, shown=shown)
    except BaseException as error:  # noqa: BLE001 - whatever a mutant does, it is one that was noticed
        print(f"{type(error).__name__}: {error}")
    finally:
        sys.stdout.flush()
        os._exit(status)


def baseline(core: Core, mutant: Mutant) -> float:
    """How long the unchanged tests take, in seconds. Raises SystemExit where they fail."""
    begun = time.monotonic()
    _, status = os.waitpid(fork(core, mutant), 0)
    if status:
        os.waitpid(fork(core, mutant, shown=True), 0)
        raise SystemExit("The tests fail without any change, see above: mend them first.")
    return time.monotonic() - begun


def is_known(mutant: Mutant) -> bool:
    """Whether it is known to be equivalent to its source."""
    return mutant.lines in {row[:2] for row in EQUIVALENTS.get(mutant.path, ())}


def survivors(core: Core, mutants: Sequence[Mutant], limit: float, workers: int) -> list[Mutant]:
    """The mutants that no test noticed, printed when they are found unless they are known to be equivalent."""
    waiting, running = list(reversed(mutants)), dict[int, tuple[Mutant, float]]()
    survived: list[Mutant] = []
    while waiting or running:
        while waiting and len(running) < workers:
            mutant = waiting.pop()
            running[fork(core, mutant)] = mutant, time.monotonic() + limit
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            mutant, _ = running.pop(child)
            if status == 0:
                survived.append(mutant)
                if not is_known(mutant):
                    gone, come = (lines.replace("\n", "\n  ") for lines in mutant.lines)
                    print(f"{mutant.path}:{mutant.change.line}\n- {gone}\n+ {come}\n", flush=True)
            continue
        for child, (_, deadline) in running.items():
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    return survived


def measure(name: str, core: Core, *, every: int, workers: int) -> Mapping[str, int | float]:
    """Tries one mutant in `every` of a core, and prints those that survived and are not known to be equivalent."""
    begun = time.monotonic()
    wholes = {path: source((ROOT / path).read_text(), core.only) for path in core.sources}
    unchanged = Mutant(path=core.sources[0], whole=wholes[core.sources[0]])
    if not core.django:
        preload(core)
    gc.freeze()
    took = baseline(core, unchanged)
    made = (Mutant(path=path, whole=whole, change=each) for path, whole in wholes.items() for each in whole.changes)
    mutants = [mutant for mutant in made if compiles(mutant)][::every]
    survived = survivors(core, mutants, TIMES * took + SECONDS, workers)
    equivalent = [mutant for mutant in survived if is_known(mutant)]
    left = [mutant for mutant in survived if mutant not in equivalent]
    killed = len(mutants) - len(survived)
    share = killed / max(killed + len(left), 1)
    seconds = round(time.monotonic() - begun)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {"killed": killed, "survived": len(left), "equivalent": len(equivalent), "share": round(share, 4)}
    print(f"{name}: {killed} of {killed + len(left)} mutants killed, {share:.1%}, in {seconds} s.", flush=True)
    if share < TARGET:
        print(f"Expected {TARGET:.0%} at least: strengthen its own tests, or delete what does nothing.")
    return {**found, "seconds": seconds, "cpu_seconds": round(used.ru_utime + used.ru_stime)}


def compiles(mutant: Mutant) -> bool:
    """Whether the change makes a program at all, and another one."""
    code = mutant.code  # which takes a tenth of a second to write
    try:
        compile(code, mutant.path, "exec")
    except SyntaxError:
        return False
    return code != mutant.whole.module.code


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("core", nargs="*", help=f"one of {', '.join(CORES)}; all of them without")
    parser.add_argument("--every", type=int, default=1, help="try one mutant in so many, for a first look")
    parser.add_argument("--workers", type=int, default=2, help="run so many mutants at a time")
    given = parser.parse_args(arguments)
    names = given.core or list(CORES)
    if unknown := set(names) - set(CORES):
        parser.error(f"expected cores of {', '.join(CORES)}; got {', '.join(sorted(unknown))}")
    if len(names) == 1:
        found = {names[0]: measure(names[0], CORES[names[0]], every=given.every, workers=given.workers)}
    else:  # each in a process of its own, which has imported nothing that another core changes
        found = {}
        for name in names:
            options = ("--every", str(given.every), "--workers", str(given.workers))
            command = [sys.executable, "-m", "tests.mutants", name, *options]
            said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
            print(*said[:-1], sep="\n", flush=True)
            found |= json.loads(said[-1])
    print(json.dumps(found))
    return int(any(each["share"] < TARGET for each in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
