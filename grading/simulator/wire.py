"""The simulator's HTTP server: the Messages API and the Message Batches API."""

import json
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from grading.simulator import tokens
from grading.simulator.replies import MessagesRequest, Mode, Reply, reply, trouble

if TYPE_CHECKING:
    from grading.simulator.simulator import Simulator

BATCHES = "/v1/messages/batches"
NO_REQUEST = MessagesRequest(model="", system="", user="", schema={}, input_tokens=0)


class Server(ThreadingHTTPServer):
    """The server of one simulator, with a thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], sim: "Simulator") -> None:
        self.sim = sim
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # clients hang up
        pass


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/_state":
            self._send_json(200, self.server.sim.state())
        elif path == "/_calls":
            after = int(dict(parse_qsl(urlsplit(self.path).query)).get("after", 0))
            self._send_json(200, [asdict(call) for call in self.server.sim.calls[after:]])
        elif path == BATCHES or path.startswith(f"{BATCHES}/"):
            self._batches(path, {})
        else:
            self._send(trouble(404, "not_found_error", f"no {path}"))

    def do_POST(self) -> None:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = urlsplit(self.path).path
        if path == "/_script":
            try:
                self._send_json(200, self.server.sim.apply(body))
            except ValueError as error:
                self._send_json(422, {"error": f"{error}; the modes are {', '.join(Mode)}"})
        elif path in {"/v1/messages", "/v1/messages/count_tokens"}:
            self._judge(path, body)
        elif path == BATCHES or path.startswith(f"{BATCHES}/"):
            self._batches(path, body)
        else:
            self._send(trouble(404, "not_found_error", f"no {path}"))

    def _judge(self, path: str, body: Mapping[str, Any]) -> None:
        sim, request = self.server.sim, _request(body)
        released = sim.released
        call, call_step = sim.record_call(path, request, self._api_key())
        time.sleep(sim.reply_seconds(call, call_step))
        mode = self._mode_of_reply(call.mode, released)
        if mode is None:
            return
        if path.endswith("count_tokens") and mode is Mode.VERDICT:
            answer = _json_reply(200, {"input_tokens": request.input_tokens})
        else:
            answer = reply(mode, request, call_step, call.request_id)
        self._send(answer, {"request-id": call.request_id, **sim.count_reply(call, answer)})

    def _batches(self, path: str, body: Mapping[str, Any]) -> None:
        sim = self.server.sim
        released = sim.released
        call_step = sim.batches.record_call(f"{self.command} {path}", Mode(sim.mode))
        time.sleep(float(call_step.get("delay", 0)))
        mode = self._mode_of_reply(call_step["mode"], released)
        if mode is None:
            return
        request_id, key = f"req_simbatch{len(sim.batches.calls):05d}", self._api_key()
        if mode is not Mode.VERDICT:
            answer = reply(mode, NO_REQUEST, call_step, request_id)
        elif path == BATCHES and self.command == "POST":
            requests = [(str(item["custom_id"]), _request(item["params"])) for item in body.get("requests", ())]
            answer = sim.batches.create(requests, key, sim.url)
        elif path == BATCHES:
            answer = sim.batches.list_page(key, dict(parse_qsl(urlsplit(self.path).query)), sim.url)
        else:
            batch_id, _, verb = path.removeprefix(f"{BATCHES}/").partition("/")
            answer = sim.batches.handle(batch_id, f"{self.command} {verb}".strip(), key, sim.url)
        self._send(answer, {"request-id": request_id})

    def _mode_of_reply(self, mode: Mode, released: threading.Event) -> Mode | None:
        """The mode of the reply. Waits until a hanging call is released.

        None if there is no reply; then the connection is closed.
        """
        if mode is Mode.DROP or (mode is Mode.HANG and not self.server.sim.wait(released)):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        return Mode.VERDICT if mode is Mode.HANG else mode

    def _api_key(self) -> str:
        """The API key: a bearer token from the SDK, the header x-api-key from older clients."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key", bearer)

    def _send_json(self, status: int, body: Mapping[str, Any] | list[dict[str, Any]]) -> None:
        self._send(_json_reply(status, body))

    def _send(self, answer: Reply, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(answer.status)
        all_headers = {"content-type": "application/json", **(headers or {}), **answer.headers}
        for name, value in {**all_headers, "content-length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        pass


def _json_reply(status: int, body: Mapping[str, Any] | list[dict[str, Any]]) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode())


def _request(body: Mapping[str, Any]) -> MessagesRequest:
    """The request in a call's body. Its tokens are counted over the texts and the schema."""
    system = _text(body.get("system", ""))
    schema = body.get("output_config", {}).get("format", {}).get("schema", {})
    user = "\n".join(_text(message.get("content", "")) for message in body.get("messages", ()))
    counted = sum(tokens.count(text) for text in (system, user, json.dumps(schema) if schema else ""))
    return MessagesRequest(
        model=str(body.get("model", "")), system=system, user=user, schema=schema, input_tokens=12 + counted
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)
