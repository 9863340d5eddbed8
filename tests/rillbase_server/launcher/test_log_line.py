"""Log lines of different programs, made readable."""

import json

from hypothesis import given
from hypothesis import strategies as st

from rillbase_server.launcher.log_line import Level, parse, render

NOW = "12:00:00.000"


def shown(raw: bytes, service: str = "web") -> str:
    return render(parse(raw), service, NOW, colour=False)


def test_a_json_line_shows_time_level_service_message_and_fields() -> None:
    raw = json.dumps(
        {
            "time": "2026-11-21T04:05:06.789+00:00",
            "level": "WARNING",
            "logger": "rillbase.edge",
            "message": "slow",
            "request_id": "r1",
            "tenant": "t1",
            "ms": 12,
            "nothing": None,
        }
    ).encode()
    assert shown(raw) == "04:05:06.789 WARNING web      slow  request=r1 tenant=t1 ms=12"


def test_an_exception_follows_indented() -> None:
    raw = json.dumps({"level": "ERROR", "message": "no", "exception": "Trace\nEnd"}).encode()
    assert shown(raw).splitlines()[1:] == ["    Trace", "    End"]


def test_lines_of_postgres_valkey_and_uvicorn_are_understood() -> None:
    postgres = parse(b"2026-11-21 03:59:45.849 UTC FATAL:  role is not permitted")
    assert (postgres.level, postgres.time) == (Level.ERROR, "03:59:45.849")
    assert postgres.message == "role is not permitted"
    valkey = parse(b"5347:M 21 Nov 2026 03:59:46.786 * Ready to accept connections tcp")
    assert (valkey.level, valkey.message) == (Level.INFO, "Ready to accept connections tcp")
    uvicorn = parse(b"WARNING:  Invalid HTTP request received.")
    assert (uvicorn.level, uvicorn.message) == (Level.WARNING, "Invalid HTTP request received.")


def test_a_line_of_an_unknown_form_is_its_own_message() -> None:
    assert shown(b"{ not json", "beat") == "12:00:00.000 INFO    beat     { not json"


def test_colours_are_only_used_when_asked_for() -> None:
    assert "\x1b[" in render(parse(b"x"), "web", NOW, colour=True)
    assert "\x1b" not in shown(b"x")


@given(st.binary(max_size=300))
def test_no_line_can_drive_the_terminal_or_forge_another_line(raw: bytes) -> None:
    for text in (raw, json.dumps({"message": raw.decode("latin-1"), "path": repr(raw)}).encode()):
        out = shown(text)
        assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in out if c != "\t")


def test_a_request_is_one_short_sentence() -> None:
    content = {"message": "request", "method": "GET", "route": "/api/v1/tenants", "status": 200}
    raw = json.dumps(content | {"level": "INFO", "duration_ms": 1.5, "bytes": 9}).encode()
    assert shown(raw).endswith("web      GET /api/v1/tenants 200 in 1.5 ms  bytes=9")
