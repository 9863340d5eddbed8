"""Argument checks, so that a mistake is reported by the call that makes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def check_choice(what: str, given: object, choices: Collection[str]) -> None:
    """Raise unless a text is one of the choices."""
    if not isinstance(given, str) or given not in choices:
        raise ValueError(f"{what} {given!r}. Valid: {_listed(choices)}.")


def check_name(what: str, given: object) -> None:
    """Raise unless it is a non-empty text."""
    if not isinstance(given, str) or not given:
        raise TypeError(f"{what} must be a non-empty string, not {given!r}.")


def check_count(what: str, given: object) -> None:
    """Raise unless it is a non-negative integer."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{what} must be a whole number, not {given!r}.")
    if given < 0:
        raise ValueError(f"{what} must be 0 or more, not {given}.")


def check_mapping(what: str, given: object) -> None:
    """Raise unless it maps names to values."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a mapping, not {type(given).__name__}.")


def check_options(call: str, given: Collection[str], names: Collection[str]) -> None:
    """Raise unless the options have only known names."""
    for name in given:
        if name not in names:
            raise TypeError(f"{call} has no option {name!r}. Valid: {_listed(names)}.")


def _listed(choices: Collection[str]) -> str:
    return ", ".join(repr(choice) for choice in choices)
