"""Renders log lines of different programs in one stream.

Our own processes write JSON objects; PostgreSQL, Valkey and uvicorn each have their own format. All
are parsed to a ``LogLine``, which ``render`` formats. Lines may contain external text (a request's
path, a document), so terminal control characters are escaped.
"""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum


class Level(IntEnum):
    """The severity of a line; values as in Python's logging."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


LEVELS = {
    "TRACE": Level.DEBUG,
    "NOTICE": Level.INFO,
    "LOG": Level.INFO,
    "WARN": Level.WARNING,
    "CRITICAL": Level.ERROR,
    "FATAL": Level.ERROR,
    "PANIC": Level.ERROR,
} | {level.name: level for level in Level}
# Valkey uses # for a regular shutdown as well as for errors, so it is not treated as an error.
VALKEY_LEVELS = {".": Level.DEBUG, "-": Level.DEBUG, "*": Level.INFO, "#": Level.INFO}

TIME_KEYS = ("time", "timestamp", "ts")
LEVEL_KEYS = ("level", "severity")
MESSAGE_KEYS = ("message", "msg", "event")
TRACE_KEYS = ("exception", "traceback", "exc_info", "stack")
# Shown in other columns, or of no use to a reader. (`data` repeats Celery's message about a task.)
HIDDEN_KEYS = ("service", "pid", "logger", "data")
# Members of the edge's line for each request; other members follow them.
REQUEST_KEYS = frozenset({"method", "route", "status", "duration_ms"})
SHORT_NAMES = {"request_id": "request", "tenant_id": "tenant"}

POSTGRES_LINE = re.compile(
    r"^(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC (?P<level>[A-Z]+\d?):\s+(?P<message>.*)$"
)
VALKEY_LINE = re.compile(r"^\d+:[A-Z] \d\d? \w{3} \d{4} [\d:.]+ (?P<level>[.*#-]) (?P<message>.*)$")
UVICORN_LINE = re.compile(r"^(?P<level>[A-Z]+):\s+(?P<message>.*)$")
UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

COLOURS = {Level.DEBUG: "2", Level.INFO: "32", Level.WARNING: "33", Level.ERROR: "1;31"}
SERVICE_COLOURS = ("36", "35", "34", "96", "95", "94")
NAME_WIDTH = 8


@dataclass(frozen=True)
class LogLine:
    """A parsed line. ``time`` is a time of day in UTC; empty if the line has none."""

    level: Level
    message: str
    time: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    trace: str = ""


def parse(raw: bytes) -> LogLine:
    """Parse one line. A line of an unknown format becomes the message."""
    text = raw.decode(errors="replace").rstrip()
    if text.startswith("{"):
        try:
            content = json.loads(text)
        except ValueError:
            content = None
        if isinstance(content, dict):
            return _from_json(content)
    for form, read in ((POSTGRES_LINE, _from_postgres), (VALKEY_LINE, _from_valkey)):
        if match := form.match(text):
            return read(match)
    match = UVICORN_LINE.match(text)
    if match and match["level"] in LEVELS:
        return LogLine(LEVELS[match["level"]], match["message"])
    return LogLine(Level.INFO, text)


def render(line: LogLine, service: str, now: str, *, colour: bool) -> str:
    """Format one line (and a trace below it) for a terminal; ``now`` replaces a missing time."""
    name = f"{service:<{NAME_WIDTH}}"
    level = f"{line.level.name:<7}"
    fields = " ".join(f"{SHORT_NAMES.get(key, key)}={value}" for key, value in line.fields)
    if colour:
        name = _paint(name, SERVICE_COLOURS[sum(service.encode()) % len(SERVICE_COLOURS)])
        level = _paint(level, COLOURS[line.level])
    first = f"{line.time or now} {level} {name} {_visible(line.message)}"
    if fields:
        shown = _visible(fields)
        first += "  " + (_paint(shown, "2") if colour else shown)
    trace = [f"    {_visible(part)}" for part in line.trace.splitlines()]
    return "\n".join([first, *trace])


def _from_json(content: dict[str, object]) -> LogLine:
    known_keys = {*TIME_KEYS, *LEVEL_KEYS, *MESSAGE_KEYS, *TRACE_KEYS, *HIDDEN_KEYS}
    message = _first(content, MESSAGE_KEYS)
    if message == "request" and content.keys() >= REQUEST_KEYS:
        known_keys |= REQUEST_KEYS
        message = "{method} {route} {status} in {duration_ms} ms".format_map(content)
    fields = [(key, _value(value)) for key, value in content.items() if key not in known_keys]
    return LogLine(
        level=LEVELS.get(_first(content, LEVEL_KEYS).upper(), Level.INFO),
        message=message,
        time=_time_of_day(_first(content, TIME_KEYS)),
        fields=tuple((key, value) for key, value in fields if value),
        trace=_first(content, TRACE_KEYS),
    )


def _from_postgres(match: re.Match[str]) -> LogLine:
    level = LEVELS.get(match["level"], Level.INFO)
    return LogLine(level, match["message"], match["time"][11:])


def _from_valkey(match: re.Match[str]) -> LogLine:
    # Valkey writes local time, so use the launcher's clock instead.
    return LogLine(VALKEY_LEVELS[match["level"]], match["message"])


def _first(content: dict[str, object], keys: tuple[str, ...]) -> str:
    return next((_value(content[key]) for key in keys if content.get(key)), "")


def _value(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _time_of_day(stamp: str) -> str:
    try:
        return datetime.fromisoformat(stamp).strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return ""


def _paint(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _visible(text: str) -> str:
    return UNSAFE.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
