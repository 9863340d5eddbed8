"""A request without its body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from typing import overload
from urllib.parse import parse_qsl, unquote

from foundation.asgi import Scope
from foundation.errors import InvalidParameter

MAX_PARAMETERS = 100


class HeaderMap(Mapping[str, str]):
    """Headers by name, whatever its case. Repeated ones are joined by commas."""

    __slots__ = ("_values",)

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        values: dict[str, str] = {}
        for name, value in raw:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            joint = "; " if key == "cookie" else ","
            values[key] = f"{values[key]}{joint}{text}" if key in values else text
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    @overload  # type: ignore[override]  # a default is a string here
    def get(self, name: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str, /) -> str: ...
    def get(self, name: str, default: str | None = None, /) -> str | None:
        """Return a header, or the default. The inherited method raises and catches an error."""
        return self._values.get(name.lower(), default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class CallHead:
    """Method, path and headers, which authentication and CORS need."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.scheme: str = scope.get("scheme", "http")
        self.headers = HeaderMap(scope["headers"])
        self._raw_path: bytes = scope.get("raw_path") or self.path.encode()
        self._query: bytes = scope.get("query_string", b"")

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The path's segments, each decoded by itself: an encoded slash is data."""
        try:
            raw = self._raw_path.decode("ascii").split("/")[1:]
            segments = tuple(unquote(segment, errors="strict") for segment in raw)
        except UnicodeDecodeError:
            raise InvalidParameter("The path is not valid UTF-8.") from None
        if any("\0" in segment for segment in segments):
            raise InvalidParameter("NUL characters are not allowed in the path.")
        return segments

    @cached_property
    def query(self) -> dict[str, str]:
        """The query's parameters. Repeated and unknown ones are errors."""
        if not self._query:
            return {}
        try:
            pairs = parse_qsl(
                self._query.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MAX_PARAMETERS,
            )
        except ValueError:
            raise InvalidParameter("The query string is not valid.") from None
        parameters: dict[str, str] = {}
        for name, value in pairs:
            if name in parameters:
                raise InvalidParameter(f"The parameter {name[:100]!r} is given more than once.")
            if "\0" in name or "\0" in value:
                raise InvalidParameter("NUL characters are not allowed in parameters.")
            parameters[name] = value
        return parameters

    @property
    def query_string(self) -> bytes:
        return self._query

    @cached_property
    def COOKIES(self) -> dict[str, str]:  # noqa: N802 -- as Django's requests call them
        try:
            return {k: v.value for k, v in SimpleCookie(self.headers.get("cookie", "")).items()}
        except CookieError:
            return {}

    def get_host(self) -> str:
        """Return the value of `Host`. The edge has rejected requests for unknown hosts."""
        return self.headers.get("host", "")
