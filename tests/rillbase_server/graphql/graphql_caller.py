"""Sends GraphQL operations as a caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import requests

from tests.caller import Caller


@dataclass
class GraphqlCaller:
    """Asks as a caller of the REST API does, with the same credentials."""

    caller: Caller

    def send(self, query: str | None, **more: Any) -> requests.Response:
        body = {"query": query, **more} if query is not None else more
        return self.caller.post("/graphql", body)

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """Return the data of an operation that succeeds."""
        body = self.send(query, variables=variables).json()
        assert "errors" not in body, body["errors"]
        data: dict[str, Any] = body["data"]
        return data

    def refused(self, query: str, **variables: object) -> dict[str, Any]:
        """Return the one error of an operation that fails."""
        body = self.send(query, variables=variables).json()
        (error,) = body["errors"]
        assert isinstance(error, dict)
        return error
