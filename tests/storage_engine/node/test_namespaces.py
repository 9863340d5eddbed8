"""A tenant's token opens its own namespace, and shows nothing of others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.own_storage_node import TOKEN, OwnStorageNode, ask, token_of

#: Commands that an unauthenticated connection may send.
OPEN_COMMANDS = {"auth", "hello", "quit", "reset"}


@pytest.fixture
def pair(shared_node: OwnStorageNode) -> Iterator[tuple[redis.Redis, redis.Redis]]:
    """Clients of two namespaces, each with a topic `news`."""
    clients = [shared_node.namespace(name, protocol=3) for name in ("ann", "bob")]
    for client in clients:
        ask(client, "RB.TOPIC.CREATE", "news")
    yield clients[0], clients[1]
    for client in clients:
        ask(client, "RB.TOPIC.DROP", "news")
        client.close()


def test_topics_of_one_name_are_two(pair: tuple[redis.Redis, redis.Redis]) -> None:
    ann, bob = pair
    sid = ask(ann, "RB.SUB", "news", "ID", "1")["subscription"]
    assert ask(bob, "RB.PUB", "news", "ID", "1")["matched"] == 0
    assert ask(ann, "RB.SUB.READ", sid, 0) is None
    assert ask(ann, "RB.DATA", "news", "ID", "") == []
    assert ask(bob, "RB.SUBS", "news") == []
    assert ask(bob, "RB.SUBSCRIBERS", "news", "ID", "1") == []


def test_a_subscription_of_another_namespace_is_as_if_there_was_none(
    pair: tuple[redis.Redis, redis.Redis],
) -> None:
    ann, bob = pair
    sid = ask(ann, "RB.SUB", "news", "ID", "1")["subscription"]
    ask(ann, "RB.PUB", "news", "ID", "1")
    assert ask(bob, "RB.SUB.READ", sid, 0) == [[sid, None]]
    assert ask(bob, "RB.UNSUB", sid) == 0
    for words in (("RB.SUB.RESUME", sid), ("RB.SUB.ACK", sid, 0)):
        with pytest.raises(redis.ResponseError, match="has ended, or never existed"):
            ask(bob, *words)
    assert ask(ann, "RB.SUB.READ", sid, 0)[0][1]


def test_values_of_one_key_are_two(pair: tuple[redis.Redis, redis.Redis]) -> None:
    ann, bob = pair
    ask(ann, "RB.KV.SET", "key", "ann's")
    assert ask(bob, "RB.KV.GET", "key") is None
    assert ask(bob, "RB.KV.SCAN") == []
    assert ask(bob, "RB.KV.DEL", "key") == 0
    assert ask(ann, "RB.KV.GET", "key") == "ann's"


def test_a_tenant_sees_neither_connections_nor_statistics_of_others(
    pair: tuple[redis.Redis, redis.Redis],
) -> None:
    ann, bob = pair
    ask(ann, "CLIENT", "SETNAME", "anns-own")
    shown = str(ask(bob, "CLIENT", "LIST")) + str(ask(bob, "INFO"))
    assert "ann" not in shown.replace("channel", "")
    number = ask(ann, "CLIENT", "ID")
    assert ask(bob, "CLIENT", "KILL", "ID", number) == 0
    assert "publications_total" not in str(ask(bob, "INFO", "ALL"))


def test_only_the_administrator_manages_namespaces_and_sees_none_of_their_data(
    shared_node: OwnStorageNode, pair: tuple[redis.Redis, redis.Redis]
) -> None:
    ann, _ = pair
    for words in (("RB.NAMESPACE.LIST",), ("RB.NAMESPACE.DROP", "bob"), ("SHUTDOWN",)):
        with pytest.raises(redis.ResponseError, match="only the admin may do this"):
            ask(ann, *words)
    with (
        shared_node.client() as admin,
        pytest.raises(redis.ResponseError, match="the admin is in no namespace"),
    ):
        ask(admin, "RB.DATA", "news", "ID", "")


@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("ann", token_of("bob")),
        ("ann", TOKEN),
        ("admin", token_of("ann")),
        ("nobody", token_of("nobody")),
        ("ann", ""),
    ],
)
def test_a_wrong_token_reveals_nothing_else(
    shared_node: OwnStorageNode, pair: tuple[redis.Redis, redis.Redis], name: str, token: str
) -> None:
    with (
        shared_node.client() as client,
        client.client() as connection,
        pytest.raises(redis.AuthenticationError, match=r"^invalid username-password pair$"),
    ):
        ask(connection, "AUTH", name, token)


def test_unauthenticated_commands_are_rejected(shared_node: OwnStorageNode) -> None:
    never = Retry(NoBackoff(), 0)
    with redis.Redis(port=shared_node.port, retry=never) as stranger:
        for words in (("PING",), ("INFO",), ("COMMAND",), ("RB.TOPIC.LIST",), ("CLIENT", "LIST")):
            with pytest.raises(redis.AuthenticationError):
                ask(stranger, *words)


def test_every_command_is_refused_to_strangers_and_the_admins_to_tenants(
    shared_node: OwnStorageNode, pair: tuple[redis.Redis, redis.Redis]
) -> None:
    ann, _ = pair
    ann.set_response_callback("COMMAND", lambda rows, **_: rows)  # the library expects more of each
    flags = {str(row[0]): str(row[2]) for row in ask(ann, "COMMAND")}
    assert {
        name for name, command_flags in flags.items() if "no_auth" in command_flags
    } <= OPEN_COMMANDS
    with redis.Redis(port=shared_node.port, retry=Retry(NoBackoff(), 0)) as stranger:
        for name in flags.keys() - OPEN_COMMANDS:
            with pytest.raises(redis.AuthenticationError):
                ask(stranger, name)
    for name, command_flags in flags.items():
        if "admin" in command_flags:
            with pytest.raises(redis.ResponseError, match="only the admin may do this"):
                ask(ann, name)


def test_another_token_ends_the_connections_of_the_one_before(node: OwnStorageNode) -> None:
    client = node.namespace("ann", protocol=3)
    ask(client, "RB.TOPIC.CREATE", "news")
    with node.client() as admin:
        assert ask(admin, "RB.NAMESPACE.ROTATE", "ann", "another-token-of-ann")
    with pytest.raises((redis.AuthenticationError, redis.ConnectionError)):
        ask(client, "RB.TOPIC.LIST")
    with node.client("ann", "another-token-of-ann") as renewed:
        assert len(ask(renewed, "RB.TOPIC.LIST")) == 1


def test_a_namespace_is_dropped_with_all_that_was_in_it(node: OwnStorageNode) -> None:
    client = node.namespace("ann", protocol=3)
    ask(client, "RB.TOPIC.CREATE", "news")
    ask(client, "RB.PUB", "news", "ID", "1")
    ask(client, "RB.KV.SET", "key", "value")
    with node.client() as admin:
        assert ask(admin, "RB.NAMESPACE.DROP", "ann") == 1
        assert ask(admin, "RB.NAMESPACE.DROP", "ann") == 0
    again = node.namespace("ann", protocol=3)
    assert ask(again, "RB.TOPIC.LIST") == []
    assert ask(again, "RB.KV.SCAN") == []
    ask(again, "RB.TOPIC.CREATE", "news")
    assert ask(again, "RB.DATA", "news", "ID", "") == []
