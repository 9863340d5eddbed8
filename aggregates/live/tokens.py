"""Resume tokens of aggregates: the position in the log and the number of events sent.

They are encrypted, since the node counts positions across all tenants, and bound to the caller, the
aggregate and the query.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import sha256

from aggregates.facts import AggregateFacts
from foundation import opaque_tokens
from foundation.errors import FieldProblem, InvalidBody

_PURPOSE = "rillbase-aggregate-resume"
_FORM = struct.Struct(">QQ")


@dataclass(frozen=True, slots=True)
class AggregateResumePoint:
    """The position of a subscriber."""

    position: int
    events: int


class AggregateTokens:
    """Writes and reads the tokens of one caller for one query."""

    def __init__(self, aggregate: AggregateFacts, actor: str, query: bytes) -> None:
        bound = f"{aggregate.tenant_id}|{aggregate.id}|{actor}|".encode()
        self._bound = bound + sha256(query).digest()

    def write(self, point: AggregateResumePoint) -> str:
        plain = _FORM.pack(point.position, point.events)
        return opaque_tokens.write(_PURPOSE, plain, self._bound)

    def read(self, token: str) -> AggregateResumePoint:
        """Decode a token, or raise."""
        try:
            return AggregateResumePoint(
                *_FORM.unpack(opaque_tokens.read(_PURPOSE, token, self._bound))
            )
        except opaque_tokens.UnknownToken:
            detail = "The token belongs to a different subscription."
            raise InvalidBody(errors=[FieldProblem("/resume", "invalid", detail)]) from None
