"""An OTLP/HTTP receiver that keeps all spans, like a collector."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Receiver:
    """Keeps every span that is posted to it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.path == "/v1/traces"
                receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            self.services |= {
                a.value.string_value
                for a in resource.resource.attributes
                if a.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def named(self, name: str) -> Span:
        items = [span for span in self.spans if span.name == name]
        assert len(items) == 1, [span.name for span in self.spans]
        return items[0]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def attributes(span: Span) -> dict[str, object]:
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}
