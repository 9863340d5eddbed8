"""Argument checks, so that a mistake is reported by the call that makes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def check_choice(what: str, value: object, choices: Collection[str]) -> None:
    """Raise unless a text is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{what} {value!r}. Valid: {_listed(choices)}.")


def check_name(what: str, value: object) -> None:
    """Raise unless it is a non-empty text."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"{what} must be a non-empty string, not {value!r}.")


def check_count(what: str, value: object) -> None:
    """Raise unless it is a non-negative integer."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be a whole number, not {value!r}.")
    if value < 0:
        raise ValueError(f"{what} must be 0 or more, not {value}.")


def check_mapping(what: str, value: object) -> None:
    """Raise unless it maps names to values."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} must be a mapping, not {type(value).__name__}.")


def check_options(call: str, options: Collection[str], names: Collection[str]) -> None:
    """Raise unless the options have only known names."""
    for name in options:
        if name not in names:
            raise TypeError(f"{call} has no option {name!r}. Valid: {_listed(names)}.")


def _listed(choices: Collection[str]) -> str:
    return ", ".join(repr(choice) for choice in choices)
