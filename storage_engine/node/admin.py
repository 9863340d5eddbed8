"""Commands to the storage node from threads and tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from uuid import UUID

from redis.exceptions import ConnectionError as NodeUnavailable
from redis.exceptions import ResponseError

from foundation.environment import environment
from foundation.errors import Unavailable
from foundation.valkey_sockets import ValkeySockets
from storage_engine.node.access import NO_NAMESPACE, access

CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 10.0


def is_configured() -> bool:
    """Return whether this installation has a storage node."""
    return bool(environment().storage_url)


def checkpoint(name: str) -> str:
    """Create a checkpoint of the node's data; return its path on the node's disk."""
    with administrator_connection() as node:
        path = node.call("RB.CHECKPOINT", name)
    return path.decode() if isinstance(path, bytes) else str(path)


def drop_namespace(tenant_id: UUID) -> None:
    """Remove everything that a tenant has in the node."""
    with administrator_connection() as node:
        node.call("RB.NAMESPACE.DROP", str(tenant_id))


def drop_topic(tenant_id: UUID, topic_id: UUID) -> None:
    """Remove a topic with all that it holds. Its subscribers are notified."""
    with tenant_connection(tenant_id) as node:
        if node is not None:
            node.call("RB.TOPIC.DROP", str(topic_id))


def set_retention(tenant_id: UUID, topic_id: UUID, retention_s: int) -> None:
    """Change how long publications live, if the node knows the topic."""
    with tenant_connection(tenant_id) as node:
        if node is None:
            return
        try:
            node.call("RB.TOPIC.ALTER", str(topic_id), "RETENTION", f"{retention_s}s")
        except ResponseError as error:
            if code_of(error) != "NO_TOPIC":
                raise


@contextmanager
def administrator_connection() -> Iterator[ValkeySockets]:
    """Lend connections of the administrator."""
    with _connected("admin", access().token) as node:
        yield node


@contextmanager
def tenant_connection(tenant_id: UUID) -> Iterator[ValkeySockets | None]:
    """Lend connections for a tenant, or None if the node has no data of it."""
    name = str(tenant_id)
    with _connected(name, access().token_of(name)) as node:
        try:
            node.call("PING")
        except ResponseError as error:
            if code_of(error) not in NO_NAMESPACE:
                raise
            yield None
        else:
            yield node


def code_of(refused: ResponseError) -> str:
    """Return the code of an error."""
    return str(refused).partition(" ")[0]


@contextmanager
def _connected(user: str, token: str) -> Iterator[ValkeySockets]:
    parts = access().parts
    host = f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
    node = ValkeySockets(
        f"{parts.scheme}://{user}:{quote(token, safe='')}@{host}",
        connect_timeout_s=CONNECT_TIMEOUT_S,
        answer_timeout_s=ANSWER_TIMEOUT_S,
    )
    try:
        yield node
    except NodeUnavailable as error:
        raise Unavailable(f"The storage node does not respond: {error}") from None
    finally:
        node.close()
