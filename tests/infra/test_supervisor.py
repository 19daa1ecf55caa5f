"""Several programs as one: restarts, one end for all, nothing left behind. The supervisor is a real process here."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from gradingsite.supervisor import wait_before_restart
from tests.processes import stop

SLEEPER = 'import time; print("ready", flush=True); time.sleep(60)'
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
WITH_A_CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPER!r}]).wait()"


@pytest.fixture
def supervise():
    """Starts a supervisor over programs given as name=python code; returns its process."""
    started = []

    def start(grace=8.0, **programs):
        code = textwrap.dedent(f"""
            import sys
            from gradingsite import supervisor
            supervisor.GRACE_SECONDS = {grace}
            programs = [
                supervisor.Program(
                    name=name, command=[sys.executable, "-c", code], once=name == "once", ends_last=name == "last"
                )
                for name, code in {programs!r}.items()
            ]
            supervisor.Supervisor(programs).run()
        """)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        stop(process)
        process.stdout.close()


def read_until(process, pattern, times=1, seconds=180):
    """The output up to the line in which the pattern has been seen so many times. Kills what says nothing for long."""
    lines = []
    impatience = threading.Timer(seconds, process.kill)
    impatience.start()
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            times -= bool(re.search(pattern, line))
            if times == 0:
                return lines
    finally:
        impatience.cancel()
    raise AssertionError(f"{pattern!r} is missing in {lines}")


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_until_dead(pids, seconds=30):
    deadline = time.monotonic() + seconds
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, f"still alive: {list(filter(is_alive, pids))}"
        time.sleep(0.02)


def test_every_line_tells_when_and_by_whom(supervise):
    lines = read_until(supervise(worker=SLEEPER), "ready")
    assert re.fullmatch(r"\d\d:\d\d:\d\d worker  \| ready", lines[-1])


def test_a_killed_program_is_started_again_loudly(supervise):
    process = supervise(worker=SLEEPER, web=SLEEPER)
    read_until(process, "ready", times=2)
    web_and_worker = children_of(process.pid)
    os.kill(web_and_worker[0], signal.SIGKILL)
    assert "FELL: killed by SIGKILL; starting again in 1 s" in read_until(process, "FELL")[-1]
    read_until(process, "worker .* ready")
    assert len(children_of(process.pid)) == 2
    assert web_and_worker[1] in children_of(process.pid)


def test_the_wait_before_a_restart_grows_to_half_a_minute():
    assert [wait_before_restart(falls) for falls in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_program_that_runs_once_is_not_started_again(supervise):
    process = supervise(once='print("ready")', web=SLEEPER)
    read_until(process, "once .* done")
    assert len(children_of(process.pid)) == 1


def test_a_last_word_without_a_newline_is_shown(supervise):
    read_until(supervise(once='import sys; sys.stdout.write("no newline"); sys.exit(3)'), "once .* no newline")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_programs_and_their_children(supervise, number):
    process = supervise(web=WITH_A_CHILD, worker=SLEEPER, last=SLEEPER)
    read_until(process, "ready", times=3)
    children = children_of(process.pid)
    family = children + [grandchild for child in children for grandchild in children_of(child)]
    assert len(family) == 4
    process.send_signal(number)
    read_until(process, "stopped")
    assert process.wait(30) == 0
    wait_until_dead(family)


def test_a_program_that_will_not_end_is_killed(supervise):
    process = supervise(grace=0.2, worker=STUBBORN)
    read_until(process, "ready")
    children = children_of(process.pid)
    process.terminate()
    assert process.wait(30) == 0
    wait_until_dead(children)


def test_a_second_signal_does_not_wait(supervise):
    process = supervise(grace=60, worker=STUBBORN)
    read_until(process, "ready")
    process.send_signal(signal.SIGINT)
    read_until(process, "stopping")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_killing_the_supervisor_leaves_no_orphans(supervise):
    process = supervise(web=SLEEPER, worker=STUBBORN)
    read_until(process, "ready", times=2)
    children = children_of(process.pid)
    process.kill()
    wait_until_dead(children)
