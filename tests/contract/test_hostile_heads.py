"""URLs, parameters and headers that only malicious clients send."""

from __future__ import annotations

import json
import random
import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from foundation.errors import CATALOGUE
from tenants import error_log
from tenants.models import ErrorEntry
from tenants.roles import DATA_SCOPES
from tests.caller import with_key
from tests.contract.contract_resources import ContractResources, contract_resources, declared
from tests.make import make_tenant

SEED, SAMPLE = 20261123, 700
_KEY = re.compile(rb"rbk_test_[0-9A-Za-z]{16}_")

#: As bytes on the wire; the server's HTTP reader rejects what is not a header.
HEADER_VALUES = (
    b"",
    b"x",
    b",",
    b"*",
    b'"v1"',
    b'W/"v1"',
    b'"v99999999999999999999"',
    b'"v\xd9\xa3"',
    b"-1",
    b"9" * 5_000,
    b"NaN",
    b"1e400",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"{}",
    b"[]",
    b'{"sub":NaN}',
    b"Bearer",
    b"Bearer x",
    b"Bearer rbk_test_x",
    b"Bearer a.b.c",
    b"bearer \xff.\xff.\xff",
    b"Bearer " + b"e30." * 3,
    b"Bearer eyJhbGciOiJub25lIn0.e30.",
    b"rbp_",
    b"rbk_",
    b"gzip",
    b"gzip, gzip",
    b"identity",
    b"text/html",
    b"application/json; charset=latin-1",
    b"multipart/form-data",
    b"application/json\x01",
    b"null",
    b"http://evil.test",
    b"https://[",
    b"127.0.0.1:x",
    b"::1",
    b"1.1.1.1, 2.2.2.2",
    b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01",
    b'a=b; a=c; "',
    b"bytes=9-1",
    b"W10=",
    b"Mon, 31 Feb 2026 00:00:00 GMT",
)
HEADER_NAMES = (
    b"Authorization",
    b"Rillbase-Key",
    b"Rillbase-Tenant",
    b"Rillbase-Act-As",
    b"Rillbase-EJSON",
    b"Idempotency-Key",
    b"If-Match",
    b"If-None-Match",
    b"Content-Type",
    b"Content-Encoding",
    b"Accept",
    b"Origin",
    b"Cookie",
    b"X-Request-Id",
    b"X-Forwarded-For",
    b"X-CSRF-Token",
    b"traceparent",
    b"Last-Event-ID",
    b"Access-Control-Request-Method",
    b"Range",
    b"Content-Length",
    b"Transfer-Encoding",
    b"Host",
    b"Expect",
    b"Upgrade",
)
PARAMETER_VALUES = (
    "",
    "x",
    "-1",
    "0",
    "1e3",
    "9" * 5_000,
    "%00",
    "%",
    "%zz",
    "%ff",
    "%ed%a0%80",
    "%D9%A3",
    "null",
    "{}",
    "[]",
    "NaN",
    '{"a":NaN}',
    '{"$date":"2026-02-30"}',
    '{"a":' * 300,
    "true",
    "..",
    "%2e%2e%2f",
    "a&b",
    "0000-00-00",
    "0001-01-01T00:00:00%2B23:59",
    "9999-12-31T23:59:59-23:59",
    "%2B99999999999999d",
    "AAAA",
    "W10",
    "rbl_x",
)
PARAMETER_NAMES = (
    "filter",
    "sort",
    "projection",
    "offset",
    "limit",
    "cursor",
    "group",
    "lookup",
    "options",
    "resume",
    "upsert",
    "array_filters",
    "mode",
    "id",
    "geo",
    "from",
    "to",
    "ticket",
    "table",
    "op",
    "open",
    "after",
    "order",
    "measures",
    "rollup",
    "snapshot",
    "unknown",
    "",
)
SEGMENTS = (
    "%00",
    "a%00b",
    "%ff",
    "%ed%a0%80",
    "%",
    "%2F",
    "..",
    ".",
    "~",
    "~%7B",
    "~NaN",
    "~1e400",
    "~%22%5Cud800%22",
    "~%7B%22%24date%22:%222026-02-30%22%7D",
    "~null",
    "~[]",
    "A",
    "x" * 5_000,
    "%F0%9F%98%80",
    "a:commit",
    ":",
    "0" * 24,
    "-",
    "1.99999999999999999999",
    ".1",
    "{id}",
)

Request = tuple[str, bytes, list[tuple[bytes, bytes]]]


@pytest.fixture(scope="module")
def resources(server: str) -> ContractResources:
    return contract_resources(server)


def requests_of(resources: ContractResources, seed: int, count: int) -> Iterator[Request]:
    """Yield methods, URLs and headers, most of them correct except for one or two mistakes."""
    dice = random.Random(seed)
    key = resources.key(*DATA_SCOPES).headers["Authorization"].encode()
    others = [f"/api/v1/tenants/{resources.account.slug}/{part}" for part in CONTROL]
    operations = list(declared().values())
    for _ in range(count):
        operation = dice.choice(operations)
        method, path = operation.method, resources.path(operation)
        if dice.random() < 0.2:
            method, path = "GET", dice.choice(others)
        if dice.random() < 0.4:
            parts = path.split("/")
            parts[dice.randrange(2, len(parts))] = dice.choice(SEGMENTS)
            path = "/".join(parts)
        if dice.random() < 0.5:
            pairs = dice.choices(PARAMETER_NAMES, k=2)
            path += "?" + "&".join(f"{name}={dice.choice(PARAMETER_VALUES)}" for name in pairs)
        if dice.random() < 0.1:
            method = dice.choice(("HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "PROPFIND", "X" * 40))
        headers = [(b"Authorization", key)]
        for _ in range(dice.choice((0, 1, 1, 2))):
            header = dice.choice(HEADER_NAMES), dice.choice(HEADER_VALUES)
            if dice.random() < 0.5:
                headers = [pair for pair in headers if pair[0] != header[0]]
            headers.append(header)
        yield method, path.encode(), headers


CONTROL = ("members", "audit-log", "errors", "usage", "api-keys", "collections", "subscriptions")


def answer_of(server: str, request: Request) -> tuple[int, bytes, bytes]:
    """Send a request over a connection of its own; return status, head and body of the answer.

    Of an endless response, only the head is read. None means that the server ended the connection,
    as it does if the input is not HTTP.
    """
    method, path, headers = request
    names = {name.lower() for name, _ in headers}
    lines = [method.encode() + b" " + path + b" HTTP/1.1"]
    lines += [] if b"host" in names else [b"Host: 127.0.0.1"]
    lines += [name + b": " + value for name, value in headers]
    body = b"" if method in ("GET", "HEAD", "OPTIONS", "DELETE") else b"{}"
    if not names & {b"content-length", b"transfer-encoding"}:
        lines.append(b"Content-Length: %d" % len(body))
    address = urlsplit(server)
    with socket.create_connection((address.hostname, address.port or 80), timeout=30) as connection:
        connection.sendall(b"\r\n".join([*lines, b"Connection: close", b"", body]))
        connection.shutdown(socket.SHUT_WR)
        head, rest = _read(connection)
    status = int(head.split(b" ", 2)[1]) if head else 0
    return status, head.lower(), rest


def _read(connection: socket.socket) -> tuple[bytes, bytes]:
    result = b""
    while b"\r\n\r\n" not in result and (part := connection.recv(65_536)):
        result += part
    head, _, rest = result.partition(b"\r\n\r\n")
    if b"text/event-stream" in head or b"content-length" not in head.lower():
        return head, b""
    while part := connection.recv(65_536):
        rest += part
    return head, rest


def complaint_about(answer: tuple[int, bytes, bytes]) -> str:
    status, head, body = answer
    if status >= 500:
        return f"{status} {body[:200]!r}"
    if status < 400 or not body or b"x-request-id" not in head:
        return ""  # succeeded, without a body, or rejected by the HTTP reader
    if b"application/problem+json" not in head:
        return f"{status} is no problem document: {head!r}"
    problem = json.loads(body)
    if problem["code"] not in CATALOGUE or _KEY.search(body):
        return body.decode()
    return "" if len(body) < 4_000 else f"an answer of {len(body)} bytes"


def failures(resources: ContractResources, seed: int, count: int) -> Iterator[str]:
    for request in requests_of(resources, seed, count):
        complaint = complaint_about(answer_of(resources.base, request))
        if complaint:
            yield f"{request}: {complaint}"


def test_no_request_head_of_a_sample_makes_the_server_fail(resources: ContractResources) -> None:
    failed = list(failures(resources, SEED, SAMPLE))
    assert not failed, "\n".join(failed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_no_request_head_makes_the_server_fail(resources: ContractResources, seed: int) -> None:
    failed = list(failures(resources, seed, 2_000))
    assert not failed, "\n".join(failed)


def test_hostile_addresses_leave_the_error_log_working(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    for part in ("a%00b", "%F0%9F%98%80", "x" * 5_000):
        for path in (f"/v1/collections/{part}/documents", f"/v1/aggregates/{part}/live"):
            assert 400 <= caller.get(path).status_code < 500
    assert caller.get("/v1/collections/absent/documents").status_code == 404
    error_log.flush()
    entries = ErrorEntry.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    assert "GET /v1/collections/absent/documents" in entries.values_list("place", flat=True)


def test_an_error_that_cannot_be_stored_is_not_kept_before_all_others(server: str) -> None:
    account = make_tenant()
    log = error_log.ErrorLog()
    log.note(account.tenant.id, error_log.Area.REQUEST, "x\0y", place="a\0b\ud800", actor="c\0d")
    log.flush()
    log.note(
        account.tenant.id, error_log.Area.REQUEST, "not_found", place="a\0b\ud800", actor="c\0d"
    )
    assert log.flush() == 1
    (entry,) = ErrorEntry.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    assert (entry.place, entry.actor) == ("a\ufffdb?", "c\ufffdd")
