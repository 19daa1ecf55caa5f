"""Do several hosts make one site, whatever happens to one of them? And how do verdicts grow with workers?

Two web hosts, two workers and a scheduler, each with a state folder of its own, share PostgreSQL, Valkey and the bucket
of an S3 server, all on loopback. Agents upload to both web hosts and send again what was not accepted; reviewers
correct sessions; a simulated judge answers. Meanwhile a web host is killed, a worker is frozen for longer than its
lease, Valkey and PostgreSQL are restarted, the S3 server is away, and one host after the other is upgraded to a version
with one more migration. Then every accepted session and correction is looked for.

`lost`: accepted sessions from which no bandit has learned, and accepted corrections that are not the reward. `doubled`:
sessions with two verdicts or two rewards in one bandit. `p95_ms`: of pages that were answered while nothing was wrong
with both web hosts. `scaling_2` and `scaling_4`: verdicts a second with two and four workers, as a multiple of one
worker's, divided by their number; the judge answers after a second.

    python benchmarks/hosts.py [--quick | --smoke]
"""

import datetime as dt
import itertools
import json
import logging
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size
from gradingsite import broker
from gradingsite.supervisor import die_with_parent
from tests import postgres
from tests.backups.places import binaries


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many agents and reviewers there are, the seconds that each fault lasts and those between faults, and the
    seconds over which verdicts are counted.
    """

    agents: int
    reviewers: int
    fault: float
    calm: float
    counted: float


SIZES = {
    Size.FULL: Load(agents=50, reviewers=20, fault=60, calm=25, counted=30),
    Size.QUICK: Load(agents=6, reviewers=3, fault=6, calm=3, counted=8),
    Size.SMOKE: Load(agents=2, reviewers=1, fault=2, calm=1, counted=3),
}
CONCURRENCY = 2  # calls of each worker at a time
ANSWER_SECONDS = 1.0
SETTLE_SECONDS = 240.0
PREFIX = "drill-00-"  # as the drill's checks expect
VALUE = 0.37
ACCEPTED = (200, 201)
MIGRATION = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("grading", "{latest}")]
    operations = [migrations.RunSQL("SELECT 1", "SELECT 1")]
"""


@dataclass(slots=True)
class Host:
    """A host's role, its state folder, its port, and the tree of code that it runs."""

    name: str
    role: str
    state: Path
    port: int
    tree: Path = scratch.ROOT
    process: subprocess.Popen[bytes] | None = None

    @property
    def web(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, environment: Mapping[str, str]) -> None:
        self.state.mkdir(exist_ok=True)
        with (self.state.parent / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(self.tree / "manage.py"), "up", self.role],
                cwd=self.tree,
                env={
                    **environment,
                    "GRADINGSITE_STATE": str(self.state),
                    "PORT": str(self.port),
                    "HOST_NAME": self.name,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=die_with_parent,  # noqa: PLW1509  threads are started later
            )

    def end(self, number: int = signal.SIGTERM) -> None:
        """Send the supervisor a signal and wait for its end. The kernel ends its programs with it."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def signal_programs(self, number: int) -> None:
        """Send the signal to the programs below the supervisor."""
        if self.process is not None:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            for child in children.split():
                os.killpg(int(child), number)


@dataclass(slots=True)
class Record:
    """What agents and reviewers were told, and the milliseconds of pages."""

    accepted: set[str] = field(default_factory=set)
    corrected: set[int] = field(default_factory=set)
    pages_ms: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Cluster:
    """The hosts, what they share, and who uses them."""

    def __init__(self, folder: Path, load: Load, environment: Mapping[str, str]) -> None:
        self.folder, self.load, self.environment = folder, load, environment
        port = broker.free_port()
        self.hosts = {
            name: Host(name, role, folder / name, broker.free_port() if role == "web" else port)
            for name, role in (
                ("web-a", "web"),
                ("web-b", "web"),
                ("worker-a", "worker"),
                ("worker-b", "worker"),
                ("beat-a", "beat"),
            )
        }
        self.record = Record()
        self.over = threading.Event()
        self.is_calm = threading.Event()
        self.numbers = itertools.count(1)

    @property
    def web_hosts(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.role == "web"]

    def start(self, *names: str) -> None:
        for name in names or self.hosts:
            self.hosts[name].start(self.environment)

    def wait_until_up(self, seconds: float = 120) -> None:
        wait_for(lambda: all(answers(host.web) for host in self.web_hosts), seconds, "both web hosts answer")

    # People and agents, each in a thread

    def upload_until_over(self, secret: str) -> None:
        chance = random.Random(secret)
        with httpx2.Client(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
            while not self.over.is_set():
                self.upload(client, f"{PREFIX}{next(self.numbers):04}", chance.choice(self.web_hosts))
                time.sleep(chance.uniform(0, 1))

    def upload(self, client: httpx2.Client, name: str, first: Host) -> None:
        """Send a session, to one host after the other, until it is accepted."""
        hosts = itertools.cycle([first, *(host for host in self.web_hosts if host is not first)])
        now = dt.datetime.now(dt.UTC)
        turns = scratch.bash_turns(
            name, [("git commit -am Work", f"[main {scratch.commit_hash(name)[:9]}] Work {name}\n 1 file changed")]
        )
        log = scratch.claude_log(name, [("user", f"Do {name}"), *turns], now)
        metadata = {"session_id": name, "category": "code", "harness": "claude-code", "ended_at": now.isoformat()}
        for host in hosts:
            try:
                reply = client.post(
                    f"{host.web}/api/v1/sessions",
                    data={"metadata": json.dumps(metadata)},
                    files={"transcript": ("log.jsonl", log)},
                )
            except httpx2.TransportError:
                time.sleep(0.3)
                continue
            if reply.status_code in ACCEPTED:
                self.record.accepted.add(name)
                return
            if reply.status_code < 500 and reply.status_code != 429:  # noqa: PLR2004
                self.record.problems.append(f"an upload was answered {reply.status_code}: {reply.text[:200]}")
                return
            time.sleep(0.3)

    def correct_until_over(self, person: httpx2.Client, host: Host, share: int, of: int) -> None:
        """Correct each accepted session whose key falls to this reviewer."""
        from django.db import DatabaseError, connection

        from grading.models import Session

        tried: set[int] = set()
        while not self.over.is_set():
            time.sleep(0.5)
            try:
                keys = list(
                    Session.objects.filter(reward_final=True).order_by("-pk").values_list("pk", flat=True)[:200]
                )
            except DatabaseError:
                connection.close()
                continue
            for pk in [pk for pk in keys if pk % (7 * of) == share and pk not in tried]:
                tried.add(pk)
                if self.correct(person, host, pk):
                    self.record.corrected.add(pk)
        connection.close()

    def correct(self, person: httpx2.Client, host: Host, pk: int) -> bool:
        """Whether the correction was accepted. Repeated while the site is unavailable."""
        answer = {"answer": "grade", "value": str(VALUE), "reason": "drill"}
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            try:
                status = person.post(f"{host.web}/review/{pk}/answer/", data=answer).status_code
            except httpx2.TransportError:
                status = 503
            if status < 500:  # noqa: PLR2004
                return status < 400  # noqa: PLR2004
            time.sleep(0.3)
        self.record.problems.append("a correction was not answered")
        return False

    def view_until_over(self, person: httpx2.Client) -> None:
        """Open pages of both hosts, and time those that are answered while no fault is under way."""
        for host, page in itertools.cycle(itertools.product(self.web_hosts, ("/", "/sessions/", "/alarms/"))):
            if self.over.is_set():
                return
            was_calm, started = self.is_calm.is_set(), time.perf_counter()
            try:
                reply = person.get(f"{host.web}{page}")
            except httpx2.TransportError:
                continue
            if was_calm and self.is_calm.is_set() and reply.is_success:
                self.record.pages_ms.append(1000 * (time.perf_counter() - started))
            time.sleep(0.2)


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
        stack.callback(end_all, cluster)
        cluster.start()
        cluster.wait_until_up()
        check_together(cluster)
        is_upgraded = live_through(cluster, shared)
        figures = count(cluster)
        figures["upgraded_without_loss"] = is_upgraded and not figures["lost"] and not figures["doubled"]
        figures |= scaling(cluster)
        for problem in cluster.record.problems[:10]:
            print(problem)
        print(json.dumps(figures))


class Shared:
    """PostgreSQL, Valkey, an S3 server and a judge, each of which can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.folder = folder
        self._database = postgres.kept(folder / "postgres", postgres.FAST)
        self.database = self._database.__enter__()
        (folder / "valkey").mkdir()
        self.broker = broker.prepare(folder / "valkey")
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.start_broker()
        self.s3_port = broker.free_port()
        self.new_s3 = lambda: ThreadedMotoServer(ip_address="127.0.0.1", port=self.s3_port, verbose=False)
        self.start_s3()
        self.judge_port = broker.free_port()
        self.environment = {
            "REDIS_URL": self.broker.url,
            "SECRET_KEY": "benchmark-" * 5,
            "CHANCE_KEY": "ab" * 32,
            "EVIDENCE": "s3://evidence/site",
            "EVIDENCE_ENDPOINT": f"http://127.0.0.1:{self.s3_port}",
            "EVIDENCE_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "site",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "ANTHROPIC_API_KEY": "sk-benchmark",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.judge_port}",
            "WEB_CONCURRENCY": "1",
            "WORKER_CONCURRENCY": str(CONCURRENCY),
            "SWEEP_SECONDS": "1",
            "CANARY": "no",
            "JUDGE_LEASE_SECONDS": "5",
            "JUDGE_TIMEOUT": "4",
            "JUDGE_BACKOFF_SECONDS": "0.2",
            "LOG_LEVEL": "WARNING",
            "PG_BIN": str(binaries()),
            "TOKEN_DAILY_REQUESTS": "0",
            "TOKEN_DAILY_BYTES": "0",
            "TOKEN_DAILY_JUDGE_USD": "0",
        }
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=self.environment["EVIDENCE_ENDPOINT"],
            region_name="us-east-1",
            aws_access_key_id="site",
            aws_secret_access_key="secret",  # noqa: S106  of the server above
        )
        client.create_bucket(Bucket="evidence")
        limits = ("--requests=600000", "--input-tokens=900000000", "--output-tokens=900000000")
        judge = ["judge_simulator", "--port", str(self.judge_port), f"--latency={ANSWER_SECONDS}", *limits]
        self.run("judge", [sys.executable, str(scratch.ROOT / "manage.py"), *judge])

    def run(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.programs[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=die_with_parent,  # noqa: PLW1509  threads are started later
            )

    def start_broker(self) -> None:
        self.run("valkey", broker.command(self.broker, self.folder / "valkey"))
        self.broker.wait_until_up()

    def restart_broker(self) -> None:
        self.programs["valkey"].kill()
        self.programs["valkey"].wait()
        self.start_broker()

    def restart_database(self, seconds: float) -> None:
        self._database.__exit__(None, None, None)
        time.sleep(seconds)
        self._database = postgres.kept(self.folder / "postgres", postgres.FAST)
        self._database.__enter__()

    def start_s3(self) -> None:
        self.s3 = self.new_s3()
        self.s3.start()

    def stop(self) -> None:
        for program in self.programs.values():
            program.terminate()
        self.s3.stop()
        self._database.__exit__(None, None, None)


def check_together(cluster: Cluster) -> None:
    """What one host takes in, the other shows; a correction at one changes the other's bandit at once."""
    from grading.models import Session

    first, second = cluster.web_hosts
    person, secret = reviewer("rita", cluster.web_hosts), token("probe")
    with httpx2.Client(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
        name = f"{PREFIX}{next(cluster.numbers):04}"
        cluster.upload(client, name, first)
        session = Session.objects.get(external_id=name)
        page = person.get(f"{second.web}/sessions/{session.pk}/?tab=transcript")
        require(f"Do {name}" in page.text, "a transcript uploaded at one host opens at the other")
        before = client.get(f"{first.web}/api/v1/bandits/category").text
        require(cluster.correct(person, second, session.pk), "a correction at the other host is accepted")
        require(client.get(f"{first.web}/api/v1/bandits/category").text != before, "it changes the draw at once")
        cluster.record.corrected.add(session.pk)
    print("A transcript uploaded at A opens at B, and a correction at B changes A's bandit at once.", flush=True)


def live_through(cluster: Cluster, shared: Shared) -> bool:
    """Have agents and reviewers work while one thing after the other goes wrong. Whether the upgrade went well."""
    load, people = cluster.load, []
    threads = [
        threading.Thread(target=cluster.upload_until_over, args=[token(f"agent-{number}")], daemon=True)
        for number in range(load.agents)
    ]
    for number in range(load.reviewers):
        host = cluster.web_hosts[number % 2]
        people.append(reviewer(f"reviewer-{number}", cluster.web_hosts))
        arguments = [people[-1], host, number, load.reviewers]
        threads.append(threading.Thread(target=cluster.correct_until_over, args=arguments, daemon=True))
    threads.append(
        threading.Thread(target=cluster.view_until_over, args=[reviewer("viewer", cluster.web_hosts)], daemon=True)
    )
    for thread in threads:
        thread.start()

    def killed() -> None:
        cluster.hosts["web-a"].end(signal.SIGKILL)
        time.sleep(load.fault / 2)
        cluster.start("web-a")

    def frozen() -> None:
        cluster.hosts["worker-a"].signal_programs(signal.SIGSTOP)
        time.sleep(max(2 * load.fault, 7))
        cluster.hosts["worker-a"].signal_programs(signal.SIGCONT)

    def s3_away() -> None:
        shared.s3.stop()
        time.sleep(load.fault)
        shared.start_s3()

    faults: dict[str, Callable[[], object]] = {
        "a web host is killed": killed,
        "a worker is frozen past its lease": frozen,
        "Valkey is killed and restarted": shared.restart_broker,
        "PostgreSQL is restarted": lambda: shared.restart_database(load.fault / 6),
        "the S3 server is away": s3_away,
        "one host after the other is upgraded": lambda: upgrade(cluster),
    }
    for name, fault in faults.items():
        with calm(cluster, load.calm):
            before = len(cluster.record.accepted)
        print(f"{time.strftime('%H:%M:%S')} {len(cluster.record.accepted):5} sessions accepted; {name}", flush=True)
        fault()
        cluster.wait_until_up()
        wait_for(lambda before=before: len(cluster.record.accepted) > before, 60, "uploads go on")  # type: ignore[misc]
    with calm(cluster, load.calm):
        pass
    cluster.over.set()
    for thread in threads:
        thread.join(SETTLE_SECONDS)
    return all(host.tree != scratch.ROOT for host in cluster.hosts.values())


@contextmanager
def calm(cluster: Cluster, seconds: float) -> Iterator[None]:
    """Some time in which nothing goes wrong, after which the block runs."""
    time.sleep(1)
    cluster.is_calm.set()
    time.sleep(seconds)
    cluster.is_calm.clear()
    yield


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
            wait_for(lambda host=host: answers(host.web), 120, f"{host.name} answers after its upgrade")  # type: ignore[misc]


def count(cluster: Cluster) -> dict[str, Any]:
    """Wait until all accepted sessions are judged, and count what is lost or doubled."""
    from django.db import connection

    from benchmarks.drill import checks
    from grading.models import Session
    from grading.reward import rewards

    connection.close()
    record = cluster.record
    deadline = time.monotonic() + SETTLE_SECONDS
    while checks.lost(record.accepted) and time.monotonic() < deadline:
        time.sleep(1)
    lost = checks.lost(record.accepted)
    for sentence in checks.why_lost(lost)[:5]:
        print(sentence)
    wrong = 0
    for session in Session.objects.filter(pk__in=record.corrected):
        reward = rewards.live(session)
        wrong += reward is None or (reward.source, reward.value) != ("human", VALUE)
    print(f"{len(record.accepted)} sessions and {len(record.corrected)} corrections were accepted")
    p95 = statistics.quantiles(record.pages_ms, n=20)[-1] if len(record.pages_ms) > 1 else None
    return {
        "sessions": len(record.accepted),
        "corrections": len(record.corrected),
        "lost": len(lost) + wrong,
        "doubled": len(checks.double(record.accepted)),
        "p95_ms": None if p95 is None else round(p95),
    }


def scaling(cluster: Cluster) -> dict[str, float]:
    """Verdicts a second with one, two and four workers, relative to one worker's."""
    from grading.models import Grade

    for name in ("worker-a", "worker-b"):
        cluster.hosts.pop(name).end()
    tree = cluster.hosts["web-a"].tree
    rates = {}
    with httpx2.Client(headers={"Authorization": f"Bearer {token('scaling')}"}, timeout=60) as client:
        for workers in (1, 2, 4):
            for _session in range(round(CONCURRENCY * workers * (cluster.load.counted + 6) / ANSWER_SECONDS)):
                cluster.upload(client, f"{PREFIX}{next(cluster.numbers):04}", cluster.web_hosts[0])
            hosts = [
                Host(f"extra-{workers}-{n}", "worker", cluster.folder / f"extra-{workers}-{n}", 1, tree)
                for n in range(workers)
            ]
            for host in hosts:
                host.start(cluster.environment)
            wait_for(partial(are_running, CONCURRENCY * workers), 120, "all workers work")
            verdicts = Grade.objects.chain().verdicts()
            before, started = verdicts.count(), time.perf_counter()
            time.sleep(cluster.load.counted)
            rates[workers] = (verdicts.count() - before) / (time.perf_counter() - started)
            print(f"{workers} workers: {rates[workers]:.2f} verdicts a second", flush=True)
            for host in hosts:
                host.end()
    return {f"scaling_{n}": round(rates[n] / rates[1] / n, 2) for n in (2, 4)}


def are_running(calls: int) -> bool:
    """Whether so many calls to the judge are under way."""
    from grading.models import JudgeAttempt
    from grading.models.judging import AttemptOutcome

    return JudgeAttempt.objects.filter(outcome=AttemptOutcome.RUNNING).count() >= calls


def token(agent: str) -> str:
    """A new token of a new agent."""
    from grading.models import Agent, ApiToken

    _row, secret = ApiToken.objects.issue(Agent.objects.create(name=agent))
    return secret


def reviewer(name: str, hosts: Sequence[Host]) -> httpx2.Client:
    """The browser of a signed-in reviewer. Cookies are named by the port, so that it has those of both hosts."""
    from django.conf import settings
    from django.contrib.auth.models import Group, User
    from django.test import Client

    person, is_new = User.objects.get_or_create(username=name, defaults={"is_staff": True})
    if is_new:
        person.groups.set(Group.objects.filter(name="reviewer"))
    client = Client(SERVER_NAME="localhost")
    client.force_login(person)
    secret = "a" * 32
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    cookies: dict[str, str] = {}
    for host in hosts:
        cookies |= {f"sessionid_{host.port}": value, f"csrftoken_{host.port}": secret}
    return httpx2.Client(cookies=cookies, headers={"X-CSRFToken": secret}, timeout=60)


def answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/login/", timeout=5).is_success
    except httpx2.TransportError:
        return False


def require(condition: object, sentence: str) -> None:
    if not condition:
        raise SystemExit(f"expected: {sentence}")


def wait_for(condition: Callable[[], object], seconds: float, sentence: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        require(time.monotonic() < deadline, f"{sentence} within {seconds:g} s")
        time.sleep(0.2)


def end_all(cluster: Cluster) -> None:
    cluster.over.set()
    for host in cluster.hosts.values():
        host.end()


if __name__ == "__main__":
    main()
