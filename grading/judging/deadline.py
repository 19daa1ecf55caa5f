"""A deadline for a whole call. HTTP clients limit each read; a server that trickles could block a worker for hours.

`within` sets a deadline for the calling thread. `keep_deadline` makes a client's connections keep it: each read and
write may take only the time remaining until then. The DNS lookup is not limited.
"""

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore2
import httpx2

# Bytes written under one timeout.
PIECE = 64 * 1024
_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give this thread's calls inside the block this many seconds in all. After that they raise a timeout error."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def keep_deadline(client: httpx2.Client) -> httpx2.Client:
    """Make a new client's connections keep the deadline. Returns the client."""
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001 - httpx2 has no public way in
        if isinstance(transport, httpx2.HTTPTransport):
            transport._pool._network_backend = _Backend()  # noqa: SLF001 - the tests notice when it moves
    return client


def _remaining(timeout: float | None, error_type: type[httpcore2.TimeoutException]) -> float | None:
    """The seconds that one step may take; None means no limit. Raises an `error_type` if the deadline has passed."""
    remaining = _deadline.get() - time.monotonic()
    if remaining <= 0:
        raise error_type("the deadline of the whole call has passed")
    limit = min(remaining, float("inf") if timeout is None else timeout)
    return None if limit == float("inf") else limit


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _remaining(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE):
            self._stream.write(buffer[start : start + PIECE], _remaining(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        remaining = _remaining(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, remaining))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore2.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        remaining = _remaining(timeout, httpcore2.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, remaining, local_address, socket_options))
