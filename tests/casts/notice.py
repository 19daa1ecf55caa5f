"""The other side of notices: a mail server and a web server, small and real, on ports of their own."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOCAL = "127.0.0.1"


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks as much SMTP as is needed; keeps the messages. `answers` gives other replies by command."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self) -> None:
        super().__init__((LOCAL, 0), _Mail)
        self.messages: list[str] = []
        self.recipients: list[str] = []
        self.answers: dict[str, str] = {}


class _Mail(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self.say("220 mail.test")
        while line := self.rfile.readline().decode().strip():
            command = line.split()[0].upper()
            if command == "RCPT":
                self.server.recipients.append(line.partition("<")[2].partition(">")[0])
            if command == "DATA" and "DATA" not in self.server.answers:
                self.say("354 go on")
                self.server.messages.append(self.message())
            self.say(self.server.answers.get(command, "221 bye" if command == "QUIT" else "250 ok"))
            if command == "QUIT":
                return

    def message(self) -> str:
        lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
        return "\n".join(lines)

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class WebServer(ThreadingHTTPServer):
    """Takes posts (and gets) and keeps them as (path, headers, body). `statuses` are the next answers; then 204."""

    def __init__(self) -> None:
        super().__init__((LOCAL, 0), _Web)
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.location = "/elsewhere"

    @property
    def url(self) -> str:
        return f"http://{LOCAL}:{self.server_port}/hooks/t0ken"


class _Web(BaseHTTPRequestHandler):
    server: WebServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.posts.append((self.path, dict(self.headers), body))
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", self.server.location)
        self.end_headers()

    do_GET = do_POST  # noqa: N815 - the name that http.server asks for

    def log_message(self, *_said) -> None:
        """Not into the tests' output."""


@contextmanager
def serving(server) -> Iterator:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
