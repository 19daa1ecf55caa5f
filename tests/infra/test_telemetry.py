"""Logs as JSON with the ids of what they are about, and traces at a collector: both only by setting."""

import json
import logging
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gradingsite import telemetry
from tests.casts.notice import serving

COLLECTED = """
import django; django.setup()
from gradingsite import telemetry
telemetry.start("tests")
with telemetry.about("judge", job=7, session="s1"):
    telemetry.also(attempt=9)
telemetry.evaluated(session="s1", name="reward", value=0.5, label="judge", why="well done")
telemetry._tracer.span_processor.force_flush()
"""
UNASKED = """
import sys, django; django.setup()
from gradingsite import telemetry
telemetry.start("tests")
with telemetry.about("judge", job=7):
    telemetry.evaluated(session="s1", name="reward", value=0.5, label="judge", why="")
print([name for name in sys.modules if name.startswith("opentelemetry.exporter")])
"""


class Collector(ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Collected)
        self.bodies = []


class Collected(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_said):
        """Not into the tests' output."""


def run(code, **environment):
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "gradingsite.settings", **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


def line(said):
    record = logging.LogRecord("grading", logging.WARNING, "x.py", 1, said, (), None)
    return json.loads(telemetry.JsonLines("%(message)s", timestamp="time").format(record))


@pytest.mark.pure
def test_a_line_says_what_it_is_about_and_only_while_it_is():
    with telemetry.about("judge", job=7, session="a\nb"):
        telemetry.also(attempt=9)
        said = line("it is late")
    assert (said["job"], said["session"], said["attempt"]) == ("7", "a⟨U+000A⟩b", "9")
    assert (said["level"], said["logger"], said["message"]) == ("WARNING", "grading", "it is late")
    assert said["time"]
    assert "job" not in line("later")


@pytest.mark.pure
def test_threads_do_not_speak_of_each_others_work():
    found = []
    with telemetry.about("judge", job=7):
        thread = threading.Thread(target=lambda: found.append(line("other")))
        thread.start()
        thread.join()
    assert "job" not in found[0]


@pytest.mark.django_db
def test_every_reply_names_its_request(client):
    first, second = (client.get("/healthz/live")["X-Request-Id"] for _ in range(2))
    assert first != second


def test_traces_and_grades_arrive_at_the_collector():
    pytest.importorskip("opentelemetry.sdk")
    with serving(Collector()) as server:
        run(COLLECTED, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{server.server_port}")
    assert {path for path, _body in server.bodies} == {"/v1/traces"}
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    text = ""
    for _path, body in server.bodies:
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        text += str(request)
    for word in ("gradingsite-tests", "gradingsite.attempt", "gen_ai.evaluation.result", "gen_ai.evaluation.score"):
        assert word in text


def test_no_exporter_is_loaded_unless_a_collector_is_named():
    assert run(UNASKED).stdout.strip() == "[]"
