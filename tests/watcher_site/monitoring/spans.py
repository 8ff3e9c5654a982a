"""Receivers of spans: one in this process, and an OTLP collector for other processes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.waiting import PATIENCE
from watcher_site.monitoring.tracing import tracing


@contextmanager
def recording() -> Iterator[InMemorySpanExporter]:
    """Record the spans of this process, which `InMemorySpanExporter.get_finished_spans` returns in order of end."""
    exporter = InMemorySpanExporter()
    tracing.use("watcher-test", SimpleSpanProcessor(exporter))
    try:
        yield exporter
    finally:
        tracing.stop()


def named(spans: Sequence[ReadableSpan], name: str) -> ReadableSpan:
    (found,) = [span for span in spans if span.name == name]
    return found


class Collector:
    """An OTLP collector on this machine that stores spans, or accepts connections and never answers if it hangs."""

    def __init__(self, hangs: bool = False) -> None:
        self.spans: list[dict[str, Any]] = []
        self.requested, self.ended = Event(), Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requested.set()
                if hangs:
                    collector.ended.wait(PATIENCE)
                    return
                collector.spans += read_spans(self.path, body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "Collector":
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def named(self, name: str) -> list[dict[str, Any]]:
        return [span for span in self.spans if span["name"] == name]


def read_spans(path: str, body: bytes) -> Iterator[dict[str, Any]]:
    assert path == "/v1/traces"
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = {pair.key: pair.value.string_value for pair in resource.resource.attributes}["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "name": span.name,
                    "service": service,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "attributes": {pair.key: value_of(pair.value) for pair in span.attributes},
                }


def value_of(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
