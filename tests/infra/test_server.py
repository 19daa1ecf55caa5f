"""The web server over real sockets, with an application of a few lines behind it: HTTP, deadlines, limits."""

import re
import socket
import threading
import time

import pytest

from gradingsite import server as web_server
from gradingsite.server import EarlyReply, SharedCounts, WebServer
from tests.processes import wait_for

pytestmark = pytest.mark.pure

REFUSED = EarlyReply(status="401 Unauthorized", headers=[("Content-Type", "text/plain")], body=b"who are you?")


def application(environ, start_response):
    """Says what came; /slow takes a second, /large replies with 4 MB."""
    body = environ["wsgi.input"].read()
    said = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {len(body)} {environ['gradingsite.admitted']}".encode()
    if environ["PATH_INFO"].endswith("/slow"):
        time.sleep(1)
    if environ["PATH_INFO"] == "/large":
        said = b"x" * 4_000_000
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(said)))])
    return [said]


def gate(environ):
    return None if environ.get("HTTP_AUTHORIZATION") == "Bearer good" else REFUSED


class Site:
    """A server in a thread of its own; `connect` gives a client."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = self.socket.getsockname()
        self.server = WebServer(application, gate, self.socket, counts=SharedCounts(1))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        self.clients = []

    def connect(self, data=b""):
        client = socket.create_connection(self.address, timeout=20)
        self.clients.append(client)
        client.sendall(data)
        return client

    def ask(self, data):
        return everything(self.connect(data))

    def end(self):
        for client in self.clients:
            client.close()
        self.server.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture
def site():
    running = Site()
    yield running
    running.end()


def everything(client):
    """What comes until the server closes."""
    found = b""
    try:
        while data := client.recv(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


def await_reply(client):
    """Returns once all of a reply is there."""
    found = b""
    while b"False" not in found:
        found += client.recv(1000)


def upload(who="good", length=5, more=b""):
    head = f"POST /api/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {who}\r\nContent-Length: {length}\r\n"
    return head.encode() + more + b"\r\n"


GET = b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def replies(data):
    """The bodies of replies with a Content-Length, in order."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        size = int(re.search(rb"Content-Length: (\d+)", head)[1])
        found.append(rest[:size])
        data = rest[size:]
    return found


def test_requests_sent_at_once_are_answered_in_order_bodies_included(site):
    said = site.ask(GET + upload() + b"hello" + GET + LAST)
    assert replies(said) == [b"GET /page 0 False", b"POST /api/x 5 True", b"GET /page 0 False", b"GET /last 0 False"]


def test_a_request_that_comes_byte_by_byte_is_one(site):
    client = site.connect()
    for byte in upload(more=b"Connection: close\r\n") + b"hello":
        client.sendall(bytes([byte]))
    assert replies(everything(client)) == [b"POST /api/x 5 True"]


def test_a_body_is_refused_before_any_of_it_is_sent_and_the_connection_closed(site):
    said = site.ask(upload("bad", length=200_000_000))
    assert said.startswith(b"HTTP/1.1 401 Unauthorized")
    assert b"Connection: close" in said
    assert replies(said) == [b"who are you?"]


def test_a_client_that_is_still_sending_gets_its_refusal(site):
    client = site.connect(upload("bad", length=200_000) + b"x" * 100_000)
    time.sleep(0.2)
    client.sendall(b"x" * 100_000)
    assert replies(everything(client)) == [b"who are you?"]


def test_continue_is_said_to_those_who_may_send_and_to_no_other(site):
    client = site.connect(upload(more=b"Expect: 100-continue\r\nConnection: close\r\n"))
    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"hello")
    assert replies(everything(client)) == [b"POST /api/x 5 True"]
    assert site.ask(upload("bad", more=b"Expect: 100-continue\r\n")).startswith(b"HTTP/1.1 401")


def test_a_chunked_body_is_the_gates_to_refuse_and_else_read(site):
    head = b"POST /api/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    chunks = b"\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    assert site.ask(head + chunks).startswith(b"HTTP/1.1 401")
    assert replies(site.ask(head + b"Authorization: Bearer good\r\n" + chunks)) == [b"POST /api/x 5 True"]


@pytest.mark.parametrize(
    "lengths",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: -5",
        "Content-Length: " + "9" * 5000,
        "Transfer-Encoding: gzip, chunked",
    ],
)
def test_a_body_of_two_lengths_or_an_impossible_one_is_refused(site, lengths):
    request = f"POST /api/x HTTP/1.1\r\nAuthorization: Bearer good\r\n{lengths}\r\n\r\n0\r\n\r\n".encode()
    assert re.match(rb"HTTP/1.\d (400|501)", site.ask(request + GET))


def test_a_length_that_the_older_http_does_not_know_is_refused(site):
    head = b"POST /api/x HTTP/1.0\r\nAuthorization: Bearer good\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert site.ask(head + b"5\r\nhello\r\n0\r\n\r\n").startswith(b"HTTP/1.0 400")


def test_a_reply_to_head_has_no_body(site):
    said = site.ask(b"HEAD /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert said.endswith(b"\r\n\r\n")


def test_headers_beyond_the_limit_are_refused(site):
    assert site.ask(b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000 + b"\r\n\r\n").startswith(b"HTTP/1.0 431")


def test_a_client_cannot_say_of_itself_that_it_was_let_in(site):
    said = site.ask(b"GET /page HTTP/1.1\r\nGradingsite.admitted: yes\r\nConnection: close\r\n\r\n")
    assert replies(said) == [b"GET /page 0 False"]


def test_a_gate_that_fails_lets_nobody_in(site, monkeypatch, caplog):
    def broken(environ):
        raise RuntimeError("no database")

    monkeypatch.setattr(site.server, "gate", broken)
    assert site.ask(upload()).startswith(b"HTTP/1.1 500")
    assert "the gate failed" in caplog.text


# --- deadlines


@pytest.fixture
def hasty(monkeypatch):
    """The same in a hurry: half a second for headers, no grace for bodies and replies."""
    for name, value in {"HEADER_SECONDS": 0.5, "GRACE_SECONDS": 0.5, "IDLE_SECONDS": 1.5, "TICK": 0.1}.items():
        monkeypatch.setattr(web_server, name, value)
    running = Site()
    yield running
    running.end()


def seconds_until_closed(client, trickle=b"", limit=15.0):
    """How long the server bears it; sends a byte of `trickle` every tenth of a second meanwhile."""
    began = time.monotonic()
    client.settimeout(0.1)
    pieces = iter(trickle)
    while time.monotonic() - began < limit:
        try:
            if not client.recv(1000):
                return time.monotonic() - began
        except TimeoutError:
            pass
        except OSError:
            return time.monotonic() - began
        try:
            client.sendall(bytes([piece]) if (piece := next(pieces, None)) is not None else b"")
        except OSError:
            return time.monotonic() - began
    return limit


def test_headers_have_a_total_deadline_however_steadily_they_trickle(hasty):
    assert seconds_until_closed(hasty.connect(b"GET /page HTTP/1.1\r\n"), b"X: " + b"x" * 200) < 3
    assert seconds_until_closed(hasty.connect()) < 3


def test_empty_lines_do_not_wind_the_clock_back(hasty):
    assert seconds_until_closed(hasty.connect(), b"\r\n" * 100) < 3


def test_a_connection_that_has_asked_may_wait_longer(hasty):
    client = hasty.connect(GET)
    await_reply(client)
    assert 1 < seconds_until_closed(client) < 5


def test_a_body_below_the_slowest_pace_is_cut_off_with_a_word(hasty):
    client = hasty.connect(upload(length=100_000) + b"x" * 1000)
    assert b"408 Request Timeout" in everything(client)


def test_a_body_above_the_slowest_pace_may_take_its_time(hasty):
    client = hasty.connect(upload(length=60_000, more=b"Connection: close\r\n"))
    for _ in range(20):
        client.sendall(b"x" * 3000)
        time.sleep(0.1)
    assert replies(everything(client)) == [b"POST /api/x 60000 True"]


def test_who_does_not_read_the_reply_is_cut_off(hasty):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(hasty.address)
    hasty.clients.append(client)
    client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
    wait_for(lambda: hasty.server.active_channels)
    deadline = time.monotonic() + 60  # a machine that keeps the server waiting is held against nobody
    while hasty.server.active_channels:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_the_server_was_late_itself_is_held_against_nobody(hasty, monkeypatch):
    monkeypatch.setattr(web_server, "HEADER_SECONDS", 20)
    client = hasty.connect(GET[:-2])
    time.sleep(0.2)
    channel = next(iter(hasty.server.active_channels.values()))
    hasty.server.checked_at -= 100
    channel.since -= 100
    time.sleep(0.2)
    client.sendall(b"Connection: close\r\n\r\n")
    assert replies(everything(client)) == [b"GET /page 0 False"]


# --- limits


def test_one_address_has_so_many_connections_and_the_idlest_goes_first(monkeypatch):
    monkeypatch.setattr(WebServer, "row_of", lambda self, address: 7)
    site = Site()
    try:
        first = site.connect(GET)
        await_reply(first)
        waiting = [site.connect(GET[:-2]) for _ in range(60)]
        time.sleep(0.3)
        assert len(site.server.active_channels) == web_server.MAX_CONNECTIONS_PER_ADDRESS
        assert first.recv(1000) == b""
        assert replies(site.ask(LAST)) == [b"GET /last 0 False"]
        waiting[-1].sendall(b"\r\n")
        assert waiting[-1].recv(1000).startswith(b"HTTP/1.1 200")
    finally:
        site.end()
    assert site.server.counts.total(7) == 0


def test_connections_that_brought_a_live_token_do_not_count(monkeypatch):
    monkeypatch.setattr(WebServer, "row_of", lambda self, address: 7)
    monkeypatch.setattr(web_server, "TICK", 0.1)
    site = Site()
    try:
        uploads = [site.connect(upload(length=10_000)) for _ in range(20)]
        time.sleep(1)
        uploads += [site.connect(upload(length=10_000)) for _ in range(20)]
        time.sleep(1)
        assert len(site.server.active_channels) == 40
        assert site.server.counts.total(7) == 0
    finally:
        site.end()


def test_the_machine_itself_and_trusted_proxies_are_not_counted_and_networks_of_ipv6_are_one(site, settings):
    settings.TRUSTED_PROXIES = ["10.0.0.0/8", "2001:db8:1::7/128"]
    row = site.server.row_of
    for many in ("127.0.0.1", "::1", "10.1.2.3", "::ffff:10.1.2.3", "2001:db8:1::7", ""):
        assert row(many) is None
    assert row("2001:db8:2::1") == row("2001:db8:2::ffff:2") is not None
    assert row("192.0.2.1") is not None


def test_pages_answer_while_the_api_is_busy(site):
    for _ in range(12):
        site.connect(b"GET /api/slow HTTP/1.1\r\nHost: x\r\n\r\n")
    time.sleep(0.1)
    began = time.monotonic()
    assert replies(site.ask(LAST)) == [b"GET /last 0 False"]
    assert time.monotonic() - began < 0.5


# --- the end


def test_stopping_answers_what_is_under_way_and_closes_the_rest(site):
    idle = site.connect(GET)
    await_reply(idle)
    busy = site.connect(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
    time.sleep(0.3)
    began = time.monotonic()
    site.server.stop()
    assert replies(everything(busy)) == [b"GET /slow 0 False"]
    assert everything(idle) == b""
    site.thread.join(5)
    assert time.monotonic() - began < 3
