"""Log lines: what they carry, and what they never do."""

from __future__ import annotations

import contextvars
import io
import json
import logging
import logging.config
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation import request_context
from foundation.logs import ConsoleFormatter, JsonFormatter, logging_config
from foundation.redaction import redact

SECRETS = [
    "rbk_live_01hzxkq3_S3cretPart0123456789abcdefXY9z",
    "rbp_test_01hzxkq3_S3cretPart0123456789abcdefXY9z",
    "rbt_01hzxkq3_S3cretPart0123456789abcdefXY9z",
    "whsec_S3cretPart0123456789abcd+/efXY9z==",
    "Authorization: Bearer S3cretPart.abc",
    "{'authorization': 'Basic S3cretPartAbc='}",
    'Authorization="S3cretPart"',
    "proxy-authorization=Digest S3cretPart",
    "bearer S3cretPart-opaque",
    "postgresql://rb_app:S3cretPart@db.internal:5432/rillbase",
    "redis://:S3cretPart@cache:6379/0",
    "https://user:S3cretPart@with-at@host/path",
    "eyJhbGciOiJIUzI1NiJ9.S3cretPart.c2lnbmF0dXJl",
]


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(params=["json", "console"])
def logger(request: pytest.FixtureRequest, stream: io.StringIO) -> Iterator[logging.Logger]:
    handler = logging.StreamHandler(stream)
    handler.setFormatter({"json": JsonFormatter, "console": ConsoleFormatter}[request.param]())
    result = logging.getLogger(f"tests.logs.{request.param}")
    result.handlers, result.propagate = [handler], False
    result.setLevel(logging.DEBUG)
    yield result
    result.handlers = []


def json_line(**extra: object) -> dict[str, object]:
    record = logging.LogRecord("a.b", logging.INFO, __file__, 1, "did %s", ("it",), None)
    record.__dict__.update(extra)
    line = json.loads(JsonFormatter().format(record))
    assert isinstance(line, dict)
    return line


def test_a_json_line_names_time_level_logger_message_request_tenant_and_fields() -> None:
    def inside() -> dict[str, object]:
        request_context.request_id.set("req-1")
        request_context.tenant_id.set("0199-tenant")
        return json_line(attempt=3, target={"port": 443})

    line = contextvars.copy_context().run(inside)
    assert str(line.pop("time")).endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "a.b",
        "message": "did it",
        "request_id": "req-1",
        "tenant": "0199-tenant",
        "attempt": 3,
        "target": {"port": 443},
    }


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_reaches_a_line_by_message_argument_field_or_exception(
    logger: logging.Logger, stream: io.StringIO, secret: str
) -> None:
    logger.info("calling with %s now", secret)
    logger.info("x%s", secret)
    logger.info("field", extra={"detail": secret, "nested": {"list": [secret]}})
    try:
        raise ValueError(secret)  # noqa: TRY301
    except ValueError:
        logger.exception("failed")
    text = stream.getvalue()
    assert "[redacted]" in text
    assert "S3cretPart" not in text
    assert "with-at" not in text


@pytest.mark.parametrize(
    "name",
    ["password", "new_password", "secret", "api_key", "Cookie", "csrf_token", "access_token"],
)
def test_a_field_with_the_name_of_a_secret_is_redacted_whatever_its_value(name: str) -> None:
    assert json_line(**{name: "plain"})[name] == "[redacted]"
    assert json_line(body={name: ["plain"]})["body"] == {name: "[redacted]"}


def test_what_is_no_secret_stays_readable() -> None:
    text = "GET https://docs.example/a?b=c took 3 ms, basic plan, key id 01hzx, user@example.org"
    assert redact(text) == text
    assert redact("postgresql://rb_app:pw@db/x") == "postgresql://rb_app:[redacted]@db/x"


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_record_is_one_line_of_json_whatever_its_content(message: str, field: str) -> None:
    record = logging.LogRecord("a", logging.INFO, "", 0, "%s", (message,), None)
    record.field = field
    line = JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert isinstance(json.loads(line), dict)


@given(st.text(max_size=80), st.text(max_size=80))
def test_logged_text_cannot_forge_a_line_or_control_the_terminal(message: str, field: str) -> None:
    record = logging.LogRecord("a", logging.INFO, "", 0, "%s", (message,), None)
    record.field = field
    line = ConsoleFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert line.isprintable() or not any(c < " " or "\x7f" <= c < "\xa0" for c in line)


def test_a_field_cannot_replace_the_lines_own_level_or_time() -> None:
    line = json_line(level="FORGED", time="never", logger="other")
    assert (line["level"], line["logger"]) == ("INFO", "a.b")
    assert line["time"] != "never"


def test_a_huge_message_is_cut() -> None:
    line = json_line(dump="x" * 1_000_000)
    assert len(str(line["dump"])) < 20_000


HOSTILE = ["eyJ", "eyJaaaa.", "eyJaaaa", "a", "://", "://a:", "rbk_", "bearer ", "bearer", " "]
HOSTILE += ["authorization", "authorization: ", "Authorization =", "'authorization'", "whsec_a"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_mebibyte_of_hostile_text_is_redacted_in_linear_time(piece: str) -> None:
    """Quadratic, it would take hours; the bound below is no measurement."""
    text = "bearer " + piece * (1024 * 1024 // len(piece)) + " rbk_dev_S3cretPart"
    begin = time.process_time()
    assert "S3cretPart" not in redact(text)
    assert time.process_time() - begin < 20


def test_a_secret_at_the_truncation_point_is_not_shown() -> None:
    for secret in SECRETS:
        for shift in range(len(secret)):
            line = json_line(long="-" * (16384 - shift) + f" {secret}")
            assert "S3cret" not in str(line["long"])


def test_long_text_is_cut_at_any_depth() -> None:
    line = json_line(nested={"list": ["x" * 1_000_000]})
    assert len(str(line)) < 20_000


def test_values_that_json_lacks_are_written_as_text() -> None:
    line = json_line(error=ValueError("bad"), ratio=float("nan"), ids={1})
    assert (line["error"], line["ratio"], line["ids"]) == ("bad", "nan", [1])


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_one_configuration_sends_every_logger_through_one_handler(log_format: str) -> None:
    program = f"""
import logging, logging.config
from foundation.logs import logging_config
logging.config.dictConfig(logging_config({log_format!r}, "INFO"))
for name in ("uvicorn.error", "celery.worker", "rillbase.request", "uvicorn.access"):
    logging.getLogger(name).info("from %s", name)
logging.getLogger("app").debug("too fine")
try:
    raise ValueError("line one\\nline two")
except ValueError:
    logging.getLogger("app").exception("failed")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert sum("from " in line for line in lines) == 3
    assert "too fine" not in done.stderr
    if log_format == "json":
        decoded = [json.loads(line) for line in lines]
        assert len(decoded) == 4
        assert "line one\nline two" in decoded[-1]["exception"]
    else:
        assert all(line.startswith("    ") for line in lines[4:])


def test_the_configuration_is_one_that_the_standard_library_accepts() -> None:
    logging.config.DictConfigurator(logging_config("json", "INFO"))
