"""What do starting and standing by cost? And a judge's job, and importing a folder of logs?

`setup_cpu_s` is the processor time of `manage.py check` when Python has compiled the code, as it has at all starts but
the first; `idle_pss_mb` the memory of all processes of `manage.py up` (what they share is counted once) when every job
that comes by the minute has run, `judge_job_ms` the processor time of a worker for one session's verdict, asked of a
simulated judge, and `import_per_s` the logs of 110 kB that `manage.py import_sessions` takes in a second on two
processors. Those whose names end in `_yardsticks` are processor times divided by that of a fixed loop of Python run
beside them, `yardstick_ms`.

    python benchmarks/start.py [--quick | --smoke]
"""

import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import intake, scratch, yardstick
from benchmarks.scratch import Size

ROOT = Path(__file__).resolve().parent.parent
MANAGE = [sys.executable, str(ROOT / "manage.py")]
PROCESSORS = 2
# Checks, sessions judged, logs imported, and seconds from the start to reading the memory.
SIZES = {Size.FULL: (9, 200, 400, 90), Size.QUICK: (3, 30, 60, 0), Size.SMOKE: (1, 1, 2, 0)}
LEAST_WAIT, BUSY = 0.1, 0.1


def main() -> None:
    parser = scratch.parser(__doc__, quick="fewer of each", smoke="one of each")
    size = parser.parse_args().size
    checks, jobs, logs, seconds = SIZES[size]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        loops = [yardstick.seconds()]
        setup = statistics.median(cpu_of_check(place) for _check in range(checks))
        loops.append(yardstick.seconds())
        processes = idle(place, seconds, wait_for_samples=size is not Size.SMOKE)
        imported = importing(place, logs)
        loops.append(yardstick.seconds())
        judging = judge_job(place, jobs)
        loops.append(yardstick.seconds())
    loop = statistics.median(loops)
    for name, pss in processes.items():
        print(f"{pss:7.1f} MB  {name}")
    figures = {
        "setup_cpu_s": round(setup, 3),
        "setup_yardsticks": round(setup / loop, 1),
        "idle_pss_mb": round(sum(processes.values()), 1),
        "processes": len(processes),
        "judge_job_ms": round(judging * 1000, 1),
        "judge_job_yardsticks": round(judging / loop, 2),
        **imported,
        "import_yardsticks": round(imported["import_cpu_ms"] / 1000 / loop, 2),
        "yardstick_ms": round(loop * 1000, 2),
    }
    print(json.dumps(figures))


def environment(state: Path, **more: str) -> dict[str, str]:
    """Of a site of its own in this folder, without a judge and with a broker of its own."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    template = os.environ.get(scratch.TEMPLATE)
    if template and not (state / "db.sqlite3").exists():
        shutil.copy(template, state / "db.sqlite3")
    foreign = ("DATABASE_URL", "REDIS_URL", "MAKELEVEL", "JUDGE_", "ANTHROPIC_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "GRADINGSITE_STATE": str(state), **more}


# --- starting, and standing by ----------------------------------------------------------------------------------------


def cpu_of_check(place: Path) -> float:
    """Processor seconds of `manage.py check`."""
    before = children_cpu()
    subprocess.run([*MANAGE, "check"], check=True, env=environment(place / "check"), capture_output=True)
    return children_cpu() - before


def children_cpu() -> float:
    """Processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def idle(place: Path, seconds: float, *, wait_for_samples: bool) -> dict[str, float]:
    """Megabytes (10⁶ bytes) of each process of a site that nobody uses."""
    from gradingsite import broker

    port = str(broker.free_port())
    with started([*MANAGE, "up"], environment(place / "site", PORT=port), place / "up.log") as up:
        until_said(up, place / "up.log", ["serving http"] + [r"samples +\| done"] * wait_for_samples)
        until_quiet(up.pid)
        time.sleep(seconds)
        found = {}
        for pid in sorted(family(up.pid)):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            found[f"{pid} {' '.join(word.rpartition('/')[2] for word in words)[:70]}"] = pss(pid)
        return found


@contextmanager
def started(command: list[str], env: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    from gradingsite.supervisor import die_with_parent

    with log.open("wb") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output, preexec_fn=die_with_parent)  # noqa: PLW1509
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def until_said(process: subprocess.Popen[bytes], log: Path, wanted: list[str], seconds: float = 180) -> None:
    """Until all of these are in the log. Raises RuntimeError where one never is."""
    deadline = time.monotonic() + seconds
    while missing := [pattern for pattern in wanted if not re.search(pattern, log.read_text(errors="replace"))]:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"waited for {missing} in vain; the last words:\n{log.read_text()[-3000:]}")
        time.sleep(LEAST_WAIT)


def until_quiet(pid: int) -> None:
    """Until a process and its descendants have started, and use less than a tenth of a processor."""
    while True:
        before = scratch.cpu_seconds(family(pid))
        time.sleep(1)
        if scratch.cpu_seconds(family(pid)) - before < BUSY:
            return


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    own = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [pid, *(found for child in own for found in family(child))]


def pss(pid: int) -> float:
    """Megabytes of a process: what it shares with others is divided by their number."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)[1]) * 1024 / 1e6


# --- importing --------------------------------------------------------------------------------------------------------


def importing(place: Path, logs: int) -> dict[str, float]:
    """How fast logs that lie in a folder come in, by the clock and by the processor."""
    folder = place / "logs"
    folder.mkdir()
    for number in range(logs):
        (folder / f"{number}.jsonl").write_bytes(intake.log(f"log-{number}"))
    env = environment(place / "importing", REDIS_URL="redis://127.0.0.1:1/0", LOG_LEVEL="ERROR")
    subprocess.run([*MANAGE, "migrate", "--verbosity=0"], check=True, env=env)
    allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))[:PROCESSORS]))
    starting = cpu_and_wall(["taskset", "-c", allowed, *MANAGE, "import_sessions", str(place / "none.jsonl")], env)
    done = cpu_and_wall(["taskset", "-c", allowed, *MANAGE, "import_sessions", str(folder)], env)
    return {
        "import_per_s": round(logs / (done[1] - starting[1]), 1),
        "import_cpu_ms": round((done[0] - starting[0]) / logs * 1000, 1),
    }


def cpu_and_wall(command: list[str], env: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of the processor and of the clock that a program takes."""
    before, began = children_cpu(), time.monotonic()
    subprocess.run(command, env=env, check=False, capture_output=True)
    return children_cpu() - before, time.monotonic() - began


# --- judging ----------------------------------------------------------------------------------------------------------


def judge_job(place: Path, jobs: int) -> float:
    """Processor seconds of a worker for one session's verdict, from claiming the job to having settled it."""
    from gradingsite import broker

    state = place / "judging"
    env = environment(state)
    ours = broker.prepare(state / "broker")
    simulator = [*MANAGE, "judge_simulator", "--port", str(port := broker.free_port())]
    with (
        started(broker.command(ours, state / "broker"), env, place / "broker.log"),
        started(simulator, env, place / "judge.log") as judge,
    ):
        ours.wait_until_up()
        until_said(judge, place / "judge.log", ["Judge simulator at"])
        scratch.site(
            state, REDIS_URL=ours.url, ANTHROPIC_API_KEY="bench", ANTHROPIC_BASE_URL=f"http://127.0.0.1:{port}"
        )
        from grading import judging
        from grading.intake.importing import import_log
        from grading.models import Agent, JudgeAttempt, JudgePolicy

        JudgePolicy.objects.create(repeat_share=0, second_share=0)  # one verdict a session
        agent = Agent.objects.create(name="bench")
        log = place / "to-judge.jsonl"
        for number in range(jobs + 1):
            log.write_bytes(intake.log(f"judged-{number}"))
            import_log(log, agent=agent)
            if not number:
                judging.pump()  # what is loaded once is no job's cost
        helpers = {judge.pid}
        before = cpu_of_family(helpers)
        judging.pump(seconds=600)
        used = cpu_of_family(helpers) - before
        graded = JudgeAttempt.objects.filter(outcome="graded").count()
        if graded != jobs + 1:
            raise SystemExit(f"expected {jobs + 1} verdicts; got {graded}")
    return used / jobs


def cpu_of_family(without: set[int]) -> float:
    """Processor seconds of this process and of those that it started."""
    return scratch.cpu_seconds([pid for pid in family(os.getpid()) if pid not in without])


if __name__ == "__main__":
    main()
