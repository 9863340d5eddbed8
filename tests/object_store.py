"""An in-memory, S3-compatible object store: a real server in place of an external one.

It supports the requests of Arrow and Iceberg, and checks no signatures.
"""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


class SupportsLines(Protocol):
    """A stream that is read by lines and by bytes."""

    def readline(self) -> bytes: ...

    def read(self, size: int, /) -> bytes: ...


@dataclass
class Store:
    """Buckets are folders of keys."""

    url: str = ""
    #: By `/bucket/key`: the content, and the time of the last change.
    objects: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    #: Whether the store responds that it is unavailable.
    is_away: bool = False
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def keys(self, prefix: str) -> list[str]:
        """Return the keys below a prefix, without those that represent folders."""
        with self.lock:
            result = sorted(key for key in self.objects if key.startswith(prefix))
        return [key for key in result if not key.endswith("/")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    store: Store

    def handle_expect_100(self) -> bool:
        goes_on = super().handle_expect_100()
        # Clients wait for this before they send the body.
        self.wfile.flush()
        return goes_on

    def do_HEAD(self) -> None:
        result = self.store.objects.get(self._key)
        if result is None and "/" in self._key.strip("/"):
            self._answer(404)
        elif result is None:
            self._answer(200)
        else:
            self._answer(200, size=len(result[0]), since=result[1])

    def do_GET(self) -> None:
        if "list-type" in self._asked:
            self._list()
            return
        result = self.store.objects.get(self._key)
        if result is None:
            self._answer(404, _xml("Error", "<Code>NoSuchKey</Code>"))
            return
        content, since = result
        byte_range = self.headers.get("Range")
        if byte_range is None:
            self._answer(200, content, since=since)
            return
        first, _, last = byte_range.removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or len(content)), len(content) - 1)
        span = f"bytes {begin}-{end}/{len(content)}"
        self._answer(206, content[begin : end + 1], since=since, Content_Range=span)

    def do_PUT(self) -> None:
        content = self._body()
        with self.store.lock:
            if "uploadId" in self._asked:
                parts = self.store.parts[self._asked["uploadId"]]
                parts[int(self._asked["partNumber"])] = content
            elif not self.store.is_away:
                self.store.objects[self._key] = (content, time.time())
        self._answer(200, ETag=_tag(content))

    def do_POST(self) -> None:
        body = self._body()
        with self.store.lock:
            if "uploads" in self._asked:
                name = str(next(self.store.numbers))
                self.store.parts[name] = {}
                text = _xml("InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>")
            elif "uploadId" in self._asked:
                parts = self.store.parts.pop(self._asked["uploadId"])
                whole = b"".join(parts[number] for number in sorted(parts))
                self.store.objects[self._key] = (whole, time.time())
                text = _xml("CompleteMultipartUploadResult", f"<ETag>{_tag(whole)}</ETag>")
            else:
                for key in ElementTree.fromstring(body).iter(f"{{{_NAMESPACE}}}Key"):
                    self.store.objects.pop(f"{self._key.rstrip('/')}/{key.text}", None)
                text = _xml("DeleteResult", "")
        self._answer(200, text)

    def do_DELETE(self) -> None:
        with self.store.lock:
            if "uploadId" in self._asked:
                self.store.parts.pop(self._asked["uploadId"], None)
            else:
                self.store.objects.pop(self._key, None)
        self._answer(204)

    def _list(self) -> None:
        bucket = f"{self._key.rstrip('/')}/"
        prefix, delimiter = self._asked.get("prefix", ""), self._asked.get("delimiter", "")
        with self.store.lock:
            keys = sorted(key for key in self.store.objects if key.startswith(bucket))
            result = {key.removeprefix(bucket): self.store.objects[key] for key in keys}
        shown, folders = [], set()
        for name, (content, since) in result.items():
            if not name.startswith(prefix):
                continue
            below = name[len(prefix) :]
            if delimiter and delimiter in below:
                folders.add(prefix + below.partition(delimiter)[0] + delimiter)
                continue
            at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(since))
            shown.append(
                f"<Contents><Key>{escape(name)}</Key><LastModified>{at}</LastModified>"
                f"<ETag>{_tag(content)}</ETag><Size>{len(content)}</Size></Contents>"
            )
        shown += [f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders]
        header = f"<KeyCount>{len(shown)}</KeyCount><IsTruncated>false</IsTruncated>"
        self._answer(200, _xml("ListBucketResult", header + "".join(shown)))

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path)

    @property
    def _asked(self) -> dict[str, str]:
        parameters = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[0] for name, values in parameters.items()}

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = _joined(self.rfile)
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        # Amazon's own chunks, possibly inside those of HTTP.
        is_chunked = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return _joined(io.BytesIO(content)) if is_chunked else content

    def _answer(
        self,
        status: int,
        content: bytes = b"",
        *,
        size: int | None = None,
        since: float | None = None,
        **headers: str,
    ) -> None:
        if self.store.is_away:
            status, content, size = 403, _xml("Error", "<Code>AccessDenied</Code>"), None
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if size is None else size))
        if since is not None:
            self.send_header("Last-Modified", formatdate(since, usegmt=True))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay silent."""


@contextmanager
def object_store() -> Iterator[Store]:
    """Serve on a free port of the loopback interface until the block ends."""
    store = Store()
    handler = type("Handler", (_Handler,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        store.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield store
        finally:
            http.shutdown()
            thread.join()


def _joined(source: SupportsLines) -> bytes:
    """Return the body of a chunked request, in which a line with its size precedes each chunk, and
    read the trailers.
    """
    result = b""
    while size := int(source.readline().partition(b";")[0], 16):
        result += source.read(size)
        source.readline()
    while source.readline().strip():
        pass
    return result


def _xml(name: str, inner: str) -> bytes:
    return f'<?xml version="1.0"?><{name} xmlns="{_NAMESPACE}">{inner}</{name}>'.encode()


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
