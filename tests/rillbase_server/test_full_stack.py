"""The whole stack over real sockets: uvicorn, edge, Django."""

from __future__ import annotations

import http.client
import json
import logging
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.waiting import wait_until


@pytest.fixture
def connection(server: str) -> Iterator[http.client.HTTPConnection]:
    opened = http.client.HTTPConnection(urlsplit(server).netloc, timeout=60)
    yield opened
    opened.close()


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [r.__dict__ for r in caplog.records if r.name == "rillbase.request"]


def test_an_unknown_path_is_a_sandboxed_answer_with_the_callers_request_id(
    connection: http.client.HTTPConnection, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "rillbase.request"):
        connection.request(
            "GET", "/api/v1/no-such-thing", headers={"X-Request-Id": "from-the-caller"}
        )
        answer = connection.getresponse()
        answer.read()
        # The line is written once the answer has been sent.
        wait_until(lambda: bool(lines(caplog)), what="the log line")
    assert answer.status == 404
    assert answer.headers["X-Request-Id"] == "from-the-caller"
    assert answer.headers["Content-Security-Policy"] == "sandbox"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    (line,) = lines(caplog)
    assert (line["route"], line["status"]) == ("unmatched", 404)
    assert "no-such-thing" not in caplog.text


def test_a_body_that_streams_in_without_end_is_cut_off(
    connection: http.client.HTTPConnection,
) -> None:
    connection.putrequest("POST", "/api/v1/tenants")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    piece = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    try:
        for _ in range(64):
            connection.send(piece)
    except (BrokenPipeError, ConnectionResetError):
        return  # the server has hung up, which is the point; its answer may be lost with it
    answer = connection.getresponse()
    assert answer.status == 413
    assert json.loads(answer.read())["code"] == "body_too_large"


def test_a_body_that_announces_too_much_gets_413_at_once(
    connection: http.client.HTTPConnection,
) -> None:
    connection.putrequest("POST", "/api/v1/tenants")
    connection.putheader("Content-Length", str(10**9))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    assert answer.headers["Connection"] == "close"


def test_probes_are_answered_whatever_host_they_name(
    connection: http.client.HTTPConnection,
) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        connection.request("GET", path, headers={"Host": "10.1.2.3:8080"})
        answer = connection.getresponse()
        assert answer.read()
        assert answer.status == 200, path


def test_a_websocket_where_there_is_none_is_refused_without_an_error(
    server: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidStatus, match="404"):
        connect(server.replace("http", "ws") + "/nothing")
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []
