"""Where notices go during a drill."""

import datetime as dt
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from django.utils import timezone


@dataclass(frozen=True, slots=True)
class Told:
    """That an alarm of this rule was opened, and when that was heard."""

    rule: str
    opened_at: dt.datetime
    at: dt.datetime


class Listener(HTTPServer):
    """A webhook at this port of the machine itself, until `close`."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), HeardNotice)
        self.heard: list[Told] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def first(self, rule: str, since: dt.datetime) -> dt.datetime | None:
        """When an alarm of the rule that was opened since then was first told; None where none was."""
        second = since.replace(microsecond=0)  # notices know no parts of one
        return next((told.at for told in self.heard if told.rule == rule and told.opened_at >= second), None)

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class HeardNotice(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if said["about"] == "opened":
            opened_at = dt.datetime.fromisoformat(said["opened_at"])
            self.server.heard.append(Told(said["rule"], opened_at, timezone.now()))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_said: Any) -> None:
        """Not between the drill's own lines."""
