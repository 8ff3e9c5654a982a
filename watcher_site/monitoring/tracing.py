"""OpenTelemetry traces: a span for each request, attempt of an action, run of an audit, and call of the cloud.

The packages of the extra [tracing] are imported only if `settings.TRACING` is on. OpenTelemetry's instrumentation of
Django and requests is not used, because it exports the queries of URLs and the addresses of webhooks, which may
contain secrets.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from importlib import metadata
from threading import Thread
from typing import Any, Literal

import structlog
from django.conf import settings

from watcher_site.refusals import Invalid

log = structlog.get_logger(__name__)
WEB = "watcher-web"
# The key of a request's trace id in the WSGI environment, where the access log reads it.
TRACE_ID = "watcher_site.trace_id"
# The header of W3C Trace Context, and its key in calling contexts.
TRACEPARENT = "traceparent"
# The seconds that a process waits at its end for an unresponsive collector.
FLUSH_SECONDS = 5
Kind = Literal["INTERNAL", "SERVER", "CLIENT"]


class Span:
    """A part of a trace, or a no-op if this process does not trace."""

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def set(self, name: str, value: Any) -> None:
        """Set an attribute, unless the value is None or an empty text."""
        if self.inner is not None and value not in (None, ""):
            self.inner.set_attribute(name, value)

    def rename(self, name: str) -> None:
        if self.inner is not None:
            self.inner.update_name(name)

    def fail(self, kind: str) -> None:
        """Mark the span as failed, with the name of an exception, a status or a state, but without a message."""
        if self.inner is not None:
            from opentelemetry.trace import StatusCode

            self.inner.set_attribute("error.type", kind)
            self.inner.set_status(StatusCode.ERROR)

    @property
    def trace_id(self) -> str | None:
        return format(self.inner.get_span_context().trace_id, "032x") if self.inner is not None else None


NO_SPAN = Span()


class Tracing:
    """The export of the spans of one process, from `start` to `stop`."""

    def __init__(self) -> None:
        self.provider: Any = None
        self.tracer: Any = None
        self.is_on = False

    def start(self, service: str) -> None:
        """Export the spans of this process if `settings.TRACING` is on. Forking processes call it in their children.

        Args:
            service: the name of the service, such as ``watcher-applier``, unless ``OTEL_SERVICE_NAME`` is set.

        Raises:
            Invalid: OpenTelemetry refuses one of its variables.
        """
        if not settings.TRACING:
            return
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        try:
            self.use(service, BatchSpanProcessor(OTLPSpanExporter()))
        except (ValueError, RuntimeError, OSError) as problem:
            raise Invalid(f"OTEL_…: {problem}") from problem

    def use(self, service: str, processor: Any) -> None:
        """Use an OpenTelemetry processor for the spans of this process."""
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider

        attributes = {
            "service.name": service,
            "service.namespace": "watcher-site",
            "service.version": metadata.version("watcher-site"),
            "host.name": settings.HOST,
        }
        # OpenTelemetry's variables take precedence.
        resource = Resource.create(attributes).merge(OTELResourceDetector().detect())
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(processor)
        self.tracer, self.is_on = self.provider.get_tracer("watcher_site"), True

    def stop(self) -> None:
        """Send the remaining spans, waiting only briefly, because the collector may be down."""
        provider, self.provider, self.tracer, self.is_on = self.provider, None, None, False
        if provider is not None:
            ending = Thread(target=provider.shutdown, name="traces", daemon=True)
            ending.start()
            ending.join(FLUSH_SECONDS)

    @contextmanager
    def span(
        self, name: str, attributes: Mapping[str, Any], *, kind: Kind = "INTERNAL", parent: str | None = None
    ) -> Iterator[Span]:
        """Record the block as a span, which fails if the block raises an exception.

        Args:
            parent: the ``traceparent`` of another process, if the span does not belong to the current one.
        """
        if self.tracer is None:
            yield NO_SPAN
            return
        from opentelemetry.trace import SpanKind

        # Exception messages and tracebacks are only in the logs.
        silent = {"record_exception": False, "set_status_on_exception": False}
        context = propagator().extract({TRACEPARENT: parent}) if parent else None
        with self.tracer.start_as_current_span(name, context, SpanKind[kind], **silent) as inner:
            span = Span(inner)
            for key, value in attributes.items():
                span.set(key, value)
            try:
                yield span
            except BaseException as problem:
                span.fail(type(problem).__name__)
                raise

    def context(self) -> dict[str, str]:
        """Return the header, or entry of a calling context, that identifies the current span; empty without one."""
        carrier: dict[str, str] = {}
        if self.tracer is not None:
            propagator().inject(carrier)
        return {name: value for name, value in carrier.items() if name == TRACEPARENT}


tracing = Tracing()


def propagator() -> Any:
    """Return the propagator of W3C Trace Context, so that baggage of clients is not passed on to the cloud."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()


def add_trace_id(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the ids of the current trace and span to a log event."""
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    if context.is_valid:
        event.setdefault("trace_id", format(context.trace_id, "032x"))
        event.setdefault("span_id", format(context.span_id, "016x"))
    return event
