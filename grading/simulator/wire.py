"""The simulator on the wire: a threaded HTTP server that speaks the Messages API."""

import datetime as dt
import json
import socket
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from grading.simulator.replies import Mode, Reply, Request, reply

if TYPE_CHECKING:
    from grading.simulator.simulator import Call, Simulator

REQUESTS_PER_MINUTE, INPUT_PER_MINUTE, OUTPUT_PER_MINUTE = 50, 30_000, 8_000


class Server(ThreadingHTTPServer):
    """Answers for one simulator, a thread a connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], sim: "Simulator") -> None:
        self.sim = sim
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # a client that hung up is no news
        pass


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path == "/_state":
            self._send_json(200, self.server.sim.state())
        else:
            self._send_json(404, {"error": "expected /_state"})

    def do_POST(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0]
        if path == "/_script":
            self._script(body)
        elif path in {"/v1/messages", "/v1/messages/count_tokens"}:
            self._judge(path, body)
        else:
            self._send_json(404, {"type": "error", "error": {"type": "not_found_error", "message": f"no {path}"}})

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        return body

    def _script(self, order: Mapping[str, Any]) -> None:
        try:
            self._send_json(200, self.server.sim.apply(order))
        except ValueError as error:
            self._send_json(422, {"error": f"{error}; use one of {', '.join(Mode)}"})

    def _judge(self, path: str, body: Mapping[str, Any]) -> None:
        request = _request(body)
        call, options = self.server.sim.take(path, request, self._api_key())
        time.sleep(float(options.get("delay", 0)))
        if call.mode is Mode.DROP or (call.mode is Mode.HANG and not self.server.sim.wait()):
            self._drop()
            return
        mode = Mode.VERDICT if call.mode is Mode.HANG else call.mode
        if path.endswith("count_tokens") and mode is Mode.VERDICT:
            self._send_json(200, {"input_tokens": request.input_tokens})
            return
        self._send(reply(mode, request, options, call.request_id), call)

    def _api_key(self) -> str:
        """The SDK sends it as a bearer token, older clients as a header of its own."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key", bearer)

    def _drop(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send(self, answer: Reply, call: "Call") -> None:
        headers = {
            "content-type": "application/json",
            "request-id": call.request_id,
            **_limits(self.server.sim),
            **answer.headers,
        }
        self.send_response(answer.status)
        for name, value in {**headers, "content-length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def _send_json(self, status: int, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        pass


def _request(body: Mapping[str, Any]) -> Request:
    system = body.get("system", "")
    schema = body.get("output_config", {}).get("format", {}).get("schema", {})
    return Request(
        model=str(body.get("model", "")),
        system=_text(system),
        user="\n".join(_text(message.get("content", "")) for message in body.get("messages", ())),
        schema=schema,
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)


def _limits(sim: "Simulator") -> dict[str, str]:
    """Headers as the real service sends them, counted over the last minute; the limits are not enforced."""
    now = time.monotonic()
    recent = [call for call in list(sim.calls)[-500:] if now - call.at < 60]  # noqa: PLR2004 - a minute
    reset = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    used = {
        "requests": (REQUESTS_PER_MINUTE, len(recent)),
        "input-tokens": (INPUT_PER_MINUTE, sum(call.request.input_tokens for call in recent)),
        "output-tokens": (OUTPUT_PER_MINUTE, 150 * len(recent)),
    }
    headers: dict[str, str] = {}
    for name, (limit, spent) in used.items():
        headers[f"anthropic-ratelimit-{name}-limit"] = str(limit)
        headers[f"anthropic-ratelimit-{name}-remaining"] = str(max(0, limit - spent))
        headers[f"anthropic-ratelimit-{name}-reset"] = reset
    return headers
