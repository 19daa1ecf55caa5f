"""What do starting, idling, judging one session and importing a folder of logs cost?

`setup_cpu_s` is the processor time of `manage.py check` once Python has compiled the code. `idle_pss_mb` is the memory
of all processes of `manage.py up`, with shared memory counted once, after every job that comes by the minute has run.
`judge_job_ms` is a worker's processor time for one session's verdict, from a simulated judge. `import_per_s` is the
number of logs of 110 kB that `manage.py import_sessions` takes in a second on two processors. Figures whose names end
in `_yardsticks` are processor times divided by that of a fixed piece of Python run beside them, `yardstick_ms`.

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

from benchmarks import intake, scratch
from benchmarks.scratch import Size

MANAGE = [sys.executable, str(scratch.ROOT / "manage.py")]
PROCESSORS = 2
# Checks, sessions judged, logs imported, and seconds from the start to reading the memory.
SIZES = {Size.FULL: (9, 200, 400, 90), Size.QUICK: (3, 30, 60, 0), Size.SMOKE: (1, 1, 2, 0)}
IDLE_CPU_SHARE = 0.1


def main() -> None:
    size = scratch.parser(__doc__, quick="fewer of each", smoke="one of each").parse_args().size
    checks, jobs, logs, idle_seconds = SIZES[size]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yardsticks = [scratch.yardstick_seconds()]
        setup = statistics.median(cpu_of_check(folder) for _check in range(checks))
        yardsticks.append(scratch.yardstick_seconds())
        memory = measure_idle_memory(folder, idle_seconds, wait_for_samples=size is not Size.SMOKE)
        imports = measure_import(folder, logs)
        yardsticks.append(scratch.yardstick_seconds())
        judge_job = cpu_of_judge_job(folder, jobs)
        yardsticks.append(scratch.yardstick_seconds())
    yardstick = statistics.median(yardsticks)
    for process, megabytes in memory.items():
        print(f"{megabytes:7.1f} MB  {process}")
    figures = {
        "setup_cpu_s": round(setup, 3),
        "setup_yardsticks": round(setup / yardstick, 1),
        "idle_pss_mb": round(sum(memory.values()), 1),
        "processes": len(memory),
        "judge_job_ms": round(judge_job * 1000, 1),
        "judge_job_yardsticks": round(judge_job / yardstick, 2),
        **imports,
        "import_yardsticks": round(imports["import_cpu_ms"] / 1000 / yardstick, 2),
        "yardstick_ms": round(yardstick * 1000, 2),
    }
    print(json.dumps(figures))


def environment(state: Path, **variables: str) -> dict[str, str]:
    """The environment of a site of its own in this folder, without a judge."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    template = os.environ.get(scratch.TEMPLATE)
    if template and not (state / "db.sqlite3").exists():
        shutil.copy(template, state / "db.sqlite3")
    foreign = ("DATABASE_URL", "REDIS_URL", "MAKELEVEL", "JUDGE_", "ANTHROPIC_", "PYTHONDONTWRITEBYTECODE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**inherited, "GRADINGSITE_STATE": str(state), **variables}


def cpu_of_check(folder: Path) -> float:
    """Processor seconds of `manage.py check`."""
    before = children_cpu()
    subprocess.run([*MANAGE, "check"], check=True, env=environment(folder / "check"), capture_output=True)
    return children_cpu() - before


def children_cpu() -> float:
    """Processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Programs


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


def wait_for_log(process: subprocess.Popen[bytes], log: Path, patterns: list[str], seconds: float = 180) -> None:
    """Return once the log has a match of every pattern. Raises RuntimeError if it never has."""
    deadline = time.monotonic() + seconds
    while missing := [pattern for pattern in patterns if not re.search(pattern, log.read_text(errors="replace"))]:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"expected {missing} in the log; it ends with:\n{log.read_text()[-3000:]}")
        time.sleep(0.1)


def measure_idle_memory(folder: Path, seconds: float, *, wait_for_samples: bool) -> dict[str, float]:
    """Megabytes (10⁶ bytes) of each process of a site that nobody uses."""
    from gradingsite import broker

    env = environment(folder / "site", PORT=str(broker.free_port()))
    with started([*MANAGE, "up"], env, folder / "up.log") as up:
        wait_for_log(up, folder / "up.log", ["serving http"] + [r"samples +\| done"] * wait_for_samples)
        wait_until_idle(up.pid)
        time.sleep(seconds)
        memory = {}
        for pid in scratch.process_tree(up.pid):
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            memory[f"{pid} {' '.join(word.rpartition('/')[2] for word in arguments)[:70]}"] = pss_megabytes(pid)
        return memory


def wait_until_idle(pid: int) -> None:
    """Return once a process and its descendants use less than a tenth of a processor."""
    while True:
        before = scratch.cpu_seconds(scratch.process_tree(pid))
        time.sleep(1)
        if scratch.cpu_seconds(scratch.process_tree(pid)) - before < IDLE_CPU_SHARE:
            return


def pss_megabytes(pid: int) -> float:
    """The memory of a process. What it shares with others is divided by their number."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)[1]) * 1024 / 1e6


# Importing and judging


def measure_import(folder: Path, logs: int) -> dict[str, float]:
    """How fast a folder of logs is imported, by the clock and by the processor, without the command's start."""
    log_folder = folder / "logs"
    log_folder.mkdir()
    for number in range(logs):
        (log_folder / f"{number}.jsonl").write_bytes(intake.session_log(f"log-{number}"))
    env = environment(folder / "importing", REDIS_URL="redis://127.0.0.1:1/0", LOG_LEVEL="ERROR")
    subprocess.run([*MANAGE, "migrate", "--verbosity=0"], check=True, env=env)
    processors = ",".join(map(str, sorted(os.sched_getaffinity(0))[:PROCESSORS]))
    times = []
    for path in (folder / "none.jsonl", log_folder):
        cpu_before, started_at = children_cpu(), time.monotonic()
        command = ["taskset", "-c", processors, *MANAGE, "import_sessions", str(path)]
        subprocess.run(command, env=env, check=False, capture_output=True)
        times.append((children_cpu() - cpu_before, time.monotonic() - started_at))
    (start_cpu, start_wall), (cpu, wall) = times
    return {
        "import_per_s": round(logs / (wall - start_wall), 1),
        "import_cpu_ms": round((cpu - start_cpu) / logs * 1000, 1),
    }


def cpu_of_judge_job(folder: Path, jobs: int) -> float:
    """Processor seconds of a worker for one session's verdict, from claiming the job to settling it."""
    from gradingsite import broker as brokers

    state = folder / "judging"
    env = environment(state)
    broker, port = brokers.prepare(state / "broker"), brokers.free_port()
    simulator = [*MANAGE, "judge_simulator", "--port", str(port)]
    with (
        started(brokers.command(broker, state / "broker"), env, folder / "broker.log"),
        started(simulator, env, folder / "judge.log") as judge,
    ):
        broker.wait_until_up()
        wait_for_log(judge, folder / "judge.log", ["Judge simulator at"])
        judge_url = f"http://127.0.0.1:{port}"
        scratch.site(state, REDIS_URL=broker.url, ANTHROPIC_API_KEY="bench", ANTHROPIC_BASE_URL=judge_url)
        from grading.intake.importing import import_log
        from grading.judging import worker
        from grading.models import Agent, JudgeAttempt, JudgePolicy

        JudgePolicy.objects.create(repeat_share=0, second_share=0)  # one verdict for each session
        agent = Agent.objects.create(name="bench")
        log = folder / "to-judge.jsonl"
        for number in range(jobs + 1):
            log.write_bytes(intake.session_log(f"judged-{number}"))
            import_log(log, agent=agent)
            if not number:
                worker.pump()  # loads what is loaded once
        before = cpu_without_judge(judge.pid)
        worker.pump(seconds=600)
        used = cpu_without_judge(judge.pid) - before
        graded = JudgeAttempt.objects.filter(outcome="graded").count()
        if graded != jobs + 1:
            raise SystemExit(f"expected {jobs + 1} verdicts; got {graded}")
    return used / jobs


def cpu_without_judge(judge_pid: int) -> float:
    """Processor seconds of this process and its descendants, without the simulated judge."""
    return scratch.cpu_seconds(pid for pid in scratch.process_tree(os.getpid()) if pid != judge_pid)


if __name__ == "__main__":
    main()
