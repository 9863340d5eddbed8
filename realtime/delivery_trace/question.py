"""A question, as it travels from the process that received it to the one that can answer."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from uuid import UUID

from foundation.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothetical subscriber of a query."""

    #: A `subscribe`, as Extended JSON.
    query: str
    #: The user's claims; None: an anonymous caller.
    claims: JsonObject | None
    #: Whether access rules bind the caller: not those of keys and members.
    is_ruled: bool


@dataclass(frozen=True, slots=True)
class TraceQuestion:
    """Why has a subscription received a version of a document, or why not?"""

    tenant_id: UUID
    #: The subscription's id within its process, or a hypothetical subscriber.
    about: str | Hypothesis
    key: bytes
    #: None: the newest one.
    version: int | None
    #: The list on which the answer is expected.
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))

    def to_json(self) -> bytes:
        about = self.about
        return json.dumps(
            {
                "tenant": str(self.tenant_id),
                "about": about
                if isinstance(about, str)
                else [about.query, about.claims, about.is_ruled],
                "key": self.key.hex(),
                "version": self.version,
                "nonce": self.nonce,
            }
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> TraceQuestion:
        """Parse a question, or raise `ValueError`, `KeyError` or `TypeError`."""
        members = json.loads(text)
        about = members["about"]
        return cls(
            UUID(members["tenant"]),
            about if isinstance(about, str) else Hypothesis(*about),
            bytes.fromhex(members["key"]),
            members["version"],
            members["nonce"],
        )
