"""Runs several programs together: prints their output with time and name, restarts those that crash, and ends them all.

`python -m gradingsite.supervisor 5` reads the programs, as JSON, from the pipe with file descriptor 5. This module
imports nothing of the site, so that the process stays small.

One thread, no locks. Each program leads its own process group: Ctrl-C reaches only the supervisor, and ending a program
ends its children too. On Linux the kernel ends the programs if the supervisor itself is killed.
"""

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

GRACE_SECONDS = 8.0  # from asking a program to end to killing it
MAX_RESTART_WAIT = 30.0  # seconds before a program that keeps crashing is started again
HEALTHY_SECONDS = 60.0  # after running this long, a program's earlier crashes no longer count
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # loaded here, because little is safe between fork and exec
COLOURS = (36, 32, 35, 33, 34)
# Bits of the signal sets in /proc.
INTERRUPT_SIGNALS = 1 << (signal.SIGINT - 1) | 1 << (signal.SIGHUP - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    name: str
    command: Sequence[str]
    once: bool = False  # not started again when it ends
    ends_last: bool = False  # ended only once the others have ended, because they need it


def wait_before_restart(crashes: int) -> float:
    """Seconds to wait after this many crashes in a row: 1, 2, 4, … up to MAX_RESTART_WAIT."""
    return min(MAX_RESTART_WAIT, 2.0 ** (min(crashes, 10) - 1))


def die_with_parent(signal_number: int = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal when its parent dies. Does nothing except on Linux."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, signal_number)


def write_line(name: str, text: str, colour: int = 0) -> None:
    """Print a line with the time and the program's name. Does nothing if the terminal has gone."""
    prefix = f"{time.strftime('%H:%M:%S')} {name:8}|"
    if colour and sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
    with contextlib.suppress(OSError):
        print(prefix, text, flush=True)  # noqa: T201  this is the log


class Child:
    """A program, its current process, and when to start the next one."""

    def __init__(self, program: Program, say: Callable[[str], None]) -> None:
        self.program = program
        self.say = say
        self.process: subprocess.Popen[bytes] | None = None
        self.due: float | None = 0.0  # when to start it; None if it is running or done
        self.started = 0.0
        self.crashes = 0
        self.unfinished_line = b""

    def start(self, selector: selectors.BaseSelector) -> None:
        """Start the program in a process group of its own, and watch its output, errors included, with `selector`."""
        self.started = time.monotonic()
        self.due = None
        self.process = subprocess.Popen(  # noqa: S603  the commands are our own
            self.program.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            preexec_fn=die_with_parent,  # noqa: PLW1509  there is one thread
        )
        self.output = self.process.stdout.fileno() if self.process.stdout else -1
        os.set_blocking(self.output, False)
        selector.register(self.output, selectors.EVENT_READ, self)

    def show_output(self) -> bool:
        """Print the complete lines that can be read without waiting. Returns whether there was any output."""
        try:
            chunk = os.read(self.output, 65_536)
        except BlockingIOError:
            return False
        *lines, self.unfinished_line = (self.unfinished_line + chunk).split(b"\n")
        for line in filter(None, lines):
            self.say(line.decode(errors="replace"))
        return bool(chunk)

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def reap(self, selector: selectors.BaseSelector) -> int:
        """Kill the children that the ended process left, print the rest of its output and return its exit status."""
        self.signal(signal.SIGKILL)
        while self.show_output():
            pass
        if self.unfinished_line:
            self.say(self.unfinished_line.decode(errors="replace"))
            self.unfinished_line = b""
        process, self.process = self.process, None
        selector.unregister(self.output)
        if process is None or process.stdout is None:
            raise RuntimeError(f"{self.program.name} is reaped only after it ran")
        process.stdout.close()
        return process.returncode

    def plan_restart(self, status: int) -> None:
        """Print how the program ended and, unless it runs once, set when it starts again."""
        how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        if self.program.once:
            self.say("done" if status == 0 else f"FAILED: {how}; not started again")
            return
        was_healthy = time.monotonic() - self.started > HEALTHY_SECONDS
        self.crashes = 1 if was_healthy else self.crashes + 1
        wait = wait_before_restart(self.crashes)
        self.due = time.monotonic() + wait
        self.say(f"FELL: {how}; starting again in {wait:g} s")


class Supervisor:
    """Runs programs together until a signal, or until `is_over` (called about ten times a second) returns true."""

    def __init__(self, programs: Iterable[Program], is_over: Callable[[], bool] = lambda: False) -> None:
        self.is_over = is_over
        self.selector = selectors.DefaultSelector()
        self.signals = 0
        self.children = [
            Child(program, partial(write_line, program.name, colour=COLOURS[index % len(COLOURS)]))
            for index, program in enumerate(programs)
        ]
        self.say = partial(write_line, "site")

    def run(self) -> None:
        """Run the programs until SIGINT, SIGTERM, SIGHUP or `is_over`, then end them. A second signal kills them."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.on_signal)
        try:
            while not self.signals and not self.is_over():
                self.step()
        finally:
            self.stop()

    def on_signal(self, _number: int, _frame: object) -> None:
        self.signals += 1

    def step(self) -> None:
        """Start the programs that are due, print output for up to .1 s, and plan the restart of those that ended."""
        for child in self.children:
            if child.due is not None and child.due <= time.monotonic():
                child.start(self.selector)
        self.show_output()
        for child in self.children:
            if child.has_ended():
                child.plan_restart(child.reap(self.selector))

    def show_output(self) -> None:
        """Wait up to .1 s for output of any program, and print it."""
        for key, _ in self.selector.select(0.1):
            if not key.data.show_output():
                time.sleep(0.01)  # it has closed its output and is about to end

    def stop(self) -> None:
        self.say("stopping (once more to stop at once) …")
        self.end([child for child in self.children if not child.program.ends_last])
        self.end(self.children)
        self.say("stopped")

    def end(self, children: Sequence[Child]) -> None:
        """Ask the children to end, kill those that haven't within GRACE_SECONDS, and return when all have."""
        deadline = time.monotonic() + GRACE_SECONDS
        for child in children:
            child.signal(signal.SIGTERM)
        while any(child.process for child in children):
            if self.signals > 1 or time.monotonic() > deadline:
                for child in children:
                    child.signal(signal.SIGKILL)
            self.show_output()
            for child in children:
                if child.has_ended():
                    child.reap(self.selector)


def make_was_interrupted() -> bool:
    """Whether this process was started by make, and make got a SIGINT or SIGHUP. Always False except on Linux.

    A Ctrl-C reaches this process too, but a signal that is sent to make alone does not: make waits for this process
    without passing the signal on. It waits inside its signal handler, so the signal is blocked in make meanwhile, which
    /proc shows.
    """
    if "MAKELEVEL" not in os.environ or not sys.platform.startswith("linux"):
        return False
    lines = Path(f"/proc/{os.getppid()}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return status["Name"] == "make" and bool(int(status["SigBlk"], 16) & INTERRUPT_SIGNALS)


def become(programs: Iterable[Program]) -> NoReturn:
    """Replace this process by the supervisor of these programs, to free the memory that it uses.

    The process keeps its id, its environment and its inheritable files.
    """
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)  # noqa: FBT003  as the os module has it
    with os.fdopen(writing, "w") as file:
        json.dump([asdict(program) for program in programs], file)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "gradingsite.supervisor", str(reading)])  # noqa: S606  our own


def main() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        with os.fdopen(int(sys.argv[1])) as file:
            programs = [Program(**fields) for fields in json.load(file)]
        Supervisor(programs, is_over=make_was_interrupted).run()


if __name__ == "__main__":
    main()
