"""What the hosts share: PostgreSQL, Valkey, an S3 server and a judge, each of which can be stopped and started."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.synchronize import Event
from pathlib import Path

import httpx2

from benchmarks import scratch
from gradingsite import broker
from gradingsite.supervisor import die_with_parent
from tests import postgres
from tests.backups.places import binaries

# Processes of this program that don't share its memory, or its interpreter's lock.
SPAWNED = multiprocessing.get_context("spawn")
CONCURRENCY = 2  # calls of each worker at a time
ANSWER_SECONDS = 1.0
TICKS = os.sysconf("SC_CLK_TCK")


class Shared:
    """The shared servers of one run, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._database = postgres.kept(folder / "postgres", postgres.FAST)
        self.database = self._database.__enter__()
        (folder / "valkey").mkdir()
        self.broker = broker.prepare(folder / "valkey")
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.start_broker()
        s3_port, judge_port = broker.free_port(), broker.free_port()
        self.s3_answers = SPAWNED.Event()
        self.s3 = SPAWNED.Process(target=serve_bucket, args=[s3_port, self.s3_answers], daemon=True)
        self.s3_answers.set()
        self.s3.start()
        while broker.is_free(s3_port, "127.0.0.1"):
            time.sleep(0.1)
        self.judge = f"http://127.0.0.1:{judge_port}"
        self.environment = environment(self.broker.url, f"http://127.0.0.1:{s3_port}", self.judge)
        create_bucket(self.environment)
        limits = ("--requests=600000", "--input-tokens=900000000", "--output-tokens=900000000")
        judge = ["judge_simulator", "--port", str(judge_port), f"--latency={ANSWER_SECONDS}", *limits]
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

    def refuse_evidence(self, seconds: float) -> None:
        """Have the S3 server refuse connections for this time."""
        self.s3_answers.clear()
        time.sleep(seconds)
        self.s3_answers.set()

    def set_answer_seconds(self, seconds: float) -> None:
        httpx2.post(f"{self.judge}/_script", json={"latency": seconds}).raise_for_status()

    @property
    def pids(self) -> dict[str, int]:
        """The main process of each server, by its name."""
        postmaster = int((self.folder / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
        programs = {name: program.pid for name, program in self.programs.items()}
        return {"PostgreSQL": postmaster, "S3": self.s3.pid or 0, **programs}

    def stop(self) -> None:
        for program in self.programs.values():
            program.terminate()
        self.s3.terminate()
        self._database.__exit__(None, None, None)


def environment(redis: str, s3: str, judge: str) -> dict[str, str]:
    """The settings that all hosts have, but for the database."""
    return {
        "REDIS_URL": redis,
        "SECRET_KEY": "benchmark-" * 5,
        "CHANCE_KEY": "ab" * 32,
        "EVIDENCE": "s3://evidence/site",
        "EVIDENCE_ENDPOINT": s3,
        "EVIDENCE_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "site",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "ANTHROPIC_API_KEY": "sk-benchmark",
        "ANTHROPIC_BASE_URL": judge,
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


def serve_bucket(port: int, answers: Event) -> None:
    """Serve S3 with its content in memory, and refuse connections while `answers` is not set. Runs in a process."""
    import logging

    from moto.server import ThreadedMotoServer

    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    while answers.wait():
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
        server.start()
        while answers.is_set():
            time.sleep(0.1)
        server.stop()


def create_bucket(settings: dict[str, str]) -> None:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=settings["EVIDENCE_ENDPOINT"],
        region_name=settings["EVIDENCE_REGION"],
        aws_access_key_id=settings["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=settings["AWS_SECRET_ACCESS_KEY"],
    )
    client.create_bucket(Bucket="evidence")


# Processor time


def processor_seconds(pids: Iterable[int]) -> float:
    """What these processes and their descendants have used so far, those that ended included."""
    total = 0
    for pid in [descendant for root in pids for descendant in scratch.process_tree(root)]:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended, and its parent has its time
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))  # user and system time of itself, and of children that ended
    return total / TICKS


def machine_seconds() -> tuple[float, float]:
    """The processor time of this machine since its start: used by anybody, and in all."""
    fields = [int(field) / TICKS for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)
