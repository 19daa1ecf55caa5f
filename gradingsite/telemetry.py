"""What logs and traces say of the work that is under way: which request, session, job and attempt it is about.

Logs are lines for people, or JSON with LOG_FORMAT=json. Traces are sent where OTEL_EXPORTER_OTLP_ENDPOINT names a
collector, by OpenTelemetry's SDK (requirements-otel.txt), which nothing imports otherwise.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from pythonjsonlogger.json import JsonFormatter

from grading.plain import visible_text

# Of the GenAI conventions, https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/
EVALUATION = "gen_ai.evaluation.result"
_ids: ContextVar[Mapping[str, str]] = ContextVar("ids", default=MappingProxyType({}))
_tracer: Any = None


class JsonLines(JsonFormatter):
    """A log line as an object: time, level, logger, message, and the ids of what it is about."""

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        super().add_fields(log_data, record, message_dict)
        log_data |= {"level": record.levelname, "logger": record.name, **_ids.get()}


@contextmanager
def about(name: str, **ids: object) -> Iterator[None]:
    """Whatever is logged meanwhile is about these; so is a span of that name, where traces are sent."""
    said = {key: visible_text(str(value), 200) for key, value in ids.items()}
    token = _ids.set({**_ids.get(), **said})
    try:
        if _tracer is None:
            yield
        else:
            attributes = {f"gradingsite.{key}": value for key, value in _ids.get().items()}
            with _tracer.start_as_current_span(name, attributes=attributes):
                yield
    finally:
        _ids.reset(token)


def also(**ids: object) -> None:
    """More that is known now of what is under way."""
    _ids.set({**_ids.get(), **{key: visible_text(str(value), 200) for key, value in ids.items()}})
    if _tracer is not None:
        from opentelemetry import trace

        trace.get_current_span().set_attributes({f"gradingsite.{key}": str(value) for key, value in ids.items()})


def name_requests(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: gives each request an id, which its reply has too (X-Request-Id)."""

    def answer(request: HttpRequest) -> HttpResponse:
        name = uuid.uuid4().hex[:16]
        with about(f"{request.method}", request=name):
            response = get_response(request)
        response.headers["X-Request-Id"] = name
        return response

    return answer


def evaluated(*, session: str, name: str, value: float | None, label: str, why: str) -> None:
    """Publish a grade as an evaluation of the session, as the conventions for generative AI have it."""
    if _tracer is None:
        return
    found: dict[str, Any] = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.label": label}
    found |= {"gen_ai.conversation.id": session, "gen_ai.evaluation.explanation": visible_text(why, 500)}
    if value is not None:
        found["gen_ai.evaluation.score.value"] = value
    with _tracer.start_as_current_span("grade") as span:
        span.add_event(EVALUATION, attributes=found)


def start(program: str) -> None:
    """Begin to send traces, after the process was forked, where a collector is named. Raises ImportError where that is
    so and the SDK is missing: pip install -r requirements-otel.txt.
    """
    global _tracer  # noqa: PLW0603 - a process has one
    if not settings.OTEL_ENDPOINT or _tracer is not None:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": f"gradingsite-{program}"}))
    exporter = OTLPSpanExporter(endpoint=f"{settings.OTEL_ENDPOINT.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _tracer = provider.get_tracer("gradingsite")
