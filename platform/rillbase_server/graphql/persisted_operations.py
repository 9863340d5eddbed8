"""Persisted operations, which clients name by a hash instead of sending the text each time. A
client sends only the hash; if it is unknown, the client sends it once with the text. Texts are kept
per tenant, and expire some days after they were last sent in full.
"""

from __future__ import annotations

from hashlib import sha256
from hmac import compare_digest

from redis.exceptions import RedisError

from foundation.errors import FieldProblem, InvalidBody, PersistedQueryNotFound
from foundation.event_server import wire
from rillbase_server.graphql.context import Context
from rillbase_server.graphql.operations import GraphqlRequest

LIFETIME_S = 7 * 24 * 3600


async def text_of(request: GraphqlRequest, context: Context) -> str:
    """Return the text of a hash, or raise `PersistedQueryNotFound`."""
    if request.text is not None:
        if request.hash is not None and not _fits(request.text, request.hash):
            raise _wrong("The text does not match the hash.")
        return request.text
    if request.hash is None:
        problem = FieldProblem("/query", "required", "This field is required.")
        raise InvalidBody(errors=[problem])
    try:
        stored = await wire().call("GET", _key(context, request.hash))
    except RedisError:
        stored = None
    if not isinstance(stored, bytes):
        # Clients recognize this case by this text.
        raise PersistedQueryNotFound("PersistedQueryNotFound")
    return stored.decode()


async def keep(request: GraphqlRequest, context: Context) -> None:
    """Store a valid text that was sent with its hash."""
    if request.text is None or request.hash is None:
        return
    try:
        await wire().call(
            "SET", _key(context, request.hash), request.text.encode(), "EX", LIFETIME_S
        )
    except RedisError:
        return  # the client will have to send it again


def _key(context: Context, text_hash: str) -> str:
    if len(text_hash) != sha256().digest_size * 2 or not text_hash.isalnum():
        raise _wrong("Expected a SHA-256 hash in hexadecimal.")
    return f"{{rillbase}}:graphql:{context.in_tenant().id}:{text_hash.lower()}"


def _fits(text: str, text_hash: str) -> bool:
    return compare_digest(sha256(text.encode()).hexdigest(), text_hash.lower())


def _wrong(detail: str) -> InvalidBody:
    problem = FieldProblem("/extensions/persistedQuery/sha256Hash", "invalid", detail)
    return InvalidBody(errors=[problem])
