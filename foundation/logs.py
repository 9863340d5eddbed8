"""Log lines: one JSON object a line, or one readable line, from the standard library's logging.

`logging_config` is the whole set-up, for uvicorn, Celery and management commands alike. Each line
carries the request id and tenant of the context in which it was written. Secrets are removed here,
at the last moment, so that no caller can forget it. Logged text can neither start a new line nor
control a terminal: control characters are escaped.
"""

from __future__ import annotations

import json
import logging
import logging.config
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from foundation import request_context
from foundation.redaction import REDACTED, is_secret_name, redact_value, shown

LogFormat = Literal["json", "console"]

_STANDARD_ATTRIBUTES = frozenset(
    {*vars(logging.LogRecord("", 0, "", 0, "", (), None)), "message", "asctime", "taskName"}
)
_OWN_FIELDS = frozenset({"time", "level", "logger", "exception"})
# uvicorn adds a second copy of the message, for terminals.
_DROPPED = frozenset({*_STANDARD_ATTRIBUTES, *_OWN_FIELDS, "color_message"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def _escape(text: str) -> str:
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields that the caller passed as `extra`, and those of the request."""
    fields: dict[str, object] = {}
    context = {
        "request_id": request_context.request_id.get(),
        "tenant": request_context.tenant_id.get(),
        "principal": request_context.principal.get(),
    }
    for name, default in context.items():
        value = record.__dict__.get(name) or default
        if value:
            fields[name] = redact_value(value)
    for name, value in record.__dict__.items():
        if name in _DROPPED or name in context:
            continue
        fields[name] = REDACTED if is_secret_name(name) else redact_value(value)
    return fields


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Return the exception's traceback, or the stack that was requested, or nothing."""
    parts = []
    if record.exc_info and record.exc_info[0]:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return shown("\n".join(parts))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, then context and fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": shown(record.getMessage()),
            **_fields(record),
        }
        traceback = _traceback(self, record)
        if traceback:
            line["exception"] = traceback
        return json.dumps(line, separators=(",", ":"))


class ConsoleFormatter(logging.Formatter):
    """One readable line, then the traceback, indented."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        message = _escape(shown(record.getMessage()))
        fields = " ".join(
            f"{_escape(name)}={_escape(str(value))}" for name, value in _fields(record).items()
        )
        head = f"{time} {record.levelname:<7} {_escape(record.name)}: {message}"
        lines = [f"{head}  {fields}" if fields else head]
        lines += [f"    {_escape(x)}" for x in _traceback(self, record).splitlines()]
        return "\n".join(lines)


_FORMATTERS: Mapping[LogFormat, type[logging.Formatter]] = {
    "json": JsonFormatter,
    "console": ConsoleFormatter,
}


def logging_config(log_format: LogFormat, level: str) -> dict[str, object]:
    """Return the argument of `logging.config.dictConfig`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": _FORMATTERS[log_format]}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # These loggers come with their own handlers; everything goes through the one above.
            "uvicorn": {"handlers": [], "level": "INFO", "propagate": True},
            "uvicorn.error": {"handlers": [], "propagate": True},
            # The edge writes one line per request, without raw paths; this would repeat it with
            # them.
            "uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
            "django.request": {"handlers": [], "level": "ERROR", "propagate": True},
            "django.server": {"handlers": [], "level": "ERROR", "propagate": True},
        },
    }


def set_up_logging(log_format: LogFormat, level: str) -> None:
    """Send all log lines of this process to standard error in the given form."""
    logging.config.dictConfig(logging_config(log_format, level))
