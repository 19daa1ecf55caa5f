"""Do several hosts make one site, whatever happens to one of them? And how do verdicts grow with workers?

Two web hosts, two workers and a scheduler, each with a state folder of its own, share PostgreSQL, Valkey and the bucket
of an S3 server, all on loopback. Agents upload to both web hosts and send again what was not accepted, each about every
twenty seconds, so that the workers keep up; reviewers correct sessions; a simulated judge answers. Meanwhile a web host
is killed, a worker is frozen for longer than its lease, Valkey and PostgreSQL are restarted, the S3 server is away, and
one host after the other is upgraded to a version with one more migration. Then every accepted session and correction is
looked for, in the database and over HTTP at both web hosts.

`lost`: accepted sessions that a web host doesn't have with a verdict, or from which no bandit has learned, and accepted
corrections that are not the reward there. `doubled`: sessions with two verdicts or two rewards in one bandit. `p95_ms`:
of pages that came, faults included; `calm_p95_ms`: of those while nothing was wrong. `scaling_2` and `scaling_4`:
verdicts a second with two and four workers, as a multiple of one worker's, divided by their number, if the judge
answers after one second in the mean; `slow_…`: after two. `cpu_s_per_verdict`: with four workers, of all programs of
the site and what they share. `free_share`: of the machine's processor time, what nobody used meanwhile.

    python benchmarks/hosts.py [--quick | --smoke]
"""

import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.cluster.servers import ANSWER_SECONDS, CONCURRENCY, Shared, machine_seconds, processor_seconds
from benchmarks.cluster.site import (
    CALM,
    PREFIX,
    SETTLE_SECONDS,
    VALUE,
    Cluster,
    Host,
    Load,
    Record,
    agent_client,
    answers,
    new_token,
    require,
    reviewer,
    reviewer_cookies,
    wait_for,
)
from benchmarks.scratch import Size

SIZES = {
    Size.FULL: Load(agents=50, reviewers=20, pause=20, fault=60, calm=25, counted=30, answers=(1, 2)),
    Size.QUICK: Load(agents=6, reviewers=3, pause=3, fault=6, calm=3, counted=8),
    Size.SMOKE: Load(agents=2, reviewers=1, pause=0.5, fault=2, calm=1, counted=3),
}
WARM_UP = 2  # verdicts of each of a worker's threads before verdicts are counted
SPARE_SECONDS = 8  # for which there are sessions beyond those that are judged in the time that counts
PATIENCE_SECONDS = 600.0  # for a start; a machine that others use may need it
READERS = 4  # requests at a time to one web host in the end
MIGRATION = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("grading", "{latest}")]
    operations = [migrations.RunSQL("SELECT 1", "SELECT 1")]
"""


def main() -> None:
    options = scratch.parser(__doc__, quick="six agents, faults of six seconds", smoke="two agents").parse_args()
    load = SIZES[options.size]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gradingsite-hosts-")))
        folder.chmod(0o711)  # PostgreSQL's server runs as another user
        shared = Shared(folder)
        stack.callback(shared.stop)
        scratch.code(folder / "here", database=shared.database, **shared.environment)
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        cluster = Cluster(folder, load, {**os.environ, **shared.environment, "DATABASE_URL": shared.database})
        stack.callback(cluster.end)
        cluster.start()
        cluster.wait_until_up()
        check_together(cluster)
        is_upgraded = live_through(cluster, shared)
        figures = count(cluster)
        figures["upgraded_without_loss"] = is_upgraded and not figures["lost"] and not figures["doubled"]
        figures |= time_pages(cluster)
        print(f"So far: {json.dumps(figures)}", flush=True)
        figures |= scaling(cluster, shared)
        for problem in cluster.record.problems[:10]:
            print(problem)
        print(json.dumps(figures))


def check_together(cluster: Cluster) -> None:
    """What one host takes in, the other shows; a correction at one changes the other's bandit at once."""
    first, second = cluster.web_hosts
    person = reviewer("rita", cluster.web_hosts)
    with agent_client(new_token("probe")) as client:
        name = f"{PREFIX}{next(cluster.numbers):04}"
        cluster.upload(client, name, first)
        session = cluster.record.receipts[name].session
        page = person.get(f"{second.web}/sessions/{session}/?tab=transcript")
        require(f"Do {name}" in page.text, "a transcript uploaded at one host opens at the other")
        before = client.get(f"{first.web}/api/v1/bandits/category").text
        require(cluster.correct(person, second, session), "a correction at the other host is accepted")
        after = client.get(f"{first.web}/api/v1/bandits/category").text
        require(after != before, "it changes the draw at once")
        require(after == client.get(f"{second.web}/api/v1/bandits/category").text, "both hosts draw alike")
        cluster.record.corrected.add(session)
    print("A transcript uploaded at A opens at B, and a correction at B changes A's draw at once.", flush=True)


def live_through(cluster: Cluster, shared: Shared) -> bool:
    """Have agents and reviewers work while one thing after the other goes wrong. Whether the upgrade went well."""
    threads = people(cluster)
    with cluster.pages_opened(reviewer_cookies("viewer", cluster.web_hosts)):
        for thread in threads:
            thread.start()
        for name, fault in faults(cluster, shared).items():
            stay_calm(cluster)
            before = len(cluster.record.receipts)
            print(f"{time.strftime('%H:%M:%S')} {before:5} sessions accepted; {name}", flush=True)
            cluster.begin_phase(name)
            fault()
            cluster.wait_until_up()
            wait_for(lambda before=before: len(cluster.record.receipts) > before, PATIENCE_SECONDS, "uploads go on")  # type: ignore[misc]
        stay_calm(cluster)
    cluster.over.set()
    for thread in threads:
        thread.join(SETTLE_SECONDS)
    return all(host.tree != scratch.ROOT for host in cluster.hosts.values())


def people(cluster: Cluster) -> list[threading.Thread]:
    """A thread of each agent and reviewer."""
    load, threads = cluster.load, []
    for number in range(load.agents):
        agent = [new_token(f"agent-{number}")]
        threads.append(threading.Thread(target=cluster.upload_until_over, args=agent, daemon=True))
    for number in range(load.reviewers):
        person = reviewer(f"reviewer-{number}", cluster.web_hosts)
        arguments = [person, cluster.web_hosts[number % 2], number, load.reviewers]
        threads.append(threading.Thread(target=cluster.correct_until_over, args=arguments, daemon=True))
    return threads


def stay_calm(cluster: Cluster) -> None:
    """Let some time pass in which nothing goes wrong."""
    time.sleep(1)
    cluster.begin_phase(CALM)
    time.sleep(cluster.load.calm)


def faults(cluster: Cluster, shared: Shared) -> dict[str, Callable[[], object]]:
    """What goes wrong, one after the other, by name."""
    load = cluster.load

    def kill() -> None:
        cluster.hosts["web-a"].end(signal.SIGKILL)
        time.sleep(load.fault / 2)
        cluster.start("web-a")

    def freeze() -> None:
        cluster.hosts["worker-a"].signal_programs(signal.SIGSTOP)
        time.sleep(max(2 * load.fault, 7))
        cluster.hosts["worker-a"].signal_programs(signal.SIGCONT)

    return {
        "a web host is killed": kill,
        "a worker is frozen past its lease": freeze,
        "Valkey is killed and restarted": shared.restart_broker,
        "PostgreSQL is restarted": partial(shared.restart_database, load.fault / 6),
        "the S3 server is away": partial(shared.refuse_evidence, load.fault),
        "one host after the other is upgraded": partial(upgrade, cluster),
    }


def upgrade(cluster: Cluster) -> None:
    """Start one host after the other with a version that has one more migration; the first migrates."""
    from django.db import connection

    tree = cluster.folder / "newer"
    ignored = shutil.ignore_patterns(
        ".venv", ".git", "var", ".pytest_cache", ".mypy_cache", ".ruff_cache", "__pycache__"
    )
    shutil.copytree(scratch.ROOT, tree, ignore=ignored)
    migrations = tree / "grading" / "migrations"
    latest = max(path.stem for path in migrations.glob("0*.py"))
    (migrations / "9999_newer.py").write_text(MIGRATION.format(latest=latest))
    connection.close()
    for host in cluster.hosts.values():
        host.end()
        host.tree = tree
        host.start(cluster.environment)
        if host.role == "web":
            wait_for(partial(answers, host.web), PATIENCE_SECONDS, f"{host.name} answers after its upgrade")


# Counting


def count(cluster: Cluster) -> dict[str, Any]:
    """Wait until all accepted sessions are judged, and count what is lost or doubled."""
    from django.db import connection

    from benchmarks.drill import checks

    connection.close()
    record = cluster.record
    deadline = time.monotonic() + SETTLE_SECONDS
    while checks.lost(record.receipts) and time.monotonic() < deadline:
        time.sleep(1)
    lost = checks.lost(record.receipts)
    for sentence in checks.why_lost(lost)[:5]:
        print(sentence)
    for host in cluster.web_hosts:
        counts, missing = count_at(host, record)
        listed = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
        print(f"{host.name} has {listed}, of {len(record.receipts)} sessions and {len(record.corrected)} corrections")
        lost |= missing
    return {
        "sessions": len(record.receipts),
        "corrections": len(record.corrected),
        "lost": len(lost),
        "doubled": len(checks.double(record.receipts)),
    }


def count_at(host: Host, record: Record) -> tuple[Counter[str], set[str]]:
    """The sessions, verdicts and corrections that a host shows over HTTP, and the names of sessions that lack one."""
    counts: Counter[str] = Counter()
    missing = set()
    with ThreadPoolExecutor(READERS) as pool, httpx2.Client(timeout=60) as client:
        shown = pool.map(lambda name: shown_at(client, host, name, record), record.receipts)
        for name, things in zip(record.receipts, shown, strict=True):
            counts.update(things)
            is_corrected = record.receipts[name].session in record.corrected
            if not {"sessions", "corrections" if is_corrected else "verdicts"} <= things:
                missing.add(name)
    return counts, missing


def shown_at(client: httpx2.Client, host: Host, name: str, record: Record) -> set[str]:
    """Which of session, verdict and correction the host shows for this session to the agent that submitted it."""
    receipt = record.receipts[name]
    headers = {"Authorization": receipt.token}
    reply = client.get(f"{host.web}/api/v1/sessions/{receipt.session}", headers=headers)
    if not reply.is_success or reply.json()["session_id"] != name:
        return set()
    things, session = {"sessions"}, reply.json()
    reward = session["reward"] or {"source": None, "value": None}
    if any(grade["source"] == "judge" and grade["status"] == "scored" for grade in session["grades"]):
        things.add("verdicts")
    if receipt.session in record.corrected and (reward["source"], reward["value"]) == ("human", VALUE):
        things.add("corrections")
    return things


def time_pages(cluster: Cluster) -> dict[str, float | None]:
    """The 95th percentile of the time of pages, in milliseconds; prints it for each page and each phase."""
    groups: dict[str, list[float]] = defaultdict(list)
    not_come: Counter[str] = Counter()
    for phase, page in cluster.pages():
        for group in ("all", phase, f"{page.path} while {phase}"):
            if page.came:
                groups[group].append(page.ms)
            else:
                not_come[group] += 1
    for group, times in sorted(groups.items()):
        if len(times) > 1:
            print(f"{group}: {len(times)} pages, p95 {p95(times):.0f} ms; {not_come[group]} did not come")
    return {"p95_ms": p95(groups["all"]), "calm_p95_ms": p95(groups[CALM])}


def p95(times: list[float]) -> float | None:
    return round(statistics.quantiles(times, n=20)[-1]) if len(times) > 1 else None


# Throughput


def scaling(cluster: Cluster, shared: Shared) -> dict[str, float | None]:
    """Verdicts a second with one, two and four workers, relative to one worker's; and what they cost."""
    for name in ("worker-a", "worker-b"):
        cluster.hosts.pop(name).end()
    figures: dict[str, float | None] = {}
    with agent_client(new_token("scaling")) as client:
        for seconds in cluster.load.answers:
            shared.set_answer_seconds(seconds)
            prefix = "" if seconds == ANSWER_SECONDS else "slow_"
            rates = {}
            for workers in (1, 2, 4):
                rates[workers], costs = measure_rate(cluster, shared, client, workers)
            for workers in (2, 4):
                scale = round(rates[workers] / rates[1] / workers, 2) if rates[1] else None
                figures[f"{prefix}scaling_{workers}"] = scale
            figures |= {f"{prefix}{name}": figure for name, figure in costs.items()}
    return figures


def measure_rate(
    cluster: Cluster, shared: Shared, client: httpx2.Client, workers: int
) -> tuple[float, dict[str, float]]:
    """Verdicts a second of so many workers, while sessions wait; and the processor time of a verdict."""
    from grading.models import Grade

    for _session in range(round(CONCURRENCY * workers * (cluster.load.counted + SPARE_SECONDS))):
        cluster.upload(client, f"{PREFIX}{next(cluster.numbers):04}", cluster.web_hosts[0])
    tree = cluster.hosts["web-a"].tree
    hosts = [Host(name, "worker", cluster.folder / name, 1, tree) for name in names_of_workers(workers)]
    for host in hosts:
        host.start(cluster.environment)
    wait_for(partial(are_running, CONCURRENCY * workers), PATIENCE_SECONDS, "all workers work")
    verdicts = Grade.objects.chain().verdicts()
    enough = verdicts.count() + WARM_UP * CONCURRENCY * workers  # a worker's first verdicts load code
    wait_for(lambda: verdicts.count() >= enough, PATIENCE_SECONDS, "all workers have loaded their code")
    programs = {"workers": processes(hosts), "other hosts": processes(cluster.hosts.values())}
    programs |= {name: [pid] for name, pid in shared.pids.items()}
    used_before = {name: processor_seconds(pids) for name, pids in programs.items()}
    busy_before, all_before = machine_seconds()
    before, started = verdicts.count(), time.perf_counter()
    time.sleep(cluster.load.counted)
    number, seconds = verdicts.count() - before, time.perf_counter() - started
    busy, whole = machine_seconds()
    used = {name: (processor_seconds(pids) - used_before[name]) / max(number, 1) for name, pids in programs.items()}
    free = 1 - (busy - busy_before) / (whole - all_before)
    print(
        f"{workers} workers: {number / seconds:.2f} verdicts a second, {sum(used.values()):.2f} s of processor each ("
        f"{', '.join(f'{name} {cost:.2f}' for name, cost in used.items())}); {free:.0%} of the processors were free",
        flush=True,
    )
    for host in hosts:
        host.end()
    return number / seconds, {"cpu_s_per_verdict": round(sum(used.values()), 2), "free_share": round(free, 2)}


def names_of_workers(workers: int) -> list[str]:
    return [f"extra-{workers}-{number}" for number in range(workers)]


def processes(hosts: Iterable[Host]) -> list[int]:
    return [host.process.pid for host in hosts if host.process is not None]


def are_running(calls: int) -> bool:
    """Whether so many calls to the judge are under way."""
    from grading.models import JudgeAttempt
    from grading.models.judging import AttemptOutcome

    return JudgeAttempt.objects.filter(outcome=AttemptOutcome.RUNNING).count() >= calls


if __name__ == "__main__":
    main()
