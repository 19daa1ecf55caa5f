"""Logs and traces, which name the request, session, job and attempt that they are about.

Logs are lines for people, or JSON with LOG_FORMAT=json. Traces are sent if OTEL_EXPORTER_OTLP_ENDPOINT names a
collector, by OpenTelemetry's SDK (requirements-otel.txt), which is imported only then.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from django.conf import settings
from pythonjsonlogger.json import JsonFormatter

from grading.plain import visible_text

# From the GenAI conventions, https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/
EVALUATION = "gen_ai.evaluation.result"
_ids: ContextVar[Mapping[str, str]] = ContextVar("ids", default=MappingProxyType({}))
_tracer: Any = None


class LineFormatter(logging.Formatter):
    """Log lines for a terminal, which must not obey control characters in a name that an agent chose."""

    def format(self, record: logging.LogRecord) -> str:
        return visible_text(super().format(record), lines=True)


class JsonLines(JsonFormatter):
    """Log lines as objects: time, level, logger, message, and the current ids."""

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        super().add_fields(log_data, record, message_dict)
        host = {"host": settings.HOST_NAME} if settings.HOST_NAME else {}
        log_data |= {"level": record.levelname, "logger": record.name, **host, **_ids.get()}


@contextmanager
def about(name: str, **ids: object) -> Iterator[None]:
    """Add these ids to the log lines within the block. If traces are sent, the block is a span called `name`."""
    texts = {key: visible_text(str(value), 200) for key, value in ids.items()}
    token = _ids.set({**_ids.get(), **texts})
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
    """Add ids to the block of `about` that is running."""
    texts = {key: visible_text(str(value), 200) for key, value in ids.items()}
    _ids.set({**_ids.get(), **texts})
    if _tracer is not None:
        from opentelemetry import trace

        trace.get_current_span().set_attributes({f"gradingsite.{key}": text for key, text in texts.items()})


def evaluated(*, session: str, name: str, value: float | None, label: str, why: str) -> None:
    """Trace a grade as an evaluation of the session, by the conventions for generative AI."""
    if _tracer is None:
        return
    attributes: dict[str, Any] = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.conversation.id": session,
        "gen_ai.evaluation.explanation": visible_text(why, 500),
    }
    if value is not None:
        attributes["gen_ai.evaluation.score.value"] = value
    with _tracer.start_as_current_span("grade") as span:
        span.add_event(EVALUATION, attributes=attributes)


def start(program: str) -> None:
    """Send traces from now on, if a collector is named. Call it after forking.

    Raises ImportError if the SDK is missing: pip install -r requirements-otel.txt.
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
