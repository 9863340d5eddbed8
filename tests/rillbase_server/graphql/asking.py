"""Sends GraphQL operations as somebody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import requests

from tests.caller import Caller


@dataclass
class Asking:
    """Asks as a caller of the REST API does, with the same credentials."""

    caller: Caller

    def send(self, query: str | None, **more: Any) -> requests.Response:
        body = {"query": query, **more} if query is not None else more
        return self.caller.post("/graphql", body)

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """Return the data of an operation that succeeds."""
        found = self.send(query, variables=variables).json()
        assert "errors" not in found, found["errors"]
        data: dict[str, Any] = found["data"]
        return data

    def refused(self, query: str, **variables: object) -> dict[str, Any]:
        """Return the one error of an operation that fails."""
        found = self.send(query, variables=variables).json()
        (error,) = found["errors"]
        assert isinstance(error, dict)
        return error
