"""The web server: waitress, with deadlines for slow clients and a gate that runs before a request's body is read.

One thread (`WebServer.run`) reads and writes all connections, so that a slow client takes a connection but no thread. A
request with complete headers goes to a thread. If it has a body, the thread calls the gate first: a request that the
gate refuses is answered at once, and its body is never read. Half of the threads serve the API, so that pages answer
however many agents send.
"""

import logging
import mmap
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from ipaddress import ip_address
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import InternalServerError

from gradingsite.clients import is_proxy, normalize_address

logger = logging.getLogger(__name__)

Environ = dict[str, Any]

API = "/api/"
THREADS = 8  # of one process
MAX_CONNECTIONS = 1000  # of all processes
MAX_CONNECTIONS_PER_ADDRESS = 32  # in all processes
MAX_HEADER_BYTES = 32 * 1024
HEADER_SECONDS = 10.0  # from the first byte (of a new connection, from its start) to the end of the headers
IDLE_SECONDS = 60.0  # between two requests
MIN_BYTES_PER_SECOND = 8_000.0  # of a body that comes or a reply that goes
GRACE_SECONDS = 10.0  # before that minimum applies
LINGER_SECONDS, LINGER_BYTES = 2.0, 256 * 1024  # what a refused client may still send before it is cut off
STOP_SECONDS = 5.0  # to answer pending requests when the server stops
TICK = 0.5  # seconds between two checks of the deadlines
TIMEOUT_TEXT = b"The request came too slowly. Send it again over a faster connection.\n"
TIMEOUT_REPLY = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
    % (len(TIMEOUT_TEXT), TIMEOUT_TEXT)
)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# A key of the WSGI environment: whether the gate admitted the request's body. No client can set it.
ADMITTED = "gradingsite.admitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyReply:
    """A reply that is sent without reading the request's body. `status` is like "413 Content Too Large"."""

    status: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    def to_response(self, _ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        """The method that waitress calls on a request's `error`."""
        return self.status, list(self.headers), self.body


# Called in a thread with the headers of a request that has a body. Returns a reply, or None to admit the body. Requests
# of the API are admitted only with a valid token.
Gate = Callable[[Environ], "EarlyReply | None"]


class Phase(Enum):
    """The phase of a connection, which determines its deadline."""

    IDLE = auto()
    HEADERS = auto()
    BODY = auto()
    WORKING = auto()
    SENDING = auto()
    LINGERING = auto()


class RequestParser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """A request that is being received."""

    admitted = False  # whether the gate admitted its body

    def parse_header(self, header_plus: bytes) -> None:
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # a length of thousands of digits
            raise ParsingError("Content-Length is invalid") from error
        # With two lengths, or with Transfer-Encoding in HTTP/1.0, which doesn't have it, a proxy might see another
        # request (request smuggling). Waitress has removed TRANSFER_ENCODING from the headers of HTTP/1.1.
        if (self.chunked and "CONTENT_LENGTH" in self.headers) or "TRANSFER_ENCODING" in self.headers:
            raise ParsingError("A body has one length: Content-Length, or Transfer-Encoding of HTTP/1.1")

    @property
    def awaits_gate(self) -> bool:
        """Whether the headers are complete and the gate has yet to decide on the body, if there is one."""
        has_body = self.chunked or self.content_length > 0
        return self.headers_finished and has_body and not self.admitted and self.error is None


class Task(WSGITask):  # type: ignore[misc]
    """The application's reply. A reply to HEAD has no body, even if the application returns one."""

    logged_write_no_body = True

    @property
    def has_body(self) -> bool:
        return bool(super().has_body) and self.request.command != "HEAD"

    def get_environment(self) -> Environ:
        environ: Environ = super().get_environment()
        environ[ADMITTED] = self.request.admitted
        return environ


class ClientConnection(HTTPChannel):  # type: ignore[misc]
    """One connection. It handles one request at a time, and keeps the bytes of the next ones until it is answered."""

    parser_class = RequestParser
    task_class = Task
    server: "WebServer"
    request: RequestParser | None = None
    close_when_flushed = False

    def __init__(
        self,
        server: "WebServer",
        sock: socket.socket,
        addr: Any,
        adj: Adjustments,
        map: dict[int, Any] | None = None,  # noqa: A002
    ) -> None:
        self.pending = b""  # received and not parsed yet
        self.has_served = False
        self.is_authenticated = False  # whether it has sent a valid token
        self.was_refused = False
        self.is_lingering = False
        self.phase: Phase | None = None
        self.since = time.monotonic()  # the start of the phase
        self.transferred = 0  # bytes sent in this phase; while lingering, bytes received
        self.table_row: int | None = None  # its row in SharedCounts, if it is counted
        super().__init__(server, sock, addr, adj, map=map)

    # --- reading, mostly in the server's thread

    def received(self, data: bytes) -> bool:
        """Parse the pending bytes and `data`, up to the end of a request or to where the request awaits the gate.

        The request then goes to a thread (`service`), and the other bytes stay pending. With b"", only the pending
        bytes are parsed. Returns False if the connection is about to close.
        """
        with self.requests_lock:
            if self.will_close or self.close_when_flushed:
                return False
            self.pending += data
            while self.pending and not self.requests:
                if self.request is None:
                    self.request = self.parser_class(self.adj)
                request = self.request
                parsed_bytes = request.received(self.pending)
                self.pending = self.pending[parsed_bytes:]
                if request.completed or request.awaits_gate:
                    self.request = None
                    if not request.empty:
                        self.requests.append(request)
                        self.server.add_task(self)
        return True

    def service(self) -> None:
        """Answer the request or, if its body hasn't been received, call the gate. Runs in a thread."""
        request = self.requests[0]
        if request.awaits_gate:
            try:
                request.error = self.server.gate(self.task_class(self, request).get_environment())
            except Exception:
                logger.exception("the gate failed")
                request.error = InternalServerError("The server cannot check the request")
            if request.error is None:
                self._resume_reading(request)
                return
        self.was_refused = request.error is not None
        super().service()
        self.has_served = True
        self._begin_phase()
        self.received(b"")  # handles what has been received of the next request

    def _resume_reading(self, request: RequestParser) -> None:
        """Make the admitted `request` the one that is being received again, so that its body is read next."""
        with self.requests_lock:
            self.requests.pop(0)  # this request, which `received` had queued for the gate
            request.admitted = True
            self.request = request
            self.is_authenticated |= request.path.startswith(API)  # the gate has checked its token
            self._begin_phase()
            if request.expect_continue and not self.pending:  # a client that sends its body already doesn't wait for it
                self._send_continue()
        self.received(b"")  # parse what has already arrived of the body
        self.server.pull_trigger()  # let the server's thread poll this connection again

    def _send_continue(self) -> None:
        with self.outbuf_lock:
            self.outbufs[-1].append(CONTINUE)
            self.current_outbuf_count += len(CONTINUE)
            self.total_outbufs_len += len(CONTINUE)

    # --- deadlines

    def _begin_phase(self) -> None:
        """Start a new phase now, even if it is of the same kind as the last."""
        self.phase = None
        self.since = time.monotonic()

    def current_phase(self) -> Phase:
        if self.is_lingering:
            return Phase.LINGERING
        if self.total_outbufs_len:
            return Phase.SENDING
        if self.requests:
            return Phase.WORKING
        if self.request is not None:
            return Phase.BODY if self.request.admitted else Phase.HEADERS
        return Phase.IDLE if self.has_served else Phase.HEADERS

    def is_overdue(self, now: float) -> bool:
        """Whether the client is too slow in the current phase. Called every TICK."""
        phase = self.current_phase()
        if phase is not self.phase:
            if self.phase is not None:  # otherwise `since` is the start already (`_begin_phase`)
                self.since = now
            self.phase = phase
            self.transferred = 0
        waited = now - self.since
        match phase:
            case Phase.WORKING:
                return False
            case Phase.IDLE:
                return waited > IDLE_SECONDS
            case Phase.HEADERS:
                return waited > HEADER_SECONDS
            case Phase.LINGERING:
                return waited > LINGER_SECONDS
            case Phase.BODY:
                received = 0 if self.request is None else self.request.body_bytes_received
                return received < MIN_BYTES_PER_SECOND * (waited - GRACE_SECONDS)
            case Phase.SENDING:
                return self.transferred < MIN_BYTES_PER_SECOND * (waited - GRACE_SECONDS)

    def hang_up(self) -> None:
        """Close the connection. If a reply can be sent without waiting, send it before."""
        if self.phase is Phase.SENDING:  # waitress would close once it can write, which never happens if nobody reads
            self.handle_close()
            return
        if self.phase in {Phase.HEADERS, Phase.BODY} and self.request is not None:
            self.send(TIMEOUT_REPLY)
        self.will_close = True

    def send(self, data: bytes, do_close: bool = True) -> int:  # noqa: FBT001, FBT002  as waitress calls it
        sent: int = super().send(data, do_close)
        self.transferred += sent
        return sent

    # --- closing

    def handle_write(self) -> None:
        """Send what is buffered. For a refused client, shut down only this direction once the reply is sent.

        The client may still be sending: closing would reset the connection, and the reply would be lost. The connection
        lingers: what comes is thrown away, up to LINGER_BYTES for LINGER_SECONDS.
        """
        if not (self.was_refused and self.close_when_flushed):
            super().handle_write()
            return
        self._flush_exception(self._flush_some)
        if self.will_close:
            self.handle_close()
        elif self.connected and not self.total_outbufs_len:
            self.close_when_flushed = False
            self.is_lingering = True
            self.transferred = 0
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:
                self.handle_close()

    def readable(self) -> bool:
        if self.is_lingering:
            return self.transferred < LINGER_BYTES
        return bool(super().readable())

    def handle_read(self) -> None:
        if self.is_lingering:
            self.transferred += len(self.recv(self.adj.recv_bytes))
        else:
            super().handle_read()

    def del_channel(self, map: dict[int, Any] | None = None) -> None:  # noqa: A002
        self.server.uncount(self)
        super().del_channel(map)


class SharedCounts:
    """The number of connections of each address, in memory that all processes share.

    Each process writes its own column and reads all of them, without locks. A process that replaces a dead one clears
    its column. Addresses whose hashes fall into the same row are counted together.
    """

    ROWS = 8192

    def __init__(self, processes: int) -> None:
        self.cells = memoryview(mmap.mmap(-1, 2 * self.ROWS * processes)).cast("H")
        self.processes = processes

    def clear(self, process: int) -> None:
        for row in range(self.ROWS):
            self.cells[process * self.ROWS + row] = 0

    def add(self, process: int, row: int, count: int) -> None:
        self.cells[process * self.ROWS + row] += count

    def total(self, row: int) -> int:
        return sum(self.cells[process * self.ROWS + row] for process in range(self.processes))


class WebServer(TcpWSGIServer):  # type: ignore[misc]
    """One process's server, on a bound socket that other processes may share."""

    channel_class = ClientConnection
    active_channels: dict[int, ClientConnection]

    def __init__(
        self,
        application: Callable[..., Any],
        gate: Gate,
        sock: socket.socket,
        *,
        counts: SharedCounts,
        process: int = 0,
    ) -> None:
        self.gate = gate
        self.counts, self.process = counts, process
        self.stop_deadline: float | None = None
        self.checked_at = time.monotonic()
        self.pools = {}  # the threads, by whether they serve the API
        for is_api in (True, False):
            self.pools[is_api] = ThreadedTaskDispatcher()
            self.pools[is_api].set_thread_count(THREADS // 2)
        adjustments = Adjustments(
            sockets=[sock],
            ident=None,
            recv_bytes=64 * 1024,
            connection_limit=MAX_CONNECTIONS // counts.processes,
            max_request_header_size=MAX_HEADER_BYTES,
            max_request_body_size=2**62,  # the gate limits bodies
            clear_untrusted_proxy_headers=False,  # the application calls `client_address`
            log_socket_errors=False,
        )
        super().__init__(
            application,
            map={},
            _sock=sock,
            dispatcher=self.pools[False],
            adj=adjustments,
            sockinfo=(sock.family, sock.type, sock.proto, sock.getsockname()),
            bind_socket=False,
        )

    def add_task(self, task: ClientConnection) -> None:
        path = getattr(task.requests[0], "path", "")  # missing if the request can't be parsed
        self.pools[path.startswith(API)].add_task(task)

    # --- who may connect

    def readable(self) -> bool:
        """Whether to accept connections. At the limit, closes one that has no request, to make room for the next."""
        if len(self.active_channels) < self.adj.connection_limit:
            return bool(self.accepting)
        return bool(self.accepting) and self.make_room(self.active_channels.values())

    def handle_accept(self) -> None:
        """Accept a connection and count it.

        If its address has reached the limit, another connection of the address to this process is closed to make room.
        If all of them have requests, the new connection is closed instead.
        """
        try:
            accepted = self.accept()
            if accepted is None:  # another process was faster
                return
            connection, address = accepted
            self.set_socket_options(connection)
        except OSError:  # the client has gone
            return
        row = self.row_of(address[0])
        if row is not None and self.counts.total(row) >= MAX_CONNECTIONS_PER_ADDRESS:
            same_address = [channel for channel in self.active_channels.values() if channel.table_row == row]
            if not self.make_room(same_address):
                connection.close()
                return
        channel = self.channel_class(self, connection, address, self.adj, map=self._map)
        if row is not None:
            channel.table_row = row
            self.counts.add(self.process, row, 1)

    def row_of(self, address: str) -> int | None:
        """The row in SharedCounts for an address. All addresses of an IPv6 /64 network have the same row.

        None for this machine and for trusted proxies, because many people share them.
        """
        address = normalize_address(address)
        if not address or ip_address(address).is_loopback or is_proxy(address):
            return None
        return hash(ip_address(address).packed[:8]) % SharedCounts.ROWS

    def uncount(self, channel: ClientConnection) -> None:
        if channel.table_row is not None:
            self.counts.add(self.process, channel.table_row, -1)
            channel.table_row = None

    def make_room(self, channels: Iterable[ClientConnection]) -> bool:
        """Close that of the connections which has been without a request the longest. False if all have requests."""
        waiting = [channel for channel in channels if channel.current_phase() in {Phase.IDLE, Phase.HEADERS}]
        if not waiting:
            return False
        min(waiting, key=lambda channel: channel.since).handle_close()
        return True

    # --- running

    def run(self) -> None:
        """Serve until `stop` is called, then until pending requests are answered, for at most STOP_SECONDS."""
        while self.stop_deadline is None or (self.active_channels and time.monotonic() < self.stop_deadline):
            wasyncore.loop(timeout=TICK, use_poll=True, map=self._map, count=1)
            now = time.monotonic()
            if now - self.checked_at >= TICK or self.stop_deadline is not None:
                self.check_deadlines(now)
        for pool in self.pools.values():
            pool.set_thread_count(0)
        wasyncore.close_all(self._map, ignore_all=True)

    def check_deadlines(self, now: float) -> None:
        """Close the connections of slow clients and, once the server stops, those without a request."""
        # If this process itself was delayed, clients get that much more time.
        delay = max(0.0, now - self.checked_at - 2 * TICK)
        self.checked_at = now
        is_stopping = self.stop_deadline is not None
        if is_stopping and self.accepting:
            wasyncore.dispatcher.close(self)  # unlike `self.close`, keeps the trigger, by which threads wake this loop
        for channel in list(self.active_channels.values()):
            channel.since += delay
            if channel.is_authenticated:
                self.uncount(channel)
            if channel.is_overdue(now) or (is_stopping and channel.phase in {Phase.IDLE, Phase.HEADERS}):
                channel.hang_up()

    def stop(self) -> None:
        """Accept no more connections, answer pending requests and let `run` return. Safe in a signal handler."""
        if self.stop_deadline is None:
            self.pull_trigger()  # first, because a loop in another thread closes the trigger once the deadline is set
            self.stop_deadline = time.monotonic() + STOP_SECONDS
