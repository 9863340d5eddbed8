"""Texts of the error log and the request log."""

from __future__ import annotations

from collections.abc import Mapping

#: Parameters of routes whose values are shown.
SHOWN_PARAMETERS = ("collection", "topic", "aggregate", "tenant")


def named_route(route: str, parameters: Mapping[str, str]) -> str:
    """Return a route with the values of the parameters that are shown, instead of their names in
    braces or angle brackets.
    """
    for name in SHOWN_PARAMETERS:
        if (value := parameters.get(name)) is not None:
            route = route.replace(f"{{{name}}}", value).replace(f"<str:{name}>", value)
    return route


def storable(text: str, max_chars: int) -> str:
    """Truncate a text, without characters that PostgreSQL cannot store."""
    valid = text[:max_chars].encode("utf-8", "replace").decode()
    return valid.replace("\0", "\ufffd")
