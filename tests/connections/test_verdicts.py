"""Credentials that cannot be checked end their own connection only; all others are still
checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest
from django.db import DatabaseError

from connections.callers import ConnectionCaller
from connections.connection_registry import _verdict
from foundation.errors import Internal


@dataclass
class Broken:
    """A caller whose credentials raise an error when they are checked."""

    error: Exception

    @property
    def credential(self) -> object:
        return object()

    @property
    def principal(self) -> object:
        raise self.error


def test_an_error_in_one_callers_credentials_is_that_callers_verdict() -> None:
    caller, refused = _verdict(cast("ConnectionCaller", Broken(RuntimeError("a bug"))))
    assert caller is None
    assert isinstance(refused, Internal)


def test_an_unavailable_database_does_not_revoke_credentials() -> None:
    with pytest.raises(DatabaseError):
        _verdict(cast("ConnectionCaller", Broken(DatabaseError("away"))))
