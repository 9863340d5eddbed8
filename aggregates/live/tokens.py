"""Resume tokens of aggregates: the node's position, and how many events have been told.

They are authenticated and bound to the caller, the aggregate and the query.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from hashlib import sha256

from aggregates.facts import AggregateFacts
from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidBody

_TAG_CHARS = 32
_FORM = re.compile(r"(\d{1,20})\.(\d{1,18})\.([0-9a-f]{32})\Z")


@dataclass(frozen=True, slots=True)
class Told:
    """Where a subscriber stands."""

    position: int
    events: int


class Tokens:
    """Writes and reads the tokens of one caller for one query."""

    def __init__(self, aggregate: AggregateFacts, actor: str, query: bytes) -> None:
        secret = environment().rillbase_secret_key.get_secret_value().encode()
        bound = f"aggregate-resume|{aggregate.tenant_id}|{aggregate.id}|{actor}|".encode()
        self._keyed = hmac.new(secret, bound + sha256(query).digest(), sha256)

    def write(self, told: Told) -> str:
        text = f"{told.position}.{told.events}"
        return f"{text}.{self._tag(text)}"

    def read(self, token: str) -> Told:
        """Return what a token says, or raise."""
        form = _FORM.match(token)
        if form is None or not hmac.compare_digest(form[3], self._tag(token[: -_TAG_CHARS - 1])):
            detail = "The token is not this subscription's."
            raise InvalidBody(errors=[FieldProblem("/resume", "invalid", detail)])
        return Told(int(form[1]), int(form[2]))

    def _tag(self, text: str) -> str:
        keyed = self._keyed.copy()
        keyed.update(text.encode())
        return keyed.hexdigest()[:_TAG_CHARS]
