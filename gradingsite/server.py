"""The web server: waitress, with deadlines for slow clients and a gate that is asked before a body is read.

One thread (`WebServer.run`) reads and writes all connections, so that a client that takes its time costs a connection,
and no thread. A request whose headers are complete goes to a thread. If it has a body, the gate is asked first: what it
refuses is answered there and then, and its body is never read. Half of the threads are the API's, so that pages answer
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

from gradingsite.clients import is_proxy, usual

logger = logging.getLogger(__name__)

Environ = dict[str, Any]

API = "/api/"
THREADS = 8  # of one process
CONNECTIONS = 1000  # of all processes
CONNECTIONS_EACH = 32  # of one address, in all processes
LARGEST_HEADERS = 32 * 1024
HEADER_SECONDS = 10.0  # from the first byte (of a new connection: from its beginning) to the end of the headers
IDLE_SECONDS = 60.0  # between two requests
SLOWEST = 8_000.0  # bytes a second, of a body that comes or a reply that goes
GRACE_SECONDS = 10.0  # before a body's or a reply's pace counts
LINGER_SECONDS, LINGER_BYTES = 2.0, 256 * 1024  # what a refused client may still send before it is cut off
STOP_SECONDS = 5.0  # for what is under way when the server is to end
TICK = 0.5  # seconds between two looks at the deadlines
TOO_SLOW = b"The request came too slowly. Send it again over a faster connection.\n"
SAID_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
    % (len(TOO_SLOW), TOO_SLOW)
)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# The key under which the application finds whether the gate let a request's body in. No client can set it.
ADMITTED = "gradingsite.admitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyReply:
    """A reply instead of reading a request's body. `status` as it goes out, such as "413 Content Too Large"."""

    status: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    def to_response(self, _ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        """What waitress asks of whatever is wrong with a request."""
        return self.status, list(self.headers), self.body


# Asked, in a thread, about a request with a body, once its headers are there. Of the API's it lets in those alone that
# brought a live token.
Gate = Callable[[Environ], "EarlyReply | None"]


class Phase(Enum):
    """What a connection is doing, and so which deadline it has."""

    IDLE = auto()
    HEADERS = auto()
    BODY = auto()
    WORKING = auto()
    SENDING = auto()
    LINGERING = auto()


class RequestParser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """A request as it comes in. `admitted`: the gate lets its body in."""

    admitted = False

    def parse_header(self, header_plus: bytes) -> None:
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # a length of thousands of digits
            raise ParsingError("Content-Length is invalid") from error
        # Two lengths, or one that HTTP/1.0 does not know: another server on the way may read another request.
        if (self.chunked and "CONTENT_LENGTH" in self.headers) or "TRANSFER_ENCODING" in self.headers:
            raise ParsingError("A body has one length: Content-Length, or Transfer-Encoding of HTTP/1.1")

    @property
    def awaits_the_gate(self) -> bool:
        has_body = self.chunked or self.content_length > 0
        return self.headers_finished and has_body and not self.admitted and self.error is None


class Task(WSGITask):  # type: ignore[misc]
    """A reply of the application. One to HEAD has no body, whatever the application gives."""

    logged_write_no_body = True

    @property
    def has_body(self) -> bool:
        return bool(super().has_body) and self.request.command != "HEAD"

    def get_environment(self) -> Environ:
        environ: Environ = super().get_environment()
        environ[ADMITTED] = self.request.admitted
        return environ


class ClientConnection(HTTPChannel):  # type: ignore[misc]
    """One connection: one request at a time, the bytes behind it held until it is answered."""

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
        self.held = b""
        self.has_served = False
        self.is_known = False  # it has sent a live token
        self.was_refused = False
        self.lingers = False
        self.phase: Phase | None = None
        self.since = time.monotonic()
        self.moved = 0  # bytes that went out, or of refused ones that came in, in this phase
        self.counted: int | None = None
        super().__init__(server, sock, addr, adj, map=map)

    # --- reading, mostly in the server's thread

    def received(self, data: bytes) -> bool:
        with self.requests_lock:
            if self.will_close or self.close_when_flushed:
                return False
            self.held += data
            while self.held and not self.requests:
                request = self.request = self.request or self.parser_class(self.adj)
                self.held = self.held[request.received(self.held) :]
                if request.completed or request.awaits_the_gate:
                    self.request = None
                    if not request.empty:
                        self.requests.append(request)
                        self.server.add_task(self)
        return True

    def service(self) -> None:
        """In a thread: answer the request in hand; or, where that has a body to come, ask whether to read it."""
        request = self.requests[0]
        if request.awaits_the_gate:
            try:
                request.error = self.server.gate(self.task_class(self, request).get_environment())
            except Exception:
                logger.exception("the gate failed")
                request.error = InternalServerError("The server cannot look at the request")
            if request.error is None:
                self._read_body(request)
                return
        self.was_refused = request.error is not None
        super().service()
        self.has_served = True
        self._begin_phase()
        self.received(b"")

    def _read_body(self, request: RequestParser) -> None:
        with self.requests_lock:
            self.requests.pop(0)
            self.request, request.admitted = request, True
            self.is_known |= request.path.startswith(API)
            self._begin_phase()
            if request.expect_continue and not self.held:
                with self.outbuf_lock:
                    self.outbufs[-1].append(CONTINUE)
                    self.current_outbuf_count += len(CONTINUE)
                    self.total_outbufs_len += len(CONTINUE)
        self.received(b"")
        self.server.pull_trigger()

    # --- deadlines

    def _begin_phase(self) -> None:
        """Whatever it is doing next, it begins now, also where it did the same before."""
        self.phase, self.since = None, time.monotonic()

    def doing(self) -> Phase:
        if self.lingers:
            return Phase.LINGERING
        if self.total_outbufs_len:
            return Phase.SENDING
        if self.requests:
            return Phase.WORKING
        if self.request is not None:
            return Phase.BODY if self.request.admitted else Phase.HEADERS
        return Phase.IDLE if self.has_served else Phase.HEADERS

    def is_overdue(self, now: float) -> bool:
        """Whether the client takes longer than it may for what it is doing. Looked at every TICK."""
        doing = self.doing()
        if doing is not self.phase:
            if self.phase is not None:
                self.since = now
            self.phase, self.moved = doing, 0
        waited = now - self.since
        match doing:
            case Phase.WORKING:
                return False
            case Phase.IDLE:
                return waited > IDLE_SECONDS
            case Phase.HEADERS:
                return waited > HEADER_SECONDS
            case Phase.LINGERING:
                return waited > LINGER_SECONDS
            case Phase.BODY:
                came = 0 if self.request is None else self.request.body_bytes_received
                return came < SLOWEST * (waited - GRACE_SECONDS)
            case Phase.SENDING:
                return self.moved < SLOWEST * (waited - GRACE_SECONDS)

    def hang_up(self) -> None:
        """Close, with a word where one can be said without waiting."""
        if self.phase is Phase.SENDING:  # waitress closes once it can write, and to who does not read it never can
            self.handle_close()
            return
        if self.phase in {Phase.HEADERS, Phase.BODY} and self.request is not None:
            self.send(SAID_TOO_SLOW)
        self.will_close = True

    def send(self, data: bytes, do_close: bool = True) -> int:  # noqa: FBT001, FBT002  as waitress calls it
        sent: int = super().send(data, do_close)
        self.moved += sent
        return sent

    # --- closing

    def handle_write(self) -> None:
        """A refused client may still be sending. To close on it would reset the connection, and the reply with it."""
        if not (self.was_refused and self.close_when_flushed):
            super().handle_write()
            return
        self._flush_exception(self._flush_some)
        if self.will_close:
            self.handle_close()
        elif self.connected and not self.total_outbufs_len:
            self.close_when_flushed, self.lingers, self.moved = False, True, 0
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:
                self.handle_close()

    def readable(self) -> bool:
        if self.lingers:
            return self.moved < LINGER_BYTES
        return bool(super().readable())

    def handle_read(self) -> None:
        if self.lingers:
            self.moved += len(self.recv(self.adj.recv_bytes))
        else:
            super().handle_read()

    def del_channel(self, map: dict[int, Any] | None = None) -> None:  # noqa: A002
        self.server.uncount(self)
        super().del_channel(map)


class SharedCounts:
    """How many connections each address has, in a table of memory that all processes share.

    Each process writes a column of its own and reads all, so that none waits for another; who is to take the place of
    one that died clears its column. Addresses that fall into the same of the many rows are counted together.
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
    """One process's server on a socket that is bound already and may be shared with other processes."""

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
        self.stops_by: float | None = None
        self.looked = time.monotonic()
        self.lanes = {}
        for lane in (True, False):
            self.lanes[lane] = ThreadedTaskDispatcher()
            self.lanes[lane].set_thread_count(THREADS // 2)
        adjustments = Adjustments(
            sockets=[sock],
            ident=None,
            recv_bytes=64 * 1024,
            connection_limit=CONNECTIONS // counts.processes,
            max_request_header_size=LARGEST_HEADERS,
            max_request_body_size=2**62,  # what a body may be, the gate says
            clear_untrusted_proxy_headers=False,  # the application asks `client_address`
            log_socket_errors=False,
        )
        super().__init__(
            application,
            map={},
            _sock=sock,
            dispatcher=self.lanes[False],
            adj=adjustments,
            sockinfo=(sock.family, sock.type, sock.proto, sock.getsockname()),
            bind_socket=False,
        )

    def add_task(self, task: ClientConnection) -> None:
        # What cannot be parsed has no path.
        self.lanes[getattr(task.requests[0], "path", "").startswith(API)].add_task(task)

    # --- who may connect

    def readable(self) -> bool:
        if len(self.active_channels) < self.adj.connection_limit:
            return bool(self.accepting)
        return bool(self.accepting) and self.make_room(self.active_channels.values())

    def handle_accept(self) -> None:
        try:
            accepted = self.accept()
            if accepted is None:  # another process was faster
                return
            connection, address = accepted
            self.set_socket_options(connection)
        except OSError:  # it is gone already
            return
        row = self.row_of(address[0])
        if row is not None and self.counts.total(row) >= CONNECTIONS_EACH:
            same = [channel for channel in self.active_channels.values() if channel.counted == row]
            if not self.make_room(same):
                connection.close()
                return
        channel = self.channel_class(self, connection, address, self.adj, map=self._map)
        if row is not None:
            channel.counted = row
            self.counts.add(self.process, row, 1)

    def row_of(self, address: str) -> int | None:
        """Where connections of this address are counted: an IPv6 network of 64 bits is one.

        None for the machine itself and for trusted proxies: many people may be behind them.
        """
        known = usual(address)
        if not known or ip_address(known).is_loopback or is_proxy(known):
            return None
        return hash(ip_address(known).packed[:8]) % SharedCounts.ROWS

    def uncount(self, channel: ClientConnection) -> None:
        if channel.counted is not None:
            self.counts.add(self.process, channel.counted, -1)
            channel.counted = None

    def make_room(self, channels: Iterable[ClientConnection]) -> bool:
        """Close, of these, the connection that has asked for nothing for longest; False where all ask for something."""
        waiting = [each for each in channels if each.doing() in {Phase.IDLE, Phase.HEADERS}]
        if not waiting:
            return False
        min(waiting, key=lambda each: each.since).handle_close()
        return True

    # --- running

    def run(self) -> None:
        """Serve until `stop`, and then until everything under way is answered, for STOP_SECONDS at most."""
        while self.stops_by is None or (self.active_channels and time.monotonic() < self.stops_by):
            wasyncore.loop(timeout=TICK, use_poll=True, map=self._map, count=1)
            now = time.monotonic()
            if now - self.looked >= TICK or self.stops_by is not None:
                self.look(now)
        for lane in self.lanes.values():
            lane.set_thread_count(0)
        wasyncore.close_all(self._map, ignore_all=True)

    def look(self, now: float) -> None:
        """Close the connections whose client is too slow, and those that ask for nothing when the server is to end."""
        # What this process was late itself is held against nobody.
        late, self.looked = max(0.0, now - self.looked - 2 * TICK), now
        stops = self.stops_by is not None
        if stops and self.accepting:
            wasyncore.dispatcher.close(self)
        for channel in list(self.active_channels.values()):
            channel.since += late
            if channel.is_known:
                self.uncount(channel)
            if channel.is_overdue(now) or (stops and channel.phase in {Phase.IDLE, Phase.HEADERS}):
                channel.hang_up()

    def stop(self) -> None:
        """Take no more connections, answer what is under way, and let `run` return. May be called by a signal."""
        if self.stops_by is None:
            self.pull_trigger()  # first: a loop in another thread closes the trigger as soon as it is to stop
            self.stops_by = time.monotonic() + STOP_SECONDS
